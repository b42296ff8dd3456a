"""Fences: where XLA must not recompute, decided in one pass over a program.

XLA's fusion for CPUs copies cheap operations into every operation that uses them. A value that is
accumulated over a deep model, such as a residual stream, is then never stored: each of its users
reads all of its terms again, and the code, the time to compile it and the time to run it grow with
the square of the depth. A fence is an optimization barrier on such a value, which is then stored
once and read. Only lowering knows of fences: they are in no jaxpr.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hlofront.base.source import place, user_frame
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.primitive import Primitive
from hlofront.higher_order.checkpoint import remat_p
from hlofront.higher_order.custom_jvp import custom_jvp_call_p
from hlofront.higher_order.custom_vjp_call import custom_vjp_call_p, remat_opt_p
from hlofront.higher_order.custom_vmap import custom_vmap_call_p
from hlofront.higher_order.jit_call import closed_call_p, jit_p
from hlofront.higher_order.linear_call import linear_call_p
from hlofront.lowering.builder import live_equations
from hlofront.primitives import comparing as c
from hlofront.primitives import converting as v
from hlofront.primitives import elementwise as e
from hlofront.primitives import shaping as s
from hlofront.primitives.creating import iota_p
from hlofront.primitives.derivatives import add_any_p
from hlofront.primitives.dynamic_slicing import dynamic_slice_p
from hlofront.primitives.slicing import slice_p, split_p, unstack_p

# A value that is used more than once is stored where its kernel would read more values than this,
MOST_READ = 16
# or would compute this many operations in a row of which each reads one array alone: of those
# XLA copies any number. (It stops by itself where they read several arrays that stay the same.)
LONGEST_RUN = 32
# and smaller values are not worth a kernel of their own.
LEAST_BYTES = 4096
# No value of fewer elements is of that size, whatever its dtype.
_LEAST_ELEMENTS = LEAST_BYTES // 16

# What XLA recomputes freely. It stores the results of all others that have several users: dots,
# reductions, exp, division, gather, concatenate, loops. Found by compiling each of them.
_COPIED = frozenset(
    (
        *(e.abs_p, e.add_p, e.and_p, e.ceil_p, e.clamp_p, e.clz_p, e.complex_p, e.conj_p),
        *(e.cos_p, e.floor_p, e.imag_p, e.integer_pow_p, e.is_finite_p, e.max_p, e.min_p, e.mul_p),
        *(e.neg_p, e.nextafter_p, e.not_p, e.or_p, e.population_count_p, e.real_p, e.round_p),
        *(e.shift_left_p, e.shift_right_arithmetic_p, e.shift_right_logical_p, e.sign_p, e.sin_p),
        *(e.square_p, e.sub_p, e.tan_p, e.xor_p, add_any_p),
        *(c.eq_p, c.ne_p, c.ge_p, c.gt_p, c.le_p, c.lt_p, c.eq_to_p, c.le_to_p, c.lt_to_p),
        *(c.select_n_p, v.convert_element_type_p, v.bitcast_convert_type_p, v.reduce_precision_p),
        *(v.copy_p, v.stop_gradient_p, s.broadcast_in_dim_p, s.reshape_p, s.squeeze_p),
        *(s.transpose_p, s.rev_p, s.tile_p, iota_p),
    )
)
# These too, but two slices of one stored array are two things to read.
_SLICES = frozenset((slice_p, dynamic_slice_p, split_p, unstack_p))


def _program(parameter: str) -> Callable[[Equation], Any]:
    return lambda equation: equation.params[parameter]


# Operations that XLA sees through: calls, which it inlines. Which program each is a call of.
_CALLS: dict[Primitive, Callable[[Equation], ClosedJaxpr]] = {
    jit_p: _program("jaxpr"),
    closed_call_p: _program("call_jaxpr"),
    custom_jvp_call_p: _program("call_jaxpr"),
    custom_vjp_call_p: _program("call_jaxpr"),
    custom_vmap_call_p: _program("call"),
    linear_call_p: _program("callee"),
    remat_opt_p: _program("fwd_jaxpr"),
    remat_p: _program("jaxpr"),
}

# How each primitive is treated; those that are not here are stored.
_KINDS: dict[Primitive, str] = {
    **dict.fromkeys(_COPIED, "copied"),
    **dict.fromkeys(_SLICES, "slice"),
    **dict.fromkeys(_CALLS, "call"),
}


class Fence(NamedTuple):
    """A value of the module that is stored although XLA would compute it anew at each use."""

    file: str | None
    line: int | None
    function: str | None
    aval: Any

    def __str__(self):
        where = f"{self.file}:{self.line} in {self.function}" if self.file else "unknown line"
        return f"{self.aval.str_short()} at {where}"


class _Unstored(NamedTuple):
    """What is known of a value that XLA may compute anew at each use."""

    # The stored values that computing it reads; None where there are more than MOST_READ.
    reads: frozenset[Hashable] | None
    # The value at which a row of operations on one array begins, and their number.
    start: Hashable
    run: int
    # Whether it is made of smaller values alone: a broadcast, a mask.
    of_smaller: bool


class _Analysis:
    """What is known of a program: which of its values are fenced, and how a call of it looks."""

    __slots__ = ("fenced", "inputs", "outputs", "uses")

    fenced: frozenset[Var]
    # The position of each input.
    inputs: dict[Hashable, int]
    # Per input, how often it is used.
    uses: Sequence[int]
    # Per output, what is known of it; None for one that is stored.
    outputs: Sequence[_Unstored | None]

    def __init__(self, fenced: Any, inputs: Any, uses: Any, outputs: Any):
        self.fenced = fenced
        self.inputs = inputs
        self.uses = uses
        self.outputs = outputs


class Fences:
    """The fences of one module: each program in it is looked at once, however often it is called."""

    __slots__ = ("_analyses", "_placed")

    def __init__(self):
        self._analyses: dict[Jaxpr, _Analysis] = {}
        self._placed: list[tuple[Any, Any]] = []

    def of(self, jaxpr: Jaxpr) -> frozenset[Var]:
        """The values of this program, without those of programs in it, that are to be fenced."""
        return self._analysis(jaxpr).fenced

    def place(self, aval: Any, traceback: Any) -> None:
        """Note that lowering has placed one."""
        self._placed.append((aval, traceback))

    def placed(self) -> list[Fence]:
        """Those that were placed, in order."""
        found: list[Fence] = []
        for aval, traceback in self._placed:
            frame = user_frame(traceback)
            if frame is None:
                found.append(Fence(None, None, None, aval))
            else:
                found.append(Fence(frame.file, frame.line, frame.function, aval))
        return found

    def _analysis(self, jaxpr: Jaxpr) -> _Analysis:
        found = self._analyses.get(jaxpr)
        if found is None:
            found = self._analyses[jaxpr] = _Pass(self, jaxpr).analysis()
        return found

    def called(self, equation: Equation) -> _Analysis:
        """What is known of the program that an equation calls."""
        return self._analysis(_CALLS[equation.primitive](equation).jaxpr)


class _Pass:
    """One pass over a program, in which every value becomes stored, unstored or fenced."""

    def __init__(self, fences: Fences, jaxpr: Jaxpr):
        self.fences = fences
        self.jaxpr = jaxpr
        # What is not here is stored: inputs, constants, and the results of other operations.
        self.unstored: dict[Any, _Unstored] = {}
        self.fenced: set[Var] = set()
        self._uses: dict[Any, int] | None = None

    def analysis(self) -> _Analysis:
        kinds = _KINDS
        for equation in live_equations(self.jaxpr):
            kind = kinds.get(equation.primitive)
            if kind is None:
                continue
            if kind == "call":
                self.call(equation)
                continue
            result = equation.outvars[0]
            elements: Any = result.aval.size  # pyright: ignore[reportAttributeAccessIssue]
            # Sizes may be unknown, as may be the result's of an array of no known size.
            if type(elements) is not int or elements < _LEAST_ELEMENTS:
                continue
            if kind == "slice":
                operand = equation.invars[0]
                if operand in self.unstored:
                    for result in equation.outvars:
                        self.settle(result, self.unstored[operand])
                continue
            self.settle(result, self.computed(equation, elements))
        jaxpr = self.jaxpr
        uses = self.uses() if jaxpr.invars else {}
        return _Analysis(
            frozenset(self.fenced),
            {var: place for place, var in enumerate(jaxpr.invars)},
            [uses.get(var, 0) for var in jaxpr.invars],
            [self.output(atom) for atom in jaxpr.outvars],
        )

    def computed(self, equation: Equation, elements: int) -> _Unstored:
        """What is known of the result of an operation that XLA copies."""
        unstored = self.unstored
        reads: frozenset[Hashable] | None = frozenset()
        large: Any = None
        several = False
        run = 0
        for atom in equation.invars:
            if type(atom) is Literal:
                continue
            known = unstored.get(atom)
            if known is None:
                reads = None if reads is None else reads | {atom}
            elif reads is not None:
                reads = known.reads if not reads else known.reads and reads | known.reads
                if known.of_smaller:
                    continue
            if atom.aval.size >= elements and atom is not large:  # pyright: ignore
                several = large is not None
                large = atom
                run = known.run if known is not None else 0
        ...
