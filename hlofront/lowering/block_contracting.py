"""Contractions in blocks as StableHLO."""

from collections.abc import Sequence
from typing import Any

from hlofront.core.aval import typeof
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import block_contracting as c
from hlofront.primitives.comparing import ge, lt, select
from hlofront.primitives.contracting import Precision, dot_general
from hlofront.primitives.creating import broadcasted_iota, full
from hlofront.primitives.cumulative import cumsum
from hlofront.primitives.elementwise import bitwise_and, sub
from hlofront.primitives.shaping import broadcast, broadcast_in_dim, transpose


@lower(c.ragged_dot_general_p, platform="gpu")
def _(build, *operands, **params):
    return (_ragged_dot if _is_known(build, params, 1) else _masked_dots)(
        build, *operands, **params
    )


@lower(c.ragged_dot_general_p, platform="tpu")
def _(build, *operands, **params):
    return (_ragged_dot if _is_known(build, params, 0) else _masked_dots)(
        build, *operands, **params
    )


def _is_known(build: Any, params: dict[str, Any], sizes_per_batch: int) -> bool:
    """Whether XLA's compilers for GPUs and TPUs know how to compute it: they fail on many others.

    One wants sizes of groups for each element of a batch, the other has one for all.
    """
    numbers = params["ragged_dot_dimension_numbers"]
    lhs, rhs, group_sizes = build.avals_in
    (contracting, _), (batch, _) = numbers.dot_dimension_numbers
    if numbers.mode == "batch":
        return True
    if numbers.mode == "contracting":
        of_matrices = lhs.ndim == rhs.ndim == 2 + len(batch)
        return group_sizes.ndim == 1 == len(contracting) and (of_matrices or sizes_per_batch > 0)
    if not sizes_per_batch and len(contracting) > 1:
        return False
    wanted = 1 + sizes_per_batch * len(batch)
    return group_sizes.ndim == wanted and lhs.ndim == 1 + len(batch) + len(contracting)


def _ragged_dot(build, *operands, ragged_dot_dimension_numbers, precision, **_):
    """As the operation that these compilers have kernels for, or spell out by themselves."""
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
    if type(precision) is not tuple:
        precision = (precision if isinstance(precision, Precision) else Precision.DEFAULT,) * 2
    names = ", ".join(f"#chlo<precision {one.name}>" for one in precision)
    return build.op(
        "chlo.ragged_dot",
        operands,
        ragged_dot_dimension_numbers=types.attribute(f"#chlo.ragged_dot<{listed}>"),
        precision_config=types.attribute(f"[{names}]"),
    )


@lower(c.ragged_dot_general_p)
def _masked_dots(
    build, *operands, ragged_dot_dimension_numbers, precision, preferred_element_type, **_
):
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
