"""The state that all functions of a module share: platforms, symbols, functions, callbacks."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false

import contextlib
import re
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import Any

from hlofront.base.cpu_settings import CpuSettings
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Operation, Value, context, ir
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Var
from hlofront.core.names import NameStack
from hlofront.core.primitive import Primitive
from hlofront.core.rules import LoweringRule
from hlofront.core.sharding.mesh import NamedAxes
from hlofront.lowering.core import types
from hlofront.lowering.core.fences import Fences
from hlofront.lowering.core.host_call import HostCall
from hlofront.lowering.core.locations import Locations
from hlofront.lowering.core.partitioned_call import PartitionedCall
from hlofront.lowering.core.unknown_sizes import SizeVariable

# (the builder, an equation that it has emitted, the values of variables) -> None
AfterEquation = Callable[[Any, Equation, Mapping[Var, Value]], None]
# The axes of a mesh with their sizes, and the ids of its devices; None in the usual order.
MeshKey = tuple[tuple[tuple[object, int], ...], tuple[int, ...] | None]


class ManualMesh(NamedTuple):
    """The mesh of the `shard_map` whose body is being lowered.

    Attributes:
      axes: the names and sizes of its axes.
      manual: the names of the axes that are manual, here or in an enclosing body.
    """

    axes: tuple[tuple[Hashable, int], ...]
    manual: frozenset[Hashable]

    @property
    def is_whole(self) -> bool:
        """True if all axes of the mesh are manual."""
        return all(name in self.manual for name, _ in self.axes)


class OperationScope(NamedTuple):
    """The path of an equation's operations, and their frontend attributes."""

    path: str
    attributes: dict[str, str]

    def name_of(self, operation: str) -> str:
        """Return the path of an operation, such as "jit(f)/attention/dot_general"."""
        return f"{self.path}/{operation}" if self.path else operation


class ModuleState:
    """The state that the functions of one module share while it is lowered."""

    __slots__ = (
        "after_equation",
        "all_platforms",
        "callbacks",
        "calls_unknown_sizes",
        "cpu_settings",
        "emitted",
        "extension_context",
        "fences",
        "functions",
        "functions_with_barriers",
        "has_barriers",
        "has_inner_barriers",
        "ip",
        "ir_module",
        "is_foreign",
        "is_scalar_region",
        "keepalives",
        "kernel_numbers",
        "last_mesh",
        "locations",
        "manual",
        "may_find_nans",
        "mesh",
        "meshes",
        "overrides",
        "partitioned_calls",
        "platforms",
        "program",
        "scopes",
        "several_devices",
        "size_variables",
        "symbol_table",
        "symbols",
        "typed_mesh",
    )

    # The program that the module is lowered from.
    program: Jaxpr

    def __init__(
        self,
        platforms: tuple[str, ...],
        ir_module: ir.Module,
        cpu_settings: CpuSettings,
        several_devices: bool = False,
        typed_mesh: NamedAxes | None = None,
    ):
        # The platforms to lower for: a branch may be for only some of the module's platforms.
        self.platforms = self.all_platforms = platforms
        self.has_barriers = False
        # Whether some of the barriers may be in loops.
        self.has_inner_barriers = False
        self.cpu_settings = cpu_settings
        # Whether XLA may see a NaN at compile time in the part emitted so far; also True if that
        # need not be checked because no operation is guarded. See known_nans.py.
        self.may_find_nans = "cpu" not in platforms or not cpu_settings.guards
        # The values to fence, of any program; None if XLA decides. See fences.py.
        self.fences = Fences() if cpu_settings.fences else None
        self.ir_module = ir_module
        # The end of the module, where functions are added.
        self.ip = ir.InsertionPoint(ir_module.body)
        # The symbols of the meshes at the module's start, by their axes and devices, and the last
        # mesh operation. See mesh_attributes.py.
        self.meshes: dict[MeshKey, str] = {}
        self.last_mesh: ir.Operation | None = None
        self.several_devices = several_devices
        # The mesh whose Explicit axes split values according to their types; None if there is none,
        # or while lowering operations whose types do not show the split.
        self.typed_mesh = typed_mesh
        # Whether equations are emitted into the region of a reduction or a scatter.
        self.is_scalar_region = False
        # The mesh of the shard_map whose body is being lowered, or None.
        self.manual: ManualMesh | None = None
        # The mesh of the program's shardings; None if they are not over a mesh.
        self.mesh: NamedAxes | None = None
        # A function of the builder, each emitted equation and the values of variables, or None.
        self.after_equation: AfterEquation | None = None
        # The equations that the host partitions or inspects while XLA compiles.
        self.partitioned_calls: list[PartitionedCall] = []
        # The lowering rules that replace those of the table in this module.
        self.overrides: Mapping[Primitive, LoweringRule] = {}
        # The variables of unknown sizes, by name: functions take their values as arguments.
        self.size_variables: Mapping[str, SizeVariable] = {}
        # Whether a part of the module comes from an untrusted file.
        self.is_foreign = False
        # Whether the module calls exported programs for unknown sizes.
        self.calls_unknown_sizes = False
        # The number of functions with each name.
        self.symbols: dict[str, int] = {"main": 1}
        # MLIR's table of the module's symbols, through which rules of other packages add functions;
        # None before the first of these rules runs, which `share_symbols` precedes.
        self.symbol_table: ir.SymbolTable | None = None
        self.locations = Locations()
        # The scopes of operations, by the name stacks of their function and of their equation.
        self.scopes: dict[tuple[NameStack, NameStack], OperationScope] = {}
        # The symbols of private functions, by the keys of what was lowered to them.
        self.functions: dict[Hashable, ir.FlatSymbolRefAttr] = {}
        # The keys of functions with barriers, which are in a loop if a call of the function is.
        self.functions_with_barriers: set[Hashable] = set()
        # The number of times that each closed jaxpr was inlined.
        self.emitted: dict[ClosedJaxpr, int] = {}
        # The host functions that the module calls, in the order of their index.
        self.callbacks: list[HostCall] = []
        # The numbers of the barriers that kernels on several devices share, by their tags.
        self.kernel_numbers: dict[Hashable, int] = {}
        # The objects that rules of other packages keep alive with the executable.
        self.keepalives: list[object] = []
        # A `ModuleContext`, with the members of this class under JAX's names; extension.py sets it.
        self.extension_context: object = None

    @property
    def guards_for_cpu(self) -> bool:
        """Return whether operations that XLA computes wrongly on CPUs are lowered differently."""
        return "cpu" in self.platforms and self.cpu_settings.guards

    @property
    def keeps_barriers(self) -> bool:
        """Return whether compilation keeps the barriers, which other runtimes may drop."""
        return self.fences is not None

    @contextlib.contextmanager
    def without_types(self) -> Generator[None, None, None]:
        """Return a context in which values are not constrained to the splits in their types."""
        typed_mesh, self.typed_mesh = self.typed_mesh, None
        try:
            yield
        finally:
            self.typed_mesh = typed_mesh

    @contextlib.contextmanager
    def scalar_region(self) -> Generator[None, None, None]:
        """Return a context for the region of a reduction or scatter, where barriers are invalid.

        XLA knows from the operation how devices of a mesh combine values, so types do not constrain
        the values there.
        """
        around, self.is_scalar_region = self.is_scalar_region, True
        try:
            with self.without_types():
                yield
        finally:
            self.is_scalar_region = around

    @property
    def platform(self) -> str:
        """Return the only platform to lower for.

        Raises:
          RuntimeError: if there are several platforms.
        """
        if len(self.platforms) != 1:
            raise RuntimeError(
                "a lowering rule reads the platform of a program that is lowered for several, "
                f"{', '.join(self.platforms)}: register it with @lower(..., platform='each')"
            )
        return self.platforms[0]

    def create_function(
        self,
        name: str,
        visibility: str,
        in_types: Sequence[ir.Type],
        out_types: Sequence[ir.Type],
        loc: ir.Location,
    ) -> ir.Operation:
        """Append a function without a body to the module, "public" or "private", and return it."""
        function_type = ir.FunctionType.get(in_types, out_types, context=context)
        function = Operation.create(
            "func.func",
            attributes={
                "sym_name": types.string(name),
                "sym_visibility": types.string(visibility),
                "function_type": ir.TypeAttr.get(function_type, context=context),
            },
            regions=1,
            loc=loc,
            ip=self.ip,
        )
        self.add_symbol(function)
        return function

    def share_symbols(self) -> ir.SymbolTable:
        """Return the module's symbol table, which from now on contains all functions."""
        if self.symbol_table is None:
            self.symbol_table = ir.SymbolTable(self.ir_module.operation)
        return self.symbol_table

    def add_symbol(self, operation: ir.Operation) -> None:
        """Add an operation of the module to its symbol table, if there is one."""
        if self.symbol_table is not None:
            self.symbol_table.insert(operation)

    def unique_symbol(self, name: str) -> str:
        """Return a new symbol: `g` for the first function named g, then `g_0`, `g_1`, ..."""
        symbol = name = symbol_name(name)
        while self._is_taken(symbol):
            count = self.symbols.get(name, 1)
            self.symbols[name] = count + 1
            symbol = f"{name}_{count - 1}"
        self.symbols[symbol] = 1
        return symbol

    def _is_taken(self, symbol: str) -> bool:
        if symbol in self.symbols:
            return True
        return self.symbol_table is not None and symbol in self.symbol_table


def symbol_name(name: str) -> str:
    """Return a function's name as a valid part of a symbol: `<lambda>` becomes `_lambda`."""
    return re.sub(r"[^\w.-]", "", name.replace("<", "_")) or "unnamed"
