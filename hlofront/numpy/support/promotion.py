"""The promotion of operands: common dtypes by JAX's rules, common shapes by NumPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.config import numpy_dtype_promotion, numpy_rank_promotion
from hlofront.base.dtypes import (
    check_integer,
    default_dtype,
    iinfo,
    issubdtype,
    lattice_result,
    python_scalar_dtype,
    to_complex_dtype,
    to_inexact_dtype,
    to_numeric_dtype,
)
from hlofront.base.elements import ExtendedDType, bool_, exact_dtype, float0
from hlofront.base.typing import Array, ArrayLike, DType
from hlofront.core.aval import ShapedArray, Split, is_value, typeof
from hlofront.core.high_types import MutableHiType
from hlofront.core.references import is_reference
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.sharded_types import common_mesh, entries_of
from hlofront.core.trace import as_array, process
from hlofront.primitives.arrays.shaping import (
    ascending,
    broadcast_in_dim,
    broadcast_in_dim_p,
    broadcast_shapes,
)
from hlofront.primitives.elementwise.compare import select_n_p
from hlofront.primitives.elementwise.converting import convert_element_type_p
from hlofront.primitives.sharding.resharding import bind_reshard

_PYTHON_TYPE = {
    "b": bool,
    "i": int,
    "f": float,
    "c": complex,
}


# ---- operands --------------------------------------------------------------------------------


def check_arraylike(name: str, *args: object, empty_is_none: bool = False) -> None:
    """Raise TypeError, naming the first operand that is neither an array nor a scalar."""
    for position, x in enumerate(args):
        if not is_value(x) and not hasattr(x, "__jax_array__"):
            if x is None and empty_is_none:
                continue
            raise _not_arraylike(name, x, position)


def _not_arraylike(name: str, x: object, position: int) -> TypeError:
    advice = (
        " Convert it with jnp.asarray first."
        if isinstance(x, list | tuple)
        else " Wanted an array, a NumPy array or a Python scalar."
    )
    return TypeError(
        f"{name} requires ndarray or scalar arguments, got {type(x)} at position {position}."
        + advice
    )


def operands(name: str, args: Sequence[ArrayLike]) -> tuple[list[ArrayLike], list[ShapedArray]]:
    """Return the checked operands of the function called `name`, and their avals.

    Objects with a method `__jax_array__` are replaced by that method's result.

    Raises:
      TypeError: if an operand is neither an array nor a scalar, such as a mutable reference.
    """
    try:
        values, avals = list(args), [typeof(x) for x in args]
    except (TypeError, ValueError):
        values, avals = _converted(name, args)
    for position, aval in enumerate(avals):
        if isinstance(aval, MutableHiType):
            return _converted(name, args)
        if is_reference(aval):
            raise TypeError(
                f"{name} requires ndarray or scalar arguments, got a mutable reference of type "
                f"{aval} at position {position}. Read it with [...] first."
            )
    return values, avals


def _converted(name: str, args: Sequence[ArrayLike]) -> tuple[list[ArrayLike], list[ShapedArray]]:
    values = [as_operand(x) for x in args]
    check_arraylike(name, *values)
    return values, [typeof(x) for x in values]


def operand(name: str, x: ArrayLike) -> tuple[ArrayLike, ShapedArray]:
    """Return the checked operand of the function called `name`, and its aval."""
    (value,), (aval,) = operands(name, (x,))
    return value, aval


def as_operand(x: object) -> ArrayLike:
    """Return the result of `x.__jax_array__()` if x has that method, else x."""
    if not is_value(x) and hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    return x


# ---- dtypes ----------------------------------------------------------------------------------


def promote_dtypes(*args: ArrayLike) -> list[ArrayLike]:
    """Return the operands in their common dtype."""
    return _in_common_dtype(list(args), [typeof(x) for x in args], None)


def promote_dtypes_inexact(*args: ArrayLike) -> list[ArrayLike]:
    """Return the operands in their common dtype; integers and booleans become floats."""
    return _in_common_dtype(list(args), [typeof(x) for x in args], to_inexact_dtype)


def promote_dtypes_numeric(*args: ArrayLike) -> list[ArrayLike]:
    """Return the operands in their common dtype; booleans become integers."""
    return _in_common_dtype(list(args), [typeof(x) for x in args], to_numeric_dtype)


def promote_dtypes_complex(*args: ArrayLike) -> list[ArrayLike]:
    """Return the operands in the complex dtype that holds them."""
    avals = [typeof(x) for x in args]
    dtype, weak = _common(avals)
    dtype = to_complex_dtype(dtype)
    return [converted(x, aval, dtype, weak) for x, aval in zip(args, avals, strict=True)]


def promote_own_dtypes(*args: ArrayLike) -> list[ArrayLike]:
    """Return the operands in their common dtype by the standard rules, regardless of options.

    Values that the library makes are promoted by these rules, even where users disable promotion.
    """
    with numpy_dtype_promotion("standard"):
        return promote_dtypes(*args)


def joint_dtype(*types: tuple[DType, bool]) -> np.dtype:
    """Return the common dtype of (dtype, weak) pairs, by the standard rules of promotion."""
    with numpy_dtype_promotion("standard"):
        return lattice_result(types)[0]


def _common(avals: list[ShapedArray]) -> tuple[np.dtype, bool]:
    return lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))


def _in_common_dtype(
    values: list[ArrayLike], avals: list[ShapedArray], widen: Callable[[np.dtype], np.dtype] | None
) -> list[ArrayLike]:
    first = avals[0]
    for value in values:
        if type(value) is int:
            check_integer(value)
    for aval in avals:
        if aval.dtype is not first.dtype or aval.weak_type != first.weak_type:
            dtype, weak = _common(avals)
            break
    else:
        # Comparisons of weak numbers are weak booleans, and booleans are promoted as strong ones.
        dtype, weak = first.dtype, first.weak_type and first.dtype is not bool_
        if widen is None and weak == first.weak_type:
            return values
    if widen is not None:
        widened = widen(dtype)
        # A weak dtype widens to the default dtype of its kind.
        dtype = default_dtype(widened.kind) if weak and widened != dtype else widened
    for i, aval in enumerate(avals):
        if aval.dtype is not dtype or aval.weak_type != weak:
            values[i] = converted(values[i], aval, dtype, weak)
    return values


def converted(x: ArrayLike, aval: ShapedArray, dtype: np.dtype, weak: bool) -> ArrayLike:
    """Return the operand `x`, of aval `aval`, converted to a dtype.

    Scalars of the host are converted on the host.
    """
    if aval.dtype == dtype and aval.weak_type == weak:
        return x
    if not aval.shape and isinstance(x, _HOST):
        return host_scalar(x, dtype, weak)
    return process(
        convert_element_type_p, (x,), {"new_dtype": dtype, "weak_type": weak, "sharding": None}
    )


_HOST = (bool, int, float, complex, np.generic, np.ndarray)


def host_scalar(x: ArrayLike, dtype: np.dtype, weak: bool = False) -> ArrayLike:
    """Return a Python or NumPy scalar converted to `dtype`; a weak one is a Python scalar.

    Raises:
      OverflowError: if it is a Python integer that the default integer dtype cannot hold.
    """
    if type(x) is int:
        check_integer(x)
    if weak:
        value = _PYTHON_TYPE[dtype.kind](x)
        if dtype == python_scalar_dtype(type(value)):
            return value
        params = {"new_dtype": dtype, "weak_type": True, "sharding": None}
        return process(convert_element_type_p, (value,), params)
    # As on devices, integers wrap, and floats become the nearest integer that the dtype holds.
    if isinstance(x, float | np.floating) and dtype.kind != "f" and issubdtype(dtype, np.integer):
        x = _nearest_integer(float(x), dtype)
    with np.errstate(all="ignore"):
        return exact_dtype(np.asarray(x).astype(dtype)[()])


def _nearest_integer(x: float, dtype: np.dtype) -> int:
    """Return a float truncated and clamped to the range of an integer dtype; 0 for NaN."""
    if x != x:
        return 0
    limits = iinfo(dtype)
    return limits.max if x >= limits.max else limits.min if x <= limits.min else int(x)


# ---- shapes ----------------------------------------------------------------------------------


def promote_shapes(name: str, *args: ArrayLike) -> list[ArrayLike]:
    """Return the operands in their common rank; scalars and sizes of 1 are left to lax."""
    return _in_common_rank(name, list(args), [typeof(x).shape for x in args])


def _in_common_rank(
    name: str, values: list[ArrayLike], shapes: list[tuple[int, ...]]
) -> list[ArrayLike]:
    ranks = [len(shape) for shape in shapes]
    most = max(ranks)
    for rank in ranks:
        if rank != most and rank:
            break
    else:
        return values
    check_broadcast(name, shapes)
    check_rank_promotion(name, shapes)
    for i, shape in enumerate(shapes):
        if shape and len(shape) != most:
            values[i] = with_rank(values[i], shape, most)
    return values


def check_broadcast(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the common shape. Raise ValueError, naming the function, if there is none."""
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"{name}: incompatible shapes for broadcasting: {', '.join(map(str, shapes))}. From "
            "the last axis on, sizes must be equal or 1."
        ) from None


def with_rank(x: ArrayLike, shape: tuple[int, ...], rank: int) -> Array:
    """Return an operand of `shape` with leading axes of size 1, so that it has `rank` axes."""
    new = rank - len(shape)
    return broadcast_in_dim(x, (1,) * new + shape, ascending(rank)[new:])


def check_rank_promotion(name: str, shapes: list[tuple[int, ...]]) -> None:
    """Raise or warn, by the rank promotion option, if arrays of these shapes differ in rank."""
    mode = numpy_rank_promotion.value
    if mode == "allow" or len({len(shape) for shape in shapes if shape}) <= 1:
        return
    text = (
        f"{name} was given operands of shapes {', '.join(map(str, shapes))}, of different ranks, "
        f"and the option jax_numpy_rank_promotion is {mode!r}. Give them one rank with reshape "
        "or [None, ...], or set the option to 'allow'."
    )
    if mode == "raise":
        raise ValueError(text)
    warnings.warn(text, stacklevel=5)


def broadcast_together(name: str, *args: ArrayLike) -> list[ArrayLike]:
    """Return the operands broadcast together, regardless of the rank promotion option.

    New axes are split along explicit mesh axes like the axes of the other operands.

    Raises:
      ValueError: if their shapes do not broadcast.
    """
    avals = [typeof(x) for x in args]
    shapes = [aval.shape for aval in avals]
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return list(args)
    shape = check_broadcast(name, shapes)
    sharding = _sharding_of_all(avals, shape)
    return [
        with_shape(x, old_shape, shape, sharding) for x, old_shape in zip(args, shapes, strict=True)
    ]


def with_shape(
    x: ArrayLike, old_shape: tuple[int, ...], shape: tuple[int, ...], sharding: object = None
) -> ArrayLike:
    """Broadcast an operand of shape `old_shape` to `shape` by NumPy's rule, split by `sharding`."""
    if old_shape == shape:
        if sharding is None or typeof(x).sharding == sharding:
            return x
        return bind_reshard(x, sharding)
    axes = ascending(len(shape))[len(shape) - len(old_shape) :]
    if sharding is None:
        return broadcast_in_dim(x, shape, axes)
    params = {"shape": shape, "broadcast_dimensions": axes, "sharding": sharding}
    return process(broadcast_in_dim_p, (x,), params)


def _sharding_of_all(avals: Sequence[ShapedArray], shape: tuple[int, ...]) -> object:
    """Return the sharding of a shape along all explicit axes that split the arrays broadcast to it.

    Return None if no axis splits them, or if they are split differently: the operation on them then
    raises an error.
    """
    if all(aval.spec is None for aval in avals):
        return None
    entries: list[tuple[object, ...]] = [()] * len(shape)
    for aval in avals:
        for axis, names in enumerate(entries_of(aval), len(shape) - aval.ndim):
            if names and entries[axis] not in ((), names):
                return None
            entries[axis] = names or entries[axis]
    names = [name for entry in entries for name in entry]
    if len(set(names)) < len(names):
        return None
    split = Split(common_mesh(avals), PartitionSpec(*entries))
    return ShapedArray(shape, bool_, sharding=split).sharding


# ---- both ------------------------------------------------------------------------------------


def _meeting(
    name: str,
    values: list[ArrayLike],
    avals: list[ShapedArray],
    widen: Callable[[np.dtype], np.dtype] | None,
) -> list[ArrayLike]:
    """Return the operands of the function `name` in their common dtype, widened by `widen`."""
    try:
        return _in_common_dtype(values, avals, widen)
    except ValueError:
        if any(aval.dtype == float0 for aval in avals):
            raise TypeError(
                f"Called {name} with a float0 array, which stands for the tangents of integers. It "
                "has no values, so no operation accepts it. jnp.zeros_like makes zeros of its "
                "shape."
            ) from None
        if not any(isinstance(aval.dtype, ExtendedDType) for aval in avals):
            raise
        dtypes = ", ".join(str(aval.dtype) for aval in avals)
        raise TypeError(f"{name} does not accept dtypes {dtypes}.") from None


def promote_args(name: str, *args: ArrayLike) -> list[ArrayLike]:
    """Return the operands of the function `name` in their common dtype and rank.

    Raises:
      TypeError: if an operand is neither array nor scalar; the message names the function.
    """
    values, avals = operands(name, args)
    first = avals[0]
    for aval in avals:
        if aval is not first:
            break
    else:
        if not first.weak_type or first.dtype is not bool_:
            return values
    values = _meeting(name, values, avals, None)
    return _in_common_rank(name, values, [aval.shape for aval in avals])


def promote_args_inexact(name: str, *args: ArrayLike) -> list[ArrayLike]:
    """Return the operands of the function `name` in their common inexact dtype and common rank.

    Raises:
      TypeError: if an operand is neither array nor scalar; the message names the function.
    """
    values, avals = operands(name, args)
    values = _meeting(name, values, avals, to_inexact_dtype)
    return _in_common_rank(name, values, [aval.shape for aval in avals])


def promote_args_numeric(name: str, *args: ArrayLike) -> list[ArrayLike]:
    """Return the operands of the function `name` in their common numeric dtype and common rank.

    Raises:
      TypeError: if an operand is neither array nor scalar; the message names the function.
    """
    values, avals = operands(name, args)
    values = _meeting(name, values, avals, to_numeric_dtype)
    return _in_common_rank(name, values, [aval.shape for aval in avals])


def choose(name: str, which: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """Select `on_true` where `which` is true, else `on_false`, elementwise.

    The operands are promoted and broadcast; a scalar `which` stays a scalar. `which` is boolean,
    and the cases are arrays or scalars.
    """
    on_true, on_false = promote_dtypes(on_true, on_false)
    if typeof(which).shape:
        which, on_true, on_false = broadcast_together(name, which, on_true, on_false)
    else:
        on_true, on_false = broadcast_together(name, on_true, on_false)
    if 0 in typeof(on_true).shape:
        return as_array(on_true)
    return process(select_n_p, (which, on_false, on_true), {})
