"""What the functions of one module share: its platforms, symbols, private functions, callbacks."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false

from collections.abc import Hashable, Sequence

from hlofront.bridge.mlir import Operation, context, ir
from hlofront.core.names import NameStack
from hlofront.lowering import types
from hlofront.lowering.fences import Fences
from hlofront.lowering.host_call import HostCall
from hlofront.lowering.locations import Locations

# The axes of a mesh, each with its size, and the ids of its devices; None in the usual order.
MeshKey = tuple[tuple[tuple[object, int], ...], tuple[int, ...] | None]


class ModuleState:
    """The state that the functions of one module share while it is lowered."""

    __slots__ = (
        "all_platforms",
        "callbacks",
        "extension_context",
        "fences",
        "functions",
        "has_barriers",
        "ip",
        "ir_module",
        "keepalives",
        "last_mesh",
        "locations",
        "meshes",
        "paths",
        "platforms",
        "several_devices",
        "symbols",
    )

    def __init__(
        self,
        platforms: tuple[str, ...],
        ir_module: ir.Module,
        fences: Fences | None = None,
        several_devices: bool = False,
    ):
        # The platforms that are lowered for: a branch may be for some of the module's alone.
        self.platforms = self.all_platforms = platforms
        self.has_barriers = False
        # The values to store, of any program; None where XLA is to decide. See fences.py.
        self.fences = fences
        self.ir_module = ir_module
        # The end of the module, where functions go.
        self.ip = ir.InsertionPoint(ir_module.body)
        # The symbols of the meshes at the module's beginning, by their axes and devices, and the
        # last of their operations. See sharding.py.
        self.meshes: dict[MeshKey, str] = {}
        self.last_mesh: ir.Operation | None = None
        self.several_devices = several_devices
        # The number of functions of each name.
        self.symbols: dict[str, int] = {"main": 1}
        self.locations = Locations()
        # The paths of operations, by the scopes of their function and of their equation.
        self.paths: dict[tuple[NameStack, NameStack], str] = {}
        # The symbols of private functions, by what was lowered to them.
        self.functions: dict[Hashable, ir.FlatSymbolRefAttr] = {}
        # The host functions that the module calls back, in the order of their index.
        self.callbacks: list[HostCall] = []
        # The objects that other packages' rules want to live as long as the executable.
        self.keepalives: list[object] = []
        # The names that JAX gives to the members of this class. See extension.py, which sets it.
        self.extension_context: object = None

    @property
    def platform(self) -> str:
        """Return the platform that is lowered for.

        Raises:
          RuntimeError: if they are several, and the rule that asks does not say so.
        """
        if len(self.platforms) != 1:
            raise RuntimeError(
                "a lowering rule asks for the platform of a program that is lowered for several, "
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
        return Operation.create(
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

    def unique_symbol(self, name: str) -> str:
        """Return `g` for the first function called g, then `g_0`, `g_1`, ..."""
        symbol = name
        while symbol in self.symbols:
            count = self.symbols[name]
            self.symbols[name] = count + 1
            symbol = f"{name}_{count - 1}"
        self.symbols[symbol] = 1
        return symbol
