"""The custom calls allowed in untrusted programs, each with a check of its types.

A custom call names a function of this process, which trusts its caller: a Python callback indexes a
list, and LAPACK writes as many elements as its first operand's sizes imply, whatever the size of
its results. So an untrusted module may call only the targets of this table, with operands, results
and options that fit each other.

A kernel's types are written as `operands -> results`. A value is written as the letters of its
sizes, where equal letters are equal sizes, after any number of batch axes that all values share;
"-" stands for no sizes. Its element type follows, if it is not the kernel's own: `:r` for the real
type of the same precision, `:c` for the complex one, `:i` for int32. `k` is the smaller of `m` and
`n`, and `h` is `n - 1`.

This file imports nothing of hlofront: workers load it by its path.
"""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from jaxlib.mlir import ir

# Sizes of a value, or None for one that is not known before the module is called.
Shape = tuple["int | None", ...]


class CustomCallError(ValueError):
    """The error of a custom call that an untrusted program must not contain."""


class ValueType(NamedTuple):
    """The type of an operand or a result: its sizes, and its element type as MLIR writes it."""

    shape: Shape
    element: str

    def __str__(self) -> str:
        sizes = ",".join("?" if size is None else str(size) for size in self.shape)
        return f"{self.element}[{sizes}]"


class CustomCall(NamedTuple):
    """The properties of a custom call that its check reads."""

    target: str
    operands: Sequence[ValueType]
    results: Sequence[ValueType]
    options: Mapping[str, object]

    def refused(self, reason: str) -> CustomCallError:
        operands, results = (", ".join(map(str, types)) for types in (self.operands, self.results))
        return CustomCallError(
            f"its custom call of {self.target!r}, ({operands}) -> ({results}), {reason}"
        )


Check = Callable[[CustomCall], None]

# ---- kernels -------------------------------------------------------------------------------------

_REAL = {"f32": "f32", "f64": "f64", "complex<f32>": "f32", "complex<f64>": "f64"}
_COMPLEX = {"f32": "complex<f32>", "f64": "complex<f64>"}
_LETTERS = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}
_MAX_SIZE = 2**31 - 1


def _element(kind: str, default: str) -> str:
    real = _REAL[default]
    return {"": default, "r": real, "c": _COMPLEX[real], "i": "i32"}[kind]


class Kernel(NamedTuple):
    """A kernel for batches of matrices.

    Attributes:
      types: its operands and results; several if its options choose between them.
      options: the allowed values of its options, by name; other options may have any value.
      condition: whether the sizes, by letter, fit each other and the options.
      may_be_empty: whether matrices may have no elements. Other kernels would then read the amount
          to allocate from uninitialized memory.
    """

    types: Sequence[str]
    options: Mapping[str, Sequence[object]] = {}
    condition: Callable[[Mapping[str, int], Mapping[str, object]], bool] | None = None
    may_be_empty: bool = True

    def check(self, call: CustomCall, elements: Collection[str]) -> None:
        """Raise a CustomCallError unless a call's types and options fit.

        Args:
          call: the call.
          elements: the element types that the kernel accepts.
        """
        for name, allowed in self.options.items():
            if call.options.get(name) not in allowed:
                raise call.refused(f"has the option {name} = {call.options.get(name)!r}")
        if not call.operands or call.operands[0].element not in elements:
            raise call.refused(f"has a first operand of another dtype than {sorted(elements)}")
        sizes = next(filter(None, (_sizes(call, written) for written in self.types)), None)
        if sizes is None:
            raise call.refused(f"has not the types {' or '.join(self.types)}")
        if not self.may_be_empty and 0 in (sizes.get("m"), sizes.get("n")):
            raise call.refused("has matrices without elements")
        if self.condition is not None and None not in sizes.values():
            if not self.condition(sizes, call.options):
                raise call.refused("has sizes that do not fit each other")


def _sizes(call: CustomCall, written: str) -> dict[str, Any] | None:
    """Return the size for each letter in a call's types, or None if its types do not match."""
    operands, results = (side.split() for side in written.split("->"))
    if (len(operands), len(results)) != (len(call.operands), len(call.results)):
        return None
    element = call.operands[0].element
    batch: Shape | None = None
    sizes: dict[str, int | None] = {}
    for text, value in zip((*operands, *results), (*call.operands, *call.results), strict=True):
        letters, _, kind = text.partition(":")
        letters = letters.replace("-", "")
        count = len(value.shape) - len(letters)
        if count < 0 or value.element != _element(kind, element):
            return None
        outer = value.shape[:count]
        if batch is None:
            batch = outer
        if len(batch) != count or not all(map(_may_equal, batch, outer)):
            return None
        for letter, size in zip(letters, value.shape[count:], strict=True):
            expected = _derived(letter, sizes)
            known = sizes.get(letter) if expected is None else expected
            if letter in sizes and not _may_equal(size, known):
                return None
            if expected is not None and not _may_equal(size, expected):
                return None
            if size is not None and size > _MAX_SIZE:
                return None
            sizes[letter] = size if known is None else known
    return sizes


def _derived(letter: str, sizes: Mapping[str, int | None]) -> int | None:
    """Return the size for a letter, if other letters determine it."""
    if letter == "k" and "n" in sizes and "m" in sizes:
        m, n = sizes["m"], sizes["n"]
        return None if m is None or n is None else min(m, n)
    if letter == "h" and "n" in sizes:
        n = sizes["n"]
        return None if n is None else max(n - 1, 0)
    return None


def _may_equal(one: int | None, other: int | None) -> bool:
    return one is None or other is None or one == other


def _characters(text: str) -> list[int]:
    return [ord(character) for character in text]


_TRIANGLE = {"uplo": _characters("LU")}
_PART = {"mode": _characters("ASN")}
_FLAG = [True, False]


def _svd_fits(sizes: Mapping[str, int], options: Mapping[str, object]) -> bool:
    """Return whether the factors are as large as the mode requires; "N" does not use them."""
    whole = sizes["u"] == sizes["m"] and sizes["v"] == sizes["n"]
    least = min(sizes["m"], sizes["n"])
    return whole or (options["mode"] != ord("A") and sizes["u"] == least and sizes["v"] == least)


_SVD = Kernel(["mn -> mn k:r mu vn -:i"], _PART, _svd_fits, False)
_GEEV_OPTIONS = {"compute_left": _characters("NV"), "compute_right": _characters("NV")}
# The eigenvalues of real matrices are two arrays, of real and of imaginary parts. Sorting would
# call a function that the kernel does not have.
_GEES_OPTIONS = {"mode": _characters("NV"), "sort": _characters("N")}
Sizes = Mapping[str, int]
Options = Mapping[str, object]


def _product_fits(sizes: Sizes, options: Options) -> bool:
    return sizes["p"] <= sizes["n"] <= sizes["m"]


def _multiplication_fits(sizes: Sizes, options: Options) -> bool:
    return sizes["p"] <= sizes["a"] == sizes["m" if options["left"] else "n"]


def _solution_fits(sizes: Sizes, options: Options) -> bool:
    return sizes["a"] == sizes["m" if options["side"] == ord("L") else "n"]


def _range_fits(sizes: Sizes, options: Options) -> bool:
    low, high = options.get("low"), options.get("high")
    return isinstance(low, int) and isinstance(high, int) and 1 <= low <= high <= sizes["n"]


_ORGQR = Kernel(["mn p -> mn"], {}, _product_fits)
_ORMQR = Kernel(["ap p mn -> mn"], {"left": _FLAG, "transpose": _FLAG}, _multiplication_fits)
_POTRF, _GETRF, _GEQRF = (
    Kernel(["nn -> nn -:i"]),
    Kernel(["mn -> mn k:i -:i"]),
    Kernel(["mn -> mn k"]),
)
_SYEVD, _SYTRD = Kernel(["nn -> nn n:r -:i"]), Kernel(["nn -> nn n:r h:r h -:i"])
_TRIDIAGONAL = Kernel(["n n n nb -> nb"])
_GEHRD = Kernel(["nn -> nn h -:i"], {}, _range_fits)

_LAPACK = {
    "potrf": _POTRF._replace(options=_TRIANGLE),
    "getrf": _GETRF,
    "geqrf": _GEQRF,
    "geqp3": Kernel(["mn n:i -> mn n:i k"], may_be_empty=False),
    "orgqr": _ORGQR,
    "ormqr": _ORMQR,
    "trsm": Kernel(
        ["aa mn -> mn"],
        {
            "side": _characters("LR"),
            "uplo": _characters("LU"),
            "trans_x": _characters("NTC"),
            "diag": _characters("NU"),
        },
        _solution_fits,
    ),
    "gtsv": Kernel(["n n n nb -> n n n nb -:i"]),
    "gesdd": _SVD,
    "gesvd": _SVD,
    "syevd": _SYEVD._replace(options={"mode": _characters("NV"), **_TRIANGLE}),
    "sytrd": _SYTRD._replace(options=_TRIANGLE, may_be_empty=False),
    "gehrd": _GEHRD,
}
_LAPACK_OF_REAL = {
    "geev": Kernel(["nn -> n n nn:c nn:c -:i"], _GEEV_OPTIONS, may_be_empty=False),
    "gees": Kernel(["nn -> nn nn n n -:i -:i"], _GEES_OPTIONS, may_be_empty=False),
}
_LAPACK_OF_COMPLEX = {
    "geev": Kernel(["nn -> n nn nn -:i"], _GEEV_OPTIONS, may_be_empty=False),
    "gees": Kernel(["nn -> nn nn n -:i -:i"], _GEES_OPTIONS, may_be_empty=False),
}
# The routines whose names differ for complex matrices by more than a letter.
_NAMES_OF_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}


def _gpu_svd_fits(sizes: Mapping[str, int], options: Mapping[str, object]) -> bool:
    least = min(sizes["m"], sizes["n"])
    if not options.get("compute_uv"):
        return True
    if options.get("full_matrices"):
        return sizes["u"] == sizes["m"] and sizes["v"] == sizes["n"]
    return sizes["u"] == least and sizes["v"] == least


_GPU_SVD_OPTIONS = {"compute_uv": _FLAG, "full_matrices": _FLAG}
_GPU_SOLVER = {
    "potrf": _POTRF,
    "getrf": _GETRF,
    "geqrf": _GEQRF,
    "orgqr": _ORGQR,
    "ormqr": _ORMQR,
    "syevd": _SYEVD,
    "sytrd": _SYTRD,
    "gesvd": Kernel(
        ["mn -> mn k:r mu vn -:i"],
        {**_GPU_SVD_OPTIONS, "transposed": _FLAG},
        _gpu_svd_fits,
    ),
    "gesdd": Kernel(["mn -> mn k:r mu vn -:i"], _GPU_SVD_OPTIONS, _gpu_svd_fits),
    "gesvdj": Kernel(["mn -> mn k:r mu nv -:i"], _GPU_SVD_OPTIONS, _gpu_svd_fits),
    "gesvdp": Kernel(["mn -> mn k:r mu nv -:i"], _GPU_SVD_OPTIONS, _gpu_svd_fits),
    "geev": Kernel(["nn -> nn n:c nn nn -:i"], {"left": [False], "right": _FLAG}),
}

# ---- other targets -------------------------------------------------------------------------------


def _alike(call: CustomCall) -> None:
    """Check a call that returns its only operand."""
    (*operands,), (*results,) = call.operands, call.results
    if len(operands) != 1 or len(results) != 1 or not _same_types(operands[0], results[0]):
        raise call.refused("does not return a value of the type of its only operand")


def _same_types(one: ValueType, other: ValueType) -> bool:
    return (
        one.element == other.element
        and len(one.shape) == len(other.shape)
        and all(map(_may_equal, one.shape, other.shape))
    )


def _of_same_rank(call: CustomCall) -> None:
    """Check a call that returns each operand, or a part of it."""
    same = len(call.operands) == len(call.results) and all(
        one.element == other.element and len(one.shape) == len(other.shape)
        for one, other in zip(call.operands, call.results, strict=True)
    )
    if not same:
        raise call.refused("does not return values of the dtypes and ranks of its operands")


def _without_results(call: CustomCall) -> None:
    if call.results:
        raise call.refused("has results")


def _assertion(call: CustomCall) -> None:
    numbers = ValueType((), "i32"), ValueType((), "i64")
    fits = call.operands and call.operands[0] == ValueType((), "i1") and not call.results
    if not fits or any(size not in numbers for size in call.operands[1:]):
        raise call.refused("does not take a boolean and integers")


def _top_k(call: CustomCall) -> None:
    if len(call.operands) != 1 or len(call.results) != 2:
        raise call.refused("does not take an array and return values and indices")
    (x,), (values, indices) = call.operands, call.results
    fits = (
        len(x.shape) == len(values.shape) >= 1
        and values.shape == indices.shape
        and values.element == x.element
        and indices.element == "i32"
        and all(map(_may_equal, x.shape[:-1], values.shape[:-1]))
    )
    size, count = (x.shape[-1], values.shape[-1]) if fits else (None, None)
    if not fits or (size is not None and count is not None and count > size):
        raise call.refused("does not return values and indices of its last axis")


def _approximate_top_k(call: CustomCall) -> None:
    """Check that arrays and their initial values are followed by as many results."""
    count = len(call.results)
    if count == 0 or len(call.operands) != 2 * count:
        raise call.refused("does not take arrays and as many initial values")
    for x, initial, result in zip(
        call.operands[:count], call.operands[count:], call.results, strict=True
    ):
        if initial.shape or not x.element == initial.element == result.element:
            raise call.refused("has initial values or results of other types")
        if len(x.shape) != len(result.shape):
            raise call.refused("has results of another rank")


def _pivots(call: CustomCall) -> None:
    if len(call.operands) != 1 or len(call.results) != 1:
        raise call.refused("does not take pivots and return a permutation")
    (pivots,), (order,) = call.operands, call.results
    fits = (
        pivots.element == order.element == "i32"
        and len(pivots.shape) == len(order.shape) >= 1
        and all(map(_may_equal, pivots.shape[:-1], order.shape[:-1]))
    )
    few, many = (pivots.shape[-1], order.shape[-1]) if fits else (None, None)
    if not fits or (few is not None and many is not None and few > many):
        raise call.refused("does not take pivots and return a permutation")


def _random_words(call: CustomCall) -> None:
    values = [*call.operands, *call.results]
    alike = all(value.element == "ui32" and _same_types(value, values[0]) for value in values)
    if (len(call.operands), len(call.results)) != (4, 2) or not alike:
        raise call.refused("does not take four arrays of uint32 and return two")


def _by_refinement(call: CustomCall) -> None:
    """Leave the check to StableHLO, which replaces the call when it knows all sizes."""


def _kernel(kernel: Kernel, *elements: str) -> Check:
    return lambda call: kernel.check(call, elements or tuple(_REAL))


def _targets() -> dict[str, Check]:
    checks: dict[str, Check] = {}
    for letter, element in _LETTERS.items():
        of_kind = _LAPACK_OF_REAL if letter in "sd" else _LAPACK_OF_COMPLEX
        for routine, kernel in (*_LAPACK.items(), *of_kind.items()):
            name = routine if letter in "sd" else _NAMES_OF_COMPLEX.get(routine, routine)
            checks[f"lapack_{letter}{name}_ffi"] = _kernel(kernel, element)
    for solver in ("cusolver", "hipsolver"):
        for routine, kernel in _GPU_SOLVER.items():
            checks[f"{solver}_{routine}_ffi"] = _kernel(kernel)
    for own, sparse in (("cu", "cusparse"), ("hip", "hipsparse")):
        checks[f"{own}_lu_pivots_to_permutation"] = _pivots
        checks[f"{own}_threefry2x32_ffi"] = _random_words
        checks[f"{sparse}_gtsv2_ffi"] = _kernel(_TRIDIAGONAL)
        checks[f"{own}_tridiagonal_solve_perturbed"] = _kernel(_TRIDIAGONAL)
    return checks


_TARGETS: dict[str, Check] = {
    **_targets(),
    "tridiagonal_solve_perturbed_ffi": _kernel(_TRIDIAGONAL),
    # Annotations, which XLA's compilers replace, or read and remove.
    "Sharding": _alike,
    "LayoutConstraint": _alike,
    "annotate_device_placement": _alike,
    "xla.sdy.FuncResultSharding": _alike,
    "SPMDFullToShardShape": _of_same_rank,
    "SPMDShardToFullShape": _of_same_rank,
    "xla.sdy.GlobalToLocalShape": _of_same_rank,
    "xla.sdy.LocalToGlobalShape": _of_same_rank,
    "dce_sink": _without_results,
    "shape_assertion": _assertion,
    "mhlo.topk": _top_k,
    "ApproxTopK": _approximate_top_k,
    "Eigh": _kernel(Kernel(["nn -> nn n:r"])),
    "Qr": _kernel(_GEQRF),
    "LuDecomposition": _kernel(Kernel(["mn -> mn k:i m:i"])),
    "ProductOfElementaryHouseholderReflectors": _kernel(_ORGQR),
    "stablehlo.dynamic_reduce_window": _by_refinement,
    "stablehlo.dynamic_rng_bit_generator": _by_refinement,
    "stablehlo.dynamic_top_k": _by_refinement,
    "stablehlo.dynamic_approx_top_k": _by_refinement,
}


def check_custom_call(
    operation: "ir.Operation", registered: Collection[str], others: bool = False
) -> None:
    """Raise a CustomCallError unless an untrusted program may contain a custom call.

    Args:
      operation: the custom call.
      registered: the names of the functions that the user has registered, which check their own
        arguments.
      others: whether targets that are neither registered nor checked here are allowed, as is the
        case if the user's own program is part of the module.
    """
    attributes = operation.attributes
    target = ir.StringAttr(attributes["call_target_name"]).value
    if target in registered:
        return
    check = _TARGETS.get(target)
    if check is None:
        if others:
            return
        raise CustomCallError(
            f"it calls {target!r}, which is code outside of the program. Untrusted programs may "
            "call LAPACK and other kernels of jaxlib, with operands that fit them, and functions "
            "that this process has registered with jax.ffi"
        )
    operands = list(operation.operands)
    if "indices_of_shape_operands" in attributes:
        # The last operands are the shapes of results whose sizes are not known.
        operands = operands[: -len(operation.results) or None]
    options: dict[str, object] = {}
    if "backend_config" in attributes:
        options = _options(attributes["backend_config"])
    try:
        types = [[_type(value.type) for value in side] for side in (operands, operation.results)]
    except ValueError as error:
        raise CustomCallError(f"its custom call of {target!r} has {error}") from None
    check(CustomCall(target, types[0], types[1], options))


def _type(mlir_type: "ir.Type") -> ValueType:
    if not isinstance(mlir_type, ir.RankedTensorType):
        raise ValueError(f"a value of type {mlir_type}")
    shape = tuple(
        None if mlir_type.is_dynamic_dim(axis) else mlir_type.get_dim_size(axis)
        for axis in range(mlir_type.rank)
    )
    return ValueType(shape, str(mlir_type.element_type))


def _options(config: "ir.Attribute") -> dict[str, object]:
    if not isinstance(config, ir.DictAttr):
        return {}
    return {attribute.name: _option(attribute.attr) for attribute in config}


def _option(attribute: "ir.Attribute") -> object:
    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr | ir.StringAttr):
        return attribute.value
    return str(attribute)
