"""The rules of sparsify: what each primitive does with sparse arrays."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.typing import Array, ArrayLike, Params, Shape
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.higher_order.control_flow.cond import cond_p, switch
from hlofront.higher_order.control_flow.scan import scan, scan_p
from hlofront.higher_order.control_flow.while_loop import while_loop, while_p
from hlofront.numpy.arrays.creation import asarray
from hlofront.primitives.arrays import shaping, slicing
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p
from hlofront.primitives.arrays.gathering import gather_p
from hlofront.primitives.arrays.reducing import reduce_sum_p
from hlofront.primitives.arrays.slicing import concatenate
from hlofront.primitives.elementwise import converting, elementwise, special
from hlofront.primitives.linalg.conv import conv_general_dilated_p
from hlofront.primitives.linalg.dot_general import dot_general_p
from hlofront.primitives.sparse.elements import todense_p
from hlofront.sparse.bcoo import BCOO, bcoo_sum_duplicates, bcoo_transpose, with_data
from hlofront.sparse.bcoo_products import (
    bcoo_conv_general_dilated,
    bcoo_dot_general,
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
)
from hlofront.sparse.bcoo_shaping import (
    bcoo_broadcast_in_dim,
    bcoo_concatenate,
    bcoo_reduce_sum,
    bcoo_reshape,
    bcoo_rev,
    bcoo_squeeze,
)
from hlofront.sparse.bcoo_slicing import bcoo_dynamic_slice, bcoo_gather, bcoo_slice
from hlofront.sparse.bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_sum_duplicates,
)
from hlofront.sparse.sparsify import (
    RULES,
    SparseArray,
    SparseOrDense,
    SparseRule,
    SparseValue,
    evaluate,
)

# An operand of a rule.
RuleOperand = SparseValue | ArrayLike
# The flat results of a program; some may be sparse.
SparseResults = Sequence[SparseOrDense]

_of_bcoo, _of_bcsr = RULES[BCOO], RULES[BCSR]


def _rule(
    primitive: Primitive, *tables: dict[Primitive, SparseRule]
) -> Callable[[SparseRule], SparseRule]:
    def register(rule: SparseRule) -> SparseRule:
        for table in tables or (_of_bcoo,):
            table[primitive] = rule
        return rule

    return register


def array_of(x: RuleOperand) -> SparseOrDense:
    """Return the sparse array of an operand, or the operand if it is dense."""
    return x.array if isinstance(x, SparseValue) else x


# ---- element by element --------------------------------------------------------------------------

# Sums of elements at one position may be taken before or after these.
_LINEAR = (
    elementwise.neg_p,
    elementwise.real_p,
    elementwise.imag_p,
    elementwise.conj_p,
    converting.copy_p,
    converting.stage_p,
)
# These are zero at zero.
_ZERO_AT_ZERO = (
    elementwise.abs_p,
    elementwise.asin_p,
    elementwise.asinh_p,
    elementwise.atan_p,
    elementwise.atanh_p,
    elementwise.expm1_p,
    elementwise.log1p_p,
    elementwise.sign_p,
    elementwise.sin_p,
    elementwise.sinh_p,
    elementwise.sqrt_p,
    elementwise.square_p,
    elementwise.tan_p,
    elementwise.tanh_p,
    special.bessel_i1e_p,
    converting.convert_element_type_p,
)


def _with_unique_positions(x: SparseValue) -> SparseValue:
    """Return a value without repeated positions."""
    array = x.array
    if isinstance(array, BCSR):
        return x if array.unique_indices else SparseValue(bcsr_sum_duplicates(array, array.nse))
    if array.unique_indices:
        return x
    return SparseValue(bcoo_sum_duplicates(array, nse=array.nse))


def _with_data(x: SparseValue, data: Array) -> SparseValue:
    """Return a value with other data at the same positions."""
    array = x.array
    if isinstance(array, BCSR):
        buffers = data, array.indices, array.indptr
        new: SparseArray = BCSR.tree_unflatten(array._info._asdict(), buffers)
    else:
        new = with_data(array, data)
    return SparseValue(new, x.positions)


def _on_data(primitive: Primitive, linear: bool) -> None:
    def rule(x: SparseValue, **params: object) -> SparseValue:
        x = x if linear else _with_unique_positions(x)
        return _with_data(x, primitive.bind(x.array.data, **params))

    _rule(primitive, _of_bcoo, _of_bcsr)(rule)


for _primitive in _LINEAR:
    _on_data(_primitive, linear=True)
for _primitive in _ZERO_AT_ZERO:
    _on_data(_primitive, linear=False)


@_rule(elementwise.integer_pow_p, _of_bcoo, _of_bcsr)
def _(x: SparseValue, *, y: int) -> SparseValue:
    if y <= 0:
        raise NotImplementedError(  # JAX raises this class.
            f"sparse rule for integer_pow with non-positive exponent {y} is not implemented "
            "because it would result in dense output. If this is your intent, use "
            "sparse.todense() to convert your argument to a dense array."
        )
    x = _with_unique_positions(x)
    return _with_data(x, elementwise.integer_pow(x.array.data, y))


def _shape(x: RuleOperand) -> Shape:
    return x.array.shape if isinstance(x, SparseValue) else typeof(x).shape


@_rule(elementwise.add_p)
def _(x: RuleOperand, y: RuleOperand) -> SparseValue | Array:
    if isinstance(x, SparseValue) and isinstance(y, SparseValue):
        return _sum_of_sparse(x, y)
    sparse, dense = (x.array, y) if isinstance(x, SparseValue) else (y.array, x)
    shape = typeof(dense).shape
    fits = len(shape) == sparse.ndim and all(
        own in (1, size) for own, size in zip(sparse.shape, shape, strict=True)
    )
    if not fits:
        raise NotImplementedError(  # JAX raises this class.
            "Addition between a sparse array X and a dense array Y is not implemented when the "
            "output shape is larger than Y.shape. This is to prevent silent densification of a "
            "large sparse array. If this is your intent, you can explicitly cast the sparse array "
            "to a dense matrix."
        )
    return elementwise.add(sparse.todense(), dense)


def _sum_of_sparse(x: SparseValue, y: SparseValue) -> SparseValue:
    one, other = x.array, y.array
    if x.positions is y.positions:
        return _with_data(x, elementwise.add(one.data, other.data))
    if any(a != b and 1 not in (a, b) for a, b in zip(one.shape, other.shape, strict=False)):
        raise TypeError(
            f"add got incompatible shapes for broadcasting: {one.shape}, {other.shape}."
        )
    if one.shape != other.shape:
        raise NotImplementedError(  # JAX raises this class.
            "Addition between sparse matrices of different shapes."
        )
    if (one.n_batch, one.n_dense) != (other.n_batch, other.n_dense):
        raise NotImplementedError(  # JAX raises this class.
            "Addition between sparse matrices with different batch/dense dimensions."
        )
    batch = one.shape[: one.n_batch]
    dense = one.shape[one.n_batch + one.n_sparse :]
    own = [
        buffer.shape[: one.n_batch]
        for array in (one, other)
        for buffer in (array.data, array.indices)
    ]
    if len(set(own)) == 1:
        batch = own[0]

    def whole(buffer: Array, rest: Sequence[int]) -> Array:
        return shaping.broadcast_in_dim(buffer, (*batch, *rest), range(buffer.ndim))

    axis = one.n_batch
    data = concatenate([whole(a.data, (a.nse, *dense)) for a in (one, other)], axis)
    dtype = one.indices.dtype
    indices = concatenate(
        [whole(a.indices.astype(dtype), (a.nse, a.n_sparse)) for a in (one, other)], axis
    )
    return SparseValue(BCOO((data, indices), shape=one.shape))


@_rule(elementwise.sub_p)
def _(x: RuleOperand, y: RuleOperand) -> SparseValue | Array:
    if isinstance(x, SparseValue) and isinstance(y, SparseValue):
        return _sum_of_sparse(x, _with_data(y, elementwise.neg(y.array.data)))
    raise NotImplementedError(  # JAX raises this class.
        "Subtraction between sparse and dense array."
    )


@_rule(elementwise.mul_p)
def _(x: RuleOperand, y: RuleOperand, **params: object) -> SparseValue | BCOO:
    if isinstance(x, SparseValue) and isinstance(y, SparseValue):
        if x.positions is y.positions and x.array.unique_indices:
            return _with_data(x, elementwise.mul(x.array.data, y.array.data, **params))
        return bcoo_multiply_sparse(x.array, y.array)
    sparse, dense = (x, y) if isinstance(x, SparseValue) else (y, x)
    return _with_data(sparse, bcoo_multiply_dense(sparse.array, dense))


@_rule(elementwise.div_p)
def _(x: SparseValue, y: RuleOperand) -> SparseValue:
    if isinstance(y, SparseValue):
        raise NotImplementedError(  # JAX raises this class.
            "Division by a sparse array is not implemented because it would result in dense "
            "output. If this is your intent, use sparse.todense() to convert your arguments to a "
            "dense array."
        )
    y = asarray(y)
    one = asarray(np.ones((), y.dtype))
    inverse = elementwise.div(shaping.broadcast_in_dim(one, y.shape, ()), y)
    return _with_data(x, bcoo_multiply_dense(x.array, inverse))


# ---- products, sums, shapes ----------------------------------------------------------------------


@_rule(dot_general_p)
def _(x: RuleOperand, y: RuleOperand, **params: object) -> BCOO | Array:
    return bcoo_dot_general(array_of(x), array_of(y), **params)


@_rule(dot_general_p, _of_bcsr)
def _(x: RuleOperand, y: RuleOperand, **params: object) -> Array:
    return bcsr_dot_general(array_of(x), array_of(y), **params)


@_rule(conv_general_dilated_p)
def _(x: RuleOperand, y: RuleOperand, **params: object) -> BCOO:
    return bcoo_conv_general_dilated(array_of(x), array_of(y), **params)


@_rule(reduce_sum_p)
def _(x: SparseValue, *, axes: Sequence[int], **_: object) -> BCOO | Array:
    result = bcoo_reduce_sum(x.array, axes=axes)
    return result if result.shape else result.todense()


@_rule(todense_p, _of_bcoo, _of_bcsr)
def _(x: SparseValue, **_: object) -> Array:
    return x.array.todense()


@_rule(shaping.broadcast_in_dim_p)
def _(x: SparseValue, **params: object) -> BCOO:
    return bcoo_broadcast_in_dim(x.array, **params)


@_rule(shaping.broadcast_in_dim_p, _of_bcsr)
def _(x: SparseValue, **params: object) -> BCSR:
    return bcsr_broadcast_in_dim(x.array, **params)


@_rule(slicing.concatenate_p)
def _(*operands: RuleOperand, dimension: int) -> BCOO:
    return bcoo_concatenate(tuple(map(array_of, operands)), dimension=dimension)


@_rule(slicing.concatenate_p, _of_bcsr)
def _(*operands: RuleOperand, dimension: int) -> BCSR:
    return bcsr_concatenate(tuple(map(array_of, operands)), dimension=dimension)


@_rule(slicing.stack_p)
def _(*operands: SparseValue, axis: int) -> BCOO:
    return bcoo_concatenate(
        [bcoo_broadcast_in_dim(x.array, **_new_axis(x, axis)) for x in operands], dimension=axis
    )


@_rule(slicing.stack_p, _of_bcsr)
def _(*operands: SparseValue, axis: int) -> BCSR:
    return bcsr_concatenate(
        [bcsr_broadcast_in_dim(x.array, **_new_axis(x, axis)) for x in operands], dimension=axis
    )


def _new_axis(x: RuleOperand, axis: int) -> Params:
    """Return the parameters of the broadcast that inserts an axis of size 1."""
    shape = _shape(x)
    return {
        "shape": (*shape[:axis], 1, *shape[axis:]),
        "broadcast_dimensions": [i + (i >= axis) for i in range(len(shape))],
    }


@_rule(shaping.reshape_p)
def _(x: SparseValue, **params: object) -> BCOO:
    return bcoo_reshape(x.array, **params)


@_rule(shaping.rev_p)
def _(x: SparseValue, *, dimensions: Sequence[int]) -> BCOO:
    return bcoo_rev(x.array, dimensions)


@_rule(shaping.squeeze_p)
def _(x: SparseValue, *, dimensions: Sequence[int]) -> BCOO:
    return bcoo_squeeze(x.array, dimensions=dimensions)


@_rule(shaping.transpose_p)
def _(x: SparseValue, *, permutation: Sequence[int]) -> BCOO:
    return bcoo_transpose(x.array, permutation=permutation)


@_rule(slicing.slice_p)
def _(x: SparseValue, **params: object) -> BCOO:
    return bcoo_slice(x.array, **params)


@_rule(dynamic_slice_p)
def _(x: SparseValue, *starts: ArrayLike, slice_sizes: Shape) -> BCOO:
    return bcoo_dynamic_slice(x.array, starts, slice_sizes)


@_rule(gather_p)
def _(x: SparseValue, indices: Array, **params: object) -> BCOO:
    return bcoo_gather(x.array, indices, **params)


# ---- branches and loops --------------------------------------------------------------------------


@_rule(cond_p, _of_bcoo, _of_bcsr)
def _(
    index: ArrayLike, *operands: RuleOperand, branches: Sequence[ClosedJaxpr], **_: object
) -> SparseResults:
    def branch(program: ClosedJaxpr) -> Callable[..., SparseResults]:
        return lambda *args: evaluate(program, *args)

    return switch(index, [branch(program) for program in branches], *map(array_of, operands))


@_rule(while_p, _of_bcoo, _of_bcsr)
def _(
    *operands: RuleOperand,
    cond_nconsts: int,
    cond_jaxpr: ClosedJaxpr,
    body_nconsts: int,
    body_jaxpr: ClosedJaxpr,
    **_: object,
) -> SparseResults:
    arrays = list(map(array_of, operands))
    n_consts = cond_nconsts + body_nconsts
    of_condition, of_body = arrays[:cond_nconsts], arrays[cond_nconsts:n_consts]
    return while_loop(
        lambda carry: evaluate(cond_jaxpr, *of_condition, *carry)[0],
        lambda carry: evaluate(body_jaxpr, *of_body, *carry),
        arrays[n_consts:],
    )


@_rule(scan_p, _of_bcoo, _of_bcsr)
def _(
    *operands: RuleOperand,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    unroll: int,
    num_consts: int,
    num_carry: int,
    **_: object,
) -> SparseResults:
    n_state = num_consts + num_carry
    if any(isinstance(x, SparseValue) for x in operands[n_state:]):
        raise NotImplementedError(  # JAX raises this class.
            "sparse rule for scan with x values that are sparse: a scan takes them apart along "
            "axis 0"
        )
    arrays = list(map(array_of, operands))
    consts = arrays[:num_consts]

    def step(carry: SparseResults, xs: SparseResults) -> tuple[SparseResults, SparseResults]:
        results = evaluate(jaxpr, *consts, *carry, *xs)
        return results[:num_carry], results[num_carry:]

    carry, ys = scan(step, arrays[num_consts:n_state], arrays[n_state:], length, reverse, unroll)
    return [*carry, *ys]
