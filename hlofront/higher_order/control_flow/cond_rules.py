"""The rules of the cond primitive: jvp, transpose, partial evaluation, batching, dead code."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base.typing import Array, ArrayLike, ArrayLikes, Shape, Value
from hlofront.core import rules
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import Atom, ClosedJaxpr, Equation, Var
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.programs.liveness import variables_read
from hlofront.core.programs.program_cache import DerivedCache
from hlofront.core.references import RefEffect
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Operand, Tangent, Tangents, Zero
from hlofront.core.trace import is_eager
from hlofront.higher_order.control_flow.cond import cond_p, effects_of
from hlofront.higher_order.selecting import (
    Flags,
    LinearOperands,
    any_of,
    nonzero,
    nonzero_flags,
    where,
    where_not,
    with_zeros,
)
from hlofront.primitives.arrays.shaping import broadcast_in_dim
from hlofront.primitives.elementwise.compare import eq, select_n
from hlofront.primitives.elementwise.converting import stop_gradient_p
from hlofront.primitives.rules.batching import to_front
from hlofront.primitives.rules.derivatives import zeros_of
from hlofront.primitives.sharding.placing import CopySemantics, MemorySpace, device_put
from hlofront.transforms.batch import batch_program
from hlofront.transforms.jvp import jvp_program
from hlofront.transforms.partial_eval import PartialEval, SplitEquation, partial_eval_program
from hlofront.transforms.simplify import SmallerEquation, dead_code_program
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_program


def with_same_outputs(
    branches: Sequence[ClosedJaxpr],
    transform: Callable[[ClosedJaxpr, bool | Flags], tuple[ClosedJaxpr, Flags]],
) -> tuple[tuple[ClosedJaxpr, ...], Flags]:
    """Transform branches so that they have the same outputs; also return which are present.

    Args:
      branches: the programs.
      transform: (branch, outputs that must be present) -> (program, outputs that are present).
        An output that is present in any branch is then required of all.
    """
    transformed = [transform(branch, False) for branch in branches]
    required = any_of(flags for _, flags in transformed)
    return tuple(
        [
            program if flags == required else transform(branch, required)[0]
            for branch, (program, flags) in zip(branches, transformed, strict=True)
        ]
    ), required


# ---- derivatives ---------------------------------------------------------------------------------


@rules.jvp(cond_p)
def _(
    primals: ArrayLikes, tangents: Tangents, *, branches: Sequence[ClosedJaxpr], **params: object
) -> tuple[list[ArrayLike], list[Tangent]]:
    avals = branches[0].out_avals
    flags = nonzero_flags(tangents[1:])
    if not any(flags):
        results = cond_p.bind(*primals, branches=branches, **params)
        return results, [Zero(aval.to_tangent_aval()) for aval in avals]
    with_tangents, present = with_same_outputs(
        branches, lambda branch, required: jvp_program(branch, flags, required)
    )
    results = cond_p.bind(*primals, *nonzero(tangents[1:]), branches=with_tangents, **params)
    return results[: len(avals)], with_zeros(results[len(avals) :], present, avals)


@rules.transpose(cond_p)
def _(
    cotangents: Sequence[Cotangent],
    index: ArrayLike,
    *operands: Operand,
    branches: Sequence[ClosedJaxpr],
    **params: object,
) -> list[Cotangent | None]:
    split = LinearOperands(cotangents, operands)
    transposed, present = with_same_outputs(
        branches,
        lambda branch, required: transpose_program(branch, split.linear, split.nonzero, required),
    )
    results: list[ArrayLike] = []
    if any(present) or effects_of(transposed):
        results = cond_p.bind(index, *split.arguments, branches=transposed, **params)
    return [None, *split.cotangents(results, present)]


# ---- splitting -----------------------------------------------------------------------------------


@rules.partial_eval(cond_p)
def _(unknown: list[bool], equation: Equation) -> SplitEquation:
    outvars = equation.outvars
    if unknown[0]:
        return None, equation, (True,) * len(outvars), []
    split = _split(equation.params["branches"], tuple(unknown[1:]))
    index, *operands = equation.invars
    known_inputs = where_not(operands, unknown[1:])
    known_outputs = where_not(outvars, split.unknown_out)
    known_outputs += [Var(aval) for aval in split.slots]
    residuals = [known_outputs[p] if p >= 0 else known_inputs[~p] for p in split.residuals]
    known = unknown_equation = None
    if known_outputs or effects_of(split.known):
        known = cond_equation(equation, split.known, [index, *known_inputs], known_outputs)
    if any(split.unknown_out) or effects_of(split.unknown):
        invars = [index, *residuals, *where(operands, unknown[1:])]
        unknown_equation = cond_equation(
            equation, split.unknown, invars, where(outvars, split.unknown_out)
        )
    return known, unknown_equation, split.unknown_out, [index, *residuals]


def cond_equation(
    equation: Equation,
    branches: tuple[ClosedJaxpr, ...],
    invars: Sequence[Atom],
    outvars: Sequence[Var],
) -> Equation:
    """Return the equation of a cond with its branches, operands and results replaced."""
    return equation.replace(
        invars=invars,
        outvars=outvars,
        params={**equation.params, "branches": branches},
        effects=effects_of(branches),
    )


class BranchesInTwo:
    """The branches of a cond, each split into a known and an unknown part as by `PartialEval`.

    The outputs of each known part are the known results, and then the slots. A slot is an output
    that the branches share: each branch stores a residual of the slot's type there, if it has one.

    Attributes:
      known: the known parts: from the known inputs to the known results and the slots.
      unknown: the unknown parts: from the residuals and the unknown inputs to the unknown results.
      unknown_out: per result, whether it is unknown.
      slots: the types of the slots.
      residuals: the residuals of the unknown parts: `i` is the i-th output of the known parts,
        `~i` the i-th known input.
    """

    __slots__ = ("known", "residuals", "slots", "unknown", "unknown_out")

    def __init__(self, splits: Sequence[PartialEval]):
        self.unknown_out: Flags = splits[0].unknown_out
        count = self.unknown_out.count(False)
        residuals: dict[int, None] = {}
        self.slots: list[ShapedArray] = []
        # Per branch, a dict from its own residuals to the shared residuals.
        shared: list[dict[int, int]] = []
        for split in splits:
            own: dict[int, int] = {}
            occupied: set[int] = set()
            for residual in split.residuals:
                if residual < count:
                    own[residual] = residual
                    continue
                aval = split.known.out_avals[residual].strip_weak_type()
                slot = next(
                    (i for i, a in enumerate(self.slots) if a == aval and i not in occupied), None
                )
                if slot is None:
                    slot = len(self.slots)
                    self.slots.append(aval)
                occupied.add(slot)
                own[residual] = count + slot
            residuals.update(dict.fromkeys(own.values()))
            shared.append(own)
        self.residuals = list(residuals)
        self.known = tuple(
            [
                _with_slots(split.known, count, own, self.slots)
                for split, own in zip(splits, shared, strict=True)
            ]
        )
        avals = [self._aval(splits, shared, residual) for residual in self.residuals]
        self.unknown = tuple(
            [
                _reading(split, [own[p] for p in split.residuals], self.residuals, avals)
                for split, own in zip(splits, shared, strict=True)
            ]
        )

    def _aval(
        self, splits: Sequence[PartialEval], shared: Sequence[dict[int, int]], residual: int
    ) -> ShapedArray:
        """Return the aval of a shared residual, from a branch that reads it."""
        for split, own in zip(splits, shared, strict=True):
            for number, original in enumerate(split.residuals):
                if own[original] == residual:
                    return split.unknown.in_avals[number]
        raise AssertionError("a residual that no branch reads")


def _split(branches: Sequence[ClosedJaxpr], unknown: Flags) -> BranchesInTwo:
    splits = [partial_eval_program(branch, unknown) for branch in branches]
    unknown_out = any_of(split.unknown_out for split in splits)
    splits = [
        split
        if split.unknown_out == unknown_out
        else partial_eval_program(branch, unknown, unknown_out)
        for branch, split in zip(branches, splits, strict=True)
    ]
    return _splits.get_or_compute(branches[0], tuple(splits), lambda: BranchesInTwo(splits))


# Cached in the first branch; the key, the splits of all branches, distinguishes the others.
_splits: DerivedCache[tuple[PartialEval, ...], BranchesInTwo] = DerivedCache(limit=64)


def _with_slots(program: ClosedJaxpr, count: int, own: dict[int, int], slots: Avals) -> ClosedJaxpr:
    """Return the known part of a branch with an output per slot after its first `count` outputs.

    Args:
      program: the known part.
      count: the number of known results.
      own: the shared residual of each of the branch's own residuals.
      slots: the types of the slots.
    """
    jaxpr = program.jaxpr
    filled = {slot: jaxpr.outvars[index] for index, slot in own.items() if slot >= count}
    outvars = list(jaxpr.outvars[:count])
    equations = list(jaxpr.eqns)
    # An unread slot may hold any value, and one that the program has is cheaper than zeros.
    by_type: dict[ShapedArray, Atom] = {}
    for atom in (*jaxpr.invars, *outvars, *filled.values()):
        atom_aval: Any = atom.aval
        by_type.setdefault(atom_aval.strip_weak_type(), atom)
    for slot, aval in enumerate(slots, count):
        atom = filled.get(slot)
        if atom is None:
            atom = by_type.get(aval)
        if atom is None:
            zeros = stage(partial(_zeros_in_memory, aval), [])
            equations += zeros.eqns
            (atom,) = zeros.jaxpr.outvars
            by_type[aval] = atom
        outvars.append(atom)
    return ClosedJaxpr(jaxpr.replace(outvars=outvars, eqns=equations), program.consts)


def _zeros_in_memory(aval: ShapedArray) -> list[Any]:
    """Return zeros of an aval, in its memory."""
    zeros = zeros_of(aval.update(memory_space=MemorySpace.Device))
    if aval.memory_space is MemorySpace.Device:
        return [zeros]
    return device_put([zeros], [aval.memory_space], [None], [CopySemantics.ALWAYS_COPY])


def _reading(
    split: PartialEval, own: Sequence[int], residuals: Sequence[int], avals: Avals
) -> ClosedJaxpr:
    """Return the unknown part of a branch with the residuals of all branches as inputs.

    Args:
      split: the split branch.
      own: the residuals that the branch reads.
      residuals: the residuals of all branches.
      avals: the types of `residuals`.
    """
    jaxpr = split.unknown.jaxpr
    variables = dict(zip(own, jaxpr.invars, strict=False))
    inputs = [variables.get(r) or Var(aval) for r, aval in zip(residuals, avals, strict=True)]
    return ClosedJaxpr(
        jaxpr.replace(invars=[*inputs, *jaxpr.invars[len(own) :]]), split.unknown.consts
    )


@rules.simplify(cond_p)
def _(used: list[bool], equation: Equation) -> SmallerEquation:
    branches: Sequence[ClosedJaxpr] = equation.params["branches"]
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    read = any_of(dead_code_program(branch, used)[1] for branch in branches)
    smaller = tuple([dead_code_program(branch, used, read)[0] for branch in branches])
    stays = (True, *read)
    return stays, cond_equation(
        equation, smaller, where(equation.invars, stays), where(equation.outvars, used)
    )


# ---- batching ------------------------------------------------------------------------------------


@rules.batch_with_axis(cond_p)
def _(
    axis: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    branches: Sequence[ClosedJaxpr],
    **params: object,
) -> BatchResult:
    index, *operands = values
    if axes[0] is not None:
        return _selected(axis, index, operands, axes[1:], branches)
    batched = tuple([a is not None for a in axes[1:]])
    over_axis, present = with_same_outputs(
        branches, lambda branch, required: batch_program(branch, axis, batched, required)
    )
    in_front = [
        x if a is None else to_front(x, a, axis.size)
        for x, a in zip(operands, axes[1:], strict=True)
    ]
    results = cond_p.bind(index, *in_front, branches=over_axis, **params)
    return results, [0 if is_batched else None for is_batched in present]


def _selected(
    axis: AxisData,
    index: ArrayLike,
    operands: ArrayLikes,
    axes: BatchAxes,
    branches: Sequence[ClosedJaxpr],
) -> tuple[list[Array], list[int]]:
    """Run all branches, and select each example's results by its branch index.

    Args:
      axis: the size and name of the batch axis.
      index: the branch index of each example.
      operands: the operands of all branches.
      axes: the batch axis of each operand, or None.
      branches: the closed jaxprs of the branches.
    """
    effects = [e for e in effects_of(branches) if isinstance(e, RefEffect) or not e.repeatable]
    if effects:
        raise NotImplementedError(  # JAX raises this class.
            f"{effects[0]} effect not supported in vmap-of-cond: under a batched predicate all "
            "branches are run for every example. Loop over the examples with lax.map, or do this "
            "outside of the branches."
        )
    choice = _Choice(index, len(branches))
    # Eager values have no derivative. Otherwise, batch all operands that have derivatives: see
    # `guarded`.
    guards = not is_eager()
    # Each example has its own effects, so all operands are batched.
    has_effects = any(branch.effects for branch in branches)
    batched = [
        a is not None or has_effects or (guards and _varies(x))
        for x, a in zip(operands, axes, strict=True)
    ]
    operands = [
        to_front(x, a, axis.size) if b else x
        for x, a, b in zip(operands, axes, batched, strict=True)
    ]
    results: list[list[ArrayLike]] = []
    for number, branch in enumerate(branches):
        over_axis, _ = batch_program(branch, axis, batched, True)
        arguments = operands
        if guards:
            read = variables_read(branch.eqns, ())
            arguments = [
                choice.guarded(x, number) if var in read and _varies(x) else x
                for x, var in zip(operands, branch.jaxpr.invars, strict=True)
            ]
        results.append(eval_jaxpr(over_axis.jaxpr, over_axis.consts, *arguments))
    return [choice.among(cases) for cases in zip(*results, strict=True)], [0] * len(results[0])


def _varies(x: Value) -> bool:
    """Return whether a value can have a derivative, unlike integers and random keys."""
    aval = typeof(x)
    return type(aval) is ShapedArray and aval.to_tangent_aval() == aval


class _Choice:
    """A batched branch index, with a cache of the masks and indices used to select by it.

    Args:
      index: an int32 per example.
      branches: the number of branches.
    """

    __slots__ = ("broadcast", "constants", "index", "two", "which")

    def __init__(self, index: ArrayLike, branches: int):
        self.index = index
        self.two = branches == 2
        # Boolean masks of the examples that take a branch, by the branch's index.
        self.which: dict[int, Array] = {}
        # Masks or indices broadcast to a shape, by their name and the shape.
        self.broadcast: dict[tuple[Hashable, Shape], Array] = {}
        # The operands with their derivatives stopped, by id.
        self.constants: dict[int, ArrayLike] = {}

    def guarded(self, x: ArrayLike, number: int) -> Array:
        """Return an operand for a branch, with its derivative stopped in examples that skip it.

        The cotangent of a branch that is not taken is zero, and zero times an infinite derivative
        is NaN. The values of those examples are therefore constants.
        """
        constant = self.constants.get(id(x))
        if constant is None:
            constant = self.constants[id(x)] = stop_gradient_p.bind(x)
        if self.two:
            # One comparison serves both branches and their results.
            which = self._is(1, typeof(x).shape)
            return select_n(which, *((constant, x) if number else (x, constant)))
        return select_n(self._is(number, typeof(x).shape), constant, x)

    def among(self, cases: ArrayLikes) -> Array:
        """Select each example's result from the results of all branches.

        Args:
          cases: per branch, an array of the results of all examples along axis 0.
        """
        shape = typeof(cases[0]).shape
        return select_n(self._is(1, shape) if self.two else self._index(shape), *cases)

    def _is(self, number: int, shape: Shape) -> ArrayLike:
        is_number = self.which.get(number)
        if is_number is None:
            is_number = self.which[number] = eq(self.index, np.int32(number))
        return self._of_shape(is_number, number, shape)

    def _index(self, shape: Shape) -> ArrayLike:
        return self._of_shape(self.index, "index", shape)

    def _of_shape(self, x: ArrayLike, name: Hashable, shape: Shape) -> ArrayLike:
        if len(shape) == 1:
            return x
        of_shape = self.broadcast.get((name, shape))
        if of_shape is None:
            of_shape = self.broadcast[name, shape] = broadcast_in_dim(x, shape, (0,))
        return of_shape
