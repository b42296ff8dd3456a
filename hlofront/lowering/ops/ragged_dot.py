"""Lowering rules of ragged and scaled dots."""

from collections.abc import Sequence
from typing import Any

from hlofront.base.typing import Array
from hlofront.bridge.mlir import Value, Values
from hlofront.core.aval import typeof
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.lowering.core.types import NumPyDType
from hlofront.lowering.ops.dot_general import precisions
from hlofront.primitives.arrays.creation import broadcasted_iota, full
from hlofront.primitives.arrays.cumulative import cumsum
from hlofront.primitives.arrays.shaping import broadcast, broadcast_in_dim, transpose
from hlofront.primitives.elementwise.compare import ge, lt, select
from hlofront.primitives.elementwise.elementwise import bitwise_and, sub
from hlofront.primitives.linalg import ragged_dot as c
from hlofront.primitives.linalg.contraction_numbers import DotDimensionNumbers
from hlofront.primitives.linalg.dot_general import Precision, PrecisionLike, dot_general
from hlofront.primitives.linalg.scaled_dot import dequantized, scaled_dot_p


@lower(c.ragged_dot_general_p, platform="gpu")
def _(build: Builder, *operands: Value, **params: object) -> Value:
    return _known_or_masked(build, operands, params, sizes_per_batch=True)


@lower(c.ragged_dot_general_p, platform="tpu")
def _(build: Builder, *operands: Value, **params: object) -> Value:
    return _known_or_masked(build, operands, params, sizes_per_batch=False)


def _known_or_masked(
    build: Builder, operands: Values, params: dict[str, Any], sizes_per_batch: bool
) -> Value:
    is_known = _is_known(build, params["ragged_dot_dimension_numbers"], sizes_per_batch)
    return (_ragged_dot if is_known else _masked_dots)(build, *operands, **params)


def _is_known(build: Builder, numbers: c.RaggedDotDimensionNumbers, sizes_per_batch: bool) -> bool:
    """Return whether XLA's GPU and TPU compilers support a ragged dot with these numbers.

    Args:
      sizes_per_batch: whether the compiler supports group sizes per batch element, like that for
        GPUs, rather than for the whole batch.
    """
    lhs, rhs, group_sizes = build.avals_in
    (contracting, _), (batch, _) = numbers.dot_dimension_numbers
    if numbers.mode == "batch":
        return True
    if numbers.mode == "contracting":
        of_matrices = lhs.ndim == rhs.ndim == 2 + len(batch)
        return group_sizes.ndim == 1 == len(contracting) and (of_matrices or sizes_per_batch)
    if not sizes_per_batch and len(contracting) > 1:
        return False
    expected = 1 + sizes_per_batch * len(batch)
    return group_sizes.ndim == expected and lhs.ndim == 1 + len(batch) + len(contracting)


def _ragged_dot(
    build: Builder,
    *operands: Value,
    ragged_dot_dimension_numbers: c.RaggedDotDimensionNumbers,
    precision: object,
    **_: object,
) -> Value:
    """Emit `chlo.ragged_dot`, which XLA's compilers expand, or implement by kernels."""
    numbers = ragged_dot_dimension_numbers
    contracting, batch = numbers.dot_dimension_numbers
    axes = {
        "lhs_batching_dimensions": batch[0],
        "rhs_batching_dimensions": batch[1],
        "lhs_contracting_dimensions": contracting[0],
        "rhs_contracting_dimensions": contracting[1],
        "lhs_ragged_dimensions": numbers.lhs_ragged_dimensions,
        "rhs_group_dimensions": numbers.rhs_group_dimensions,
    }
    listed = ", ".join(f"{name} = {list(which)}" for name, which in axes.items() if which)
    if isinstance(precision, Precision):
        precision = precision, precision
    names = ", ".join(f"#chlo<precision {one.name}>" for one in precisions(precision))
    return build.op(
        "chlo.ragged_dot",
        operands,
        ragged_dot_dimension_numbers=types.attribute(f"#chlo.ragged_dot<{listed}>"),
        precision_config=types.attribute(f"[{names}]"),
    )


@lower(c.ragged_dot_general_p)
@in_function
def _masked_dots(
    build: Builder,
    *operands: Value,
    ragged_dot_dimension_numbers: c.RaggedDotDimensionNumbers,
    precision: object,
    preferred_element_type: NumPyDType | None,
    **_: object,
) -> Value:
    return build.by_tracing(
        _masked_dot,
        operands,
        numbers=ragged_dot_dimension_numbers,
        precision=precision,
        dtype=preferred_element_type,
    )[0]


def _masked_dot(
    lhs: Array,
    rhs: Array,
    group_sizes: Array,
    *,
    numbers: c.RaggedDotDimensionNumbers,
    precision: PrecisionLike,
    dtype: NumPyDType | None,
) -> Array:
    """Return a ragged dot as one dot, with lhs set to zero outside each group."""
    contracting, batch = numbers.dot_dimension_numbers
    if numbers.mode == "batch":
        axes = (contracting[0], contracting[1]), (batch[0], batch[1])
        return dot_general(lhs, rhs, axes, precision, dtype)
    (ragged,) = numbers.lhs_ragged_dimensions
    outer = numbers.outer_axes(typeof(lhs).ndim)
    lhs = _by_group(lhs, ragged, group_sizes, outer)
    if numbers.mode == "noncontracting":
        # # Sum over the groups, now the first axis of lhs, because each position belongs to one
        # group.
        return dot_general(
            lhs,
            rhs,
            (
                ((*_after(contracting[0]), 0), (*contracting[1], *numbers.rhs_group_dimensions)),
                (_after(batch[0]), batch[1]),
            ),
            precision,
            dtype,
        )
    partner = dict(zip((*contracting[0], *batch[0]), (*contracting[1], *batch[1]), strict=True))
    rhs = _by_group(rhs, partner[ragged], group_sizes, [partner[axis] for axis in outer])
    lhs_axes, rhs_axes = map(_after, contracting)
    lhs_batch, rhs_batch = ((0, *_after(axes)) for axes in batch)
    return dot_general(lhs, rhs, ((lhs_axes, rhs_axes), (lhs_batch, rhs_batch)), precision, dtype)


def _after(axes: Sequence[int]) -> tuple[int, ...]:
    """Return axis numbers shifted by one, for an array with a new first axis."""
    return tuple(axis + 1 for axis in axes)


def _by_group(x: Array, ragged: int, group_sizes: Array, outer: Sequence[int]) -> Array:
    """Return x repeated once per group along a new first axis, zero outside the group.

    Args:
      ragged: the axis of x that is divided into groups.
      group_sizes: the group sizes along the last axis; its other axes are those in `outer`.
      outer: the axes of x along which group sizes vary.
    """
    aval = typeof(x)
    groups = typeof(group_sizes).shape[-1]
    shape = (groups, *aval.shape)
    axes = list(outer) if typeof(group_sizes).ndim > 1 else []
    order = sorted(range(len(axes)), key=axes.__getitem__)
    ends = cumsum(group_sizes, len(axes))
    starts = sub(ends, group_sizes)
    bound_axes = (0, *_after(sorted(axes)))
    starts, ends = (
        broadcast_in_dim(transpose(bounds, (len(axes), *order)), shape, bound_axes)
        for bounds in (starts, ends)
    )
    index = broadcasted_iota(typeof(group_sizes).dtype, shape, ragged + 1)
    inside = bitwise_and(ge(index, starts), lt(index, ends))
    return select(inside, broadcast(x, (groups,)), full(shape, 0, aval.dtype))


@lower(scaled_dot_p)
def _(
    build: Builder,
    *operands: Value,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: NumPyDType,
) -> Value:
    avals = tuple(build.avals_in)
    if any(has_symbolic_size(aval.shape) for aval in avals):
        # The decomposition cannot take sizes as arguments, which the operation does not have.
        return build.by_tracing(
            _dequantized_dot,
            operands,
            avals,
            numbers=dimension_numbers,
            dtype=preferred_element_type,
        )[0]
    loc = build.loc

    def body(inner: Builder, *xs: Value) -> list[Value]:
        # XLA drops the location of a composite when it inlines the decomposition.
        inner.loc = loc
        return inner.by_tracing(
            _dequantized_dot, xs, avals, numbers=dimension_numbers, dtype=preferred_element_type
        )

    # Emit a composite: compilers that have the operation use it, others its decomposition.
    key = scaled_dot_p, avals, dimension_numbers, preferred_element_type, loc
    decomposition = build.define_function(key, "xla.scaled_dot", avals, build.avals_out, body)
    numbers = [[list(axes) for axes in pair] for pair in dimension_numbers]
    kind = types.element_type(preferred_element_type)
    attributes = {
        "name": types.string("xla.scaled_dot"),
        "composite_attributes": types.attribute(
            f"{{dimension_numbers = {numbers}, preferred_element_type = {kind}}}"
        ),
        "decomposition": decomposition,
    }
    return build.op("stablehlo.composite", operands, build.avals_out[0], **attributes)


def _dequantized_dot(
    lhs: Array,
    rhs: Array,
    lhs_scale: Array,
    rhs_scale: Array,
    *,
    numbers: DotDimensionNumbers,
    dtype: NumPyDType,
) -> Array:
    ((lhs_axis,), (rhs_axis,)), _ = numbers
    lhs = dequantized(lhs, lhs_scale, lhs_axis)
    rhs = dequantized(rhs, rhs_scale, rhs_axis)
    return dot_general(lhs, rhs, numbers, None, dtype)
