"""cond under transformations: derivatives, splitting, batching, and less of it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.core import rules
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.derived import DerivedCache
from hlofront.core.evaluate import eval_jaxpr
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Literal, Var
from hlofront.core.symbolic_zeros import Zero
from hlofront.core.trace import is_eager
from hlofront.higher_order.cond import cond_p
from hlofront.higher_order.jit_call import spread
from hlofront.primitives.batching import to_front
from hlofront.primitives.comparing import eq, select_n
from hlofront.primitives.converting import stop_gradient_p
from hlofront.primitives.derivatives import is_linear, zeros_of
from hlofront.primitives.shaping import broadcast_in_dim
from hlofront.transforms.batch import batch_program
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.partial_eval import PartialEval, partial_eval_program
from hlofront.transforms.simplify import dead_code_program
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_program

Flags = tuple[bool, ...]


def with_same_outputs(
    branches: Sequence[ClosedJaxpr], make: Callable[[ClosedJaxpr, Any], tuple[ClosedJaxpr, Flags]]
) -> tuple[tuple[ClosedJaxpr, ...], Flags]:
    """What `make(branch, instantiate)` makes of each branch, all with the same outputs.

    `make` returns a program, and of each output whether it is there; one that is there in any
    branch is to be in all.
    """
    found = [make(branch, False) for branch in branches]
    wanted = tuple([any(flags) for flags in zip(*[f for _, f in found], strict=True)])
    return tuple(
        [
            program if flags == wanted else make(branch, wanted)[0]
            for branch, (program, flags) in zip(branches, found, strict=True)
        ]
    ), wanted


# ---- derivatives ---------------------------------------------------------------------------------


@rules.jvp(cond_p)
def _(primals, tangents, *, branches, **params):
    avals = branches[0].out_avals
    nonzero = tuple([type(t) is not Zero for t in tangents[1:]])
    if not any(nonzero):
        results = cond_p.bind(*primals, branches=branches, **params)
        return results, [Zero(aval.to_tangent_aval()) for aval in avals]
    made, present = with_same_outputs(branches, lambda b, force: jvp_program(b, nonzero, force))
    given = [t for t in tangents[1:] if type(t) is not Zero]
    results = cond_p.bind(*primals, *given, branches=made, **params)
    return results[: len(avals)], spread(results[len(avals) :], present, avals)


@rules.transpose(cond_p)
def _(cotangents, index, *operands, branches, **params):
    linear = tuple([is_linear(x) for x in operands])
    nonzero = tuple([type(c) is not Zero for c in cotangents])
    made, present = with_same_outputs(
        branches, lambda b, force: transpose_program(b, linear, nonzero, force)
    )
    known = [x for x in operands if not is_linear(x)]
    given = [c for c in cotangents if type(c) is not Zero]
    results = cond_p.bind(index, *known, *given, branches=made, **params) if any(present) else []
    found = iter(spread(results, present, [x.aval for x in operands if is_linear(x)]))
    return [None, *[next(found) if is_linear else None for is_linear in linear]]


# ---- splitting -----------------------------------------------------------------------------------


@rules.partial_eval(cond_p)
def _(unknown, equation):
    outvars = equation.outvars
    if unknown[0]:
        return None, equation, (True,) * len(outvars), []
    split = _split(equation.params["branches"], tuple(unknown[1:]))
    index, *operands = equation.invars
    pairs = list(zip(operands, unknown[1:], strict=True))
    known_inputs = [atom for atom, u in pairs if not u]
    known_outputs: list[Any] = [v for v, u in zip(outvars, split.unknown_out, strict=True) if not u]
    known_outputs += [Var(aval) for aval in split.slots]
    residuals = [known_outputs[p] if p >= 0 else known_inputs[~p] for p in split.residuals]
    known = rest = None
    if known_outputs or any(branch.effects for branch in split.known):
        known = cond_equation(equation, split.known, [index, *known_inputs], known_outputs)
    if any(split.unknown_out) or any(branch.effects for branch in split.unknown):
        invars = [index, *residuals, *[atom for atom, u in pairs if u]]
        unknown_outputs = [v for v, u in zip(outvars, split.unknown_out, strict=True) if u]
        rest = cond_equation(equation, split.unknown, invars, unknown_outputs)
    return known, rest, split.unknown_out, [index, *residuals]


def cond_equation(
    equation: Equation,
    branches: tuple[ClosedJaxpr, ...],
    invars: Sequence[Any],
    outvars: Sequence[Any],
) -> Equation:
    return equation.replace(
        invars=invars,
        outvars=outvars,
        params={**equation.params, "branches": branches},
        effects=frozenset().union(*[branch.effects for branch in branches]),
    )


class BranchesInTwo:
    """Branches in two: what known operands decide, and the rest. See `PartialEval`."""

    __slots__ = ("known", "residuals", "slots", "unknown", "unknown_out")

    def __init__(self, splits: Sequence[PartialEval]):
        self.unknown_out: Flags = splits[0].unknown_out
        count = self.unknown_out.count(False)
        # Places of residuals: of known inputs, which are negative, of known outputs, and of
        # further outputs, which the branches share: one that is no more than another has the use
        # of the same place, if it is of the same type.
        places: dict[int, None] = {}
        self.slots: list[Any] = []
        owners: list[dict[int, int]] = []
        for split in splits:
            own: dict[int, int] = {}
            taken: set[int] = set()
            for place in split.residuals:
                if place < count:
                    own[place] = place
                    continue
                aval = split.known.out_avals[place].strip_weak_type()
                slot = next(
                    (i for i, a in enumerate(self.slots) if a == aval and i not in taken), None
                )
                if slot is None:
                    slot = len(self.slots)
                    self.slots.append(aval)
                taken.add(slot)
                own[place] = count + slot
            places.update(dict.fromkeys(own.values()))
            owners.append(own)
        self.residuals = list(places)
        self.known = tuple(
            [
                _with_slots(split.known, count, own, self.slots)
                for split, own in zip(splits, owners, strict=True)
            ]
        )
        avals = [self._aval(splits, owners, place) for place in self.residuals]
        self.unknown = tuple(
            [
                _reading(split, [own[p] for p in split.residuals], self.residuals, avals)
                for split, own in zip(splits, owners, strict=True)
            ]
        )

    def _aval(
        self, splits: Sequence[PartialEval], owners: Sequence[dict[int, int]], place: int
    ) -> Any:
        """The type of the residual of this place, as one of the branches that read it has it."""
        for split, own in zip(splits, owners, strict=True):
            for number, original in enumerate(split.residuals):
                if own[original] == place:
                    return split.unknown.in_avals[number]
        raise AssertionError("a residual that no branch reads")


def _split(branches: Sequence[ClosedJaxpr], unknown: Flags) -> BranchesInTwo:
    found = [partial_eval_program(b, unknown) for b in branches]
    wanted = tuple([any(flags) for flags in zip(*[f.unknown_out for f in found], strict=True)])
    found = [
        f if f.unknown_out == wanted else partial_eval_program(b, unknown, wanted)
        for b, f in zip(branches, found, strict=True)
    ]
    return _splits.get_or_compute(branches[0], tuple(found), lambda: BranchesInTwo(found))


# Of the first branch, by the splits of all branches: it may be used with ever new other ones.
_splits: DerivedCache[tuple[PartialEval, ...], BranchesInTwo] = DerivedCache(limit=64)


def _with_slots(
    program: ClosedJaxpr, count: int, own: dict[int, int], slots: Sequence[Any]
) -> ClosedJaxpr:
    """The known part of a branch, with an output per slot after its first `count` outputs."""
    jaxpr = program.jaxpr
    filled = {slot: jaxpr.outvars[place] for place, slot in own.items() if slot >= count}
    outvars = list(jaxpr.outvars[:count])
    equations = list(jaxpr.eqns)
    # What nobody will read from a slot may be anything: rather what is there already than zeros.
    there: dict[Any, Any] = {}
    for atom in (*jaxpr.invars, *outvars, *filled.values()):
        there.setdefault(atom.aval.strip_weak_type(), atom)
    for number, aval in enumerate(slots, count):
        atom = filled.get(number)
        if atom is None:
            atom = there.get(aval)
        if atom is None:
            zeros = stage(lambda aval=aval: [zeros_of(aval)], [])
            equations += zeros.eqns
            (atom,) = zeros.jaxpr.outvars
            there[aval] = atom
        outvars.append(atom)
    return ClosedJaxpr(jaxpr.replace(outvars=outvars, eqns=equations), program.consts)


def _reading(
    split: PartialEval, own: Sequence[int], places: Sequence[int], avals: Sequence[Any]
) -> ClosedJaxpr:
    """The unknown part of a branch, which is given the residuals of all branches."""
    jaxpr = split.unknown.jaxpr
    count = len(own)
    mine = dict(zip(own, jaxpr.invars, strict=False))
    residuals = [mine.get(p) or Var(aval) for p, aval in zip(places, avals, strict=True)]
    return ClosedJaxpr(
        jaxpr.replace(invars=[*residuals, *jaxpr.invars[count:]]), split.unknown.consts
    )


@rules.simplify(cond_p)
def _(used, equation):
    branches = equation.params["branches"]
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    used = tuple(used)
    found = [dead_code_program(branch, used) for branch in branches]
    stays = tuple([any(flags) for flags in zip(*[s for _, s in found], strict=True)])
    smaller = tuple([dead_code_program(branch, used, stays)[0] for branch in branches])
    stays = (True, *stays)
    return stays, cond_equation(
        equation,
        smaller,
        [atom for atom, stay in zip(equation.invars, stays, strict=True) if stay],
        [var for var, u in zip(equation.outvars, used, strict=True) if u],
    )


# ---- batching ------------------------------------------------------------------------------------


@rules.batch_with_axis(cond_p)
def _(axis: AxisData, values, axes, *, branches, **params):
    index, *operands = values
    if axes[0] is not None:
        return _selected(axis, index, operands, axes[1:], branches)
    batched = tuple([a is not None for a in axes[1:]])
    made, present = with_same_outputs(
        branches, lambda b, force: batch_program(b, axis, batched, force)
    )
    moved = [
        x if a is None else to_front(x, a, axis.size)
        for x, a in zip(operands, axes[1:], strict=True)
    ]
    results = cond_p.bind(index, *moved, branches=made, **params)
    return results, [0 if there else None for there in present]


def _selected(
    axis: AxisData,
    index: Any,
    operands: Sequence[Any],
    axes: Sequence[int | None],
    branches: Sequence[ClosedJaxpr],
) -> tuple[list[Any], list[int]]:
    """Run all branches, and take from each what the index of each example says."""
    effects = [e for branch in branches for e in branch.effects if not e.repeatable]
    if effects:
        raise NotImplementedError(  # the class that JAX raises
            f"{effects[0]} effect not supported in vmap-of-cond: under a batched predicate all "
            "branches are run for every example. Loop over the examples with lax.map, or do this "
            "outside of the branches."
        )
    choice = _Choice(index, len(branches))
    # What is run at once has no derivative. Else values that vary have the axis: see `guarded`.
    guards = not is_eager()
    # Effects are those of each example.
    apart = any(branch.effects for branch in branches)
    batched = [
        a is not None or apart or (guards and _varies(x))
        for x, a in zip(operands, axes, strict=True)
    ]
    operands = [
        to_front(x, a, axis.size) if b else x
        for x, a, b in zip(operands, axes, batched, strict=True)
    ]
    results: list[list[Any]] = []
    for number, branch in enumerate(branches):
        made, _ = batch_program(branch, axis, batched, True)
        arguments = operands
        if guards:
            reads = {atom for e in branch.eqns for atom in e.invars if type(atom) is not Literal}
            arguments = [
                choice.guarded(x, number) if var in reads and _varies(x) else x
                for x, var in zip(operands, branch.jaxpr.invars, strict=True)
            ]
        results.append(eval_jaxpr(made.jaxpr, made.consts, *arguments))
    return [choice.among(cases) for cases in zip(*results, strict=True)], [0] * len(results[0])


def _varies(x: Any) -> bool:
    aval = typeof(x)
    return isinstance(aval, ShapedArray) and aval.to_tangent_aval() == aval


class _Choice:
    """An index per example, and what it takes to select by it: each made once."""

    __slots__ = ("broadcast", "constants", "index", "two", "which")

    def __init__(self, index: Any, branches: int):
        self.index = index
        self.two = branches == 2
        # Per branch and shape, the booleans or the indices of that shape.
        self.which: dict[Any, Any] = {}
        self.broadcast: dict[Any, Any] = {}
        self.constants: dict[int, Any] = {}

    def guarded(self, x: Any, number: int) -> Any:
        """An operand for a branch that is of use to some examples only.

        Where the branch is not taken its cotangent is zero, and zero times an infinite derivative
        is NaN. So x of those examples is a constant, of the same value.
        """
        constant = self.constants.get(id(x))
        if constant is None:
            constant = self.constants[id(x)] = stop_gradient_p.bind(x)
        if self.two:
            # One comparison does for both branches, and for their results.
            which = self._is(1, typeof(x).shape)
            return select_n(which, *((constant, x) if number else (x, constant)))
        return select_n(self._is(number, typeof(x).shape), constant, x)

    def among(self, cases: Sequence[Any]) -> Any:
        """Of each example the result of its branch."""
        shape = typeof(cases[0]).shape
        return select_n(self._is(1, shape) if self.two else self._index(shape), *cases)

    def _is(self, number: int, shape: tuple[int, ...]) -> Any:
        own = (number, ())
        found = self.which.get(own)
        if found is None:
            found = self.which[own] = eq(self.index, np.int32(number))
        return self._of_shape(found, own, shape)

    def _index(self, shape: tuple[int, ...]) -> Any:
        return self._of_shape(self.index, "index", shape)

    def _of_shape(self, x: Any, name: Any, shape: tuple[int, ...]) -> Any:
        if len(shape) == 1:
            return x
        found = self.broadcast.get((name, shape))
        if found is None:
            found = self.broadcast[name, shape] = broadcast_in_dim(x, shape, (0,))
        return found
