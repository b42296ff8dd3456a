"""Bounded programs: programs of symbolic sizes, run on arrays that are padded to known sizes.

A value with symbolic sizes is an array with the sizes of a bucket. Its first elements along each
axis, as many as the true size, are what the program computes without padding; the others, its
padding, may have any values. A rule for each operation preserves this: most operations preserve it
by themselves, those that combine elements along an axis receive operands whose padding is masked,
and operations that cannot preserve it are refused.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from hlofront.base import source
from hlofront.base.boundary import user_context
from hlofront.base.errors import PaddingError
from hlofront.base.typing import Value
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal
from hlofront.core.names import coming_from
from hlofront.core.primitive import Primitive
from hlofront.core.programs.liveness import live_equations
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import closed, subprograms_of
from hlofront.core.sizes.symbolic import SizeExpression, has_symbolic_size, value_of, variables_of
from hlofront.primitives.arrays.creation import full_like, index_like
from hlofront.primitives.elementwise.compare import lt, select_n
from hlofront.primitives.elementwise.converting import convert_element_type
from hlofront.primitives.elementwise.elementwise import bitwise_and
from hlofront.primitives.rules.batching import elementwise

Size = int | SizeExpression
# A rule takes the Bounded, the equation and the padded values of its operands; it returns the
# padded result, or a sequence of them.
Rule = Callable[..., Any]

rules: dict[Primitive, Rule] = {}
# The number of lengths that are tried for a size whose greatest value cannot be derived.
_MAX_TRIED = 4096


def rule(*primitives: Primitive) -> Callable[[Rule], Rule]:
    """Return a decorator that registers the rule of primitives on padded operands."""

    def register(function: Rule) -> Rule:
        rules.update(dict.fromkeys(primitives, function))
        return function

    return register


class Bounded:
    """An interpreter of programs of symbolic sizes, on arrays of the sizes of one bucket.

    Attributes:
      sizes: the size of each variable in this bucket.
      lengths: the true value of each variable, as an int32 scalar.
      masked: the operations whose operands are masked, with their lines, in order.
      made: the bounded programs of programs that are called more than once, by their ids.
    """

    __slots__ = ("lengths", "made", "masked", "sizes")

    def __init__(
        self,
        sizes: Mapping[str, int],
        lengths: Mapping[str, Value],
        masked: dict[str, None] | None = None,
        made: "dict[int, tuple[ClosedJaxpr | Jaxpr, ClosedJaxpr]] | None" = None,
    ):
        self.sizes = sizes
        self.lengths = lengths
        self.masked = {} if masked is None else masked
        self.made = {} if made is None else made

    def run(self, program: ClosedJaxpr | Jaxpr, values: Sequence[Value]) -> list[Any]:
        """Return the padded outputs of a program for padded inputs.

        Raises:
          PaddingError: for an operation through which padding would reach other elements.
        """
        program = closed(program)
        jaxpr = program.jaxpr
        inputs = [*program.consts, *values]
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], inputs, strict=True))
        for equation in live_equations(jaxpr.eqns, jaxpr.outvars):
            operands = [x.operand if type(x) is Literal else known[x] for x in equation.invars]
            with user_context(equation.traceback):
                with coming_from(equation.name_stack, equation.traceback):
                    results = self._results(equation, operands)
            known.update(zip(equation.outvars, results, strict=True))
        return [x.operand if type(x) is Literal else known[x] for x in jaxpr.outvars]

    def _results(self, equation: Equation, operands: Sequence[Value]) -> Sequence[Value]:
        if not has_sizes(equation):
            results = equation.primitive.bind(*operands, **equation.params)
        else:
            for var in equation.outvars:
                self._check_growth(equation, var.aval)
            results = self._rule(equation)(self, equation, *operands)
        if not equation.primitive.multiple_results:
            results = (results,)
        for var, result in zip(equation.outvars, results, strict=True):
            assert typeof(result).shape == self.known(getattr(var.aval, "shape", ())), equation
        return results

    def _rule(self, equation: Equation) -> Rule:
        if equation.primitive in rules:
            return rules[equation.primitive]
        if equation.primitive in elementwise:
            return Bounded.bind
        self.refuse(
            equation,
            "it is not known whether the padding reaches other elements of its results",
            "Call it outside of this function",
        )

    def _check_growth(self, equation: Equation, aval: Any) -> None:
        """Check that no axis of a result is longer without padding than with it."""
        for size in getattr(aval, "shape", ()):
            if not self.grows(size):
                self.refuse(
                    equation,
                    f"its result has the size {size}, which may be greater than the "
                    f"{self.size(size)} that it has with padding",
                    "Compute it with sizes that grow with the lengths",
                )

    # ---- sizes

    def grows(self, size: Size) -> bool:
        """Return whether a true size is at most the size in this bucket, for all lengths in it."""
        if not isinstance(size, SizeExpression):
            return True
        most = self.size(size)
        if size.scope.bounds(size)[1] <= most:
            return True
        names = variables_of(size)
        lengths = [range(1, self.sizes[name] + 1) for name in names]
        if math.prod(map(len, lengths)) > _MAX_TRIED:
            return False
        return all(
            value_of(size, dict(zip(names, values, strict=True))) <= most
            for values in itertools.product(*lengths)
        )

    def size(self, size: Size) -> int:
        """Return a size in this bucket."""
        return int(value_of(size, self.sizes))

    def length(self, size: Size) -> Any:
        """Return a true size: an integer, or an int32 scalar."""
        return value_of(size, self.lengths)

    def known(self, value: Any) -> Any:
        """Return a parameter with the sizes of this bucket instead of symbolic ones."""
        if isinstance(value, SizeExpression):
            return self.size(value)
        if isinstance(value, tuple | list) and _holds_sizes(value):
            members = map(self.known, value)
            kind: Any = type(value)
            return kind(*members) if hasattr(kind, "_fields") else kind(members)
        return value

    def bind(self, equation: Equation, *operands: Value, **changes: object) -> Any:
        """Bind the operation with the sizes of this bucket, and some parameters changed."""
        params = {name: self.known(value) for name, value in equation.params.items()}
        return equation.primitive.bind(*operands, **{**params, **changes})

    # ---- masks and refusals

    def inside(self, like: Value, shape: Sequence[Size], axes: Sequence[int]) -> Any:
        """Return a mask of the elements that are not padding along axes; None if all are not.

        Args:
          like: a padded array.
          shape: its symbolic shape.
          axes: the axes.
        """
        inside = None
        for axis in axes:
            if symbolic(shape[axis]):
                length = convert_element_type(self.length(shape[axis]), np.int32)
                below = lt(index_like(like, axis), length)
                inside = below if inside is None else bitwise_and(inside, below)
        return inside

    def mask(self, equation: Equation, operand: int, value: Value, axes: Any, fill: Any) -> Any:
        """Return an operand's value with `fill` as its padding along some axes."""
        inside = self.inside(value, equation.invars[operand].aval.shape, axes)
        if inside is None:
            return value
        self.masked.setdefault(described(equation))
        return select_n(inside, full_like(value, fill), value)

    def refuse(self, equation: Equation, why: str, instead: str) -> NoReturn:
        """Raise the error for an operation that cannot be done on padded operands."""
        variables = ", ".join(f"{name} up to {size}" for name, size in self.sizes.items())
        types = ", ".join(
            x.aval.str_short(short_dtypes=True)
            for x in (equation.invars or equation.outvars)  # An operation may have no operands.
        )
        raise PaddingError(
            f"{described(equation)} of {types} is not possible in buckets ({variables}): {why}. "
            f"{instead}, or jit the function without `buckets`."
        )


def described(equation: Equation) -> str:
    """Return an operation and its line, as in "sort at model.py:12:8 (f)"."""
    line = source.summarize(equation.traceback)
    return f"{equation.primitive} at {line}" if line else str(equation.primitive)


def symbolic(size: object) -> bool:
    return isinstance(size, SizeExpression)


def padded_axes(aval: ShapedArray, axes: Sequence[int] | None = None) -> list[int]:
    """Return the axes whose size is symbolic, of all axes or of those in `axes`."""
    chosen = range(aval.ndim) if axes is None else axes
    return [axis for axis in chosen if symbolic(aval.shape[axis])]


def has_sizes(equation: Equation) -> bool:
    """Return whether an operand, result, parameter or subprogram has a symbolic size."""
    atoms = [*equation.invars, *equation.outvars]
    if any(has_symbolic_size(getattr(atom.aval, "shape", ())) for atom in atoms):
        return True
    if any(map(_holds_sizes, equation.params.values())):
        return True
    return any(_program_has_sizes(part.jaxpr) for part in subprograms_of(equation))


@once_per_program
def _program_has_sizes(jaxpr: Jaxpr) -> bool:
    return any(map(has_sizes, jaxpr.eqns)) or any(
        has_symbolic_size(getattr(aval, "shape", ())) for aval in jaxpr.in_avals
    )


def _holds_sizes(value: object) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_holds_sizes, value))
    return isinstance(value, SizeExpression)
