"""Lowering rule of shard_map: a manual computation of Shardy, whose body runs on each device."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import itertools
from collections.abc import Collection, Generator, Hashable, Sequence
from contextlib import contextmanager

import numpy as np

from hlofront.base.elements import ExtendedDType
from hlofront.bridge.mlir import Value, ir
from hlofront.core.aval import AbstractValue, ShapedArray, token_aval
from hlofront.core.effects import ordered_effects
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.rules import lower
from hlofront.core.sharding.mesh import AbstractMesh, AxisType, Mesh
from hlofront.core.sharding.partition import PartitionSpec, axes_of
from hlofront.higher_order.shard_map.shard_map import shard_map_p
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder, hoisted_arguments, large_constants
from hlofront.lowering.core.mesh_attributes import mesh_symbol, quoted, unreduced_text
from hlofront.lowering.core.module_state import ManualMesh

_REPLICATED = PartitionSpec()


@lower(shard_map_p)
def _(
    build: Builder,
    *args: Value,
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Sequence[PartitionSpec],
    out_specs: Sequence[PartitionSpec],
    newly_manual_axes: Collection[Hashable],
    check_vma: bool,
) -> list[Value]:
    enclosing = build.module.manual
    outer = enclosing.manual if enclosing is not None else frozenset[Hashable]()
    inside = ManualMesh(mesh.shape_tuple, outer.union(newly_manual_axes))
    manual_types = dict.fromkeys(newly_manual_axes, AxisType.Manual)
    typed_mesh = mesh.abstract_mesh.update_axis_types(manual_types)
    typed_inside = typed_mesh if typed_mesh.explicit_axes else None
    if mesh.size == 1:
        # Each part is the whole array. Programs for one device cannot have manual computations.
        with lowering_in(build, inside, typed_inside):
            return build.inline_closed(jaxpr, args, "shard_map")
    # The region is isolated: values that it reads from outside become its first operands.
    ordered = ordered_effects(jaxpr.effects)
    constants = build.carried(large_constants(jaxpr))
    # Shardy requires that unreduced operands come from a constraint that says so.
    args = tuple(
        build.split_by_type(x, aval) if spec.unreduced else x
        for x, spec, aval in zip(args, in_specs, build.avals_in, strict=True)
    )
    captured = [token_aval] * len(ordered), [constant.aval for constant in constants]
    count = sum(map(len, captured))
    # XLA makes constants of empty operands, and then misses what splits them, under jax too.
    is_passed = [not _is_empty(aval) for aval in jaxpr.in_avals]

    def body(inner: Builder, *values: Value) -> list[Value]:
        inner.hoisted = hoisted_arguments(constants, values[len(ordered) :])
        inner.take_tokens(ordered, values[: len(ordered)])
        passed = iter(values[count:])
        inputs = [
            next(passed) if given else inner.constant(np.zeros(aval.shape, aval.dtype))
            for given, aval in zip(is_passed, jaxpr.in_avals, strict=True)
        ]
        outputs = inner.inline_closed(jaxpr, inputs, "shard_map")
        return [*inner.tokens_of(ordered), *outputs]

    operation = build.operation(
        "sdy.manual_computation",
        [
            *build.tokens_of(ordered),
            *build.values_of(constants),
            *itertools.compress(args, is_passed),
        ],
        [*captured[0], *build.avals_out],
        1,
        manual_attributes(
            build,
            inside,
            newly_manual_axes,
            [
                *zip([_REPLICATED] * count, [*captured[0], *captured[1]]),
                *itertools.compress(zip(in_specs, build.avals_in), is_passed),
            ],
            [*zip([_REPLICATED] * len(ordered), captured[0]), *zip(out_specs, build.avals_out)],
        ),
    )
    avals = [*captured[0], *captured[1], *itertools.compress(jaxpr.in_avals, is_passed)]
    with lowering_in(build, inside, typed_inside):
        build.region(operation, 0, avals, body, "sdy.return")
    return build.take_tokens(ordered, operation.results)


def _is_empty(aval: AbstractValue) -> bool:
    """Return whether an array has no elements, so that a constant can stand for it."""
    if not isinstance(aval, ShapedArray) or isinstance(aval.dtype, ExtendedDType):
        return False
    return 0 in aval.shape


@contextmanager
def lowering_in(
    build: Builder, mesh: ManualMesh, typed_mesh: AbstractMesh | None = None
) -> Generator[None]:
    """A context in which operations are lowered in the body of a shard_map over this mesh.

    Args:
      build: the builder of the operation around the body.
      mesh: the mesh.
      typed_mesh: the mesh, if types show how some of its axes split values in the body.
    """
    module = build.module
    before = module.manual, module.typed_mesh
    module.manual, module.typed_mesh = mesh, typed_mesh
    try:
        yield
    finally:
        module.manual, module.typed_mesh = before


def manual_attributes(
    build: Builder,
    inside: ManualMesh,
    newly_manual: Collection[Hashable],
    inputs: Sequence[tuple[PartitionSpec, AbstractValue]],
    outputs: Sequence[tuple[PartitionSpec, AbstractValue]],
) -> dict[str, ir.Attribute]:
    """Return the attributes of a manual computation.

    Args:
      build: the builder of the operation.
      inside: the mesh with the manual axes of the body.
      newly_manual: the axes that are manual inside, and not around the operation.
      inputs, outputs: the spec and the type of each operand and result.
    """
    symbol = mesh_symbol(build.module, inside.axes, None)

    def shardings(pairs: Sequence[tuple[PartitionSpec, AbstractValue]]) -> ir.Attribute:
        names = [name for name, _ in inside.axes]
        each = [
            f"<@{symbol}, [{', '.join(_entries(spec, aval, inside.is_whole))}]"
            f"{unreduced_text(spec, names)}>"
            for spec, aval in pairs
        ]
        return types.attribute(f"#sdy.sharding_per_value<[{', '.join(each)}]>")

    names = [quoted(name) for name, _ in inside.axes if name in newly_manual]
    return {
        "in_shardings": shardings(inputs),
        "out_shardings": shardings(outputs),
        "manual_axes": types.attribute(f"#sdy<manual_axes{{{', '.join(names)}}}>"),
    }


def _entries(spec: PartitionSpec, aval: object, is_whole: bool) -> list[str]:
    """Return as text the mesh axes of each axis of a value; XLA may add some unless `is_whole`."""
    if not isinstance(aval, ShapedArray):
        return []
    shape = aval.shape
    if isinstance(aval.dtype, ExtendedDType):
        shape = aval.dtype.physical(shape)[0]
    per_axis = [[quoted(name) for name in axes_of(entry)] for entry in spec.partitions]
    per_axis += [[] for _ in range(len(shape) - len(per_axis))]
    return [f"{{{', '.join(axes if is_whole else [*axes, '?'])}}}" for axes in per_axis]
