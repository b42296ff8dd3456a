"""Programs on devices: the executable of each, made once."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hlofront.base import events
from hlofront.base.config import options
from hlofront.base.events import timed
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.higher_order.jit_call import split_captured
from hlofront.pjrt.compile import mlir_lock
from hlofront.runtime import nan_checks
from hlofront.runtime.executable import Executable
from hlofront.transforms.arguments import ArgumentPlan

if TYPE_CHECKING:
    from hlofront.lowering.module import Module


class Function:
    """A function to compile: how its arguments are told apart, and with which options."""

    __slots__ = ("compiler_options", "fun", "keep_unused", "name", "plan")

    def __init__(
        self,
        fun: Callable[..., Any],
        plan: ArgumentPlan,
        keep_unused: bool,
        compiler_options: tuple[tuple[str, Any], ...],
    ):
        self.fun = fun
        self.plan = plan
        self.name = plan.signature.name
        self.keep_unused = keep_unused
        self.compiler_options = compiler_options


class TracedProgram:
    """A function written down for one kind of arguments."""

    __slots__ = ("_opened", "donated", "in_tree", "out_tree", "program")

    program: ClosedJaxpr
    in_tree: Any
    out_tree: Any
    # Per input, whether its buffer is given away; empty where none is.
    donated: tuple[bool, ...]

    def __init__(self, program: ClosedJaxpr, in_tree: Any, out_tree: Any, donated: Any):
        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.donated = donated
        self._opened: tuple[ClosedJaxpr, list[Any]] | None = None

    def opened(self) -> tuple[ClosedJaxpr, list[Any]]:
        """The program with values of enclosing functions as its first inputs, and those values.

        It is opened once: all calls share it, in programs and in what is lowered.
        """
        found = self._opened
        if found is None:
            found = self._opened = split_captured(self.program)
        return found


_making = threading.RLock()
_fences = options["hlofront_fences"]


def wants_fences(platform: str) -> bool:
    """Whether lowering places fences for this platform: XLA's other compilers need none."""
    return platform == "cpu" and _fences.value


def lowered(
    program: ClosedJaxpr,
    name: str,
    platform: str,
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    names: bool = True,
    fences: bool | None = None,
) -> "Module":
    """The module of a program for a platform; fences are placed as the option says, or as told."""
    # Loads MLIR and every lowering rule: a process that runs nothing does without them.
    from hlofront.lowering.rules import lower_program

    fences = wants_fences(platform) if fences is None else fences
    key = ("module", platform, name, donated, keep_unused, fences)
    found = program.derived.get(key)
    if found is None:
        info = program.debug_info if names else None
        with mlir_lock:
            found = program.derived.get(key)
            if found is None:
                with timed(events.LOWER, fun_name=name) as clock:
                    found = program.derived[key] = lower_program(
                        program,
                        name,
                        platform,
                        donated=donated,
                        keep_unused=keep_unused,
                        arg_names=info.arg_names if info else None,
                        result_paths=info.result_paths if info else None,
                        fences=fences,
                    )
                events.log_stage("Finished lowering %s in %.6f s", name, clock.seconds)
    return found


def executable_for(
    program: ClosedJaxpr,
    name: str,
    device: Any,
    committed: bool = False,
    donated: tuple[bool, ...] = (),
    keep_unused: bool = False,
    compiler_options: Sequence[tuple[str, Any]] = (),
    fences: bool | None = None,
) -> Executable:
    """The executable of a program for a device; compiled on first use, by one thread."""
    fences = wants_fences(device.platform) if fences is None else fences
    if donated and nan_checks.are_on():
        donated = ()  # It may have to run again on the same arguments.
    key = (device, committed, donated, keep_unused, compiler_options, fences)
    found = program.derived.get(key)
    if found is None:
        with _making:
            found = program.derived.get(key)
            if found is None:
                module = lowered(
                    program, name, device.platform, donated, keep_unused, fences=fences
                )
                with timed(events.COMPILE, fun_name=name) as clock:
                    found = program.derived[key] = Executable(
                        program,
                        name,
                        module,
                        device.client,
                        device,
                        committed,
                        dict(compiler_options),
                        any(donated),
                    )
                events.log_stage("Finished compiling %s in %.6f s", name, clock.seconds)
    return found
