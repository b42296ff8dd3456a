"""The types that signatures say: a parameter of one name means one thing in all functions."""

import inspect
from types import FunctionType
from typing import Any

# Type -> the parameters that are of it, or which are None or of it where that is their default.
_TYPES = {
    "ArrayLike": "a a1 a2 A ar ar1 ar2 arr array ary atol aweights b B base beta condition default "
    "discont dx element f fill_value filt fp fweights ind indices initial m mask max mean min nan "
    "neginf new p period posinf prepend q repeats rtol sample seq_of_zeros sorter start step stop "
    "test_elements to_begin to_end u v val vals values w weights where x x1 x2 xp y z append M N k "
    "prototype",
    "int": "axis axis1 axis2 axisa axisb axisc ddof decimals kth length minlength ndim n num "
    "offset edge_order size total_repeat_length unroll nin nout nargs max_line_width deg count",
    "int | Sequence[int]": "source destination reps indices_or_sections shift",
    "Sequence[int]": "dims dimensions axes",
    "bool": "assume_unique bias cov density descending endpoint equal_nan full include_initial "
    "increasing indices_are_sorted invert keepdims overwrite_input promote_integers retstep "
    "return_counts return_index return_indices return_inverse returned rowvar sorted sparse stable "
    "unique_indices wrap copy inplace strip_zeros",
    "str": "bitorder indexing mode order side subscripts method casting sep string trim",
    "DTypeLike": "dtype preferred_element_type",
    "Callable[..., Any]": "func func1d function mask_func pyfunc",
    "Sequence[ArrayLike]": "arrays tup choices choicelist condlist multi_index keys",
    "ArrayLike | Sequence[ArrayLike]": "bins",
    "float": "rcond",
    "int | float": "correction",
    "int | Sequence[Any]": "pad_width",
    "PrecisionLike": "precision",
    "Device | Sharding": "device",
    "NamedSharding | PartitionSpec": "out_sharding",
    "ArrayLike | slice": "obj",
    "str | bool | Sequence[tuple[int, ...]]": "optimize",
    "Sequence[Any]": "range",
    "Shape": "shape new_shape shapes",
}
_TYPE_OF = {name: type_ for type_, names in _TYPES.items() for name in names.split()}
# Parameters of several arrays, `*args`.
_SEVERAL = {"args", "arys", "xi", "operands", "varargs"}

_SEVERAL_AXES = "int | Sequence[int] | None"
# (function, parameter) -> its type, where it means another thing there.
_ELSEWHERE = {
    ("append", "axis"): "int | None",
    ("convolve", "mode"): "str",
    ("cov", "m"): "ArrayLike",
    ("diag", "k"): "int",
    ("from_dlpack", "x"): "Any",
    ("interp", "left"): "ArrayLike | str | None",
    ("interp", "right"): "ArrayLike | str | None",
    ("interp", "period"): "ArrayLike | None",
    ("issubdtype", "arg1"): "DTypeLike",
    ("issubdtype", "arg2"): "DTypeLike",
    ("pad", "mode"): "str | Callable[..., Any]",
    ("polyint", "m"): "int",
    ("polyint", "k"): "ArrayLike | None",
    ("polyder", "m"): "int",
    ("roll", "axis"): _SEVERAL_AXES,
    ("rot90", "k"): "int",
    ("rot90", "axes"): "tuple[int, int]",
    ("tensordot", "axes"): "int | Sequence[int] | Sequence[Sequence[int]]",
    ("vander", "N"): "int | None",
    **{(name, "k"): "int" for name in ("tri", "tril", "triu", "diagflat", "eye")},
    **{
        (name, size): "int | None" if name in ("eye", "tri") and size == "M" else "int"
        for name in ("eye", "tri", "bartlett", "blackman", "hamming", "hanning", "kaiser")
        for size in ("N", "M")
    },
    **{
        (name, "axis"): _SEVERAL_AXES
        for name in (
            "all",
            "amax",
            "amin",
            "any",
            "average",
            "count_nonzero",
            "expand_dims",
            "flip",
            "max",
            "mean",
            "median",
            "min",
            "nanmax",
            "nanmean",
            "nanmedian",
            "nanmin",
            "nanpercentile",
            "nanprod",
            "nanquantile",
            "nanstd",
            "nansum",
            "nanvar",
            "percentile",
            "prod",
            "ptp",
            "quantile",
            "squeeze",
            "std",
            "sum",
            "var",
            "gradient",
        )
    },
}
_PAIR = "tuple[Array, Array]"
_MANY = "list[Array]"
# Function -> what it returns, where that is no array.
RESULTS = {
    "average": f"Array | {_PAIR}",
    "can_cast": "bool",
    "divmod": _PAIR,
    "einsum_path": "tuple[list[Any], str]",
    "frexp": _PAIR,
    "gradient": f"Array | {_MANY}",
    "histogram": _PAIR,
    "histogram2d": "tuple[Array, Array, Array]",
    "histogramdd": "tuple[Array, list[Array]]",
    "linspace": f"Array | {_PAIR}",
    "modf": _PAIR,
    "polydiv": _PAIR,
    "polyfit": "Array | tuple[Array, ...]",
    "promote_types": "DType",
    "result_type": "DType",
    "indices": "Array | tuple[Array, ...]",
    "intersect1d": "Array | tuple[Array, Array, Array]",
    "unique": "Array | tuple[Array, ...]",
    "frombuffer": "Array",
    "load": "Any",
    "printoptions": "Any",
    **dict.fromkeys(("array_split", "broadcast_arrays", "dsplit", "hsplit", "vsplit"), _MANY),
    **dict.fromkeys(("meshgrid", "split"), _MANY),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), f"Array | {_MANY}"),
    **dict.fromkeys(("diag_indices", "diag_indices_from", "ix_", "nonzero"), "tuple[Array, ...]"),
    **dict.fromkeys(("unravel_index", "unstack"), "tuple[Array, ...]"),
    **dict.fromkeys(("mask_indices", "tril_indices", "tril_indices_from"), _PAIR),
    **dict.fromkeys(("triu_indices", "triu_indices_from"), _PAIR),
}


def annotate(function: FunctionType) -> None:
    """Write the types of its parameters and result into a function.

    Its code works on anything that stands for an array, so it has no types itself, or Any. What
    it does say is left as it is.
    """
    code, said = function.__code__, function.__annotations__
    name = function.__name__
    count = code.co_argcount + code.co_kwonlyargcount
    parameters = code.co_varnames
    defaults = function.__defaults__ or ()
    by_name = dict(zip(parameters[code.co_argcount - len(defaults) :], defaults, strict=False))
    by_name.update(function.__kwdefaults__ or {})
    for parameter in parameters[:count]:
        if said.get(parameter, Any) is Any:
            said[parameter] = _type_of(name, parameter, by_name.get(parameter, _REQUIRED))
    if code.co_flags & inspect.CO_VARARGS:
        if said.get(parameters[count], Any) is Any:
            several = parameters[count] in _SEVERAL
            said[parameters[count]] = (
                "ArrayLike" if several else _TYPE_OF.get(parameters[count], "Any")
            )
        count += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        said.setdefault(parameters[count], Any)
    # Functions of the other namespaces, as linalg, say themselves what they return.
    if said.get("return", Any) is Any and function.__module__.count(".") == _HERE:
        said["return"] = RESULTS.get(name, "Array")


_HERE = __name__.count(".")
_REQUIRED = object()
_OF_DEFAULT = {bool: "bool", str: "str"}


def _type_of(name: str, parameter: str, default: Any) -> Any:
    if parameter == "out" or (parameter == "kind" and default is None):
        return None
    found = _ELSEWHERE.get((name, parameter))
    if found is not None:
        return found
    found = _OF_DEFAULT.get(type(default)) or _TYPE_OF.get(parameter, "Any")
    return f"{found} | None" if default is None and found != "Any" else found
