"""TracedProgram: a function traced to a jaxpr for one kind of arguments, with its timings."""

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hlofront.base.caches import CacheTable
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.client import Sharding
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import AbstractValue
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.program_cache import DerivedCache
from hlofront.core.references import is_reference, touches_references
from hlofront.higher_order.calls.jit_call import split_captured
from hlofront.runtime.sharding.device_assignment import ProgramDevices
from hlofront.transforms.arguments import ArgumentPlan, StaticValue

if TYPE_CHECKING:
    from hlofront.runtime.compilation.recompilation import TraceKey

# A user's XLA options for one function, as (name, value) pairs.
CompilerOptionPairs = Sequence[tuple[str, object]]


class Function:
    """A function to compile, with the plan of its arguments and its compiler options."""

    __slots__ = ("compiler_options", "fun", "keep_unused", "name", "plan")

    def __init__(
        self,
        fun: Callable[..., object],
        plan: ArgumentPlan,
        keep_unused: bool,
        compiler_options: CompilerOptionPairs,
    ):
        self.fun = fun
        self.plan = plan
        self.name = plan.signature.name
        self.keep_unused = keep_unused
        self.compiler_options = compiler_options

    def requested_outputs(self, traced: "TracedProgram") -> "Sequence[Sharding | None]":
        """Return the sharding that the user requested of each result of a program, or None."""
        return (None,) * len(traced.program.out_avals)

    def compiled_program(self, traced: "TracedProgram", program: ClosedJaxpr) -> ClosedJaxpr:
        """Return the program that is compiled for a traced one.

        Args:
          traced: the traced program.
          program: its program, or that of the arrays that its references hold.
        """
        return program


# The structure and avals of a call's arguments, the static values, and the options: calls with
# equal keys share a program.
TracedKey = tuple[PyTreeDef, tuple[AbstractValue, ...], tuple[StaticValue, ...], tuple[object, ...]]


class FlatShardings(NamedTuple):
    """The shardings requested of jit, for each input and output of one program.

    Attributes:
      source: the JitShardings that they come from: several jitted functions share a program.
      inputs, outputs: the sharding of each, or None where the argument or XLA decides.
    """

    source: object
    inputs: Sequence[Sharding | None]
    outputs: Sequence[Sharding | None]


class TracedProgram:
    """A function traced to a jaxpr for one kind of arguments."""

    __slots__ = (
        "__weakref__",
        "_opened",
        "devices",
        "discharged",
        "donated",
        "has_references",
        "hits",
        "in_tree",
        "kind",
        "out_tree",
        "program",
        "shardings",
        "why",
    )

    program: ClosedJaxpr
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    # Per input, whether its buffer is donated; empty if none is.
    donated: tuple[bool, ...]

    def __init__(
        self,
        program: ClosedJaxpr,
        in_tree: PyTreeDef,
        out_tree: PyTreeDef,
        donated: tuple[bool, ...],
    ):
        self.program = program
        self.in_tree = in_tree
        self.out_tree = out_tree
        self.donated = donated
        # Whether it uses mutable references, or takes them as inputs.
        self.has_references = touches_references(program.effects) or any(
            map(is_reference, program.in_avals)
        )
        # The program on the arrays that references hold, which the first call makes.
        self.discharged: TracedProgram | None = None
        self._opened: tuple[ClosedJaxpr, Sequence[object]] | None = None
        # runtime/compilation/recompilation.py records the key and reason of the compilation, and
        # how often Python looked the program up; C++ does not count its calls.
        self.kind: TraceKey | None = None
        self.why: str | None = None
        self.hits = 0
        # The latest result of `JitShardings.of`.
        self.shardings: FlatShardings | None = None
        # The devices that the program was compiled for.
        self.devices: list[ProgramDevices] = []

    def opened(self) -> tuple[ClosedJaxpr, Sequence[object]]:
        """Return the program with captured outer values as inputs, and those values.

        The conversion runs once: all calls share the result, in programs and in lowering.
        """
        opened = self._opened
        if opened is None:
            opened = self._opened = split_captured(self.program)
        return opened


# The number of programs cached per function; the oldest is evicted first.
_MAX_TRACED = 4096


class TracedPrograms(CacheTable):
    """The table of one function's programs, by the kind of arguments, with a unique number."""

    __slots__ = ("number",)
    _numbers = itertools.count()

    def __init__(self):
        super().__init__()
        self.number = next(self._numbers)

    def find(self, key: TracedKey) -> TracedProgram | None:
        """Return the program of a key, unless a reference that it captured has ended."""
        traced: TracedProgram | None = self.get(key)
        if traced is None or not traced.has_references:
            return traced
        if any(getattr(const, "has_ended", False) for const in traced.program.consts):
            del self[key]
            return None
        return traced

    def make_room(self) -> None:
        """Evict the oldest program if there are too many for another one."""
        if len(self) >= _MAX_TRACED:
            self.pop(next(iter(self)), None)


class StageSeconds:
    """The seconds spent on one program: tracing, lowering, compiling, loading from disk."""

    __slots__ = ("compile", "load", "lower", "trace")

    def __init__(self):
        self.trace = self.lower = self.compile = self.load = 0.0


# The record of each program, under whatever options it was compiled.
_stage_seconds: DerivedCache[None, StageSeconds] = DerivedCache()


def timings_of(program: ClosedJaxpr) -> StageSeconds:
    """Return the record of the seconds spent on a program, created on first use."""
    return _stage_seconds.of(program).setdefault(None, StageSeconds())
