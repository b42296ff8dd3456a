"""Derivatives, batching and simplification of shard_map, which change its program and specs."""

from collections.abc import Sequence
from typing import Any, Literal

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.axes import AxisData, axes_in_scope, unmapped_aval
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, ParamDict, Value, Var
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.rules import BatchResult
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    Cotangent,
    Operand,
    Tangent,
    Tangents,
    UndefinedPrimal,
    Zero,
)
from hlofront.higher_order.selecting import (
    Flags,
    LinearOperands,
    nonzero,
    nonzero_flags,
    where,
    where_not,
    with_zeros,
)
from hlofront.higher_order.shard_map.shard_map import ShardMapParams, Specs, names_in, shard_map_p
from hlofront.primitives.arrays.creation import scalar_of
from hlofront.primitives.arrays.shaping import broadcast_in_dim, squeeze
from hlofront.primitives.collectives.collectives import psum
from hlofront.primitives.collectives.varying import psum_invariant
from hlofront.primitives.elementwise.elementwise import div
from hlofront.transforms.batch import batch_jaxpr
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.partial_eval import SplitEquation, partial_eval_program
from hlofront.transforms.simplify import SmallerEquation, dead_code_program
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_jaxpr


def _params(params: ParamDict) -> ShardMapParams:
    return ShardMapParams(params["mesh"], params["newly_manual_axes"], params["check_vma"])


def _equation(
    equation: Equation,
    program: ClosedJaxpr,
    invars: Sequence[object],
    outvars: Sequence[Var],
    in_specs: Specs,
    out_specs: Specs,
) -> Equation:
    """Return an equation with another program, and therefore different operands and results."""
    params = {
        **equation.params,
        "jaxpr": program,
        "in_specs": tuple(in_specs),
        "out_specs": tuple(out_specs),
    }
    return equation.replace(invars=invars, outvars=outvars, params=params, effects=program.effects)


# ---- derivatives ---------------------------------------------------------------------------------


@rules.jvp(shard_map_p)
def _(
    primals: ArrayLikes, tangents: Tangents, **params: Value
) -> tuple[list[ArrayLike], list[Tangent]]:
    shard_map_params = _params(params)
    program: ClosedJaxpr = params["jaxpr"]
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    has_tangent = nonzero_flags(tangents)
    with shard_map_params.inside():
        with_tangents, present = jvp_program(program, has_tangent)
    results = shard_map_params.bind(
        with_tangents,
        (*primals, *nonzero(tangents)),
        (*in_specs, *where(in_specs, has_tangent)),
        (*out_specs, *where(out_specs, present)),
    )
    count = len(present)
    avals = [
        shard_map_params.whole(spec, aval)
        for spec, aval in zip(out_specs, program.out_avals, strict=True)
    ]
    return results[:count], with_zeros(results[count:], present, avals)


class _Transposed(NamedTuple):
    """A transposed program, and per linear operand whether its cotangent is an output."""

    program: ClosedJaxpr
    present: Flags


@rules.transpose(shard_map_p)
def _(
    cotangents: Sequence[Cotangent], *operands: Operand, **params: Value
) -> list[Cotangent | None]:
    shard_map_params = _params(params)
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    split = LinearOperands(cotangents, operands)
    arriving = [
        _shared(shard_map_params, spec, cotangent)
        for spec, cotangent in zip(out_specs, cotangents, strict=True)
        if not isinstance(cotangent, Zero)
    ]
    known = [x for x in operands if not isinstance(x, UndefinedPrimal)]
    transposed = _transposed(
        params["jaxpr"], shard_map_params, in_specs, out_specs, split.linear, split.nonzero
    )
    results = shard_map_params.bind(
        transposed.program,
        (*arriving, *known),
        (
            *map(PartitionSpec.of_cotangent, where(out_specs, split.nonzero)),
            *where_not(in_specs, split.linear),
        ),
        [x.of_cotangent() for x in where(where(in_specs, split.linear), transposed.present)],
    )
    return split.cotangents(results, transposed.present)


def _unnamed(params: ShardMapParams, spec: PartitionSpec) -> tuple[Any, ...]:
    """Return the manual axes along which an array with this spec is the same on all devices."""
    named = names_in(spec) | spec.unreduced | spec.reduced
    return tuple([name for name in params.manual_axes if name not in named])


def _shared(params: ShardMapParams, spec: PartitionSpec, cotangent: ArrayLike) -> ArrayLike:
    """Return each device's share of the cotangent of a result.

    Without `check_vma`, a result that is the same on all devices along an axis may come from any
    of them, so its cotangent is divided among them.
    """
    count = params.size(_unnamed(params, spec))
    if params.check_vma or count == 1:
        return cotangent
    aval = typeof(cotangent)
    return div(cotangent, scalar_of(count, aval.dtype, aval.weak_type))


@once_per_program
def _transposed(
    program: ClosedJaxpr,
    params: ShardMapParams,
    in_specs: Specs,
    out_specs: Specs,
    linear: Flags,
    has_cotangent: Flags,
) -> _Transposed:
    """Return the transposed program, whose first inputs are the cotangents.

    Args:
      program: the program on each device.
      params: the parameters of its operation.
      in_specs, out_specs: the specs of its operands and results.
      linear: per operand, whether the program is linear in it; the others are known.
      has_cotangent: per result, whether its cotangent is an input.
    """
    present: Flags = ()
    # A result may be the same along an axis that its spec names; its cotangents still differ there.
    arriving = [
        params.part(spec, params.whole(spec, aval)).to_cotangent_aval()
        for spec, aval in zip(
            where(out_specs, has_cotangent), where(program.out_avals, has_cotangent), strict=True
        )
    ]
    known = where_not(program.in_avals, linear)

    def backwards(*values: Value) -> list[Value]:
        nonlocal present
        rest = iter(values[: len(arriving)])
        known_values = iter(values[len(arriving) :])
        cotangents = [
            _same_along(params, aval, next(rest)) if is_given else Zero(aval.to_cotangent_aval())
            for aval, is_given in zip(program.out_avals, has_cotangent, strict=True)
        ]
        inputs = [
            UndefinedPrimal(aval) if is_linear else next(known_values)
            for aval, is_linear in zip(program.in_avals, linear, strict=True)
        ]
        results = where(transpose_jaxpr(program.jaxpr, program.consts, inputs, cotangents), linear)
        present = nonzero_flags(results)
        specs = where(where(in_specs, linear), present)
        return [_summed(params, spec, x) for spec, x in zip(specs, nonzero(results), strict=True)]

    with params.inside():
        transposed = stage(backwards, [*arriving, *known], program.jaxpr.origin)
    return _Transposed(transposed, present)


def _same_along(params: ShardMapParams, aval: ShapedArray, cotangent: ArrayLike) -> ArrayLike:
    """Sum a cotangent along the axes along which a value of this type is the same.

    The spec of a result may name an axis along which the result is the same.
    """
    if not params.check_vma:
        return cotangent
    extra = typeof(cotangent).manual_axis_type.varying - aval.manual_axis_type.varying
    return psum_invariant(cotangent, extra)


def _summed(params: ShardMapParams, spec: PartitionSpec, cotangent: ArrayLike) -> ArrayLike:
    """Return an operand's cotangent: the sum over devices that have the same part of it."""
    names = _unnamed(params, spec)
    return cotangent if params.check_vma or not names else psum(cotangent, names)


# ---- partial evaluation --------------------------------------------------------------------------


class _Residual(NamedTuple):
    """A known value that the unknown part reads, identified by its source.

    Attributes:
      source: "input" or "output" if it is one of the known operation; "saved" if the known
          operation returns it only for this purpose.
      number: its index among the values with that source.
    """

    source: Literal["saved", "input", "output"]
    number: int


class _Parts(NamedTuple):
    """The parts of a partially evaluated program, with residuals as results and operands.

    Attributes:
      known: the program of known inputs, which returns saved residuals and then known outputs.
      unknown: the program of residuals and unknown inputs.
      unknown_out: per output of the whole program, whether it is unknown.
      saved_specs: the specs of the residuals that `known` returns.
      residuals: the residuals.
    """

    known: ClosedJaxpr
    unknown: ClosedJaxpr
    unknown_out: Flags
    saved_specs: Sequence[PartitionSpec]
    residuals: Sequence[_Residual]


@rules.partial_eval(shard_map_p)
def _(unknown: Sequence[bool], equation: Equation) -> SplitEquation:
    shard_map_params = _params(equation.params)
    in_specs, out_specs = equation.params["in_specs"], equation.params["out_specs"]
    parts = _split(equation.params["jaxpr"], shard_map_params, out_specs, tuple(unknown))
    inputs, input_specs = where_not(equation.invars, unknown), where_not(in_specs, unknown)
    outputs = where_not(equation.outvars, parts.unknown_out)
    output_specs = where_not(out_specs, parts.unknown_out)
    saved = [
        Var(shard_map_params.whole(spec, aval))
        for spec, aval in zip(parts.saved_specs, parts.known.out_avals, strict=False)
    ]
    atoms: dict[str, Sequence[Atom]] = {"saved": saved, "input": inputs, "output": outputs}
    specs = {"saved": parts.saved_specs, "input": input_specs, "output": output_specs}
    residuals = [atoms[source][number] for source, number in parts.residuals]
    known = unknown_equation = None
    if saved or outputs or parts.known.effects:
        known = _equation(
            equation,
            parts.known,
            inputs,
            [*saved, *outputs],
            input_specs,
            [*parts.saved_specs, *output_specs],
        )
    if any(parts.unknown_out) or parts.unknown.effects:
        unknown_equation = _equation(
            equation,
            parts.unknown,
            [*residuals, *where(equation.invars, unknown)],
            where(equation.outvars, parts.unknown_out),
            [
                *[specs[source][number] for source, number in parts.residuals],
                *where(in_specs, unknown),
            ],
            where(out_specs, parts.unknown_out),
        )
    return known, unknown_equation, parts.unknown_out, residuals


@once_per_program
def _split(
    program: ClosedJaxpr, params: ShardMapParams, out_specs: Specs, unknown: Flags
) -> _Parts:
    """Split a program, some of whose inputs are unknown, into a known and an unknown part.

    A scalar residual gets an axis, along which the values of all devices are concatenated.
    """
    with params.inside():
        split = partial_eval_program(program, unknown)
    known, output_specs = split.known, where_not(out_specs, split.unknown_out)
    count = len(output_specs)
    residuals: list[_Residual] = []
    saved: list[int] = []
    for position in split.residuals:
        if position < 0:
            residuals.append(_Residual("input", ~position))
        elif position < count and _has_all_values(
            params, output_specs[position], known.out_avals[position]
        ):
            residuals.append(_Residual("output", position))
        else:
            residuals.append(_Residual("saved", len(saved)))
            saved.append(position)
    specs = [params.spec_of_all_values(known.out_avals[position]) for position in saved]
    scalars = [
        residual.source == "saved"
        and not known.out_avals[saved[residual.number]].shape
        and bool(specs[residual.number].partitions)
        for residual in residuals
    ]

    def forwards(*inputs: Value) -> list[Value]:
        outputs = jaxpr_as_fun(known, *inputs)
        saved_outputs = [
            _one_axis(outputs[position]) if spec.partitions else outputs[position]
            for position, spec in zip(saved, specs, strict=True)
        ]
        return [*saved_outputs, *outputs[:count]]

    def backwards(*inputs: Value) -> list[Value]:
        values = [
            squeeze(x, (0,)) if scalar else x for x, scalar in zip(inputs, scalars, strict=False)
        ]
        return jaxpr_as_fun(split.unknown, *values, *inputs[len(scalars) :])

    avals = split.unknown.in_avals
    widened = [
        aval.update(shape=(1,)) if scalar else aval
        for aval, scalar in zip(avals, scalars, strict=False)
    ]
    with params.inside():
        new_known = stage(forwards, known.in_avals, known.jaxpr.origin)
        new_unknown = split.unknown
        if any(scalars):
            new_unknown = stage(
                backwards, [*widened, *avals[len(scalars) :]], split.unknown.jaxpr.origin
            )
    return _Parts(new_known, new_unknown, split.unknown_out, specs, residuals)


def _has_all_values(params: ShardMapParams, spec: PartitionSpec, aval: ShapedArray) -> bool:
    """Return whether an output with this spec contains the value of every device."""
    return names_in(spec).issuperset(names_in(params.spec_of_all_values(aval)))


def _one_axis(x: ArrayLike) -> ArrayLike:
    return x if typeof(x).shape else broadcast_in_dim(x, (1,), ())


# ---- batching ------------------------------------------------------------------------------------


@rules.batch_with_axis(shard_map_p)
def _(axis: AxisData, values: ArrayLikes, axes: BatchAxes, **params: Value) -> BatchResult:
    shard_map_params = _params(params)
    in_specs, out_specs = params["in_specs"], params["out_specs"]
    split_along = tuple(
        [name for name in axis.spmd_name if name in shard_map_params.newly_manual_axes]
    )
    used = [spec for spec in (*in_specs, *out_specs) if not names_in(spec).isdisjoint(split_along)]
    if used:
        raise ValueError(
            f"vmap with spmd_axis_name={axis.spmd_name} splits its axis along axes of the mesh, "
            f"and shard_map inside has a spec that names one of them: {used[0]}"
        )
    parts = shard_map_params.size(split_along)
    if axis.size % parts:
        raise ValueError(
            f"vmap with spmd_axis_name={axis.spmd_name} splits its axis, of size {axis.size}, into "
            f"{parts} parts on the devices of shard_map: make it a multiple"
        )
    # Explicit axes of the mesh that do not become manual also split the batch axis of parts.
    explicit = tuple(
        [n for n in axis.explicit_mesh_axis if n not in shard_map_params.newly_manual_axes]
    )
    mesh = shard_map_params.mesh_inside if explicit else None
    inside = AxisData(axis.name, axis.size // parts, axis.spmd_name, explicit, mesh)
    specs = tuple(
        [
            _with_batch_axis(spec, batch_axis, split_along)
            for spec, batch_axis in zip(in_specs, axes, strict=True)
        ]
    )
    batched, axes_out = _batched(params["jaxpr"], shard_map_params, inside, specs, tuple(axes))
    results = shard_map_params.bind(
        batched,
        values,
        specs,
        [
            _with_batch_axis(spec, batch_axis, split_along)
            for spec, batch_axis in zip(out_specs, axes_out, strict=True)
        ],
    )
    return results, axes_out


def _with_batch_axis(
    spec: PartitionSpec, batch_axis: int | None, names: tuple[object, ...]
) -> PartitionSpec:
    """Return the spec of an array with a batch axis that these mesh axes split."""
    if batch_axis is None:
        return spec
    entries = list(spec.partitions)
    entries += [None] * (batch_axis - len(entries))
    entries.insert(batch_axis, names)
    return spec.update(partitions=tuple(entries))


@once_per_program
def _batched(
    program: ClosedJaxpr,
    params: ShardMapParams,
    axis: AxisData,
    in_specs: Specs,
    axes: tuple[int | None, ...],
) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    """Return a batched program, and per output its batch axis or None.

    Args:
      program: the program on each device.
      params: the parameters of its operation.
      axis: the batch axis, with its size on one device.
      in_specs: the specs of the operands with their batch axes.
      axes: per input its batch axis, or None.
    """
    axes_out: tuple[int | None, ...] = ()
    avals = [
        aval if batch_axis is None else _with_batch(params, aval, batch_axis, axis, spec)
        for aval, batch_axis, spec in zip(program.in_avals, axes, in_specs, strict=True)
    ]

    def over_axis(*values: Value) -> list[Value]:
        nonlocal axes_out
        outputs, output_axes = batch_jaxpr(program.jaxpr, program.consts, axis, values, axes)
        axes_out = tuple(output_axes)
        return outputs

    named = () if axis.name is None else ((axis.name, axis.size),)
    with params.inside(), axes_in_scope(named):
        batched = stage(over_axis, avals, program.jaxpr.origin)
    return batched, axes_out


def _with_batch(
    params: ShardMapParams,
    aval: ShapedArray,
    batch_axis: int,
    axis: AxisData,
    spec: PartitionSpec,
) -> ShapedArray:
    """Return the type of a part of a batched array that is split by this spec."""
    kind = aval.manual_axis_type
    if params.check_vma:
        kind = kind.with_varying(kind.varying.union(params.mesh.axes_in_types(spec.names())))
    batched: Any = unmapped_aval(axis.size, batch_axis, aval, axis.explicit_mesh_axis, axis.mesh)
    return batched.update(manual_axis_type=kind)


# ---- dead code -----------------------------------------------------------------------------------


@rules.simplify(shard_map_p)
def _(used: Sequence[bool], equation: Equation) -> SmallerEquation:
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    program: ClosedJaxpr = equation.params["jaxpr"]
    smaller, stays = dead_code_program(program, used)
    if smaller is program:
        return stays, equation
    return stays, _equation(
        equation,
        smaller,
        where(equation.invars, stays),
        where(equation.outvars, used),
        where(equation.params["in_specs"], stays),
        where(equation.params["out_specs"], used),
    )
