"""Taylor mode: the trace and tracers of jet, and jet of jaxprs, which propagate power series.

A series has the coefficients of orders 1 to n of a value on a curve: derivatives divided by
factorials.
"""

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from hlofront.base.boundary import user_context
from hlofront.base.config import check_tracer_leaks
from hlofront.base.typing import ArrayLike, ArrayLikes, Params
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, register_value_type, typeof
from hlofront.core.jaxpr import Atom, ClosedJaxpr, DebugInfo, Jaxpr, Literal, Value, Var
from hlofront.core.names import coming_from
from hlofront.core.primitive import Primitive
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.symbolic_zeros import Series, Tangent, Zero, ZeroSeries, zero_series
from hlofront.core.trace import Trace, current_trace, interpreting_with, process
from hlofront.primitives.elementwise.taylor_rules import scaled
from hlofront.primitives.rules.derivatives import zeros_of
from hlofront.primitives.rules.taylor import LOCALLY_CONSTANT, has_terms, order_of
from hlofront.transforms.jvp import DifferentiationTracer, as_tangent, describe
from hlofront.transforms.leaks import raise_if_leaked
from hlofront.transforms.simplify import dead_code
from hlofront.transforms.stage import stage


def zero_terms(x: ArrayLike, order: int) -> ArrayLikes:
    """Return the terms of a constant as arrays of zeros."""
    return [zeros_of(typeof(x))] * order


def instantiate_series(x: ArrayLike, series: Series, order: int) -> ArrayLikes:
    """Return a value's series as arrays: zeros for the symbolic series."""
    return zero_terms(x, order) if isinstance(series, ZeroSeries) else series


# ---- one operation -------------------------------------------------------------------------------


def expand(
    primitive: Primitive, primals: ArrayLikes, series: Sequence[Series], params: Params
) -> tuple[Value, Value]:
    """Apply a primitive to series, by its Taylor rule, or by its jvp rule if it has none.

    Args:
      primitive: the primitive.
      primals: its operands.
      series: one per operand; at least one is not the symbolic zero series.
      params: its parameters.

    Returns:
      The result and its series; a list of each if the primitive has several results.
    """
    rule = rules.taylor.get(primitive)
    if rule is None:
        return _by_tangent(primitive, primals, series, params)
    if primitive in rules.taylor.foreign:
        # As in JAX, rules of other packages receive arrays.
        order = order_of(series)
        series = [
            list(instantiate_series(x, s, order)) if has_terms(x) else s
            for x, s in zip(primals, series, strict=True)
        ]
    return rule(primals, series, **params)


def _by_tangent(
    primitive: Primitive, primals: ArrayLikes, series: Sequence[Series], params: Params
) -> tuple[Value, Value]:
    """Return the result and series of a primitive from its jvp rule.

    Along a curve x, the derivative of f(x) is the tangent that the rule returns for x and x'.
    Expanding the operations of the rule, with the series of x and x' to one order less, gives the
    series of f(x) without differentiating them again.
    """
    multiple = primitive.multiple_results
    has_series = [not isinstance(s, ZeroSeries) for s in series]
    order = order_of(series)
    jvp: Callable[..., tuple[Value, Value]] = rules.jvp[primitive]
    if order == 1:
        tangents = [
            Zero.of(x) if isinstance(s, ZeroSeries) else s[0]
            for x, s in zip(primals, series, strict=True)
        ]
        results, tangents_out = jvp(primals, tangents, **params)
        result_series = [_first_order(t) for t in (tangents_out if multiple else [tangents_out])]
        return results, result_series if multiple else result_series[0]
    count = len(primals)
    velocities = [
        [scaled(term, k + 1) for k, term in enumerate(s)]
        for s in series
        if not isinstance(s, ZeroSeries)
    ]
    present: list[bool] = []

    def tangents_of(*args: Value) -> list[Value]:
        rest = iter(args[count:])
        tangents = [
            next(rest) if flag else Zero.of(x)
            for x, flag in zip(args[:count], has_series, strict=True)
        ]
        _, tangents_out = jvp(args[:count], tangents, **params)
        tangents_out = [as_tangent(t) for t in (tangents_out if multiple else [tangents_out])]
        present[:] = [type(t) is not Zero for t in tangents_out]
        return [t for t in tangents_out if type(t) is not Zero]

    firsts = [terms[0] for terms in velocities]
    program = stage(tangents_of, [*map(typeof, primals), *map(typeof, firsts)])
    jaxpr, _ = dead_code(program.jaxpr, True, instantiate=True)
    derivatives, higher = jet_jaxpr(
        jaxpr,
        program.consts,
        [*primals, *firsts],
        [s if isinstance(s, ZeroSeries) else s[:-1] for s in series]
        + [terms[1:] for terms in velocities],
    )
    expansions = iter(
        [
            [scaled(x, 1 / k) for k, x in enumerate([d, *instantiate_series(d, h, order - 1)], 1)]
            for d, h in zip(derivatives, higher, strict=True)
        ]
    )
    result_series = [next(expansions) if flag else zero_series for flag in present]
    return process(primitive, tuple(primals), params), result_series if multiple else result_series[
        0
    ]


def _first_order(tangent: Tangent) -> Series:
    tangent = as_tangent(tangent)
    return zero_series if type(tangent) is Zero else [tangent]


# ---- the trace -----------------------------------------------------------------------------------


class JetTracer(DifferentiationTracer):
    """A tracer of jet: a primal, and the terms of its series."""

    __slots__ = ("terms",)

    _trace: "JetTrace"
    lost = "series"

    def __init__(self, trace: "JetTrace", primal: ArrayLike, terms: ArrayLikes):
        # It is never replaced, so it may have a narrower type than in the base class.
        self._trace = trace  # pyright: ignore[reportIncompatibleVariableOverride]
        self.primal = primal
        self.terms = terms
        self.aval = typeof(primal)

    def _traced_function(self) -> str:
        return describe(self._trace.debug_info)


register_value_type(JetTracer, lambda tracer: tracer.aval)


class JetTrace(Trace):
    """A trace of jet, which runs operations on values with series."""

    __slots__ = ("debug_info", "parent", "programs_of")

    # The interpreter of the operations on primals and terms.
    parent: Trace
    # The differentiated function, for messages.
    debug_info: DebugInfo | None

    def __init__(self, parent: Trace, debug_info: DebugInfo | None = None):
        self.alive = True
        self.parent = parent
        self.debug_info = debug_info
        # Programs that captured values of this function; see `StagingTrace.programs_of`.
        self.programs_of: dict[object, object] = {}

    def wrap(self, primal: ArrayLike, series: Series) -> Value:
        return primal if isinstance(series, ZeroSeries) else JetTracer(self, primal, series)

    def split(self, x: Value) -> tuple[Value, Series]:
        """Return the primal and series of a value; those of a constant are symbolic zeros."""
        if type(x) is JetTracer and x._trace is self:  # pyright: ignore[reportPrivateUsage]
            return x.primal, x.terms
        return x, zero_series

    def lift(self, x: Value) -> Value:
        return self.parent.lift(x)

    def process(self, primitive: Primitive, args: tuple[Value, ...], params: Params) -> Value:
        pairs = list(map(self.split, args))
        series = [s for _, s in pairs]
        with interpreting_with(self.parent):
            if all(s is zero_series for s in series):
                return self.parent.process(primitive, args, params)
            results, series_out = expand(primitive, [x for x, _ in pairs], series, params)
        if primitive.multiple_results:
            return [self.wrap(x, s) for x, s in zip(results, series_out, strict=True)]
        return self.wrap(results, series_out)


def jet_flat(
    fun: Callable[..., Sequence[Value]],
    primals: ArrayLikes,
    series: Sequence[Series],
    debug_info: DebugInfo | None = None,
) -> tuple[list[Value], list[Series]]:
    """Return primals and series of a flat function's results."""
    trace = JetTrace(current_trace(), debug_info)
    arguments = list(map(trace.wrap, primals, series))
    try:
        with interpreting_with(trace):
            outputs = fun(*arguments)
    finally:
        trace.alive = False
        trace.programs_of.clear()
    pairs = [trace.split(x) for x in outputs]
    if check_tracer_leaks.value:
        del arguments, outputs
        reference = weakref.ref(trace)
        del trace
        raise_if_leaked(reference)
    return [x for x, _ in pairs], [s for _, s in pairs]


# ---- programs ------------------------------------------------------------------------------------


def _series_needed(jaxpr: Jaxpr) -> set[Var]:
    """Return the variables whose series the series of the outputs depend on.

    Only the values of operands that are compared, rounded or used as indices are needed.
    """
    needed = {atom for atom in jaxpr.outvars if isinstance(atom, Var) and _may_have_terms(atom)}
    for equation in reversed(jaxpr.eqns):
        if equation.primitive not in LOCALLY_CONSTANT and not needed.isdisjoint(equation.outvars):
            needed.update(
                atom for atom in equation.invars if isinstance(atom, Var) and _may_have_terms(atom)
            )
    return needed


def _may_have_terms(var: Var) -> bool:
    aval = var.aval
    return isinstance(aval, ShapedArray) and aval.to_tangent_aval() is aval


def jet_jaxpr(
    jaxpr: Jaxpr, consts: ArrayLikes, primals: ArrayLikes, series: Sequence[Series]
) -> tuple[list[Value], list[Series]]:
    """Evaluate a jaxpr on values with series, in the current trace.

    Args:
      jaxpr: the program.
      consts: the values of its constants.
      primals: one per input.
      series: one per primal.

    Returns:
      The primals of the outputs, and their series.
    """
    values: dict[Atom, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, primals, strict=True))
    needed = _series_needed(jaxpr)
    # A variable without an entry has no series, or one that no output depends on.
    nonzero_series: dict[Atom, Series] = {
        var: s
        for var, s in zip(jaxpr.invars, series, strict=True)
        if s is not zero_series and var in needed
    }

    def series_of(atom: Atom) -> Series:
        return zero_series if type(atom) is Literal else nonzero_series.get(atom, zero_series)

    for equation in jaxpr.eqns:
        primitive = equation.primitive
        operands = [
            atom.operand if type(atom) is Literal else values[atom] for atom in equation.invars
        ]
        series_in: list[Series] = []
        if not needed.isdisjoint(equation.outvars):
            series_in = list(map(series_of, equation.invars))
        series_out: Any = None
        try:
            with coming_from(equation.name_stack, equation.traceback):
                if all(s is zero_series for s in series_in):
                    results = process(primitive, tuple(operands), equation.params)
                else:
                    results, series_out = expand(primitive, operands, series_in, equation.params)
        except Exception:
            with user_context(equation.traceback):
                raise
        if not primitive.multiple_results:
            results, series_out = [results], [series_out]
        values.update(zip(equation.outvars, results, strict=True))
        if series_out is not None:
            for var, s in zip(equation.outvars, series_out, strict=True):
                if s is not None and s is not zero_series:
                    nonzero_series[var] = s
    outputs = [atom.operand if type(atom) is Literal else values[atom] for atom in jaxpr.outvars]
    return outputs, list(map(series_of, jaxpr.outvars))


def with_terms(terms: Iterable[ArrayLike], flags: Iterable[bool], order: int) -> Iterator[Series]:
    """Yield a series per flag: the next `order` terms if it is set, else the symbolic zeros."""
    rest = iter(terms)
    for flag in flags:
        yield [next(rest) for _ in range(order)] if flag else zero_series


def jet_program(
    program: ClosedJaxpr,
    nonzero: Sequence[bool],
    order: int,
    instantiate: bool | Sequence[bool] = False,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return a closed jaxpr of primals and terms; cached per program, flags and order.

    Args:
      program: the closed jaxpr to expand.
      nonzero: per input, whether it has a series.
      order: the number of terms of each series.
      instantiate: per output, or for all, whether its terms are outputs even if they are zero.

    Returns:
      The closed jaxpr, with inputs (*primals, *terms of the first input with a series, *terms of
      the second, ...) and outputs in the same order; and per output of the original whether it has
      terms.
    """
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * len(program.jaxpr.outvars)
    return _jet_program(program, tuple(nonzero), order, tuple(instantiate))


@once_per_program
def _jet_program(
    program: ClosedJaxpr, nonzero: tuple[bool, ...], order: int, instantiate: tuple[bool, ...]
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    avals = program.in_avals
    terms = [aval for aval, flag in zip(avals, nonzero, strict=True) if flag for _ in range(order)]
    present: tuple[bool, ...] = ()

    def with_series(*args: Value) -> list[Value]:
        nonlocal present
        primals, rest = args[: len(avals)], args[len(avals) :]
        results, series = jet_jaxpr(
            program.jaxpr, program.consts, primals, list(with_terms(rest, nonzero, order))
        )
        present = tuple(
            s is not zero_series or force for s, force in zip(series, instantiate, strict=True)
        )
        outputs = list(results)
        for x, s, there in zip(results, series, present, strict=True):
            if there:
                outputs += instantiate_series(x, s, order)
        return outputs

    return stage(with_series, [*avals, *terms], program.jaxpr.origin), present
