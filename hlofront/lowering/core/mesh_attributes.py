"""Shardings as Shardy attributes, and a module's declarations of their meshes."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from hlofront.base.elements import ExtendedDType
from hlofront.bridge.mlir import Operation, ir, unreduced_word
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Equation, Var
from hlofront.core.sharding.mesh import NamedAxes
from hlofront.core.sharding.partition import UNCONSTRAINED, PartitionSpec, UnreducedKind, axes_of
from hlofront.lowering.core import types
from hlofront.lowering.core.module_state import ModuleState
from hlofront.primitives.sharding.resharding import reshard_p

_SYMBOL_OF_FIRST = "maximal_mesh_0"


# The axis names of a mesh with their sizes.
MeshAxes = Sequence[tuple[object, int]]


class DescribedSharding(Protocol):
    """A sharding over the axes of a mesh."""

    def described(self, ndim: int) -> tuple[MeshAxes, tuple[int, ...] | None, Sequence[object]]:
        """Return the mesh's axes, the ids of its devices, and the mesh axes of each array axis.

        The ids are None if the devices are in their usual order.
        """
        ...


def is_described(sharding: object) -> TypeGuard[DescribedSharding]:
    """Return whether a sharding is over a mesh, rather than a device, a memory or None."""
    return hasattr(sharding, "described")


def is_unreduced(sharding: object) -> bool:
    """Return whether devices hold values that must be combined along axes of a mesh."""
    spec = getattr(sharding, "spec", None)
    return spec is not None and bool(spec.unreduced)


def sharding_attribute(state: ModuleState, sharding: object, aval: ShapedArray) -> Any:
    """Return the attribute `#sdy.sharding<@mesh, [{"x"}, {}]>` of a value with this aval."""
    return types.attribute(f"#sdy.sharding{_text(state, sharding, aval)}")


def _text(state: ModuleState, sharding: Any, aval: ShapedArray) -> str:
    """Return `<@mesh, [{"x"}, {}]>`, without splitting the axes of extended elements."""
    ndim = aval.ndim
    axes, ids, entries = sharding.described(ndim)
    parts = [
        "{?}" if entry is UNCONSTRAINED else "{" + ", ".join(map(quoted, axes_of(entry))) + "}"
        for entry in entries
    ]
    if isinstance(aval.dtype, ExtendedDType):
        parts += ["{}"] * (len(aval.dtype.physical(aval.shape)[0]) - ndim)
    spec = getattr(sharding, "spec", None)
    sums = "" if spec is None else unreduced_text(spec, [name for name, _ in axes])
    return f"<@{mesh_symbol(state, axes, ids)}, [{', '.join(parts)}]{sums}>"


def quoted(name: object) -> str:
    """Return the name of a mesh axis as text of an attribute, in quotes."""
    return '"' + str(name).replace("\\", "\\\\").replace('"', '\\"') + '"'


def mesh_symbol(state: ModuleState, axes: MeshAxes, ids: tuple[int, ...] | None) -> str:
    """Return the symbol of the mesh with these axes and device ids (None: the usual order)."""
    key = tuple(axes), ids
    symbol = state.meshes.get(key)
    if symbol is None:
        symbol = state.meshes[key] = state.unique_symbol("mesh")
        _declare(state, symbol, axes, ids)
    return symbol


def _declare(state: ModuleState, symbol: str, axes: MeshAxes, ids: Sequence[int] | None) -> None:
    listed = ", ".join(f"{quoted(name)}={size}" for name, size in axes)
    numbers = "" if ids is None else f", device_ids=[{', '.join(map(str, ids))}]"
    described = ", ".join(f"{{name = {quoted(name)}, size = {size} : i64}}" for name, size in axes)
    if ids is not None:
        dense = ", ".join(map(str, ids))
        dense = dense if len(ids) == 1 else f"[{dense}]"
        described_ids = f", device_ids = dense<{dense}> : tensor<{len(ids)}xi64>"
    else:
        described_ids = ""
    last = state.last_mesh
    top = ir.InsertionPoint.at_block_begin(state.ip.block)
    state.last_mesh = Operation.create(
        "sdy.mesh",
        attributes={
            "sym_name": types.string(symbol),
            "mesh": types.attribute(f"#sdy.mesh<[{listed}]{numbers}>"),
            # Versions of StableHLO with support for meshes read this.
            "stablehlo.mesh": types.attribute(f"{{axes = [{described}]{described_ids}}}"),
        },
        loc=types.unknown,
        ip=top if last is None else ir.InsertionPoint.after(last),
    )
    state.add_symbol(state.last_mesh)


def on_first_device(state: ModuleState, results: int) -> dict[str, ir.Attribute]:
    """Return the sharding attribute of an operation that only runs on the first device.

    There is no attribute if the module is for one device. `results` is the number of results.
    """
    if not state.several_devices:
        return {}
    key = (), (0,)
    if key not in state.meshes:
        state.meshes[key] = _SYMBOL_OF_FIRST
        _declare(state, _SYMBOL_OF_FIRST, (), (0,))
    each = ", ".join([f"<@{_SYMBOL_OF_FIRST}, []>"] * max(results, 1))
    return {"sdy.sharding": types.attribute(f"#sdy.sharding_per_value<[{each}]>")}


def typed_attribute(state: ModuleState, mesh: NamedAxes, aval: ShapedArray) -> Any:
    """Return the attribute for the sharding in a type, which leaves Auto axes to XLA."""
    return types.attribute(f"#sdy.sharding{_typed_text(state, mesh, aval)}")


def _typed_text(state: ModuleState, mesh: NamedAxes, aval: ShapedArray) -> str:
    """Return the sharding of an aval on a mesh with explicit axes: `<@mesh, [{"x", ?}, {?}]>`."""
    open_mark = "?" if mesh.auto_axes else ""
    parts: list[str] = []
    for entry in aval.spec.partitions if aval.spec is not None else [()] * aval.ndim:
        named = [*map(quoted, axes_of(entry)), *([open_mark] if open_mark else [])]
        parts.append("{" + ", ".join(named) + "}")
    if isinstance(aval.dtype, ExtendedDType):
        parts += ["{}"] * (len(aval.dtype.physical(aval.shape)[0]) - aval.ndim)
    sums = "" if aval.spec is None else unreduced_text(aval.spec, mesh.axis_names)
    return f"<@{mesh_symbol(state, mesh.shape_tuple, None)}, [{', '.join(parts)}]{sums}>"


def unreduced_text(spec: PartitionSpec, axis_names: Sequence[object]) -> str:
    """Return the end of a sharding's text: its unreduced axes in the order of the mesh, or "".

    Raises:
      ValueError: if jaxlib's Shardy does not support their kind.
    """
    if not spec.unreduced:
        return ""
    ordered = [quoted(name) for name in axis_names if name in spec.unreduced]
    kind = UnreducedKind.sum if spec.unreduced_kind is None else spec.unreduced_kind
    return f", unreduced={unreduced_word(kind.name)}{{{', '.join(ordered)}}}"


def mesh_of_results(equation: Equation, meshes: Mapping[Var, NamedAxes]) -> NamedAxes | None:
    """Return the mesh of an equation's results if it differs from the program's.

    A reshard may lead to a mesh with other axis types, and further operations stay on the mesh of
    their operands.

    Args:
      equation: the equation.
      meshes: the meshes of variables that are not on the program's mesh.
    """
    if equation.primitive is reshard_p:
        return equation.params["dst_sharding"].mesh
    for var in equation.outvars:
        mesh = getattr(var.aval, "mesh", None)
        if mesh is not None:
            return mesh
    if meshes:
        for atom in equation.invars:
            if isinstance(atom, Var) and atom in meshes:
                return meshes[atom]
    return None
