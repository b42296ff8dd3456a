"""Transposition: evaluating the transpose of a linear jaxpr, from cotangents to cotangents."""

from collections.abc import Iterator, Sequence
from typing import Any

from hlofront.base.boundary import user_context
from hlofront.base.typing import ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Jaxpr, Literal, Value
from hlofront.core.names import coming_from
from hlofront.core.programs.liveness import live_equations
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import Program, subprograms_in, subprograms_of
from hlofront.core.references import is_reference, touches_references
from hlofront.core.rule_checks import check_cotangents, checks_are_on
from hlofront.core.sharding.requested_shardings import cotangent_sharding
from hlofront.core.symbolic_zeros import Cotangent, UndefinedPrimal, Zero
from hlofront.core.trace import process
from hlofront.primitives.references.references import RefLike, freeze_p
from hlofront.primitives.references.rules import RefAccumulator
from hlofront.primitives.rules.derivatives import add_tangents
from hlofront.primitives.rules.derivatives import instantiate as instantiated
from hlofront.primitives.sharding.resharding import split_as
from hlofront.transforms.stage import stage


def transpose_jaxpr(
    jaxpr: Jaxpr, consts: ArrayLikes, inputs: Sequence[Value], cotangents: Sequence[Cotangent]
) -> list[Value]:
    """Return the cotangents of a linear jaxpr's inputs.

    Args:
      jaxpr: the program.
      consts: the values of its constants.
      inputs: known values, and UndefinedPrimals for the linear inputs. If one has an accumulator,
        its cotangent is added to the accumulator's reference and is zero in the result.
      cotangents: the cotangents of the outputs; some may be symbolic zeros.

    Returns:
      Per input its cotangent, which may be a symbolic zero; None for known inputs.
    """
    values: dict[Atom, Value] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear: set[Any] = set()
    accumulators: dict[Atom, RefAccumulator] = {}
    for var, x in zip(jaxpr.invars, inputs, strict=True):
        if type(x) is UndefinedPrimal:
            linear.add(var)
            if x.accumulator is not None:
                accumulators[var] = x.accumulator
        else:
            values[var] = x
    is_nonzero = [type(cotangent) is not Zero for cotangent in cotangents]
    backwards = _run_forward(jaxpr, values, linear, is_nonzero)
    for var in linear:
        if is_reference(var.aval) and var not in accumulators:
            accumulators[var] = RefAccumulator(var.aval.to_tangent_aval())
    arrived: dict[Atom, Cotangent] = {}
    for atom, cotangent in zip(jaxpr.outvars, cotangents, strict=True):
        if type(cotangent) is not Zero and atom in linear:
            if atom in accumulators:
                accumulators[atom].add(cotangent)
            else:
                _add(arrived, atom, cotangent)
    checks = checks_are_on()
    while backwards:
        equation = backwards.pop()
        primitive = equation.primitive
        outgoing: list[Cotangent | RefLike | None] = [
            arrived.pop(var, None) for var in equation.outvars
        ]
        if accumulators:
            _take_references(equation, outgoing, accumulators)
        if all(cotangent is None for cotangent in outgoing) and not (
            (accumulators and _writes_to(equation, accumulators))
            or (transposes_zeros(equation) and _is_live(equation, jaxpr))
        ):
            continue
        cotangents_out = [
            Zero(var.aval.to_cotangent_aval()) if c is None else c
            for var, c in zip(equation.outvars, outgoing, strict=True)
        ]
        cotangent: Cotangent | RefLike | list[Cotangent | RefLike] = (
            cotangents_out if primitive.multiple_results else cotangents_out[0]
        )
        operands = [
            atom.operand
            if type(atom) is Literal
            else UndefinedPrimal(
                atom.aval,
                accumulators.get(atom) if accumulators and is_reference(atom.aval) else None,
            )
            if atom in linear
            else values[atom]
            for atom in equation.invars
        ]
        try:
            with coming_from(equation.source_info.scopes, equation.source_info.traceback):
                incoming = rules.transpose[primitive](cotangent, *operands, **equation.params)
                if checks and not _passes_on(equation):
                    incoming = list(incoming)
                    check_cotangents(primitive, equation.invars, incoming)
                for atom, c in zip(equation.invars, incoming, strict=True):
                    if c is not None and type(c) is not Zero and atom in linear:
                        if atom in accumulators:
                            accumulators[atom].add(c)
                        else:
                            _add(arrived, atom, c)
        except Exception:
            with user_context(equation.traceback):
                raise
    for var, x in zip(jaxpr.invars, inputs, strict=True):
        # The caller already has the references to cotangents that it passed.
        if var in accumulators and x.accumulator is None and accumulators[var].ref is not None:
            arrived[var] = freeze_p.bind(accumulators[var].ref)
    return [
        arrived.get(var, Zero(x.aval.to_cotangent_aval())) if type(x) is UndefinedPrimal else None
        for var, x in zip(jaxpr.invars, inputs, strict=True)
    ]


def transposes_zeros(equation: Equation) -> bool:
    """Return whether the transpose of an equation may return nonzero cotangents for zero ones."""
    by_params = equation.primitive.transposes_zeros
    return by_params is not None and by_params(equation.params)


def _passes_on(equation: Equation) -> bool:
    """Return whether the cotangents of an equation may come straight from a user's backward rule.

    Such rules have checks of their own, which may be off. The carry of a loop must keep its type.
    """
    if not equation.primitive.carries_programs:
        return False
    return all(part.role != "body" for part in subprograms_of(equation))


@once_per_program
def holds_rules_for_zeros(program: Program) -> bool:
    """Return whether an equation of a program, or of one that it holds, transposes zeros."""
    return any(map(transposes_zeros, program.eqns)) or any(
        holds_rules_for_zeros(part.program) for part in subprograms_in(program.eqns)
    )


def _is_live(equation: Equation, jaxpr: Jaxpr) -> bool:
    """Return whether an output of a jaxpr depends on an equation."""
    return any(live is equation for live in live_equations(jaxpr.eqns, jaxpr.outvars))


def _take_references(
    equation: Equation,
    outgoing: list[Cotangent | RefLike | None],
    accumulators: dict[Atom, RefAccumulator],
) -> None:
    """Insert the accumulators of results that are references into the list of cotangents."""
    for index, var in enumerate(equation.outvars):
        if var in accumulators:
            outgoing[index] = accumulators[var].ref


def _writes_to(equation: Equation, accumulators: dict[Atom, RefAccumulator]) -> bool:
    """Return whether an operand of an equation is a reference with a cotangent."""
    references = [
        accumulators[a] for a in equation.invars if a in accumulators and is_reference(a.aval)
    ]
    return any(accumulator.ref is not None for accumulator in references)


def _add(arrived: dict[Atom, Cotangent], var: Atom, cotangent: Any) -> None:
    """Add to a variable's cotangent, which is split over a mesh as the variable's type says."""
    aval, expected = getattr(cotangent, "aval", None), var.aval
    if isinstance(aval, ShapedArray) and isinstance(expected, ShapedArray):
        # Where XLA splits all axes, as in auto_axes, a cotangent's type does not say how it is
        # split.
        if aval.spec is not None or expected.spec is not None:
            cotangent = split_as(cotangent, cotangent_sharding(expected, cotangent))
    before = arrived.get(var)
    arrived[var] = cotangent if before is None else add_tangents(before, cotangent)


def _run_forward(
    jaxpr: Jaxpr, values: dict[Atom, Value], linear: set[Atom], has_cotangent: Sequence[bool]
) -> list[Equation]:
    """Run the known equations that are needed or have effects; return the linear equations.

    Args:
      jaxpr: the program.
      values: the values of known variables; computed ones are added.
      linear: the linear variables; results of linear equations are added.
      has_cotangent: per output of the jaxpr, whether its cotangent is nonzero.
    """
    linear_equations: list[Equation] = []
    known_equations: list[Equation] = []
    if touches_references(jaxpr.effects):
        linear |= references_written_with(jaxpr.eqns, linear)
    for equation in jaxpr.eqns:
        if linear.isdisjoint(equation.invars) and linear.isdisjoint(equation.outvars):
            known_equations.append(equation)
        else:
            linear.update(equation.outvars)
            linear_equations.append(equation)
    if not known_equations:
        return linear_equations
    outputs = [atom for atom, g in zip(jaxpr.outvars, has_cotangent, strict=True) if g]
    # The linear variables that cotangents reach, and the known ones that their transposes read.
    needed = set(outputs)
    for equation in reversed(linear_equations):
        if equation.effects or not needed.isdisjoint(equation.outvars):
            needed.update(equation.invars)
    to_run: list[Equation] = []
    for equation in reversed(known_equations):
        if equation.effects or not needed.isdisjoint(equation.outvars):
            needed.update(equation.invars)
            to_run.append(equation)
    for equation in reversed(to_run):
        operands = tuple(
            atom.operand if type(atom) is Literal else values[atom] for atom in equation.invars
        )
        with coming_from(equation.name_stack, equation.traceback):
            results = process(equation.primitive, operands, equation.params)
        if equation.primitive.multiple_results:
            values.update(zip(equation.outvars, results, strict=True))
        else:
            values[equation.outvars[0]] = results
    return linear_equations


def transpose_program(
    program: ClosedJaxpr,
    linear: Sequence[bool],
    nonzero: Sequence[bool],
    instantiate: bool | Sequence[bool] = False,
    weak: Sequence[bool] | None = None,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """Return the transposed closed jaxpr of a linear one; cached per program.

    Args:
      program: a closed jaxpr.
      linear: per input, whether the program is linear in it; the other inputs are known.
      nonzero: per output, whether its cotangent is nonzero, and therefore an input of the result.
      instantiate: per linear input, or for all, whether its cotangent is an output even if zero.
      weak: per nonzero cotangent, whether it is weakly typed; by default it is if its output is.

    Returns:
      The closed jaxpr from (*known inputs, *references to cotangents, *nonzero cotangents) to the
      cotangents of linear inputs; and per linear input whether its cotangent is an output. The
      cotangent of each linear input that is a reference is accumulated in a reference of its own.
    """
    if isinstance(instantiate, bool):
        instantiate = (instantiate,) * sum(linear)
    weak = None if weak is None else tuple(weak)
    return _transpose_program(program, tuple(linear), tuple(nonzero), tuple(instantiate), weak)


@once_per_program
def _transpose_program(
    program: ClosedJaxpr,
    linear: tuple[bool, ...],
    nonzero: tuple[bool, ...],
    instantiate: tuple[bool, ...],
    weak: tuple[bool, ...] | None,
) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    jaxpr = program.jaxpr
    known = [
        aval for aval, is_linear in zip(program.in_avals, linear, strict=True) if not is_linear
    ]
    # The cotangents of linear references are references, which the caller already has.
    references = [
        aval.to_tangent_aval()
        for aval, is_linear in zip(program.in_avals, linear, strict=True)
        if is_linear and is_reference(aval)
    ]
    cotangent_avals = [
        aval.to_cotangent_aval() for aval, n in zip(program.out_avals, nonzero, strict=True) if n
    ]
    if weak is not None:
        cotangent_avals = [
            aval.update(weak_type=is_weak) if isinstance(aval, ShapedArray) else aval
            for aval, is_weak in zip(cotangent_avals, weak, strict=True)
        ]
    present: tuple[bool, ...] = ()

    def backwards(*args: Value) -> list[Value]:
        nonlocal present
        count = len(known)
        values, of_references = iter(args[:count]), iter(args[count : count + len(references)])
        arriving = iter(args[count + len(references) :])
        inputs = [
            linear_input(aval, of_references) if is_linear else next(values)
            for aval, is_linear in zip(program.in_avals, linear, strict=True)
        ]
        cotangents = [
            next(arriving) if n else Zero(aval.to_cotangent_aval())
            for aval, n in zip(program.out_avals, nonzero, strict=True)
        ]
        results = transpose_jaxpr(jaxpr, program.consts, inputs, cotangents)
        expected = [c for c, is_linear in zip(results, linear, strict=True) if is_linear]
        present = tuple(
            type(c) is not Zero or force for c, force in zip(expected, instantiate, strict=True)
        )
        return [instantiated(c) for c, there in zip(expected, present, strict=True) if there]

    avals = [*known, *references, *cotangent_avals]
    return stage(backwards, avals, jaxpr.origin), present


def linear_input(aval: Any, references: Iterator[Value]) -> UndefinedPrimal:
    """Return a linear input of a program; a reference takes the next reference to a cotangent."""
    if not is_reference(aval):
        return UndefinedPrimal(aval)
    return UndefinedPrimal(aval, RefAccumulator(aval.to_tangent_aval(), next(references)))


def references_written_with(equations: Sequence[Equation], linear: set[Any]) -> set[Any]:
    """Return the references that equations use with values that depend on linear variables."""
    depends = set(linear)
    written: set[Atom] = set()
    while True:
        count = len(written)
        for equation in equations:
            atoms = [atom for atom in equation.invars if type(atom) is not Literal]
            if not depends.isdisjoint(atoms):
                depends.update(equation.outvars)
                written.update(atom for atom in atoms if is_reference(atom.aval))
        depends |= written
        if len(written) == count:
            return written - linear
