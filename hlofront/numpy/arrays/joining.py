"""Joining and splitting of arrays."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.dtypes import check_user_dtype_supported
from hlofront.base.typing import Array, ArrayLike, Axis, DTypeLike
from hlofront.core.aval import typeof
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.numpy.arrays.shape import as_array, atleast_1d, atleast_2d, atleast_3d
from hlofront.numpy.elementwise.ufuncs import any_operand, refuse_out
from hlofront.numpy.indexing.selecting import host_value
from hlofront.numpy.support.like import like, operation_like
from hlofront.numpy.support.naming import named
from hlofront.numpy.support.promotion import check_arraylike, promote_dtypes
from hlofront.primitives.arrays import shaping, slicing
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.dispatch.operation import operation


def _in_one_dtype(name: str, arrays: list[ArrayLike], dtype: DTypeLike | None) -> list[ArrayLike]:
    check_arraylike(name, *arrays)
    if dtype is None:
        return promote_dtypes(*arrays)
    dtype = check_user_dtype_supported(dtype, name)
    return [convert(x, dtype, False) for x in arrays]


def _members(name: str, arrays: Any) -> list[ArrayLike]:
    """Return the checked arrays of a sequence, or the rows of an array, as a list."""
    if hasattr(arrays, "aval") or isinstance(arrays, np.ndarray):
        if not arrays.ndim:
            raise TypeError(f"{name} requires a sequence of arrays, got an array without axes")
        return list(slicing.unstack(arrays))
    check_arraylike(name, *arrays)
    return [any_operand(name, x) for x in arrays]


def _sequence(
    name: str, arrays: object, second: object = None, error: type[Exception] = ValueError
) -> ArrayLike | Sequence[ArrayLike]:
    """Return an array or a list of arrays unchanged, and any other iterable as a list.

    Args:
      name: the name of the function.
      arrays: the arrays.
      second: the function's next argument, which is an array in `concatenate(a, b)`.
      error: the class of the error that JAX raises for that.
    """
    if hasattr(second, "ndim") and not isinstance(second, type) and second.ndim:
        raise error(
            f"{name} takes a sequence of arrays as its first argument, and got an array as its "
            f"second: write jnp.{name}([a, b]) instead of jnp.{name}(a, b)."
        )
    if type(arrays) in (list, tuple) or hasattr(arrays, "aval") or isinstance(arrays, np.ndarray):
        return arrays
    try:
        return list(arrays)
    except TypeError:
        raise TypeError(
            f"{name} requires a sequence of arrays, got {arrays!r} of type {type(arrays).__name__}"
        ) from None


@operation(static_argnames=("axis", "dtype"))
def _concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: Axis = 0, dtype: DTypeLike | None = None
) -> Array:
    arrays = _members("concatenate", arrays)
    if not arrays:
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        arrays, axis = [shaping.reshape(x, (typeof(x).size,)) for x in arrays], 0
    ndim = typeof(arrays[0]).ndim
    if not ndim:
        raise ValueError(
            "Zero-dimensional arrays cannot be concatenated. jnp.stack gives them a new axis."
        )
    axis = canonical_axis(axis, ndim)
    arrays = _in_one_dtype("concatenate", arrays, dtype)
    return as_array(arrays[0]) if len(arrays) == 1 else slicing.concatenate(arrays, axis)


@boundary
@like(np.concatenate)
def concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Concatenate arrays along an existing axis; None joins their flattened elements.

    The result has the arrays' common dtype, or `dtype`.

    Raises:
      ValueError: if there are no arrays, one has no axes, or there is no such axis.
      TypeError: if the sizes of other axes differ.

    Example:
      >>> jnp.concatenate([jnp.array([1, 2]), jnp.array([3])])
      Array([1, 2, 3], dtype=int32)
    """
    # JAX joins the rows of an array; the rows of a vector have no axis to join along.
    error = ValueError if getattr(arrays, "ndim", 1) == 1 else TypeError
    arrays = _sequence("concatenate", arrays, axis, error)
    if axis == 0 and dtype is None:
        return _concatenate(arrays)
    return _concatenate(arrays, axis, dtype)


@boundary
@like(np.concat)
def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Concatenate arrays along an existing axis, in their common dtype; None joins their elements.

    Raises:
      ValueError: if there are no arrays, one has no axes, or there is no such axis.
      TypeError: if the sizes of other axes differ.

    Example:
      >>> jnp.concat([jnp.ones((2, 1)), jnp.zeros((2, 3))], axis=1).shape
      (2, 4)
    """
    return _concatenate(_sequence("concat", arrays), axis)


@operation(static_argnames=("axis", "dtype"))
def _stack(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int = 0, dtype: DTypeLike | None = None
) -> Array:
    arrays = _members("stack", arrays)
    if not arrays:
        raise ValueError("Need at least one array to stack.")
    shapes = [typeof(x).shape for x in arrays]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(
            f"All input arrays must have the same shape. Got {', '.join(map(str, shapes))}."
        )
    axis = canonical_axis(axis, len(shapes[0]) + 1)
    return slicing.stack(_in_one_dtype("stack", arrays, dtype), axis)


@boundary
@like(np.stack)
def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Stack arrays of equal shape along a new axis, in their common dtype or `dtype`.

    Raises:
      ValueError: if there are no arrays, their shapes differ, or there is no such axis.

    Example:
      >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 2],
             [3, 4]], dtype=int32)
    """
    refuse_out("stack", out)
    return _stack(_sequence("stack", arrays, axis, TypeError), axis, dtype)


@operation(static_argnames=("dtype",))
def _vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    return _concatenate.when_traced([_two(x) for x in _members("vstack", tup)], 0, dtype)


def _two(x: ArrayLike) -> Array:
    return atleast_2d(x)


@operation(static_argnames=("dtype",))
def _hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    arrays = [atleast_1d(x) for x in _members("hstack", tup)]
    axis = 1 if arrays and arrays[0].ndim > 1 else 0
    return _concatenate.when_traced(arrays, axis, dtype)


@operation(static_argnames=("dtype",))
def _dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    return _concatenate.when_traced([atleast_3d(x) for x in _members("dstack", tup)], 2, dtype)


@operation
@named("column_stack")
def _column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    arrays = []
    for x in _members("column_stack", tup):
        shape = typeof(x).shape
        arrays.append(x if len(shape) > 1 else shaping.reshape(x, (*(shape or (1,)), 1)))
    return _concatenate.when_traced(arrays, 1)


@boundary
@like(np.vstack)
def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Stack arrays along axis 0, in their common dtype or `dtype`; arrays of one axis are rows.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if the sizes of other axes differ.

    Example:
      >>> jnp.vstack([jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]])])
      Array([[1, 2],
             [3, 4],
             [5, 6]], dtype=int32)
    """
    return _vstack(_sequence("vstack", tup, dtype), dtype)


@boundary
@like(np.hstack)
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Concatenate arrays along axis 1, or arrays of one axis along axis 0.

    The result has the arrays' common dtype, or `dtype`.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if the sizes of other axes differ.

    Example:
      >>> jnp.hstack([jnp.array([1, 2]), jnp.array([3])])
      Array([1, 2, 3], dtype=int32)
      >>> jnp.hstack([jnp.ones((2, 1)), jnp.ones((2, 3))]).shape
      (2, 4)
    """
    return _hstack(_sequence("hstack", tup, dtype), dtype)


@boundary
@like(np.dstack)
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Concatenate arrays along axis 2, in their common dtype or `dtype`.

    An array of shape (n,) counts as one of shape (1, n, 1), and one of shape (m, n) as (m, n, 1).

    Raises:
      ValueError: if there are no arrays.
      TypeError: if the sizes of other axes differ.

    Example:
      >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[[1, 3],
              [2, 4]]], dtype=int32)
    """
    return _dstack(_sequence("dstack", tup, dtype), dtype)


@boundary
@like(np.column_stack)
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Concatenate arrays along axis 1, in their common dtype; arrays of one axis are columns.

    Raises:
      ValueError: if there are no arrays.
      TypeError: if the sizes of other axes differ.

    Example:
      >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
      Array([[1, 3],
             [2, 4]], dtype=int32)
    """
    return _column_stack(_sequence("column_stack", tup))


# ---- block -------------------------------------------------------------------------------------

NestedArrays: TypeAlias = "ArrayLike | list[NestedArrays]"


@operation
@named("block")
def _block(arrays: NestedArrays) -> Array:
    depth = _depth(arrays)
    if not depth:
        return as_array(any_operand("block", arrays))
    result, _ = _block_of(arrays, depth)
    return result


def _depth(arrays: NestedArrays) -> int:
    if isinstance(arrays, tuple):
        raise ValueError(f"jax.numpy.block does not allow tuples, got {arrays}: use lists.")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    depths = {_depth(member) for member in arrays}
    if len(depths) > 1:
        raise ValueError(f"Mismatched list depths in jax.numpy.block: {sorted(depths)}")
    return 1 + depths.pop()


def _block_of(arrays: NestedArrays, depth: int) -> tuple[Array, int]:
    """Join nested lists to a block; return it and the axis, from the end, to join it along."""
    if not isinstance(arrays, list):
        x = any_operand("block", arrays)
        return as_array(atleast_1d(x)), 1
    parts = [_block_of(member, depth - 1) for member in arrays]
    nested = parts[0][1]
    ndim = max(nested, depth, *[part.ndim for part, _ in parts])
    blocks = [shaping.broadcast_to_rank(part, ndim) for part, _ in parts]
    return _concatenate.when_traced(blocks, -nested), nested + 1


@boundary
@like(np.block)
def block(arrays: NestedArrays) -> Array:
    """Assemble an array from nested lists of blocks.

    Example:
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.block([[x, x[:, :1]], [jnp.zeros((1, 3), int)]])
      Array([[1, 2, 1],
             [3, 4, 3],
             [0, 0, 0]], dtype=int32)
    """
    return _block(arrays)


# ---- split -------------------------------------------------------------------------------------


@operation(static_argnames=("name", "sections", "axis"))
def _split(ary: ArrayLike, name: str, sections: Any, axis: int) -> list[Array]:
    ary = any_operand(name, ary)
    shape = typeof(ary).shape
    if name in _AXIS_OF:
        axis = _AXIS_OF[name]
        if name == "hsplit" and len(shape) == 1:
            axis = 0
    axis = canonical_axis(axis, len(shape))
    size = shape[axis]
    if type(sections) is tuple:
        bounds = (0, *sections, size)
        sizes = [stop - start for start, stop in itertools.pairwise(bounds)]
        if min(sizes) < 0:
            raise ValueError(
                f"Sizes passed to split must be nonnegative, got {sizes}: the indices "
                f"{sections} must ascend from 0 to {size}, the size of axis {axis}."
            )
    else:
        if sections <= 0:
            raise ZeroDivisionError(f"{name} into {sections} parts: there must be at least one")
        part, remainder = divmod(size, sections)
        if remainder and name != "array_split":
            raise ValueError(
                f"array split does not result in an equal division: rest is {remainder}. "
                "jnp.array_split makes the first parts longer."
            )
        sizes = [part + 1] * remainder + [part] * (sections - remainder)
    return slicing.split(ary, sizes, axis)


_AXIS_OF = {"vsplit": 0, "hsplit": 1, "dsplit": 2}


def _sections(name: str, value: ArrayLike | Sequence[ArrayLike]) -> int | tuple[int, ...]:
    if type(value) is int:
        return value
    context = f"Where jnp.{name} splits must be known while tracing."
    if hasattr(value, "aval"):
        value = host_value(value, context)
    elif isinstance(value, list | tuple):
        value = [host_value(x, context) if hasattr(x, "aval") else x for x in value]
    if isinstance(value, float | np.floating):
        return int(value)
    if hasattr(value, "__len__") and np.ndim(value):
        return tuple(map(operator.index, np.asarray(value).tolist()))
    return operator.index(value)


@boundary
@like(np.split)
def split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike], axis: int = 0
) -> list[Array]:
    """Split an array along an axis into equal parts, or at indices known while tracing.

    Args:
      ary: an array.
      indices_or_sections: the number of parts, or the indices at which they begin.
      axis: the axis.

    Returns:
      A list of arrays.

    Raises:
      ValueError: if the parts are not equal, or there is no such axis.

    Example:
      >>> jnp.split(jnp.arange(6), 3)
      [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32), Array([4, 5], dtype=int32)]
    """
    return _split(ary, "split", _sections("split", indices_or_sections), operator.index(axis))


@boundary
@like(np.array_split)
def array_split(
    ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike], axis: int = 0
) -> list[Array]:
    """Split an array along an axis at indices, or into nearly equal parts, longer ones first.

    Args:
      ary: an array.
      indices_or_sections: the number of parts, or the indices at which they begin.
      axis: the axis.

    Returns:
      A list of arrays.

    Raises:
      ValueError: if there is no such axis.

    Example:
      >>> [part.tolist() for part in jnp.array_split(jnp.arange(5), 3)]
      [[0, 1], [2, 3], [4]]
    """
    sections = _sections("array_split", indices_or_sections)
    return _split(ary, "array_split", sections, operator.index(axis))


@boundary
@like(np.hsplit)
def hsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike]) -> list[Array]:
    """Split an array along axis 1, or along its only axis, into a list of arrays.

    Args:
      ary: an array of at least one axis.
      indices_or_sections: the number of equal parts, or the indices at which parts begin.

    Raises:
      ValueError: if the parts are not equal, or the array has no axes.

    Example:
      >>> [part.shape for part in jnp.hsplit(jnp.ones((2, 6)), [1, 3])]
      [(2, 1), (2, 2), (2, 3)]
    """
    return _split(ary, "hsplit", _sections("hsplit", indices_or_sections), 0)


@boundary
@like(np.vsplit)
def vsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike]) -> list[Array]:
    """Split an array along axis 0 into a list of arrays.

    Args:
      ary: an array of at least two axes.
      indices_or_sections: the number of equal parts, or the indices at which parts begin.

    Raises:
      ValueError: if the parts are not equal, or the array has too few axes.

    Example:
      >>> [part.shape for part in jnp.vsplit(jnp.ones((6, 2)), 3)]
      [(2, 2), (2, 2), (2, 2)]
    """
    return _split(ary, "vsplit", _sections("vsplit", indices_or_sections), 0)


@boundary
@like(np.dsplit)
def dsplit(ary: ArrayLike, indices_or_sections: ArrayLike | Sequence[ArrayLike]) -> list[Array]:
    """Split an array along axis 2 into a list of arrays.

    Args:
      ary: an array of at least three axes.
      indices_or_sections: the number of equal parts, or the indices at which parts begin.

    Raises:
      ValueError: if the parts are not equal, or the array has too few axes.

    Example:
      >>> [part.shape for part in jnp.dsplit(jnp.ones((2, 3, 4)), [1])]
      [(2, 3, 1), (2, 3, 3)]
    """
    return _split(ary, "dsplit", _sections("dsplit", indices_or_sections), 0)


@operation(static_argnames=("axis",))
def _unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    x = any_operand("unstack", x)
    axis = canonical_axis(axis, typeof(x).ndim)
    return tuple(slicing.unstack(x, axis))


@boundary
@like(np.unstack)
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return the parts of an array along an axis, without that axis.

    Example:
      >>> [x.shape for x in jnp.unstack(jnp.ones((2, 3)), axis=1)]
      [(2,), (2,), (2,)]
    """
    return _unstack(x, axis)


@operation_like(np.append, static_argnames=("axis",))
def append(arr: ArrayLike, values: ArrayLike, axis: Axis = None) -> Array:
    """Append values to an array along an axis, or its flattened elements to the array's.

    The result has the common dtype of both.

    Raises:
      ValueError: if there is no such axis.
      TypeError: if the numbers of axes, or the sizes of other axes, differ.

    Example:
      >>> x = jnp.array([[1, 2], [3, 4]])
      >>> jnp.append(x, x[:1])
      Array([1, 2, 3, 4, 1, 2], dtype=int32)
      >>> jnp.append(x, x[:1], axis=0).shape
      (3, 2)
    """
    check_arraylike("append", arr, values)
    return _concatenate.when_traced([arr, values], axis)
