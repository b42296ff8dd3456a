"""pmap: a function that runs on each of several devices, on its part along one axis of arrays."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hlofront.base import caches, tree
from hlofront.base.boundary import boundary
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.tree_prefixes import flatten_axes
from hlofront.base.typing import ArrayLike
from hlofront.bridge import state
from hlofront.bridge.client import Device
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sizes.dimensions import canonical_axis
from hlofront.core.trace import is_eager
from hlofront.higher_order.shard_map.shard_map import ShardMapParams, mesh_of
from hlofront.pjrt import clients
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.primitives.arrays.shaping import expand_dims, squeeze
from hlofront.primitives.collectives.process_parts import processes_along
from hlofront.runtime.array.host_local import (
    global_array_to_host_local_array_impl,
    host_local_array_to_global_array_impl,
)
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.dispatch import stages
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import ShapeDtypeStruct, abstract, check_callable
from hlofront.transforms.stage import stage
from hlofront.transforms.vmap import documented

# The name of the mesh axis of a pmap without axis_name.
_NO_NAME = "_internal_pmap_axis_name"


def pmap(
    fun: Callable[..., PyTree],
    axis_name: object = None,
    *,
    in_axes: object = 0,
    out_axes: object = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Callable[..., PyTree]:
    """Return a function that maps `fun` over an axis of its arguments, one element per device.

    It is `jit` of a `shard_map` over a mesh with one axis. In a group of processes the mapped axis
    spans the devices of all: each process passes the elements of its own devices and receives their
    results, and collectives span the elements of all processes. Inside of other transformations, it
    spans only the devices of this process.

    Args:
      fun: a function of pytrees of arrays, called with one element along the mapped axes.
      axis_name: the name of the mapped axis, for collectives in `fun`.
      in_axes: the mapped axis of each argument: an integer, None for arguments that each device
        receives whole, or a pytree prefix of the tuple of positional arguments. Keyword arguments
        are mapped along axis 0.
      out_axes: the axis of each result along which elements are stacked, or None for results that
        are the same on all devices; a pytree prefix of the result.
      static_broadcasted_argnums: positions of arguments that are Python values instead of arrays.
      devices: the devices; by default the first ones of each process, equally many of each.
      backend: the platform whose devices to use, by name.
      axis_size: the size of the mapped axis, which the arguments of all processes must have.
      donate_argnums: positions of arguments whose buffers the results may reuse.

    Returns:
      A function with the method `lower`. Its results are split along the mapped axis.

    Raises:
      TypeError: if `fun` cannot be called, or axes are not integers.
      ValueError: if there are no devices. A call raises it if no argument is mapped, sizes differ,
        or there are fewer devices than elements.
    """
    check_callable(fun, "pmap")
    if devices is not None and not len(devices):
        raise ValueError("'devices' argument to pmap must be non-empty, or None.")
    for name, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        for entry in tree.tree_leaves(axes):
            if not isinstance(entry, int | np.integer):
                raise TypeError(
                    f"pmap {name} must be an int, None, or (nested) container with those types as "
                    f"leaves, but got {axes}."
                )
    plan = ArgumentPlan(
        fun,
        _positions(static_broadcasted_argnums),
        donate_argnums=_positions(donate_argnums),
        what="pmapped function",
    )
    mapped = _Mapped(fun, axis_name, in_axes, out_axes, plan, devices, backend, axis_size)

    @boundary
    def on_devices(*args: object, **kwargs: object) -> PyTree:
        call = mapped.call(args, kwargs)
        if not is_eager():
            return call.jitted(*call.leaves)
        results = call.jitted(*map(call.placed, call.leaves, call.specs))
        return call.own_parts(results) if call.mesh.is_multi_process else results

    @boundary
    def lower(*args: object, **kwargs: object) -> "stages.Lowered":
        call = mapped.call(args, kwargs)
        return call.jitted.lower(*map(call.described, call.leaves, call.specs))

    result: Any = documented(
        on_devices, fun, f"{plan.signature.name}, mapped over an axis, one element per device."
    )
    result.lower = lower
    return result


def _positions(argnums: int | Iterable[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


class _Call(NamedTuple):
    """A call of a mapped function.

    Attributes:
      jitted: the jitted function of the leaves.
      out_specs: the specs of the results over the mesh, when it has been traced.
      leaves: the leaves of the arguments that are not static.
      specs: the spec of each leaf over the mesh.
      mesh: the mesh of the devices.
    """

    jitted: Any
    out_specs: list[PartitionSpec]
    leaves: Sequence[Any]
    specs: Sequence[PartitionSpec]
    mesh: Mesh

    def placed(self, leaf: ArrayLike, spec: PartitionSpec) -> ArrayLike:
        """Return a leaf that is split over the devices by its spec."""
        if self.mesh.is_multi_process:
            return host_local_array_to_global_array_impl(leaf, global_mesh=self.mesh, pspec=spec)
        return device_put(leaf, NamedSharding(self.mesh, spec))

    def own_parts(self, results: PyTree) -> PyTree:
        """Return the parts of the results that are on the devices of this process."""
        leaves, structure = tree.tree_flatten(results)
        return structure.unflatten(
            [
                global_array_to_host_local_array_impl(leaf, global_mesh=self.mesh, pspec=spec)
                for leaf, spec in zip(leaves, self.out_specs, strict=True)
            ]
        )

    def described(self, leaf: object, spec: PartitionSpec) -> ShapeDtypeStruct:
        """Return a description of a leaf that is split over the devices by its spec."""
        aval: Any = abstract(leaf)
        counts = processes_along(self.mesh, spec, aval.ndim)
        return ShapeDtypeStruct(
            tuple(size * count for size, count in zip(aval.shape, counts, strict=True)),
            aval.dtype,
            sharding=NamedSharding(self.mesh, spec),
            weak_type=aval.weak_type,
        )


class _Mapped:
    """A function with the options of pmap, which makes its jitted functions."""

    def __init__(
        self,
        fun: Callable[..., PyTree],
        axis_name: object,
        in_axes: object,
        out_axes: object,
        plan: ArgumentPlan,
        devices: Sequence[Device] | None,
        backend: str | None,
        axis_size: int | None,
    ):
        self.fun = fun
        self.axis_name = _NO_NAME if axis_name is None else axis_name
        self.in_axes = in_axes
        self.out_axes = out_axes
        self.plan = plan
        self.devices = devices
        self.backend = backend
        self.axis_size = axis_size
        # The jitted functions, by the structure of the arguments, their axes and static values.
        self.table = caches.CacheTable()

    def call(self, args: tuple[object, ...], kwargs: dict[str, object]) -> _Call:
        """Return the call of the function with these arguments.

        Raises:
          ValueError: if no argument is mapped, or sizes or the number of devices do not fit.
        """
        statics = self.plan.static_values(args, kwargs)
        dynamic = self.plan.dynamic(args, kwargs)
        leaves, in_tree = tree.tree_flatten(dynamic)
        axes = self._axes(in_tree, len(args), len(dynamic[0]))
        axes = [
            None if axis is None else _in_range(axis, abstract(x))
            for x, axis in zip(leaves, axes, strict=True)
        ]
        mesh = self._mesh(leaves, axes)
        specs = [_spec(axis, self.axis_name) for axis in axes]
        key = in_tree, tuple(axes), statics, mesh, state.trace_context()
        if key not in self.table:
            fun = self.plan.with_statics(self.fun, args, kwargs)
            donated = [
                i for i, is_donated in enumerate(self.plan.donated(args, kwargs)) if is_donated
            ]
            out_specs: list[PartitionSpec] = []
            flat = self._flat(fun, in_tree, axes, specs, out_specs, mesh)
            self.table[key] = jit(flat, donate_argnums=donated), out_specs
        jitted, out_specs = self.table[key]
        return _Call(jitted, out_specs, leaves, specs, mesh)

    def _axes(self, in_tree: PyTreeDef, count: int, dynamic_count: int) -> list[int | None]:
        """Return the mapped axis of each leaf of the arguments, or None."""
        in_axes = self.in_axes
        if isinstance(in_axes, list):
            in_axes = tuple(in_axes)
        if isinstance(in_axes, tuple) and len(in_axes) == count != dynamic_count:
            # Static arguments have entries too.
            static = {n % count for n in self.plan.static_argnums}
            in_axes = tuple([axis for n, axis in enumerate(in_axes) if n not in static])
        return flatten_axes("pmap in_axes", in_tree, (in_axes, 0))

    def _mesh(self, leaves: Sequence[object], axes: Sequence[int | None]) -> Mesh:
        """Return the mesh of the devices: one device for each index along the mapped axes."""
        sizes = [
            abstract(x).shape[axis]
            for x, axis in zip(leaves, axes, strict=True)
            if axis is not None
        ]
        if not sizes:
            raise ValueError("pmap requires at least one argument with a mapped axis.")
        size = sizes[0]
        if any(other != size for other in sizes):
            raise ValueError(
                "pmap got inconsistent sizes for array axes to be mapped: the axes of the "
                f"arguments, in order, have the sizes {sizes}"
            )
        local_devices = clients.local_devices(self.backend)
        available = len(local_devices)
        if self.devices is not None:
            devices = list(self.devices)
            available = sum(
                device.process_index == local_devices[0].process_index for device in devices
            )
            fits = available == size
        elif is_eager():
            devices = _first_of_each_process(clients.devices(self.backend), size)
            fits = available >= size
        else:
            devices = local_devices[:size]
            fits = available >= size
        if not fits:
            raise ValueError(
                f"compiling computation that requires {size} logical devices, but only "
                f"{available} XLA devices are available: pmap runs one element on each device. "
                "Use vmap for several elements per device."
            )
        if self.axis_size is not None and self.axis_size != len(devices):
            raise ValueError(
                f"Specified axis_size {self.axis_size} doesn't match received axis_size "
                f"{len(devices)}."
            )
        return Mesh(np.array(devices), (self.axis_name,))

    def _flat(
        self,
        fun: Callable[..., PyTree],
        in_tree: PyTreeDef,
        axes: Sequence[int | None],
        specs: Sequence[PartitionSpec],
        out_specs: list[PartitionSpec],
        mesh: Mesh,
    ) -> Callable[..., PyTree]:
        """Return the function that jit compiles: a shard_map of `fun` over whole leaves.

        Its tracing stores the specs of its results in `out_specs`.
        """
        out_tree: PyTreeDef | None = None

        def on_device(*parts: ArrayLike) -> list[ArrayLike]:
            nonlocal out_tree
            elements = [
                x if axis is None else squeeze(x, (axis,))
                for x, axis in zip(parts, axes, strict=True)
            ]
            args, kwargs = in_tree.unflatten(elements)
            outputs, out_tree = tree.tree_flatten(fun(*args, **kwargs))
            output_axes = [
                None if axis is None else canonical_axis(axis, typeof(x).ndim + 1)
                for x, axis in zip(
                    outputs, flatten_axes("pmap out_axes", out_tree, self.out_axes), strict=True
                )
            ]
            out_specs[:] = [_spec(axis, self.axis_name) for axis in output_axes]
            return [
                x if axis is None else expand_dims(x, (axis,))
                for x, axis in zip(outputs, output_axes, strict=True)
            ]

        def _fun(*leaves: ArrayLike) -> PyTree:
            params = ShardMapParams(mesh_of(mesh), frozenset([self.axis_name]), False)
            parts = [params.part(s, typeof(x)) for s, x in zip(specs, leaves, strict=True)]
            info = DebugInfo("pmap", self.plan.signature.find_where)
            with params.inside():
                program = stage(on_device, parts, info)
            results = params.bind(program, leaves, specs, list(out_specs))
            return tree.tree_unflatten(out_tree, results)

        return _fun


def _first_of_each_process(devices: Sequence[Device], count: int) -> list[Device]:
    """Return this many devices of each process, with those of one process next to each other."""
    of_processes: dict[int, list[Device]] = {}
    for device in devices:
        of_processes.setdefault(device.process_index, []).append(device)
    return [device for _, own in sorted(of_processes.items()) for device in own[:count]]


def _in_range(axis: int, aval: object) -> int:
    """Return a mapped axis counted from the start.

    Raises:
      ValueError: for a scalar, which has no axes.
      IndexError: if the axis is out of bounds.
    """
    if not aval.ndim:
        raise ValueError(
            "pmap requires at least one argument with a mapped axis, and the axis of a scalar is "
            f"mapped: give {aval.str_short()} the axis None in in_axes"
        )
    if not -aval.ndim <= axis < aval.ndim:
        raise IndexError(
            f"pmap in_axes has the axis {axis} for an argument of type {aval.str_short()}, which "
            f"has {aval.ndim} axes"
        )
    return axis % aval.ndim


def _spec(axis: int | None, name: object) -> PartitionSpec:
    """Return the spec of an array that is split along this axis; None for none."""
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)
