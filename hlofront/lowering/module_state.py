"""What the functions of one module share: its platforms, symbols, private functions, callbacks."""

from typing import Any

from hlofront.bridge.mlir import ir
from hlofront.lowering.locations import Locations


class ModuleState:
    """What the functions of one module share."""

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
        fences: Any = None,
        several_devices: bool = False,
    ):
        # What is being lowered is for these. See per_platform.py.
        self.platforms = self.all_platforms = platforms
        self.has_barriers = False
        # Which values to store, of any program; None where XLA is to decide. See fences.py.
        self.fences = fences
        # Where functions go: the end of the module.
        self.ir_module = ir_module
        self.ip = ir.InsertionPoint(ir_module.body)
        # The meshes at its beginning, by what they are, and the last of them. See sharding.py.
        self.meshes: dict[Any, str] = {}
        self.last_mesh: Any = None
        self.several_devices = several_devices
        # How many functions were given each name.
        self.symbols: dict[str, int] = {"main": 1}
        self.locations = Locations()
        # The paths of stacks of names, each made once.
        self.paths: dict[Any, str] = {}
        # What was lowered to a private function -> its symbol.
        self.functions: dict[Any, Any] = {}
        # Host functions that the module calls back, in the order of their index.
        # The objects that other packages' rules want to live as long as the executable.
        self.keepalives: list[object] = []
        # The names that JAX gives to the members of this class. See extension.py, which sets it.
        self.extension_context: object = None
        self.callbacks: list[Any] = []

    @property
    def platform(self) -> str:
        """The platform that is lowered for.

        Raises:
          RuntimeError: if they are several, and the rule that asks does not say so.
        """
        if len(self.platforms) != 1:
            raise RuntimeError(
                "a lowering rule asks for the platform of a program that is lowered for several, "
                f"{', '.join(self.platforms)}: register it with @lower(..., platform='each')"
            )
        return self.platforms[0]

    def unique_symbol(self, name: str) -> str:
        """`g` for the first function called g, then `g_0`, `g_1`, ..."""
        symbol = name
        while symbol in self.symbols:
            count = self.symbols[name]
            self.symbols[name] = count + 1
            symbol = f"{name}_{count - 1}"
        self.symbols[symbol] = 1
        return symbol
