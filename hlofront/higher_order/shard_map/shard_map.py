"""shard_map: runs a function on each device of a mesh, on that device's parts of arrays."""

import math
from collections.abc import Callable, Collection, Generator, Hashable, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from hlofront.base import caches, source, tree
from hlofront.base.boundary import boundary
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, ShapedArray, Split, spec_of, typeof
from hlofront.core.axes import axes_in_scope
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import Subprogram, contexts_of_programs
from hlofront.core.references import is_reference
from hlofront.core.sharding.manual_axes import ManualAxisType
from hlofront.core.sharding.mesh import AbstractMesh, AxisType, Mesh
from hlofront.core.sharding.mesh_context import context_mesh, get_abstract_mesh, tracing_manual_axes
from hlofront.core.sharding.partition import INFER, PartitionSpec, axes_of
from hlofront.core.sharding.sharded_types import entries_of as explicit_entries
from hlofront.core.trace import is_eager
from hlofront.higher_order.selecting import where
from hlofront.higher_order.shard_map.shard_map_eager import EagerStaging, known_program
from hlofront.higher_order.shard_map.shard_map_specs import (
    check_are_specs,
    check_divisible,
    check_lengths,
    check_names,
    check_same,
    check_sums,
    expanded,
    specs_of_results,
)
from hlofront.primitives.collectives.pcast import pcast
from hlofront.primitives.collectives.varying import pvary
from hlofront.transforms.arguments import Signature
from hlofront.transforms.flatten import abstract, check_outputs, result_paths
from hlofront.transforms.simplify import constants_as_inputs
from hlofront.transforms.stage import stage
from hlofront.transforms.vmap import documented

shard_map_p = Primitive("shard_map", multiple_results=True, carries_programs=True)

MeshAxes = frozenset[Hashable]
Specs = Sequence[PartitionSpec]


# ---- the operation -------------------------------------------------------------------------------


def names_in(spec: PartitionSpec) -> MeshAxes:
    """Return the mesh axes along which a spec splits arrays."""
    return frozenset(spec.names())


class ShardMapParams(NamedTuple):
    """The parameters of a shard_map, except its program and the specs of operands and results.

    Attributes:
      mesh: the mesh, with devices or without.
      newly_manual_axes: the names of its axes that specs and collectives inside may name.
      check_vma: whether types inside track the axes along which values vary.
    """

    mesh: Mesh | AbstractMesh
    newly_manual_axes: MeshAxes
    check_vma: bool

    @property
    def manual_axes(self) -> tuple[Hashable, ...]:
        """The newly manual axes, in the order of the mesh."""
        return tuple([name for name in self.mesh.axis_names if name in self.newly_manual_axes])

    def size(self, names: Collection[Hashable]) -> int:
        """Return the number of devices along these axes."""
        return math.prod(self.mesh.shape[name] for name in names)

    @property
    def mesh_inside(self) -> AbstractMesh:
        """The mesh in which the newly manual axes are of type Manual."""
        manual = dict.fromkeys(self.newly_manual_axes, AxisType.Manual)
        return self.mesh.abstract_mesh.update_axis_types(manual)

    @contextmanager
    def inside(self) -> Generator[None]:
        """Enter a block in which programs are traced as run on each device."""
        axes = [(name, self.mesh.shape[name]) for name in self.manual_axes]
        with axes_in_scope(axes), tracing_manual_axes(self.mesh_inside, self.check_vma):
            yield

    def varying(self, aval: ShapedArray) -> tuple[Hashable, ...]:
        """Return the newly manual axes along which values of a type inside may vary."""
        if not self.check_vma:
            return self.manual_axes
        varying = aval.manual_axis_type.varying
        return tuple([name for name in self.manual_axes if name in varying])

    def _entries_of_type(self, aval: ShapedArray) -> list[tuple[Hashable, ...]]:
        """Return, per axis of an array, the newly manual axes that split it in its type."""
        return [
            tuple([name for name in names if name in self.newly_manual_axes])
            for names in explicit_entries(aval)
        ]

    def inferred_specs(self, operands: ArrayLikes) -> list[PartitionSpec | None]:
        """Return the specs of operands, from the Explicit axes in their types.

        Raises:
          TypeError: if one of the newly manual axes is not of type Explicit.
        """
        explicit = self.mesh.explicit_axes
        not_explicit = [name for name in self.manual_axes if name not in explicit]
        if not_explicit:
            raise TypeError(
                "shard_map in_specs argument must be given where axes of the mesh are not of type "
                "Explicit, so that types do not say how arguments are split: got none, and the "
                f"axes {not_explicit} of {self.mesh}"
            )
        return [
            self._sums_of_type(aval).update(partitions=self._entries_of_type(aval))
            for aval in map(typeof, operands)
        ]

    def _sums_of_type(self, aval: ShapedArray) -> PartitionSpec:
        """Return the newly manual axes along which an array is unreduced, and reduced."""
        spec = spec_of(aval)
        return spec.update(
            partitions=(),
            unreduced=spec.unreduced & self.newly_manual_axes,
            reduced=spec.reduced & self.newly_manual_axes,
        )

    def check_types(
        self, specs: Specs, avals: Sequence[AbstractValue], labels: Sequence[str]
    ) -> None:
        """Raise ValueError if the split in an argument's type differs from its spec.

        If some axes of the mesh are not Explicit or not newly manual, the argument is resharded.
        """
        is_whole = len(self.newly_manual_axes) == len(self.mesh.axis_names)
        if not is_whole or not self.mesh.are_all_axes_explicit:
            return
        explicit = self.newly_manual_axes
        for spec, aval, label in zip(specs, avals, labels, strict=True):
            if not isinstance(aval, ShapedArray):
                continue
            spec = self.mesh.spec_in_types(spec)
            entries = [
                tuple([n for n in axes_of(entry) if n in explicit]) for entry in spec.partitions
            ]
            entries += [()] * (aval.ndim - len(entries))
            sums = spec.update(partitions=())
            if entries != self._entries_of_type(aval) or sums != self._sums_of_type(aval):
                raise ValueError(
                    f"in_specs passed to shard_map: {spec} does not match the type of {label}, "
                    f"{aval.str_short()}: leave in_specs out to take what types say, or reshard "
                    "the argument by jax.reshard"
                )

    def part(self, spec: PartitionSpec, aval: Any) -> Any:
        """Return the type of a device's part of an array or reference; tokens are unchanged."""
        if is_reference(aval):
            return aval.update(self.part(spec, aval.inner_aval))
        if not isinstance(aval, ShapedArray):
            return aval
        shape = list(aval.shape)
        for axis, entry in enumerate(spec.partitions):
            shape[axis] //= self.size(axes_of(entry))
        entries = [
            tuple([name for name in names if name not in self.newly_manual_axes])
            for names in explicit_entries(aval)
        ]
        kind, outside = aval.manual_axis_type, spec_of(aval)
        if self.check_vma:
            spec = self.mesh.spec_in_types(spec)
            kind = ManualAxisType(
                varying=kind.varying.union(spec.names()),
                unreduced=kind.unreduced | spec.unreduced,
                reduced=kind.reduced | spec.reduced,
                unreduced_kind=spec.unreduced_kind or kind.unreduced_kind,
            )
        entries = outside.update(
            partitions=entries,
            unreduced=outside.unreduced - self.newly_manual_axes,
            reduced=outside.reduced - self.newly_manual_axes,
        )
        return ShapedArray(
            shape,
            aval.dtype,
            aval.weak_type,
            sharding=Split(self.mesh_inside, entries),
            memory_space=aval.memory_space,
            manual_axis_type=kind,
        )

    def whole(self, spec: PartitionSpec, aval: object) -> Any:
        """Return the type of an array whose part on each device has this type."""
        if not isinstance(aval, ShapedArray):
            return aval
        shape, entries = list(aval.shape), list(explicit_entries(aval))
        for axis, entry in enumerate(spec.partitions):
            shape[axis] *= self.size(axes_of(entry))
            entries[axis] = (*axes_of(entry), *entries[axis])
        kind, inside = aval.manual_axis_type, spec_of(aval)
        # Outside shard_map, types only show sums along Explicit axes.
        explicit = frozenset(self.mesh.explicit_axes)
        unreduced = inside.unreduced | (spec.unreduced & explicit)
        entries = PartitionSpec(
            *entries,
            unreduced=unreduced,
            reduced=inside.reduced | (spec.reduced & explicit),
            unreduced_kind=(spec.unreduced_kind or inside.unreduced_kind) if unreduced else None,
        )
        return ShapedArray(
            shape,
            aval.dtype,
            aval.weak_type,
            sharding=Split(self.mesh.abstract_mesh, entries),
            memory_space=aval.memory_space,
            manual_axis_type=kind.update(
                varying=kind.varying - self.newly_manual_axes,
                unreduced=kind.unreduced - self.newly_manual_axes,
                reduced=kind.reduced - self.newly_manual_axes,
            ),
        )

    def spec_of_all_values(self, aval: ShapedArray) -> PartitionSpec:
        """Return the spec of an array that consists of all devices' values of this type."""
        names, kind = self.varying(aval), aval.manual_axis_type
        return PartitionSpec(
            *([names] if names else []),
            unreduced=kind.unreduced,
            reduced=kind.reduced,
            unreduced_kind=kind.unreduced_kind,
        )

    def bind(
        self, program: ClosedJaxpr, operands: ArrayLikes, in_specs: Specs, out_specs: Specs
    ) -> list[Any]:
        """Bind shard_map; constants of the program become operands that no mesh axis splits."""
        captured = program.consts
        if captured:
            program = ClosedJaxpr(constants_as_inputs(program))
            in_specs = (*[PartitionSpec()] * len(captured), *in_specs)
        return shard_map_p.bind(
            *captured,
            *operands,
            check_vma=self.check_vma,
            in_specs=tuple(in_specs),
            jaxpr=program,
            mesh=self.mesh,
            newly_manual_axes=self.newly_manual_axes,
            out_specs=tuple(out_specs),
        )


@rules.infer(shard_map_p)
def _(
    *avals: AbstractValue,
    jaxpr: ClosedJaxpr,
    mesh: Mesh | AbstractMesh,
    in_specs: Specs,
    out_specs: Specs,
    newly_manual_axes: MeshAxes,
    check_vma: bool,
) -> list[AbstractValue]:
    params = ShardMapParams(mesh, newly_manual_axes, check_vma)
    return [params.whole(spec, aval) for spec, aval in zip(out_specs, jaxpr.out_avals, strict=True)]


@rules.effects(shard_map_p)
def _(*_: AbstractValue, jaxpr: ClosedJaxpr, **params: object) -> Effects:
    return jaxpr.effects


@rules.subprograms(shard_map_p)
def _(*, jaxpr: ClosedJaxpr, **_: object) -> list[Subprogram]:
    inputs, outputs = range(len(jaxpr.jaxpr.invars)), range(len(jaxpr.jaxpr.outvars))
    return [Subprogram(jaxpr, "jaxpr", "manual", inputs, outputs)]


def _inside(
    mesh: Mesh | AbstractMesh, newly_manual_axes: MeshAxes, check_vma: bool, **_: object
) -> AbstractContextManager[None]:
    return ShardMapParams(mesh, newly_manual_axes, check_vma).inside()


contexts_of_programs[shard_map_p] = _inside


# ---- the transformation --------------------------------------------------------------------------


def mesh_of(mesh: Mesh | AbstractMesh | None) -> Mesh | AbstractMesh:
    """Return the mesh for the argument `mesh` of a shard_map; None stands for the mesh in context.

    Raises:
      ValueError: if there is no mesh, or it is not the one in context.
    """
    context = get_abstract_mesh()
    if mesh is None:
        if context.empty:
            raise ValueError(
                "The context mesh cannot be empty where shard_map is given no mesh: pass mesh=..., "
                "or enter a mesh by `jax.set_mesh(mesh)`"
            )
        return context
    if not context.empty and mesh.abstract_mesh is not context:
        raise ValueError(
            f"The context mesh {context} should match the mesh passed to shard_map {mesh}: leave "
            "mesh=... out to use the one in context, in which the axes of enclosing shard_maps "
            "are Manual"
        )
    return mesh


class _Traced(NamedTuple):
    """A traced function: its program, the values of the program's constants, and its results."""

    program: ClosedJaxpr
    captured: Sequence[Any]
    out_tree: PyTreeDef
    out_specs: Sequence[PartitionSpec]
    # The operands and their specs, if part of the function has run already; see EagerStaging.
    operands: Sequence[Any] | None = None
    in_specs: Sequence[PartitionSpec] = ()


class _Mapped:
    """A function with its specs and its mesh, which calls trace and bind."""

    __slots__ = (
        "axis_names",
        "check_vma",
        "fun",
        "in_specs",
        "mesh",
        "out_specs",
        "signature",
        "table",
    )

    def __init__(
        self,
        fun: Callable[..., PyTree],
        mesh: Mesh | AbstractMesh | None,
        in_specs: object,
        out_specs: object,
        axis_names: Collection[Hashable],
        check_vma: bool,
    ):
        self.fun = fun
        self.mesh = mesh
        self.in_specs = in_specs
        self.out_specs = out_specs
        self.axis_names = frozenset(axis_names)
        self.check_vma = check_vma
        self.signature = Signature(fun)
        # The programs of earlier calls, by their digests: equal ones are compiled once.
        self.table = caches.CacheTable()

    def params(self) -> ShardMapParams:
        """Return the parameters of a call in the current context.

        Raises:
          ValueError: if there is no mesh, or it lacks axes.
        """
        mesh = mesh_of(self.mesh)
        names = self.axis_names or frozenset(mesh.axis_names)
        if not names.issubset(mesh.axis_names):
            raise ValueError(
                f"shard_map requires axis_names to be a subset of the axes of its mesh, "
                f"{mesh.axis_names}: got {sorted(names, key=str)}"
            )
        return ShardMapParams(mesh, names, self.check_vma)

    def __call__(self, *args: object) -> PyTree:
        params = self.params()
        manual_axes = params.newly_manual_axes
        check_are_specs(self.out_specs, "out_specs")
        check_names(self.out_specs, "out_specs", manual_axes)
        check_sums(self.out_specs, "out_specs", params.mesh)
        leaves, in_tree = tree.tree_flatten(args)
        if self.in_specs is INFER:
            specs = params.inferred_specs(leaves)
        else:
            check_are_specs(self.in_specs, "in_specs")
            check_names(self.in_specs, "in_specs", manual_axes)
            check_sums(self.in_specs, "in_specs", params.mesh)
            specs = expanded(self.in_specs, args, "in_specs", "the tuple of arguments")
        is_split = [spec is not None for spec in specs]
        in_specs = [spec for spec in specs if spec is not None]
        operands = where(leaves, is_split)
        labels = where(self.signature.names_in(in_tree), is_split)
        avals = [abstract(x) for x in operands]
        name = self.signature.name
        check_lengths(name, "in_specs", in_specs, avals, labels)
        check_divisible(name, params.mesh, in_specs, avals, labels)
        params.check_types(in_specs, avals, labels)
        _check_has_devices(params.mesh, operands)
        # Each call traces the function again, because it may read values that have changed.
        parts = [params.part(*pair) for pair in zip(in_specs, avals, strict=True)]
        traced = self._traced(params, in_tree, leaves, is_split, parts, operands, in_specs)
        if traced.operands is not None:
            operands, in_specs = traced.operands, traced.in_specs
        results = params.bind(
            traced.program,
            [*traced.captured, *operands],
            [*[PartitionSpec()] * len(traced.captured), *in_specs],
            traced.out_specs,
        )
        return traced.out_tree.unflatten(results)

    def _traced(
        self,
        params: ShardMapParams,
        in_tree: PyTreeDef,
        leaves: Sequence[object],
        is_split: Sequence[bool],
        parts: Sequence[AbstractValue],
        operands: Sequence[Any],
        in_specs: Specs,
    ) -> _Traced:
        """Trace the function on the types of a device's parts.

        Args:
          params: the parameters of the operation.
          in_tree: the structure of the arguments.
          leaves: the leaves of the arguments.
          is_split: whether each is an operand; the others are captured.
          parts: the types of the parts of the operands.
          operands: the operands.
          in_specs: the specs of the operands.
        """
        # The structure of the result, once the function has returned.
        out_trees: list[PyTreeDef] = []
        out_specs: list[PartitionSpec] = []
        name = self.signature.name

        def on_device(*operands: Value) -> list[Value]:
            nonlocal out_specs
            rest = iter(operands)
            values = [next(rest) if split else x for x, split in zip(leaves, is_split, strict=True)]
            result = self.fun(*in_tree.unflatten(values))
            outputs, out_tree = tree.tree_flatten(result)
            out_trees.append(out_tree)
            check_outputs(outputs, info.func_src_info, info.traced_for, out_tree)
            labels = result_paths(out_tree)
            out_specs = specs_of_results(self.out_specs, result, labels)
            avals = list(map(typeof, outputs))
            check_lengths(name, "out_specs", out_specs, avals, labels)
            if not params.check_vma:
                return outputs
            for spec, aval, label in zip(out_specs, avals, labels, strict=True):
                check_same(name, label, spec, aval, params.manual_axes)
            return [_as_its_spec(x, spec) for x, spec in zip(outputs, out_specs, strict=True)]

        info = DebugInfo(
            "shard_map",
            self.signature.find_where,
            lambda: tuple(where(self.signature.names_in(in_tree), is_split)),
            lambda: result_paths(out_trees[0] if out_trees else None),
        )
        trace = EagerStaging(info, params, operands, in_specs, self.table) if is_eager() else None
        with params.inside():
            program = stage(on_device, parts, info, trace=trace)
        captured = program.consts
        if captured:
            program = ClosedJaxpr(constants_as_inputs(program))
        program = known_program(self.table, program, trace is not None)
        traced = _Traced(program, captured, out_trees[0], tuple(out_specs))
        if trace is None or not trace.has_run:
            return traced
        return traced._replace(operands=trace.values, in_specs=trace.specs)


def _check_mesh(mesh: object) -> None:
    if mesh is not None and not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(
            "shard_map requires a `jax.sharding.Mesh` or a `jax.sharding.AbstractMesh` as its "
            f"mesh, but got {mesh!r} of type {type(mesh)}."
        )


def _check_has_devices(mesh: Mesh | AbstractMesh, operands: Sequence[object]) -> None:
    """Raise ValueError if a program must run over an abstract mesh without known devices."""
    if isinstance(mesh, Mesh) or mesh.size == 1 or not is_eager() or context_mesh() is not None:
        return
    if not any(hasattr(getattr(x, "sharding", None), "mesh") for x in operands):
        raise ValueError(
            f"shard_map over {mesh}, which has no devices, runs on the devices of its arguments, "
            "but none of them has a `NamedSharding`: split one by jax.device_put, or pass a Mesh"
        )


def _as_its_spec(x: ArrayLike, spec: PartitionSpec) -> ArrayLike:
    """Cast a result so that it varies, and is unreduced, along the axes in its spec."""
    summands = spec.unreduced & typeof(x).manual_axis_type.varying
    if summands:
        x = pcast(x, tuple(sorted(summands, key=str)), to="unreduced")
    return pvary(x, spec.names())


def shard_map(
    f: Callable[..., PyTree] | None = None,
    /,
    *,
    out_specs: object,
    in_specs: object = INFER,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Collection[Hashable] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """Return a function that runs `f` on each device of a mesh, on that device's parts of arrays.

    Args:
      f: a function of pytrees of arrays: one device's parts of the arguments. It may communicate by
        collectives along the axes of the mesh, such as `lax.psum(x, "i")`. Without it, shard_map
        returns a decorator.
      out_specs: a pytree prefix of the result, of PartitionSpecs. The parts of a result are
        concatenated along the mesh axes that its spec names; along the others, one device's part is
        the result.
      in_specs: a pytree prefix of the tuple of arguments, of PartitionSpecs, which say how each is
        split into parts. An argument whose entry is None is passed to `f` as a captured value. By
        default the specs are those in the types of the arguments, along axes of type Explicit.
      mesh: the mesh.
      axis_names: the mesh axes that specs and collectives may name; by default all. Along the
        others, XLA splits the arrays inside.
      check_vma: whether to check that results do not vary along axes that their specs omit.

    Returns:
      A function with the arguments and results of `f`, on whole arrays.

    Raises:
      TypeError: if `f` cannot be called, `mesh` is not a mesh, or a spec is not a PartitionSpec.
      ValueError: if specs do not fit arguments or results, or name axes that are not manual.

    Example:
      >>> mesh = jax.sharding.Mesh(jax.devices(), ("i",))
      >>> total = jax.shard_map(
      ...     lambda part: jax.lax.psum(part.sum(), "i"),
      ...     mesh=mesh, in_specs=PartitionSpec("i"), out_specs=PartitionSpec(),
      ... )
    """
    if f is None:
        return partial(
            shard_map,
            out_specs=out_specs,
            in_specs=in_specs,
            mesh=mesh,
            axis_names=axis_names,
            check_vma=check_vma,
        )
    if not callable(f):
        raise TypeError(
            f"shard_map requires a callable for its first argument, but got "
            f"{source.shortened(repr(f))} of type {type(f)}."
        )
    _check_mesh(mesh)
    mapped = _Mapped(f, mesh, in_specs, out_specs, axis_names, check_vma)

    @boundary
    def on_devices(*args: object) -> PyTree:
        return mapped(*args)

    name = mapped.signature.name
    return documented(on_devices, f, f"{name}, run on each device of a mesh, on its parts.")
