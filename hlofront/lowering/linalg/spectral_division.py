"""Eigenvalues of a large Hermitian matrix by spectral divide and conquer, without LAPACK.

By Nakatsukasa & Higham, SIAM Journal on Scientific Computing 35(3), A1325-A1349 (2013): the polar
factor of H - s I has eigenvalue 1 for eigenvalues of H above s, else -1. Bases of both eigenspaces
split H into two blocks, which are divided in turn.
"""

# Operations that hold programs take and return pytrees of any type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from functools import partial
from typing import cast

import numpy as np

from hlofront.base.dtypes import finfo, is_complex
from hlofront.base.elements import int32, uint32
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike
from hlofront.core.aval import typeof
from hlofront.core.trace import process
from hlofront.higher_order.control_flow.cond import switch
from hlofront.higher_order.control_flow.while_loop import while_loop
from hlofront.higher_order.polar import qdwh
from hlofront.primitives.arrays.creation import broadcasted_iota, full_like
from hlofront.primitives.arrays.dynamic_slicing import (
    dynamic_slice_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from hlofront.primitives.arrays.reducing import reduce_max, reduce_sum
from hlofront.primitives.arrays.shaping import broadcast_in_dim, squeeze
from hlofront.primitives.arrays.slicing import concatenate, slice_in_dim
from hlofront.primitives.arrays.sorting import sort
from hlofront.primitives.elementwise.compare import eq, gt, lt, select_n
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import (
    abs,
    add,
    bitwise_and,
    bitwise_not,
    div,
    mul,
    sub,
)
from hlofront.primitives.elementwise.elementwise import min as minimum
from hlofront.primitives.elementwise.elementwise import round as rounded
from hlofront.primitives.linalg import matrices as m
from hlofront.primitives.linalg import spectral
from hlofront.primitives.linalg.factoring import qr
from hlofront.primitives.random.bits import threefry2x32

_zero, _one = np.int32(0), np.int32(1)


class _State(NamedTuple):
    """The state of the divide and conquer.

    Attributes:
      blocks: the current diagonal blocks of the matrix, each moved to the first columns.
      vectors: the product of the transformations so far: its columns become the eigenvectors.
      values: the eigenvalues so far.
      agenda: the first row and the size of each block that remains to be divided.
      pending: the number of those blocks.
    """

    blocks: Array
    vectors: Array
    values: Array
    agenda: ArrayLike
    pending: ArrayLike


class _Projection(NamedTuple):
    """The number of attempts at a projector, the projector, and its rank."""

    tries: ArrayLike
    projector: Array
    rank: ArrayLike


def eigh_by_division(x: Array, smallest: int) -> tuple[Array, Array]:
    """Return eigenvectors as columns and unordered eigenvalues of a Hermitian matrix.

    Args:
      x: the matrix, of shape (n, n).
      smallest: blocks of at most this size are passed to the operation `eigh`.
    """
    n = typeof(x).shape[0]
    # Blocks are padded to the next of these sizes.
    sizes = [min(smallest, n)]
    while sizes[-1] * 2 < n:
        sizes.append(sizes[-1] * 2)
    if sizes[-1] < n:
        sizes.append(n)
    steps = [partial(_finish, width=sizes[0]), *(partial(_divide, width=w) for w in sizes[1:])]

    def step(state: _State) -> _State:
        pending = sub(state.pending, _one)
        block = squeeze(dynamic_slice_in_dim(state.agenda, pending, 1, 0), (0,))
        offset, size = (squeeze(slice_in_dim(block, i, i + 1), (0,)) for i in (0, 1))
        which = _zero
        for width in sizes[:-1]:
            which = add(which, convert(gt(size, np.int32(width)), int32, False))
        return cast(_State, switch(which, steps, state._replace(pending=pending), offset, size))

    nothing = m.real_part(full_like(x, 0, shape=(n,)))
    agenda = np.zeros((n, 2), np.int32)
    agenda[0, 1] = n
    start = _State(x, m.identity_like(x), nothing, agenda, _one)

    def cond(state: _State) -> Array:
        return gt(state.pending, _zero)

    end: _State = while_loop(cond, step, start)
    # A matrix with NaN cannot be divided.
    total = reduce_sum(abs(x), (0, 1))
    wrong = bitwise_not(eq(sub(total, total), full_like(total, 0)))
    return _nan_where(wrong, end.vectors), _nan_where(wrong, end.values)


def _nan_where(wrong: Array, x: Array) -> Array:
    nan = complex(np.nan, np.nan) if is_complex(typeof(x).dtype) else np.nan
    return select_n(broadcast_in_dim(wrong, typeof(x).shape, ()), x, full_like(x, nan))


# ---- small blocks --------------------------------------------------------------------------------


def _finish(state: _State, offset: Array, size: Array, *, width: int) -> _State:
    block = _block_of(state, offset, size, width)
    # Pad with greater eigenvalues, which come last.
    bound = _bound(block)
    beyond = mul(add(bound, _scalar(bound, 1)), _scalar(bound, 2))
    rest = _on_diagonal(bitwise_not(_before(size, (width,), 0)), block)
    block = add(block, mul(rest, _as(_filled(beyond, block), block)))
    options = {"lower": True, "sort_eigenvalues": True, "subset_by_index": None, "algorithm": None}
    vectors, values = process(spectral.eigh_p, (block,), options)
    return state._replace(
        values=_put(state.values, values, offset, size, 0),
        vectors=_turned(state, offset, size, vectors),
    )


def _turned(state: _State, offset: Array, size: Array, turn: Array) -> Array:
    """Return the eigenvectors, with those of one block multiplied by `turn` from the right."""
    width = typeof(turn).shape[0]
    turn = _masked(turn, _before(size, (width, width), 0))
    columns = m.product(_take(state.vectors, offset, width, 1), turn)
    return _put(state.vectors, columns, offset, size, 1)


# ---- large blocks --------------------------------------------------------------------------------


def _divide(state: _State, offset: Array, size: Array, *, width: int) -> _State:
    block = _block_of(state, offset, size, width)
    _, projector, rank = _projector(block, size)
    divided = _is_between(rank, size)
    turn = _bases(projector, rank, size)
    turn = select_n(_filled(divided, turn), m.identity_like(turn), turn)
    two = m.product(m.product(m.adjoint(turn), block), turn)
    two = mul(add(two, m.adjoint(two)), _scalar(two, 0.5))
    shape = (width, width)
    # The second block moves to the first columns too.
    upper = _masked(two, _before(rank, shape, 1))
    lower = _masked(_rolled(two, rank, 1), _before(sub(size, rank), shape, 1))
    both = select_n(_before(rank, shape, 0), lower, upper)
    narrow = slice_in_dim(state.blocks, 0, width, axis=1)
    narrow = _put(narrow, both, offset, size, 0)
    agenda = state.agenda
    parts = ((offset, rank), (add(offset, rank), sub(size, rank)))
    for i, part in enumerate(parts):
        row = concatenate([broadcast_in_dim(bound, (1, 1), ()) for bound in part], 1)
        number = add(state.pending, np.int32(i))
        agenda = dynamic_update_slice(agenda, row, (number, _zero))
    # A block that cannot be divided has equal eigenvalues.
    done = select_n(divided, size, _zero)
    eigenvalues = m.real_part(m.diagonal(block))
    return state._replace(
        vectors=_turned(state, offset, size, turn),
        blocks=dynamic_update_slice(state.blocks, narrow, (_zero, _zero)),
        values=_put(state.values, eigenvalues, offset, done, 0),
        agenda=agenda,
        pending=add(state.pending, mul(np.int32(2), convert(divided, int32, False))),
    )


def _projector(block: Array, size: Array) -> _Projection:
    """Return the projector onto the eigenvectors of the greater eigenvalues, and its rank.

    The rank is 0 or full only if all eigenvalues are equal, up to rounding.
    """
    width = typeof(block).shape[0]
    inside = _before(size, (width,), 0)
    ones = _on_diagonal(inside, block)
    eigenvalues = m.real_part(m.diagonal(block))
    real = typeof(eigenvalues).dtype
    ascending = sort(select_n(inside, full_like(eigenvalues, np.inf), eigenvalues))
    half = div(sub(size, _one), np.int32(2))
    median = squeeze(dynamic_slice_in_dim(ascending, half, 1, 0), (0,))
    mean = div(reduce_sum(eigenvalues, (0,)), convert(size, real, False))
    # The split point is so far above the median or the mean that no eigenvalue equals it.
    margin = mul(_bound(block), real.type(10 * float(finfo(real).eps)))

    def attempt(carry: _Projection) -> _Projection:
        tries = carry.tries
        border = add(select_n(eq(tries, _zero), mean, median), margin)
        shifted = sub(block, mul(ones, _as(_filled(border, block), block)))
        # The sizes are traced: rows and columns beyond them are ignored.
        sizes = size, size
        sign, *_ = qdwh(shifted, is_hermitian=True, dynamic_shape=sizes)
        projector = mul(add(sign, ones), _scalar(sign, 0.5))
        trace = reduce_sum(m.real_part(m.diagonal(projector)), (0,))
        return _Projection(add(tries, _one), projector, convert(rounded(trace), int32, False))

    def cond(carry: _Projection) -> Array:
        is_early = lt(carry.tries, np.int32(2))
        return bitwise_and(is_early, bitwise_not(_is_between(carry.rank, size)))

    return while_loop(cond, attempt, _Projection(_zero, full_like(block, 0), _zero))


def _is_between(rank: ArrayLike, size: Array) -> Array:
    return bitwise_and(gt(rank, _zero), lt(rank, size))


def _bases(projector: Array, rank: ArrayLike, size: Array) -> Array:
    """Return a basis of the projector's range, as columns, followed by one of its null space.

    Random columns are projected and made orthonormal twice, since the first result may be nearly
    dependent.
    """
    shape = typeof(projector).shape
    first, own = _before(rank, shape, 1), _before(size, shape, 1)
    rows = _before(size, shape, 0)
    counts = [broadcasted_iota(uint32, shape, axis) for axis in (0, 1)]
    bits, _ = threefry2x32((np.uint32(0), np.uint32(1)), counts)
    real = m.real_dtype(typeof(projector).dtype)
    numbers = sub(mul(convert(bits, real, False), real.type(2.0**-31)), real.type(1))
    turn = convert(numbers, typeof(projector).dtype, False)
    for _ in range(2):
        onto = m.product(projector, turn)
        columns = select_n(first, sub(_masked(turn, rows), onto), onto)
        columns = select_n(own, m.identity(typeof(turn).dtype, shape), columns)
        turn, _ = qr(columns, full_matrices=False)
    return turn


# ---- parts of matrices ---------------------------------------------------------------------------


def _scalar(x: ArrayLike, number: float) -> ArrayLike:
    return typeof(x).dtype.type(number)


def _as(x: Array, like: Array) -> Array:
    return convert(x, typeof(like).dtype, False)


def _filled(x: Array, like: Array) -> Array:
    return broadcast_in_dim(x, typeof(like).shape, ())


def _bound(block: Array) -> Array:
    """Return a bound of the absolute eigenvalues: the greatest absolute row sum."""
    return reduce_max(reduce_sum(abs(block), (1,)), (0,))


def _before(count: ArrayLike, shape: tuple[int, ...], axis: int) -> Array:
    """Return a mask of a shape, true where the index along an axis is less than a count."""
    return lt(broadcasted_iota(int32, shape, axis), broadcast_in_dim(count, shape, ()))


def _masked(x: Array, mask: Array) -> Array:
    return select_n(mask, full_like(x, 0), x)


def _on_diagonal(which: Array, like: Array) -> Array:
    """Return a matrix with ones where a mask of its diagonal is true, and zeros elsewhere."""
    shape = typeof(like).shape
    return _masked(m.identity(typeof(like).dtype, shape), m.along_rows(which, shape))


def _block_of(state: _State, offset: Array, size: Array, width: int) -> Array:
    shape = (width, width)
    block = _take(slice_in_dim(state.blocks, 0, width, axis=1), offset, width, 0)
    return _masked(block, bitwise_and(_before(size, shape, 0), _before(size, shape, 1)))


def _start_of(x: Array, offset: Array, width: int, axis: int) -> tuple[Array, Array]:
    """Return the clamped start of a slice, and its distance before the offset."""
    start = minimum(offset, np.int32(typeof(x).shape[axis] - width))
    return start, sub(offset, start)


def _rolled(x: Array, by: ArrayLike, axis: int) -> Array:
    """Return x rolled along an axis so that its first `by` elements move to the end."""
    return dynamic_slice_in_dim(concatenate([x, x], axis), by, typeof(x).shape[axis], axis)


def _take(x: Array, offset: Array, width: int, axis: int) -> Array:
    """Return a slice of this width from an offset on; elements past the end are arbitrary."""
    start, moved = _start_of(x, offset, width, axis)
    return _rolled(dynamic_slice_in_dim(x, start, width, axis), moved, axis)


def _put(x: Array, update: Array, offset: Array, size: Array, axis: int) -> Array:
    """Return x with the first `size` elements of the update written at an offset of an axis."""
    width = typeof(update).shape[axis]
    start, moved = _start_of(x, offset, width, axis)
    old = dynamic_slice_in_dim(x, start, width, axis)
    new = _rolled(update, sub(np.int32(width), moved), axis)
    shape = typeof(old).shape
    here = bitwise_and(
        bitwise_not(_before(moved, shape, axis)), _before(add(moved, size), shape, axis)
    )
    return dynamic_update_slice_in_dim(x, select_n(here, old, new), start, axis)
