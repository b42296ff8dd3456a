"""Contractions in blocks as StableHLO."""

from collections.abc import Sequence
from typing import Any

from hlofront.core.aval import typeof
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import block_contracting as c
from hlofront.primitives.comparing import ge, lt, select
from hlofront.primitives.contracting import dot_general
from hlofront.primitives.creating import broadcasted_iota, full
from hlofront.primitives.cumulative import cumsum
from hlofront.primitives.elementwise import bitwise_and, sub
from hlofront.primitives.shaping import broadcast, broadcast_in_dim, transpose


@lower(c.ragged_dot_general_p)
def _(build, *operands, ragged_dot_dimension_numbers, precision, preferred_element_type, **_):
    return build.by_tracing(
        _masked_dot,
        operands,
        numbers=ragged_dot_dimension_numbers,
        options=(precision, preferred_element_type),
    )[0]


def _masked_dot(lhs: Any, rhs: Any, group_sizes: Any, *, numbers: Any, options: Any) -> Any:
    """One dot of all groups: each is lhs with zeros at the places of the others."""
    contracting, batch = numbers.dot_dimension_numbers
    if numbers.mode == "batch":
        return dot_general(lhs, rhs, (contracting, batch), *options)
    (ragged,) = numbers.lhs_ragged_dimensions
    outer = numbers.outer_axes(typeof(lhs).ndim)
    lhs = _apart(lhs, ragged, group_sizes, outer)
    if numbers.mode == "noncontracting":
        # The groups, now the first axis of lhs, are summed over: each place is in one of them.
        return dot_general(
            lhs,
            rhs,
            (
                ((*_after(contracting[0]), 0), (*contracting[1], *numbers.rhs_group_dimensions)),
                (_after(batch[0]), batch[1]),
            ),
            *options,
        )
    partner = dict(zip((*contracting[0], *batch[0]), (*contracting[1], *batch[1]), strict=True))
    rhs = _apart(rhs, partner[ragged], group_sizes, [partner[axis] for axis in outer])
    axes = (
        tuple(map(_after, contracting)),
        tuple((0, *_after(axes)) for axes in batch),
    )
    return dot_general(lhs, rhs, axes, *options)


def _after(axes: Sequence[int]) -> tuple[int, ...]:
    """What axes become where there is a new first one."""
    return tuple(axis + 1 for axis in axes)


def _apart(x: Any, ragged: int, group_sizes: Any, outer: Sequence[int]) -> Any:
    """x once per group along a new first axis, zero outside of the group."""
    aval = typeof(x)
    groups = typeof(group_sizes).shape[-1]
    shape = (groups, *aval.shape)
    axes = list(outer) if typeof(group_sizes).ndim > 1 else []
    order = sorted(range(len(axes)), key=axes.__getitem__)
    ends = cumsum(group_sizes, len(axes))
    starts = sub(ends, group_sizes)
    places = (0, *_after(sorted(axes)))
    starts, ends = (
        broadcast_in_dim(transpose(bounds, (len(axes), *order)), shape, places)
        for bounds in (starts, ends)
    )
    index = broadcasted_iota(typeof(group_sizes).dtype, shape, ragged + 1)
    inside = bitwise_and(ge(index, starts), lt(index, ends))
    return select(inside, broadcast(x, (groups,)), full(shape, 0, aval.dtype))


@lower(c.scaled_dot_p)
def _(build, *operands, dimension_numbers, preferred_element_type):
    # A composite: compilers that have the operation take it, others its decomposition.
    avals = tuple(build.avals_in)
    decomposition = build.define_function(
        (c.scaled_dot_p, avals, dimension_numbers, preferred_element_type),
        "xla.scaled_dot",
        avals,
        build.avals_out,
        lambda inner, *xs: inner.by_tracing(
            _dequantized_dot,
            xs,
            avals,
            numbers=dimension_numbers,
            dtype=preferred_element_type,
        ),
    )
    numbers = [[list(axes) for axes in pair] for pair in dimension_numbers]
    kind = types.element_type(preferred_element_type)
    attributes = {
        "name": types.string("xla.scaled_dot"),
        "composite_attributes": types.attribute(
            f"{{dimension_numbers = {numbers}, preferred_element_type = {kind}}}"
        ),
        "decomposition": decomposition,
    }
    operation = build.operation("stablehlo.composite", operands, build.avals_out, 0, attributes)
    return operation.results[0]


def _dequantized_dot(lhs, rhs, lhs_scale, rhs_scale, *, numbers, dtype):
    ((lhs_axis,), (rhs_axis,)), _ = numbers
    lhs = c.dequantized(lhs, lhs_scale, lhs_axis)
    rhs = c.dequantized(rhs, rhs_scale, rhs_axis)
    return dot_general(lhs, rhs, numbers, None, dtype)
