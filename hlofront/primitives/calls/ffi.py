"""ffi_call: functions of C++ and CUDA libraries, called by the programs that XLA compiles."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.hashable import HashableArray
from hlofront.base.typing import Array, ArrayLike, ArrayLikes, NumPyArray, is_tuple_or_list
from hlofront.core.aval import AbstractToken, AbstractValue, ShapedArray, typeof
from hlofront.core.effects import Effects, OwnEffect, no_effects
from hlofront.core.primitive import Primitive
from hlofront.core.rules import effects, infer, jvp, transpose
from hlofront.core.sharding.sharded_types import plain_aval
from hlofront.core.trace import process
from hlofront.primitives.calls.callbacks import check_vmap_method

# The order of an array's axes in memory, the fastest-varying first.
MinorToMajor = tuple[int, ...]
# A layout as users write it: the order of axes, the slowest-varying first; None is row-major.
LayoutOptions = Sequence[int] | None
# Pairs (index of an operand, index of the result that reuses its buffer).
Aliases = tuple[tuple[int, int], ...]

# The first version of custom calls with typed attributes.
TYPED_API_VERSION = 4


class FfiEffect(OwnEffect):
    """The effect of a foreign function that does more than compute its results."""

    __slots__ = ()

    def __str__(self) -> str:
        return "FFI"


ffi_effect = FfiEffect()
ffi_call_p = Primitive("ffi_call", multiple_results=True)


class HashableAttributes(tuple[tuple[str, object], ...]):
    """A mapping of named attributes, sorted by name, as one attribute of a call."""

    __slots__ = ()


def hashable_attribute(name: str, value: object) -> Any:
    """Return an attribute of a foreign function as a value that can be hashed.

    Arrays become HashableArrays, mappings HashableAttributes, and sequences tuples; but a sequence
    of numbers becomes an array, which foreign functions read as a span.

    Args:
      name: the name of the attribute, for errors.
      value: a number, a string, a NumPy array, or a sequence or mapping of these.

    Raises:
      TypeError: if foreign functions do not accept attributes of its class.
      OverflowError: if it is an integer, or holds one, that does not fit in 64 bits.
    """
    if isinstance(value, np.ndarray):
        return HashableArray(cast("NumPyArray", value))
    if isinstance(value, Mapping):
        attributes = cast("Mapping[str, Any]", value)
        return HashableAttributes(
            (key, hashable_attribute(key, attributes[key])) for key in sorted(attributes)
        )
    if is_tuple_or_list(value):
        if value and all(isinstance(element, bool | int | float | np.generic) for element in value):
            return HashableArray(_array_of(name, value))
        return tuple(hashable_attribute(name, element) for element in value)
    try:
        hash(value)
        takes = value is not None
    except TypeError:
        takes = False
    if not takes:
        raise TypeError(
            f"the attribute {name!r} of a foreign function is {value!r} of type {type(value)}: "
            "attributes must be numbers, strings, NumPy arrays, or sequences and mappings of these"
        )
    return value


def _array_of(name: str, numbers: Sequence[object]) -> NumPyArray:
    array = np.asarray(numbers)
    if array.dtype == object:
        raise OverflowError(
            f"the attribute {name!r} of a foreign function, {numbers!r}, has integers that do not "
            "fit in 64 bits"
        )
    return array


def ffi_call(
    target_name: str,
    result_shape_dtypes: object,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[LayoutOptions] | None = None,
    output_layouts: LayoutOptions | Sequence[LayoutOptions] = None,
    input_output_aliases: Mapping[int, int] | None = None,
    custom_call_api_version: int = TYPED_API_VERSION,
    legacy_backend_config: str | None = None,
) -> Callable[..., Array | list[Array]]:
    """Return a function that calls a foreign function registered by `register_ffi_target`.

    Args:
      target_name: the name that the foreign function was registered under.
      result_shape_dtypes: the shape and dtype of the result, as a ShapeDtypeStruct or an array; or
        a sequence of them if there are several results.
      has_side_effect: whether the function is called even if nothing needs its results.
      vmap_method: how vmap calls it: "sequential" and "sequential_unrolled" for one example at a
        time; "expand_dims" and "broadcast_all" once, with a leading batch axis in every operand,
        whose size in unmapped operands is one or that of the batch; "legacy_vectorized" once, with
        that axis only in mapped operands. With None, vmap raises an error.
      input_layouts: per operand the order of its axes in memory, the slowest-varying first; None,
        for all or one operand, is row-major.
      output_layouts: the layout of the result, or of each result.
      input_output_aliases: the results that reuse an operand's buffer: indices of results by
          indices of operands.
      custom_call_api_version: the version of XLA's custom calls that the function was written for:
        4 is the typed one.
      legacy_backend_config: the text that the function receives, for versions before 4.

    Returns:
      A function of arrays, and of attributes as keyword arguments: numbers, strings, NumPy arrays,
      and sequences and mappings of these. It returns an array, or a list of arrays if
      `result_shape_dtypes` is a sequence.

    Raises:
      ValueError: if an option is unknown, or does not fit operands or results.

    Example::

        jax.ffi.register_ffi_target("rms_norm", jax.ffi.pycapsule(library.RmsNorm), "cpu")
        norm = jax.ffi.ffi_call("rms_norm", jax.ShapeDtypeStruct(x.shape, x.dtype))
        norm(x, eps=np.float32(1e-5))
    """
    check_vmap_method(vmap_method)
    is_sequence = is_tuple_or_list(result_shape_dtypes)
    described = (
        tuple(result_shape_dtypes)
        if is_tuple_or_list(result_shape_dtypes)
        else (result_shape_dtypes,)
    )
    result_avals = tuple(_result_aval(i, x) for i, x in enumerate(described))
    chosen_layouts: Any = output_layouts if is_sequence else [output_layouts]
    if output_layouts is None:
        chosen_layouts = [None] * len(result_avals)
    if len(chosen_layouts) != len(result_avals):
        raise ValueError(
            f"The number of outputs ({len(result_avals)}) must equal the number of output layouts "
            f"({len(chosen_layouts)})."
        )
    if not 0 <= custom_call_api_version <= TYPED_API_VERSION:
        raise ValueError(
            f"custom_call_api_version is at most {TYPED_API_VERSION}, the typed version of XLA's "
            f"custom calls: got {custom_call_api_version}"
        )
    if custom_call_api_version >= TYPED_API_VERSION and legacy_backend_config is not None:
        raise ValueError(
            "The use of the legacy_backend_config parameter requires custom_call_api_version < "
            f"{TYPED_API_VERSION}; got {custom_call_api_version}."
        )

    @boundary
    def call(*operands: ArrayLike, **attributes: object) -> Array | list[Array]:
        if attributes and custom_call_api_version < TYPED_API_VERSION:
            raise ValueError(
                "The use of ffi_call attributes requires a custom call API version of at least "
                f"{TYPED_API_VERSION}; got api_version={custom_call_api_version}."
            )
        avals = [typeof(x) for x in operands]
        layouts = [None] * len(avals) if input_layouts is None else list(input_layouts)
        if len(layouts) != len(avals):
            raise ValueError(
                f"The number of input arguments ({len(avals)}) must equal the number of input "
                f"layouts ({len(layouts)})."
            )
        inputs = tuple(map(_minor_to_major, layouts, avals))
        outputs = tuple(map(_minor_to_major, chosen_layouts, result_avals))
        aliases = tuple(sorted((input_output_aliases or {}).items()))
        check_aliases(aliases, avals, result_avals)
        _check_layouts_of_aliases(aliases, inputs, outputs)
        params: dict[str, Any] = {
            "attributes": HashableAttributes(
                (name, hashable_attribute(name, attributes[name])) for name in sorted(attributes)
            ),
            "custom_call_api_version": custom_call_api_version,
            "has_side_effect": has_side_effect,
            "input_layouts": inputs,
            "input_output_aliases": aliases,
            "legacy_backend_config": legacy_backend_config,
            "output_layouts": outputs,
            "result_avals": result_avals,
            "target_name": target_name,
            "vmap_method": vmap_method,
        }
        results = process(ffi_call_p, operands, params)
        return results if is_sequence else results[0]

    return call


def control_dep(src: ArrayLike, dst: ArrayLike) -> None:
    """Make XLA compute one array before another, which need not depend on it.

    Args:
      src: the array that is computed first.
      dst: the array whose computation waits.
    """
    ffi_call("control_dep", (), has_side_effect=True)(src, dst)


def schedule(ops: ArrayLikes) -> None:
    """Have XLA compute arrays in this order.

    Args:
      ops: the arrays.
    """
    for src, dst in itertools.pairwise(ops):
        control_dep(src, dst)


def _result_aval(position: int, described: Any) -> AbstractValue:
    if isinstance(described, AbstractToken):
        return described
    if not hasattr(described, "shape") or not hasattr(described, "dtype"):
        raise ValueError(
            "All elements of result_shape_dtypes must have 'shape' and 'dtype' attributes. Got "
            f"{described} at position {position}."
        )
    return ShapedArray(tuple(described.shape), described.dtype)


def _minor_to_major(layout: LayoutOptions, aval: AbstractValue) -> MinorToMajor:
    """Return a layout in XLA's order; raise ValueError unless it is a layout of this array."""
    rank = aval.ndim if isinstance(aval, ShapedArray) else 0
    if layout is None:
        return tuple(reversed(range(rank)))
    if sorted(layout) != list(range(rank)):
        raise ValueError(
            f"a layout orders the {rank} axes of {aval.str_short()}, as in {tuple(range(rank))}: "
            f"got {tuple(layout)}"
        )
    return tuple(reversed(layout))


def check_aliases(
    aliases: Aliases, avals: Sequence[AbstractValue], result_avals: Sequence[AbstractValue]
) -> None:
    """Raise ValueError if the types of an operand and a result do not let them share a buffer."""
    for operand, result in aliases:
        mapping = f"input_output_aliases contains the mapping '{operand}:{result}'"
        if not 0 <= operand < len(avals):
            raise ValueError(
                f"{mapping} with input index {operand} outside the range [0, {len(avals)})."
            )
        if not 0 <= result < len(result_avals):
            raise ValueError(
                f"{mapping} with output index {result} outside the range [0, {len(result_avals)})."
            )
        # The user's result types do not say how arrays are split over a mesh, or vary along it.
        operand_type = plain_aval(avals[operand]).str_short()
        result_type = plain_aval(result_avals[result]).str_short()
        if operand_type != result_type:
            raise ValueError(
                f"{mapping} referring to an input with abstract value {operand_type} and an output "
                f"with a different abstract value {result_type}."
            )


def _check_layouts_of_aliases(
    aliases: Aliases, inputs: Sequence[MinorToMajor], outputs: Sequence[MinorToMajor]
) -> None:
    for operand, result in aliases:
        if inputs[operand] != outputs[result]:
            raise ValueError(
                f"input_output_aliases contains the mapping '{operand}:{result}' referring to an "
                f"input with layout {inputs[operand]} and an output with a different layout "
                f"{outputs[result]}."
            )


@infer(ffi_call_p)
def _(
    *_: AbstractValue, result_avals: Sequence[AbstractValue], **params: object
) -> list[AbstractValue]:
    return list(result_avals)


@effects(ffi_call_p)
def _(*_: AbstractValue, has_side_effect: bool, **params: object) -> Effects:
    return frozenset((ffi_effect,)) if has_side_effect else no_effects


def _refuse_derivative(*_: object, target_name: str, **params: object) -> NoReturn:
    raise ValueError(
        f"The FFI call to `{target_name}` cannot be differentiated. You can use `jax.custom_jvp` "
        "or `jax.custom_vjp` to add support."
    )


jvp(ffi_call_p)(_refuse_derivative)  # pyrefly: ignore[bad-argument-type]
transpose(ffi_call_p)(_refuse_derivative)
