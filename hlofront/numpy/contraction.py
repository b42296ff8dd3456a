"""Products summed over axes: dot, matmul and their kin; convolutions."""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import check_user_dtype_supported, lattice_result
from hlofront.core.aval import typeof
from hlofront.core.dimensions import canonical_axis
from hlofront.numpy.like import like
from hlofront.numpy.matrices import take_diagonal
from hlofront.numpy.promotion import (
    operands,
    promote_dtypes,
    promote_dtypes_inexact,
    with_rank,
)
from hlofront.numpy.reductions import sum as _sum
from hlofront.numpy.ufuncs import any_operand, is_complex, refuse_out
from hlofront.primitives import convolving, converting, elementwise, shaping, slicing
from hlofront.primitives.contracting import dot_general
from hlofront.primitives.shaping import ascending, refuse_sharding
from hlofront.runtime.operation import operation

_STATIC = ("precision", "preferred_element_type", "out_sharding")


# ---- what contractions share -------------------------------------------------------------------


def two_operands(name: str, a: Any, b: Any, preferred: Any) -> tuple[Any, Any, Any, bool]:
    """The operands, the dtype of their sums of products, and whether the result is weak."""
    (a, b), avals = operands(name, (a, b))
    if preferred is None:
        dtype, weak = lattice_result(tuple([(aval.dtype, aval.weak_type) for aval in avals]))
    else:
        dtype, weak = check_user_dtype_supported(preferred, name), False
    return a, b, dtype, weak


def contract(
    a: Any,
    b: Any,
    summed: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]],
    precision: Any,
    dtype: Any,
    weak: bool = False,
) -> Any:
    """dot_general of operands whose dtypes may differ, with sums in `dtype`."""
    result = dot_general(a, b, (summed, batch), precision, dtype)
    return converting.convert(result, dtype, weak)


def _refuse_sharding(name: str, out_sharding: Any) -> None:
    if out_sharding is not None:
        raise refuse_sharding(f"jnp.{name}", "out_sharding", out_sharding)


# ---- matmul ------------------------------------------------------------------------------------


@operation(static_argnames=_STATIC)
@like(np.matmul)
def matmul(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Products of matrices, in batches: the axes before the last two broadcast.

    Args:
      a, b: arrays of one axis or more.
      precision: as in lax.dot_general.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: None.

    Raises:
      ValueError: if an operand is a scalar, or batches do not broadcast.
      TypeError: if the sizes of the axes that are summed over differ.
    """
    _refuse_sharding("matmul", out_sharding)
    a, b, dtype, weak = two_operands("matmul", a, b, preferred_element_type)
    for position, x in enumerate((a, b)):
        if not typeof(x).ndim:
            raise ValueError(
                f"matmul: operand {position} is a scalar, and at least one axis is wanted. "
                "Multiply by scalars with *."
            )
    a_shape, b_shape = typeof(a).shape, typeof(b).shape
    a_batch, b_batch = a_shape[:-2], b_shape[:-2]
    count = max(len(a_batch), len(b_batch))
    a_sizes = (None,) * (count - len(a_batch)) + a_batch
    b_sizes = (None,) * (count - len(b_batch)) + b_batch
    # Sizes of 1 are dropped, so that nothing is repeated; what both lack comes back at the end.
    absent = (None, 1)
    both, a_only, b_only, ones = [], [], [], []
    for i, (m, n) in enumerate(zip(a_sizes, b_sizes, strict=True)):
        if m in absent and n in absent:
            ones.append(i)
        elif n in absent:
            a_only.append(i)
        elif m in absent:
            b_only.append(i)
        elif m == n:
            both.append(i)
        else:
            raise ValueError(
                f"matmul: batches of operands of shapes {a_shape} and {b_shape} do not broadcast"
            )
    a = _squeezed(a, [i for i, size in enumerate(a_batch) if size == 1])
    b = _squeezed(b, [i for i, size in enumerate(b_batch) if size == 1])
    a_axes = [i for i, size in enumerate(a_sizes) if size not in absent]
    b_axes = [i for i, size in enumerate(b_sizes) if size not in absent]
    batch = [a_axes.index(i) for i in both], [b_axes.index(i) for i in both]
    summed = [typeof(a).ndim - 1], [max(typeof(b).ndim - 2, 0)]
    result = contract(a, b, summed, batch, precision, dtype, weak)
    # The result has the common batch axes, then the others of a, its row, and those of b.
    row, column = (["row"] if len(a_shape) > 1 else []), (["column"] if len(b_shape) > 1 else [])
    places = [*both, *a_only, *row, *b_only, *column]
    wanted = [*sorted([*both, *a_only, *b_only]), *row, *column]
    result = shaping.transpose(result, tuple([places.index(place) for place in wanted]))
    if ones:
        shape = typeof(result).shape
        batch_axes = [i for i in range(count) if i not in ones]
        kept = [*batch_axes, *range(count, count + len(row) + len(column))]
        full = [1] * (count + len(row) + len(column))
        for axis, size in zip(kept, shape, strict=True):
            full[axis] = size
        result = shaping.broadcast_in_dim(result, tuple(full), tuple(kept))
    return result


def _squeezed(x: Any, axes: list[int]) -> Any:
    return shaping.squeeze(x, axes) if axes else x


def _check_core(name: str, x: Any, ndim: int, wanted: str) -> None:
    if typeof(x).ndim < ndim:
        raise ValueError(f"{name} wants {wanted}, got shape {typeof(x).shape}")


@operation
@like(np.matvec)
def matvec(x1, x2, /):
    """Products of matrices and vectors, in batches that broadcast."""
    x1, x2, dtype, weak = two_operands("matvec", x1, x2, None)
    _check_core("matvec", x1, 2, "matrices first")
    _check_core("matvec", x2, 1, "vectors second")
    if typeof(x2).ndim == 1:
        return contract(x1, x2, ([typeof(x1).ndim - 1], [0]), ((), ()), None, dtype, weak)
    columns = shaping.expand_dims(x2, (typeof(x2).ndim,))
    result = matmul.__wrapped__(x1, columns)
    return shaping.squeeze(result, (typeof(result).ndim - 1,))


@operation
@like(np.vecmat)
def vecmat(x1, x2, /):
    """Products of conjugated vectors and matrices, in batches that broadcast."""
    x1, x2, dtype, weak = two_operands("vecmat", x1, x2, None)
    _check_core("vecmat", x1, 1, "vectors first")
    _check_core("vecmat", x2, 2, "matrices second")
    x1 = _conjugated(x1)
    if typeof(x1).ndim == 1 and typeof(x2).ndim == 2:
        return contract(x1, x2, ([0], [0]), ((), ()), None, dtype, weak)
    rows = shaping.expand_dims(x1, (typeof(x1).ndim - 1,))
    result = matmul.__wrapped__(rows, x2)
    return shaping.squeeze(result, (typeof(result).ndim - 2,))


def _conjugated(x: Any) -> Any:
    return elementwise.conj(x) if is_complex(typeof(x)) else x


# ---- dot and its kin ---------------------------------------------------------------------------


@operation(static_argnames=_STATIC)
@like(np.dot)
def dot(a, b, *, precision=None, preferred_element_type=None, out_sharding=None):
    """Sums of products over the last axis of `a` and the last but one of `b`, or its only one.

    Args:
      a, b: arrays or scalars.
      precision: as in lax.dot_general.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: None.

    Raises TypeError if the sizes of the axes differ.
    """
    _refuse_sharding("dot", out_sharding)
    a, b, dtype, weak = two_operands("dot", a, b, preferred_element_type)
    a_ndim, b_ndim = typeof(a).ndim, typeof(b).ndim
    summed = ((a_ndim - 1,), (max(b_ndim - 2, 0),)) if a_ndim and b_ndim else ((), ())
    return contract(a, b, summed, ((), ()), precision, dtype, weak)


@operation(static_argnames=("precision", "preferred_element_type"))
@like(np.inner)
def inner(a, b, *, precision=None, preferred_element_type=None):
    """Sums of products over the last axes; with a scalar, products. TypeError if sizes differ."""
    (a, b), avals = operands("inner", (a, b))
    if not avals[0].shape or not avals[1].shape:
        a, b = promote_dtypes(a, b)
        product = elementwise.mul(a, b)
        if preferred_element_type is None:
            return product
        dtype = check_user_dtype_supported(preferred_element_type, "inner")
        return converting.convert(product, dtype, False)
    a, b, dtype, weak = two_operands("inner", a, b, preferred_element_type)
    summed = ((typeof(a).ndim - 1,), (typeof(b).ndim - 1,))
    return contract(a, b, summed, ((), ()), precision, dtype, weak)


def _as_list(x: Any) -> Any:
    """The elements of an array along one axis."""
    return x if typeof(x).ndim == 1 else shaping.reshape(x, (typeof(x).size,))


@operation(static_argnames=("precision", "preferred_element_type"))
@like(np.vdot)
def vdot(a, b, *, precision=None, preferred_element_type=None):
    """The sum of all products of elements, those of `a` conjugated. TypeError if sizes differ."""
    a, b, dtype, weak = two_operands("vdot", a, b, preferred_element_type)
    a, b = _as_list(_conjugated(a)), _as_list(b)
    return contract(a, b, ((0,), (0,)), ((), ()), precision, dtype, weak)


@operation(static_argnames=("axis", "precision", "preferred_element_type"))
@like(np.vecdot)
def vecdot(x1, x2, /, *, axis=-1, precision=None, preferred_element_type=None):
    """Sums of products along an axis, those of x1 conjugated; the other axes broadcast.

    Raises:
      ValueError: if the sizes along the axis differ, the others do not broadcast, or an operand
        has no such axis.
    """
    x1, x2, dtype, weak = two_operands("vecdot", x1, x2, preferred_element_type)
    shapes = typeof(x1).shape, typeof(x2).shape
    for shape in shapes:
        if not shape:
            raise np.exceptions.AxisError(f"vecdot wants arrays with an axis, got shapes {shapes}")
    axes = [canonical_axis(axis, len(shape)) for shape in shapes]
    if shapes[0][axes[0]] != shapes[1][axes[1]]:
        raise ValueError(f"vecdot: sizes differ along axis {axis}: shapes {shapes[0]}, {shapes[1]}")
    x1, x2 = (_last(x, i) for x, i in zip((_conjugated(x1), x2), axes, strict=True))
    rows = shaping.expand_dims(x1, (typeof(x1).ndim - 1,))
    columns = shaping.expand_dims(x2, (typeof(x2).ndim,))
    if typeof(x1).ndim == typeof(x2).ndim == 1:
        return contract(x1, x2, ((0,), (0,)), ((), ()), precision, dtype, weak)
    result = matmul.__wrapped__(
        rows, columns, precision=precision, preferred_element_type=preferred_element_type
    )
    ndim = typeof(result).ndim
    return shaping.squeeze(result, (ndim - 2, ndim - 1))


def _last(x: Any, axis: int) -> Any:
    """An array with one of its axes moved to the end."""
    ndim = typeof(x).ndim
    return shaping.transpose(x, (*(i for i in range(ndim) if i != axis), axis))


@operation(static_argnames=("axes", *_STATIC))
def _tensordot(a, b, axes, precision, preferred_element_type, out_sharding):
    _refuse_sharding("tensordot", out_sharding)
    a, b, dtype, weak = two_operands("tensordot", a, b, preferred_element_type)
    a_shape, b_shape = typeof(a).shape, typeof(b).shape
    if isinstance(axes, int):
        if axes > min(len(a_shape), len(b_shape)):
            raise TypeError(
                f"tensordot: {axes} axes are to be summed over, and the operands have shapes "
                f"{a_shape} and {b_shape}"
            )
        summed = ascending(len(a_shape))[len(a_shape) - axes :], ascending(axes)
    else:
        summed = tuple(
            tuple([canonical_axis(axis, len(shape)) for axis in given])
            for given, shape in zip(axes, (a_shape, b_shape), strict=True)
        )
        if len(summed[0]) != len(summed[1]):
            raise TypeError(
                f"tensordot wants as many axes of each operand, got {summed[0]} and {summed[1]}"
            )
    return contract(a, b, summed, ((), ()), precision, dtype, weak)


@like(np.tensordot)
def tensordot(
    a: Any,
    b: Any,
    axes: Any = 2,
    *,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Sums of products over any axes.

    Args:
      a, b: arrays.
      axes: how many of the last axes of `a` meet as many first ones of `b`; or a pair of which
        axes of each, an integer or a sequence of them.
      precision: as in lax.dot_general.
      preferred_element_type: the dtype of the sums and of the result.
      out_sharding: None.

    Raises TypeError if numbers or sizes of the axes differ, ValueError if there is no such axis.
    """
    try:
        axes = operator.index(axes)
    except TypeError:
        try:
            first, second = axes
            axes = (_integers(first), _integers(second))
        except (TypeError, ValueError):
            raise TypeError(
                "tensordot: axes must be an integer, a pair of integers, or a pair of sequences "
                f"of integers, got {axes!r}"
            ) from None
    return _tensordot(a, b, axes, precision, preferred_element_type, out_sharding)


def _integers(axes: Any) -> tuple[int, ...]:
    if isinstance(axes, list | tuple | np.ndarray):
        return tuple(map(operator.index, axes))
    return (operator.index(axes),)


# ---- products of all with all ------------------------------------------------------------------


@operation
@like(np.outer)
def outer(a, b, out=None):
    """The product of each element of `a`, down, with each of `b`, along."""
    refuse_out("outer", out)
    a, b = promote_dtypes(*operands("outer", (a, b))[0])
    a, b = _as_list(a), _as_list(b)
    return elementwise.mul(shaping.expand_dims(a, (1,)), shaping.expand_dims(b, (0,)))


@operation
@like(np.kron)
def kron(a, b):
    """A matrix of blocks: each is an element of `a` times the whole of `b`. Any rank."""
    a, b = promote_dtypes(*operands("kron", (a, b))[0])
    ndim = max(typeof(a).ndim, typeof(b).ndim)
    a, b = (with_rank(x, typeof(x).shape, ndim) for x in (a, b))
    shape = [m * n for m, n in zip(typeof(a).shape, typeof(b).shape, strict=True)]
    a = shaping.expand_dims(a, range(1, 2 * ndim, 2))
    b = shaping.expand_dims(b, range(0, 2 * ndim, 2))
    return shaping.reshape(elementwise.mul(a, b), tuple(shape))


@operation(static_argnames=("axisa", "axisb", "axisc", "axis"))
@like(np.cross)
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Cross products of vectors of two or three components; of two with two, the third alone.

    Raises ValueError if there are other numbers of components.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = promote_dtypes(*operands("cross", (a, b))[0])
    vectors = [
        _components("cross", x, axis) for x, axis in ((a, axisa), (b, axisb))
    ]
    (a, b), sizes = vectors, tuple(map(len, vectors))
    times, minus = elementwise.mul, elementwise.sub
    shape = shaping.broadcast_shapes(typeof(a[0]).shape, typeof(b[0]).shape)
    a, b = ([_broadcast(x, shape) for x in vector] for vector in (a, b))
    third = minus(times(a[0], b[1]), times(a[1], b[0]))
    if sizes == (2, 2):
        return third
    zero = elementwise.sub(a[0], a[0]) if 2 in sizes else None
    a, b = ([*vector, zero] if len(vector) == 2 else vector for vector in (a, b))
    result = [
        minus(times(a[1], b[2]), times(a[2], b[1])),
        minus(times(a[2], b[0]), times(a[0], b[2])),
        third,
    ]
    axisc = canonical_axis(axisc, len(shape) + 1)
    return slicing.concatenate([shaping.expand_dims(x, (axisc,)) for x in result], axisc)


def _components(name: str, x: Any, axis: int) -> list[Any]:
    shape = typeof(x).shape
    axis = canonical_axis(axis, len(shape))
    if shape[axis] not in (2, 3):
        raise ValueError(
            f"{name} wants vectors of 2 or 3 components, got shape {shape} with axis {axis}"
        )
    return [slicing.index_in_dim(x, i, axis, keepdims=False) for i in range(shape[axis])]


def _broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    own = typeof(x).shape
    if own == shape:
        return x
    return shaping.broadcast_in_dim(x, shape, ascending(len(shape))[len(shape) - len(own) :])


@operation(static_argnames=("offset", "axis1", "axis2", "dtype"))
@like(np.trace)
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """The sums of the diagonals along two axes; integers of less than 32 bits are summed in 32.

    Raises ValueError if there are no two such axes.
    """
    refuse_out("trace", out)
    diagonal = take_diagonal("trace", any_operand("trace", a), offset, axis1, axis2)
    return _sum.__wrapped__(diagonal, axis=-1, dtype=dtype)


# ---- convolution -------------------------------------------------------------------------------

_MODES = ("full", "same", "valid")


def _convolution(name: str, a: Any, v: Any, mode: str, precision: Any, preferred: Any) -> Any:
    a, v = promote_dtypes_inexact(*operands(name, (a, v))[0])
    shapes = typeof(a).shape, typeof(v).shape
    if len(shapes[0]) != 1 or len(shapes[1]) != 1:
        raise ValueError(f"{name} wants arrays of one axis, got shapes {shapes[0]} and {shapes[1]}")
    if not shapes[0][0] or not shapes[1][0]:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {shapes[0]} and {shapes[1]}")
    if mode not in _MODES:
        raise ValueError(f"{name}: mode must be one of {_MODES}, got {mode!r}")
    swapped = shapes[0][0] < shapes[1][0]
    if name == "correlate":
        v = _conjugated(v)
    if swapped:
        a, v = v, a
    # The kernel of XLA's convolution is not reversed: it is a correlation.
    if name == "convolve":
        v = shaping.rev(v, (0,))
    width = typeof(v).shape[0]
    pads = {"full": (width - 1, width - 1), "valid": (0, 0), "same": (width // 2, (width - 1) // 2)}
    result = convolving.conv_general_dilated(
        shaping.expand_dims(a, (0, 1)),
        shaping.expand_dims(v, (0, 1)),
        (1,),
        [pads[mode]] if not (swapped and name == "correlate") else [pads[mode][::-1]],
        precision=precision,
        preferred_element_type=preferred,
    )
    if swapped and name == "correlate":
        result = shaping.rev(result, (2,))
    return shaping.squeeze(result, (0, 1))


@operation(static_argnames=("mode", "precision", "preferred_element_type"))
@like(np.convolve)
def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    """The convolution of two lists of numbers, as floats or complex numbers.

    Args:
      a, v: arrays of one axis, not empty.
      mode: "full" for all places where they overlap, "same" for as many as the longer one has,
        "valid" for those where they overlap wholly.
      precision: as in lax.conv_general_dilated.
      preferred_element_type: the dtype of the sums and of the result.

    Raises ValueError for other arrays and modes.
    """
    return _convolution("convolve", a, v, mode, precision, preferred_element_type)


@operation(static_argnames=("mode", "precision", "preferred_element_type"))
@like(np.correlate)
def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    """The correlation of two lists of numbers, the second conjugated; arguments as convolve's."""
    return _convolution("correlate", a, v, mode, precision, preferred_element_type)


ARRAY_METHODS = {"dot": dot, "trace": trace}
