"""Fences: optimization barriers on values that XLA must not recompute.

XLA's fusion for CPUs copies cheap operations into every operation that uses them. A value that is
accumulated over a deep model, such as a residual stream, is then never materialized: each of its
users reads all of its terms again, and the code's size, compile time and run time grow
with the square of the depth. A fence is an optimization barrier on such a value, which materializes
it. Differences, such as those from a mean, are fenced as well if XLA would store them for one user
and recompute them for the others. Only lowering uses fences: they are not in jaxprs.
"""

import weakref
from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import chain
from typing import Any
from typing import Literal as OneOf

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.source import user_frame
from hlofront.bridge.fast_parts import Traceback
from hlofront.core.aval import AbstractValue
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import Subprogram, called_by, inputs_among
from hlofront.higher_order.calls.jit_call import closed_call_p
from hlofront.higher_order.checkpoint.checkpoint import remat_p
from hlofront.lowering.core.pruning import live_equations
from hlofront.primitives.arrays import shaping as s
from hlofront.primitives.arrays.creation import iota_p
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p
from hlofront.primitives.arrays.reducing import reduce_sum_p
from hlofront.primitives.arrays.slicing import slice_p, split_p, unstack_p
from hlofront.primitives.arrays.tiling import tile_p
from hlofront.primitives.elementwise import compare as c
from hlofront.primitives.elementwise import converting as v
from hlofront.primitives.elementwise import elementwise as e
from hlofront.primitives.rules.derivatives import add_any_p

# A value that is used more than once is stored if its kernel would read more arrays than this,
MAX_ARRAYS_READ = 16
# or would compute more operations than this in a row, each only on the previous result, which XLA
# duplicates without limit,
LONGEST_RUN = 32
# or more operations than this on the longest path to it, which take ever longer to compile.
DEEPEST = 256
# Small values are not exempt, because they take as long to compile as large ones.
# XLA stores the factors of a sum of products with at least this many elements, because a library
# computes it. It recomputes a difference, such as that from a mean, for other users, and must then
# keep the original array as well: such differences are fenced.
MIN_SUMMED = 4096

# The primitives that XLA recomputes freely. It stores the results of all others if they have
# several users: dots, reductions, exp, division, gather, concatenate, loops. Found by compiling
# each of them.
_COPIED = frozenset(
    (
        e.abs_p,
        e.add_p,
        e.and_p,
        e.ceil_p,
        e.clamp_p,
        e.clz_p,
        e.complex_p,
        e.conj_p,
        e.cos_p,
        e.floor_p,
        e.imag_p,
        e.integer_pow_p,
        e.is_finite_p,
        e.max_p,
        e.min_p,
        e.mul_p,
        e.neg_p,
        e.nextafter_p,
        e.not_p,
        e.or_p,
        e.population_count_p,
        e.real_p,
        e.round_p,
        e.shift_left_p,
        e.shift_right_arithmetic_p,
        e.shift_right_logical_p,
        e.sign_p,
        e.sin_p,
        e.square_p,
        e.sub_p,
        e.tan_p,
        e.xor_p,
        add_any_p,
        c.eq_p,
        c.ne_p,
        c.ge_p,
        c.gt_p,
        c.le_p,
        c.lt_p,
        c.eq_to_p,
        c.le_to_p,
        c.lt_to_p,
        c.select_n_p,
        v.convert_element_type_p,
        v.bitcast_convert_type_p,
        v.reduce_precision_p,
        v.copy_p,
        v.stop_gradient_p,
        s.broadcast_in_dim_p,
        s.reshape_p,
        s.squeeze_p,
        s.transpose_p,
        s.rev_p,
        tile_p,
        iota_p,
    )
)
# The primitives in a difference from, or a product with, a broadcast array.
_OF_DIFFERENCES = frozenset((e.sub_p, e.mul_p, s.broadcast_in_dim_p))
# XLA recomputes slices too, but two slices of one stored array are two arrays to read.
_SLICES = frozenset((slice_p, dynamic_slice_p, split_p, unstack_p))


# # The kind of each primitive that does not call a program. XLA inlines calls, so costs pass
# through them; it stores the results of all other operations.
_KINDS: dict[Primitive, OneOf["copied", "slice"]] = {
    **dict.fromkeys(_COPIED, "copied"),
    **dict.fromkeys(_SLICES, "slice"),
}


class Fence(NamedTuple):
    """A value that the module stores because XLA would recompute it at each use."""

    file: str | None
    line: int | None
    function: str | None
    aval: AbstractValue

    def __str__(self) -> str:
        where = f"{self.file}:{self.line} in {self.function}" if self.file else "unknown line"
        return f"{self.aval.str_short()} at {where}"


class Fences:
    """The fences of one module. Each program in it is analyzed once."""

    __slots__ = ("__weakref__", "_programs", "_recorded")

    def __init__(self):
        self._programs: dict[Jaxpr, _Program] = {}
        self._recorded: list[tuple[AbstractValue, Traceback | None]] = []

    def of(self, jaxpr: Jaxpr) -> set[Var]:
        """Return the values to fence in a program, without those in its subprograms."""
        return self.program(jaxpr).fenced

    def program(self, jaxpr: Jaxpr) -> "_Program":
        """Return the analysis of a program, computed once."""
        program = self._programs.get(jaxpr)
        if program is None:
            program = self._programs[jaxpr] = _Program(self, jaxpr)
        return program

    def of_steps(
        self, body: ClosedJaxpr, num_consts: int, num_carry: int, count: int
    ) -> list[list[int]]:
        """Return the positions of the carries to fence after each step of an unrolled loop.

        Args:
          body: the jaxpr of one step: from constants, carries and rows to carries and rows.
          count: the number of steps.
        """
        consts = [Var(aval) for aval in body.in_avals[:num_consts]]
        carry = [Var(aval) for aval in body.in_avals[num_consts:][:num_carry]]
        inputs = [*consts, *carry]
        collected: list[Var] = []
        steps: list[Equation] = []
        for _ in range(count):
            rows = [Var(aval) for aval in body.in_avals[num_consts + num_carry :]]
            results = [Var(aval) for aval in body.out_avals]
            steps.append(
                Equation([*consts, *carry, *rows], results, closed_call_p, {"call_jaxpr": body})
            )
            carry = results[:num_carry]
            inputs += rows
            collected += results[num_carry:]
        fenced = self.of(Jaxpr((), inputs, [*carry, *collected], steps))
        return [
            [position for position, var in enumerate(step.outvars[:num_carry]) if var in fenced]
            for step in steps
        ]

    def record(self, aval: AbstractValue, traceback: Traceback | None) -> None:
        """Record that lowering has emitted a fence for an equation with this traceback."""
        self._recorded.append((aval, traceback))

    def recorded(self) -> list[Fence]:
        """Return the fences that lowering has emitted, in order."""
        fences: list[Fence] = []
        for aval, traceback in self._recorded:
            frame = user_frame(traceback)
            if frame is None:
                fences.append(Fence(None, None, None, aval))
            else:
                fences.append(Fence(frame.file, frame.line, frame.function, aval))
        return fences


class _Cost(NamedTuple):
    """The cost of recomputing an unstored value at a use, as XLA may."""

    # The stored arrays that the computation reads, or _MANY; reading scalars is free.
    reads: frozenset[Hashable]
    # The number of operations on the longest path from those arrays.
    depth: int
    # The number of consecutive operations, ending here, that read only one array; and that array.
    run: int
    start: Hashable
    # Whether it only depends on smaller values, like a broadcast scalar.
    of_smaller: bool


# Represents any set of more than MAX_ARRAYS_READ arrays, which are not distinguished.
_MANY: frozenset[Hashable] = frozenset(("many", i) for i in range(MAX_ARRAYS_READ + 1))


_CONSTANT = _Cost(frozenset(), depth=0, run=0, start=None, of_smaller=True)


class _Program:
    """The analysis of one program: its stored values, and the costs of its outputs for a caller."""

    def __init__(self, fences: Fences, jaxpr: Jaxpr):
        # A weak reference: the fences hold this analysis.
        self._fences: Fences = weakref.proxy(fences)
        self._jaxpr = jaxpr
        # It may contain literals as well: each is used once.
        self._uses: dict[Hashable, int] | None = None
        self.inputs: dict[Hashable, int] = {
            var: position for position, var in enumerate(jaxpr.invars)
        }
        # Values in neither table are stored: inputs, constants, results of most operations.
        self.unstored: dict[Hashable, _Cost] = {}
        self.fenced: set[Var] = set()
        kinds = _KINDS
        for equation in live_equations(jaxpr):
            kind = kinds.get(equation.primitive)
            if kind is None:
                call = called_by(equation)
                if call is not None:
                    self._call(equation, call)
            elif kind == "copied":
                self._copied(equation)
            else:
                sliced = self.unstored.get(equation.invars[0])
                if sliced is not None:
                    for var in equation.outvars:
                        self._settle(var, sliced)
        self._fence_differences()

    def _fence_differences(self) -> None:
        """Fence differences of arrays and broadcasts with users other than sums of products."""
        makers: dict[Atom, Equation] = {}
        summed: set[Atom] = set()
        for equation in live_equations(self._jaxpr):
            if equation.primitive in _OF_DIFFERENCES:
                makers[equation.outvars[0]] = equation
            elif equation.primitive is reduce_sum_p and equation.invars[0] in makers:
                product = makers[equation.invars[0]]
                if product.primitive is e.mul_p:
                    summed.update(product.invars)
        # Equal differences, which XLA merges, are fenced together.
        equal: dict[Hashable, list[Var]] = {}
        for difference in makers.values() if summed else ():
            if difference.primitive is e.sub_p and _is_from_smaller(difference):
                operands = _operands(difference, makers)
                equal.setdefault(operands, []).extend(difference.outvars)
        uses = self.uses() if equal else {}
        for results in equal.values():
            if not summed.isdisjoint(results) and sum(uses.get(var, 0) for var in results) > 1:
                self.fenced.update(results)

    def _copied(self, equation: Equation) -> None:
        unstored = self.unstored
        result: Any = equation.outvars[0]
        elements = result.aval.size
        if type(elements) is not int:
            return  # The difference's sizes are not known yet.
        reads: frozenset[Hashable] = frozenset()
        depth = run = 0
        # The operand that is as large as the result, and whether there are several such operands.
        array = start = None
        several = False
        atom: Any
        for atom in equation.invars:
            if type(atom) is Literal:
                continue
            cost = unstored.get(atom)
            if cost is None:
                size = atom.aval.size  # pyrefly: ignore[missing-attribute]
                if size != 1:
                    reads = reads.union((atom,))
                if size >= elements and atom is not array:
                    several = array is not None
                    array, run, start = atom, 0, atom
            else:
                reads = reads | cost.reads if reads else cost.reads
                if cost.depth > depth:
                    depth = cost.depth
                # pyrefly: ignore[missing-attribute]
                if not cost.of_smaller and atom.aval.size >= elements and atom is not array:
                    several = array is not None
                    array, run, start = atom, cost.run, cost.start
        if several or array is None:
            run, start = 0, result
        else:
            run += 1
        # Scalars do not count: XLA compiles any number of them quickly.
        if elements != 1:
            depth += 1
        if len(reads) > MAX_ARRAYS_READ:
            reads = _MANY
        cost = _Cost(reads, depth, run, start, array is None)
        if reads is _MANY or run > LONGEST_RUN or depth > DEEPEST:
            self._settle(result, cost)
        else:
            unstored[result] = cost

    def _call(self, equation: Equation, call: Subprogram) -> None:
        called = self._fences.program(call.jaxpr)
        operands: list[_Cost] = []
        for position, atom in zip(
            call.operands or (), inputs_among(call, equation.invars), strict=True
        ):
            if type(atom) is Literal:
                operands.append(_CONSTANT)
            elif _is_barred(equation, position):
                operands.append(_stored((equation, position), atom))
            else:
                operands.append(self.unstored.get(atom) or _stored(atom, atom))
        for var, cost in zip(equation.outvars, called.outputs(), strict=True):
            if cost is None:
                continue
            # Map the inputs of the called program to the stored arrays of this one.
            inner, depth, run, start, of_smaller = cost
            reads: set[Hashable] = set()
            before = 0
            for value in inner:
                position = called.inputs.get(value)
                if position is None:
                    reads.add((equation, value))
                else:
                    reads |= operands[position].reads
                    before = max(before, operands[position].depth)
            position = called.inputs.get(start)
            if position is None:
                start = (equation, start)
            else:
                run, start = run + operands[position].run, operands[position].start
            seen = _MANY if len(reads) > MAX_ARRAYS_READ else frozenset(reads)
            self._settle(var, _Cost(seen, before + depth, run, start, of_smaller))

    def _settle(self, var: Var, cost: _Cost) -> None:
        """Fence a value if it is too expensive and used twice, else record its cost."""
        aval: Any = var.aval
        if (
            (cost.reads is _MANY or cost.depth > DEEPEST or cost.run > LONGEST_RUN)
            and self.uses().get(var, 0) > 1
            and isinstance(aval.dtype, np.dtype)
        ):
            self.fenced.add(var)
        else:
            self.unstored[var] = cost

    def uses(self) -> dict[Hashable, int]:
        """Return how often each value is used, including uses inside called programs."""
        if self._uses is not None:
            return self._uses
        equations = live_equations(self._jaxpr)
        calls = [(equation, call) for equation in equations if (call := called_by(equation))]
        callers = {equation for equation, _ in calls}
        # An equation counts once, even if the value is several of its operands.
        operands = [{*equation.invars} for equation in equations if equation not in callers]
        uses: Counter[Hashable] = Counter(chain.from_iterable((*operands, self._jaxpr.outvars)))
        for equation, call in calls:
            called = self._fences.program(call.jaxpr)
            inner = called.uses()
            for position, var in zip(call.operands or (), called.inputs, strict=True):
                count = 1 if _is_barred(equation, position) else inner.get(var, 0)
                uses[equation.invars[position]] += count
        self._uses = uses
        return uses

    def outputs(self) -> list[_Cost | None]:
        """Return the cost of each output in terms of the inputs, or None for a stored output."""
        costs: list[_Cost | None] = []
        for atom in self._jaxpr.outvars:
            if type(atom) is Literal:
                costs.append(_CONSTANT)
            elif atom in self.inputs:
                costs.append(_stored(atom, atom))
            else:
                costs.append(self.unstored.get(atom))
        return costs


def _is_from_smaller(difference: Equation) -> bool:
    """Return whether an equation is the difference of a large array and a smaller one."""
    avals: list[Any] = [atom.aval for atom in (*difference.outvars, *difference.invars)]
    if any(type(aval.size) is not int for aval in avals):
        return False  # The sizes are not known yet.
    result, array, smaller = (aval.size for aval in avals)
    return result >= MIN_SUMMED and smaller < array == result


def _operands(difference: Equation, makers: Mapping[Atom, Equation]) -> Hashable:
    """Return the operands of a difference; for a broadcast, its operand and parameters."""
    array, smaller = difference.invars
    broadcast = makers.get(smaller)
    if broadcast is None or broadcast.primitive is not s.broadcast_in_dim_p:
        return array, smaller
    return array, *broadcast.invars, str(broadcast.params)


def _stored(value: Hashable, atom: Atom) -> _Cost:
    """Return the cost of reading a stored value with the type of an atom."""
    size = getattr(atom.aval, "size", 0)  # Tokens have no size.
    reads = frozenset(() if size == 1 else (value,))
    return _Cost(reads, depth=0, run=0, start=value, of_smaller=False)


def _is_barred(equation: Equation, position: int) -> bool:
    """Return whether checkpoint puts a barrier before an operand to force recomputation."""
    if equation.primitive is not remat_p or not equation.params["differentiated"]:
        return False
    barred = equation.params["prevent_cse"]
    return barred if isinstance(barred, bool) else barred[position]
