"""A compiled program: its executable, and how arguments go in and results come out."""

from collections import namedtuple
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlofront.bridge.client import result_handler
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.pjrt import compile as pjrt_compile
from hlofront.runtime.placement import on_device, put

if TYPE_CHECKING:
    from hlofront.lowering.module import Module

# What jaxlib's C++ call path reads; it must be a tuple with these names.
FastPath = namedtuple(
    "FastPath",
    "xla_executable out_pytree_def in_shardings out_shardings out_avals out_committed "
    "kept_var_bitvec in_device_local_layouts const_args",
)


class Executable:
    """A program compiled for one device."""

    __slots__ = (
        "committed",
        "const_args",
        "device",
        "handlers",
        "kept",
        "kept_avals",
        "loaded",
        "module",
        "out_avals",
        "program",
        "sharding",
    )

    def __init__(
        self,
        program: ClosedJaxpr,
        module: "Module",
        client: Any,
        device: Any,
        committed: bool,
        compiler_options: dict[str, Any] | None = None,
    ):
        options = pjrt_compile.compile_options([device], compiler_options)
        self.loaded = pjrt_compile.compile_module(
            client, module.ir_module, [device], options, module.callbacks
        )
        self.program = program
        self.module = module
        self.device = device
        self.committed = committed
        self.kept = module.kept
        in_avals = program.in_avals
        self.kept_avals = [in_avals[i] for i in module.kept]
        self.out_avals = program.out_avals
        sharding = self.sharding = on_device(device)
        self.const_args = [put(value, aval, device, committed) for value, aval in module.const_args]
        self.handlers = [result_handler(aval, sharding, committed) for aval in self.out_avals]

    def run(self, args: Sequence[Any]) -> list[Any]:
        """Execute on flat arguments: arrays of any device, or values of the host."""
        buffers = list(self.const_args)
        for position, aval in zip(self.kept, self.kept_avals, strict=True):
            buffers.append(put(args[position], aval, self.device, self.committed))
        return self.loaded.execute_sharded(buffers).consume_with_handlers(self.handlers)

    def fast_path(self, out_tree: Any, argument_count: int) -> FastPath | None:
        """What lets jaxlib run the next call like this one without Python."""
        if self.module.callbacks:
            return None
        sharding = self.sharding
        kept = set(self.kept)
        taken = len(self.const_args) + len(self.kept)
        return FastPath(
            self.loaded,
            out_tree,
            [sharding] * taken,
            [sharding] * len(self.out_avals),
            self.out_avals,
            [self.committed] * len(self.out_avals),
            [True] * len(self.const_args) + [i in kept for i in range(argument_count)],
            [None] * taken,
            self.const_args,
        )
