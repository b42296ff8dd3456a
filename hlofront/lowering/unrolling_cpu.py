"""The lowering rule of scans of a few elementwise operations for CPUs: several steps at once.

XLA makes one native function of a loop on CPUs, a kernel, if an iteration reads and writes at most
1,024 bytes, and calls the kernels of other loops one by one. An iteration costs 2 to 10 ns in the
first kind and 20 to 100 in the second, whatever it computes. Several steps in one iteration cost
that once, and stay one kernel for each member of the carry, as fusion makes them for one step.

That is why it does not pay for all bodies. Dots, sums of the carry and other operations that are
kernels by themselves become as many more, and the bytes that an iteration accesses grow until the
loop is no native function: a Kalman filter of 2 x 2 takes 16 ns for a step, 206 four at once. An
array of rows is one kernel, which computes each row from the iteration's start: the gradient of a
sine takes 38, 53 and 108 ns one, four and eight at once. Where steps are long, a core computes the
chain of one element after that of another instead of many at the same time: a tanh of 60 elements
takes 19 ns and 67 eight at once.

Nanoseconds for a step of float32, one and several at once, as this rule chooses, in 20,000 steps on
an Intel Xeon of 2 cores by AVX-512; `python benchmarks/loops.py` has more:

    x * 0.999 + 0.001 of 10 elements       2.8 and 1.7     of 100 elements          3.8 and 2.4
    the same of 200 elements                23 and 8.0     of 100,000           12,600 and 3,300
    a rotation of two carries of 10         17 and 3.9     of 24                     19 and 4.4
    three carries of 60                     65 and 30      of 13                     19 and 7.7
    a polynomial of 10 elements, 12 terms   12 and 8.5     of 10, 24 terms           22 and 16
    sums of numbers that are scanned       2.4 and 1.0     of rows of 10            3.5 and 1.7
    results of numbers                     3.9 and 1.8     of 10 elements            14 and 7.3
    a quotient of one number               5.1 and 4.2     a sine of one number     8.3 and 7.3
    c * 0.5 + xs[i] in a fori_loop         2.6 and 1.6     rows of 10               4.2 and 2.2

In 264 random bodies that it takes, of 1 to 700 elements, the ratio was 0.16 to 1.02. To
compile takes as long within 26 ms, mostly 5, and to look at a body 0.1 to 0.2 ms.

Floats of 16 bits would no longer be rounded after each step, as XLA drops conversions that follow
each other. XLA also makes one constant of those that are added to a float in a row or scale it,
and one quotient of two: 0.1 added 10^6 times would no longer be 100,958. Such bodies keep their
loop.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value
from hlofront.core.aval import SymbolicSize
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import called_by
from hlofront.higher_order.custom_jvp import custom_jvp_call_p
from hlofront.higher_order.custom_vjp_call import custom_vjp_call_p
from hlofront.higher_order.jit_call import closed_call_p, jit_p
from hlofront.higher_order.scan import scan_p
from hlofront.lowering.builder import Builder
from hlofront.lowering.cpu_formulas import Candidate, formula_on_cpu
from hlofront.lowering.looping import Loop
from hlofront.lowering.pruning import live_equations
from hlofront.primitives import comparing as c
from hlofront.primitives import converting as v
from hlofront.primitives import elementwise as e
from hlofront.primitives import reducing as r
from hlofront.primitives import shaping as s
from hlofront.primitives.derivatives import add_any_p
from hlofront.primitives.dynamic_slicing import dynamic_slice_p

# Shorter loops are left as they are: they take a microsecond.
_FEWEST_STEPS = 512
# XLA's threshold for the accesses of an iteration of a loop that is one kernel, in bytes,
_MOST_BYTES = 1024
# and what those of the loop's index, copies and conditions may be.
_REST_BYTES = 64
# The greatest number of operations in a step, and where some are divisions or functions.
_MOST_OPERATIONS = 24
_MOST_BESIDE_DIVISIONS = 12
_MOST_BESIDE_FUNCTIONS = 6
# The largest array that a step sums by itself, if it is not from the carry.
_LARGEST_SUMMED = 16
# The largest rows of results, in words of 32 bits.
_LONGEST_ROW = 12
# Calls in calls in calls: no user's body of a few operations has more.
_DEEPEST_CALLS = 8

_CONVERSION = v.convert_element_type_p
_COPIES = frozenset((s.broadcast_in_dim_p, s.reshape_p, s.squeeze_p, v.copy_p, v.stop_gradient_p))
_FAST = frozenset(
    (
        e.abs_p, e.add_p, e.and_p, e.ceil_p, e.clamp_p, e.floor_p, e.is_finite_p, e.max_p, e.min_p,
        e.mul_p, e.neg_p, e.not_p, e.or_p, e.round_p, e.shift_left_p, e.shift_right_arithmetic_p,
        e.shift_right_logical_p, e.sign_p, e.square_p, e.sub_p, e.xor_p, add_any_p,
        c.eq_p, c.ge_p, c.gt_p, c.le_p, c.lt_p, c.ne_p, c.select_n_p, _CONVERSION,
    )
)  # fmt: skip
# Operations that take long, in chains of which a core computes one after the other.
_DIVISIONS = frozenset((e.div_p, e.rsqrt_p, e.sqrt_p))
_FUNCTIONS = frozenset((e.cos_p, e.exp_p, e.sin_p, e.tanh_p))
_SLOW = _DIVISIONS | _FUNCTIONS
_SUMS = frozenset((r.reduce_sum_p, r.reduce_max_p, r.reduce_min_p))
_CALLS = frozenset((jit_p, closed_call_p, custom_jvp_call_p, custom_vjp_call_p))
_DTYPES = frozenset(
    map(np.dtype, ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"))
)


def _pays(equation: Candidate) -> bool:
    return steps_at_once(**equation.params) > 1


@formula_on_cpu(scan_p, when=_pays, rewritten=True, in_place=True)
def _(build: Builder, *args: Value, jaxpr: ClosedJaxpr, **params: Any) -> list[Value]:
    consts, carry, length = params["num_consts"], params["num_carry"], params["length"]
    count = steps_at_once(jaxpr=jaxpr, **params)
    fences = build.module.fences
    # No loop with a barrier is one kernel.
    while fences and count > 1 and any(fences.of_steps(jaxpr, consts, carry, count)):
        count = count // 2 if count == 8 else 1
    return Loop(jaxpr, args, consts, carry, length, params["reverse"]).emit(build, count)


def steps_at_once(
    *, jaxpr: ClosedJaxpr, num_consts: int, num_carry: int, length: int, unroll: int, **_: object
) -> int:
    """Return the number of steps to take in each iteration of a scan with these parameters."""
    if unroll != 1 or isinstance(length, SymbolicSize) or length < _FEWEST_STEPS:
        return 1
    if jaxpr.effects or len(jaxpr.eqns) > 2 * _MOST_OPERATIONS:
        return 1
    body = _Body(jaxpr, num_consts, num_carry)
    count = body.count() if body.is_simple else 1
    return 4 if count == 8 and length % 8 == 4 else count


class _Seen(NamedTuple):
    """The facts about a value in a body.

    Attributes:
      inputs: the positions of the inputs of the body that it is computed from.
      copied: the input that it is equal to or the opposite of, in any shape; None if it is
        computed.
      combined: "scale" or "shift" if a constant scaled or shifted it last, else None.
    """

    inputs: frozenset[int] = frozenset()
    copied: int | None = None
    combined: str | None = None


# The operations that XLA makes one of, if two in a row have constants.
_COMBINED: Mapping[Primitive, str] = {
    e.mul_p: "scale",
    e.div_p: "scale",
    e.add_p: "shift",
    e.sub_p: "shift",
}


class _Body:
    """The body of a scan, each of whose operations is looked at once.

    Attributes:
      is_simple: whether it consists of operations on usual numbers that XLA makes one kernel of.
    """

    def __init__(self, program: ClosedJaxpr, num_consts: int, num_carry: int):
        end = num_consts + num_carry
        self._in_avals, self._out_avals = program.in_avals, program.out_avals
        self._consts, self._carries = range(num_consts), range(num_consts, end)
        self._operations = 0
        self._slow: set[Primitive] = set()
        self._is_scalar = True
        # The size of the largest array, in words of 32 bits.
        self._words = 0
        # The bytes that are sliced from constants.
        self._sliced: dict[int, int] = {}
        # The inputs of the body that operations read, once for each of them.
        self._read: list[int] = []
        # "scale" or "shift" if a constant scales or shifts a carry as it is.
        self._combining: set[str] = set()
        jaxpr = program.jaxpr
        self._seen = {
            var: _Seen(frozenset((position,)), position)
            for position, var in enumerate(jaxpr.invars)
        }
        usual = all(map(self._is_usual, (*self._in_avals[num_consts:], *self._out_avals)))
        self.is_simple = usual and self._looks_simple(jaxpr, 0)
        if self.is_simple:
            self._results = [self._of(atom) for atom in jaxpr.outvars]
            self.is_simple = not self._combines_constants()

    def count(self) -> int:
        """Return the number of steps to take at once, 1 for the loop as it is."""
        if not self._sliced:
            return self._count()
        is_read_whole = not self._sliced.keys().isdisjoint(self._read)
        return 1 if is_read_whole else min(4, self._count())

    def _count(self) -> int:
        """Return the number of steps to take at once, if slices cost no more than other reads."""
        operations, words = self._operations, self._words
        ys = self._out_avals[len(self._carries) :]
        if self._is_scalar:
            return self._fitting(self._count_of_scalars(len(ys)))
        if self._slow or not self._carries:
            return 1
        if ys:
            return self._fitting(4 if self._collects_short_rows(ys) else 1)
        if self._accessed(1) <= _MOST_BYTES:
            if operations <= 2 or (operations <= 12 and words <= 16):
                return self._fitting(8)
            return self._fitting(4 if operations <= _most_operations(words) else 1)
        if self._sliced or any(aval.shape for aval in self._in_avals[self._carries.stop :]):
            return 1
        # XLA computes each member of the carry from all that it depends on.
        carries = len(self._carries)
        if operations <= 2 * carries or (operations <= 6 * carries and words <= 256):
            return 4
        return 4 if operations <= 4 * carries and words * carries <= 1024 else 1

    def _count_of_scalars(self, num_ys: int) -> int:
        """Return the number of steps to take at once if all values are scalars."""
        if self._slow <= _DIVISIONS and self._slow:
            return 4 if self._operations <= _MOST_BESIDE_DIVISIONS else 1
        if self._slow:
            # XLA makes products of quotients by exponentials, which may be infinite.
            pays = self._operations <= _MOST_BESIDE_FUNCTIONS and not num_ys
            return 4 if pays and self._slow <= _FUNCTIONS else 1
        if num_ys:
            return 8 if self._operations <= 8 and num_ys == 1 else 4
        return 8 if self._operations <= 12 else 4

    def _fitting(self, count: int) -> int:
        """Return `count`, less if the loop were no kernel, or 1 if it would be two or three."""
        while count >= 4 and self._accessed(count) + _REST_BYTES > _MOST_BYTES:
            count //= 2
        return count if count >= 4 else 1

    def _collects_short_rows(self, ys: Sequence[Any]) -> bool:
        """Return whether one short array is collected of one carry that is read once."""
        if self._sliced or len(ys) > 1 or self._words > _LONGEST_ROW or self._operations > 3:
            return False
        xs = self._in_avals[self._carries.stop :]
        is_one = len(self._carries) == 1 and self._read.count(self._carries[0]) == 1
        return is_one and not any(aval.shape for aval in xs)

    def _accessed(self, count: int) -> int:
        """Return about how many bytes an iteration of `count` steps reads and writes."""
        carries = self._carries
        reads = [set(result.inputs) for result in self._results]
        for _ in range(min(count, len(carries) + 1) - 1):
            before = [frozenset(each) for each in reads[: len(carries)]]
            for each in reads:
                for position in carries:
                    if position in each:
                        each |= before[position - carries.start]
        sizes = [aval.size * aval.dtype.itemsize for aval in self._in_avals]
        sizes[carries.stop :] = [count * size for size in sizes[carries.stop :]]
        for position, size in self._sliced.items():
            sizes[position] = count * size
        total = 0
        copied: set[int] = set()
        for index, (each, aval) in enumerate(zip(reads, self._out_avals, strict=True)):
            total += sum(sizes[position] for position in each)
            written = aval.size * aval.dtype.itemsize
            total += written if index < len(carries) else 3 * count * written
            copied |= each.difference((carries.start + index,))
        return total + 2 * sum(sizes[position] for position in copied.intersection(carries))

    def _is_usual(self, aval: Any) -> bool:
        """Return whether a value has a usual dtype, and record its size."""
        if getattr(aval, "dtype", None) not in _DTYPES:
            return False
        self._words = max(self._words, -(-aval.size * aval.dtype.itemsize // 4))
        self._is_scalar &= not aval.shape
        return True

    def _of(self, atom: Atom) -> _Seen:
        """Return the facts about an operand."""
        return _Seen() if isinstance(atom, Literal) else self._seen[atom]

    def _looks_simple(self, jaxpr: Jaxpr, depth: int) -> bool:
        """Look at the equations of a program, in order, until one is not simple."""
        for equation in live_equations(jaxpr):
            is_call = equation.primitive in _CALLS
            if not (self._call(equation, depth) if is_call else self._operation(equation)):
                return False
        return True

    def _call(self, equation: Equation, depth: int) -> bool:
        """Look at the program that an equation calls; return whether it is simple."""
        call = called_by(equation)
        if call is None or call.operands is None or call.consts or depth == _DEEPEST_CALLS:
            return False
        inner = call.jaxpr
        for var, position in zip(inner.invars, call.operands, strict=True):
            self._seen[var] = self._of(equation.invars[position])
        if not self._looks_simple(inner, depth + 1):
            return False
        seen = [self._of(atom) for atom in inner.outvars]
        self._seen.update(zip(equation.outvars, seen, strict=True))
        return True

    def _operation(self, equation: Equation) -> bool:
        """Look at an equation that calls nothing; return whether it is simple."""
        primitive = equation.primitive
        operands = [self._of(atom) for atom in equation.invars]
        result: Any = equation.outvars[0]
        aval: Any = equation.invars[0].aval
        if primitive in _COPIES or (primitive is _CONVERSION and aval.dtype == result.aval.dtype):
            self._seen[result] = operands[0]
            return len(operands) == 1
        if primitive is _CONVERSION and aval.dtype.kind == result.aval.dtype.kind == "f":
            return False  # XLA drops conversions that follow each other.
        if primitive is dynamic_slice_p:
            return self._slice(result, operands)
        if not all(self._is_usual(atom.aval) for atom in (*equation.invars, result)):
            return False
        inputs = _inputs_of(operands)
        if primitive in _SUMS:
            if aval.size > _LARGEST_SUMMED or not inputs.isdisjoint(self._carries):
                return False
            self._operations += aval.size
        elif primitive is e.integer_pow_p and 0 <= equation.params["y"] <= 4:
            self._operations += 2
        elif primitive in _FAST or (primitive in _SLOW and aval.dtype.kind == "f"):
            self._operations += bool(inputs)
            self._slow |= _SLOW & {primitive}
        else:
            return False
        self._read += [each.copied for each in operands if each.copied is not None]
        seen = operands[0] if primitive is e.neg_p else self._combined(primitive, operands)
        self._seen[result] = seen._replace(inputs=inputs)
        return self._operations <= _MOST_OPERATIONS

    def _slice(self, result: Any, operands: Sequence[_Seen]) -> bool:
        """Look at a slice at computed indices; return whether it is of a constant of the loop."""
        array, aval = operands[0].copied, result.aval
        if array is None or array not in self._consts or aval.dtype not in _DTYPES:
            return False
        if aval.size != 1:
            self._is_usual(aval)
        self._operations += 1
        self._sliced[array] = self._sliced.get(array, 0) + aval.size * aval.dtype.itemsize
        self._read += [each.copied for each in operands[1:] if each.copied is not None]
        self._seen[result] = _Seen(_inputs_of(operands))
        return self._operations <= _MOST_OPERATIONS

    def _combined(self, primitive: Primitive, operands: Sequence[_Seen]) -> _Seen:
        """Return the facts about a result but for its inputs; record what constants change."""
        constants = [each for each in operands if each.inputs.issubset(self._consts)]
        kind = _COMBINED.get(primitive)
        if kind is None or not (constants or primitive is e.div_p):
            return _Seen()
        if any(each.copied in self._carries for each in operands):
            self._combining.add(kind)
        return _Seen(combined=kind)

    def _combines_constants(self) -> bool:
        """Return whether XLA may combine constants of successive steps, and so round less.

        A later step may read the result as another member of the carry.
        """
        return any(
            result.combined in self._combining and self._in_avals[position].dtype.kind == "f"
            for position, result in zip(self._carries, self._results, strict=False)
        )


def _inputs_of(operands: Sequence[_Seen]) -> frozenset[int]:
    return frozenset[int]().union(*[operand.inputs for operand in operands])


def _most_operations(words: int) -> int:
    """Return how many operations of a step pay on arrays of so many words: more on fewer."""
    if words <= 16:
        return _MOST_OPERATIONS
    if words <= 32:
        return 8
    return 3 if words <= 64 else 2
