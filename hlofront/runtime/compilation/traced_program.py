"""TracedProgram: a function written down for one kind of arguments, and the seconds it took."""

from collections.abc import Callable
from typing import Any

from hlofront.core.derived import once_per_program
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.higher_order.jit_call import split_captured
from hlofront.transforms.arguments import ArgumentPlan


class Function:
    """A function to compile, with the plan of its arguments and the options of its compilation."""

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

    __slots__ = (
        "_opened",
        "devices",
        "donated",
        "hits",
        "in_tree",
        "kind",
        "out_tree",
        "program",
        "shardings",
        "why",
    )

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
        # runtime/compilation/recompilation.py writes for what and why the program was compiled, and
        # how often Python looked it up; C++ does not count its calls.
        self.kind: Any = None
        self.why: str | None = None
        self.hits = 0
        # The shardings that jit was given for inputs and outputs, flat: see jit_shardings.py.
        self.shardings: Any = None
        # The devices that it was compiled for.
        self.devices: list[Any] = []

    def opened(self) -> tuple[ClosedJaxpr, list[Any]]:
        """Return the program with the values of enclosing functions as inputs, and those values.

        The program is opened once: all calls share it, in programs and in what is lowered.
        """
        opened = self._opened
        if opened is None:
            opened = self._opened = split_captured(self.program)
        return opened


class StageSeconds:
    """Seconds that went into one program: tracing, lowering, compiling, loading from disk."""

    __slots__ = ("compile", "load", "lower", "trace")

    def __init__(self):
        self.trace = self.lower = self.compile = self.load = 0.0


@once_per_program
def timings_of(program: ClosedJaxpr) -> StageSeconds:
    """Return the record of the seconds that went into a program."""
    return StageSeconds()
