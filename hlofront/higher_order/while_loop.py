"""while_loop and fori_loop: a body that is run again while a condition on its carry holds."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import errors, source, tree
from hlofront.base.boundary import boundary
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.check import types_match
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import Subprogram
from hlofront.core.trace import Tracer
from hlofront.higher_order.bodies import (
    carry_name,
    check_carry,
    promoted_carry,
    refuse_effects,
    written_once,
)
from hlofront.higher_order.cond import as_array, with_shared_constants, write_down, written_down
from hlofront.higher_order.scan import loop
from hlofront.primitives.comparing import lt
from hlofront.primitives.converting import convert
from hlofront.primitives.elementwise import add
from hlofront.transforms.simplify import forwarded

# Operands: what the condition reads beside the carry, what the body reads beside it, and the carry
# to begin with. The programs have no constants. The condition returns a boolean; under vmap it may
# be one per example, along the first axes of all of the carry: then those go on that say so.
while_p = Primitive("while", multiple_results=True, carries_programs=True)

_disable_jit = state.disable_jit


@rules.subprograms(while_p)
def _(*, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    count = len(body_jaxpr.out_avals)
    before = cond_nconsts + body_nconsts
    carry = range(before, before + count)
    return (
        Subprogram(
            cond_jaxpr,
            "cond_jaxpr",
            "condition",
            operands=(*range(cond_nconsts), *carry),
            carried=range(cond_nconsts, cond_nconsts + count),
            iterations=None,
        ),
        Subprogram(
            body_jaxpr,
            "body_jaxpr",
            "body",
            operands=range(cond_nconsts, before + count),
            results=range(count),
            carried=range(body_nconsts, body_nconsts + count),
            iterations=None,
        ),
    )


@rules.infer(while_p)
def _(*avals, cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts):
    cond_consts, body_consts, carry = split(avals, cond_nconsts, body_nconsts)
    for what, program, given in (
        ("condition", cond_jaxpr, [*cond_consts, *carry]),
        ("body", body_jaxpr, [*body_consts, *carry]),
    ):
        if len(given) != len(program.in_avals) or not all(
            map(types_match, given, program.in_avals)
        ):
            raise TypeError(
                f"the {what} of a while takes {[a.str_short() for a in program.in_avals]}, and it "
                f"got {[a.str_short() for a in given]}"
            )
    return body_jaxpr.out_avals


@rules.effects(while_p)
def _(*avals, cond_jaxpr, body_jaxpr, **_):
    return cond_jaxpr.effects | body_jaxpr.effects


def split(
    operands: Sequence[Any], cond_nconsts: int, body_nconsts: int
) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
    """Split operands into the constants of the condition, those of the body, and the carry."""
    both = cond_nconsts + body_nconsts
    return operands[:cond_nconsts], operands[cond_nconsts:both], operands[both:]


@boundary
def while_loop(cond_fun, body_fun, init_val):
    """Call a function again on what it returned, while a condition on that holds.

    It is what this does, in one operation that is compiled once for all steps:

        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    How often depends on values, so that derivatives can be taken in forward mode (`jvp`, `jacfwd`,
    `linearize`) only: `grad` has to keep something of each step. Under `vmap` it goes on until the
    condition holds for no example, and those for which it does not hold stay as they are.

    Args:
      cond_fun: of the carry; it returns a boolean scalar.
      body_fun: of the carry; it returns the next one. It is traced once, and must return the
        structure and the types that it is given.
      init_val: the first carry: a tree of arrays.

    Returns:
      The carry for which `cond_fun` was first false.

    Raises:
      TypeError: if functions cannot be called, `cond_fun` returns anything else than a boolean
        scalar, or `body_fun` a carry of another structure or other types.
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError(
            "lax.while_loop: body_fun and cond_fun arguments should be callable; got "
            f"{source.shortened(repr(cond_fun))} and {source.shortened(repr(body_fun))}."
        )
    return _repeat(cond_fun, body_fun, None, init_val)


def _repeat(
    cond_fun: Callable[..., Any],
    function: Callable[..., Any],
    as_body: Callable[[Any], Callable[..., Any]] | None,
    init_val: Any,
) -> Any:
    """A loop of the body that `as_body` makes of a user's function; None for the function itself.

    What is traced is remembered for the function and `as_body`, which is one of this module's.
    """
    if _disable_jit.value:
        body = function if as_body is None else as_body(function)
        try:
            carry = tree.tree_map(as_array, init_val)
            while cond_fun(carry):
                carry = body(carry)
            return carry
        except errors.ConcretizationTypeError:
            # It depends on a traced value how often: it can only be written down.
            pass
    first, structure = tree.tree_flatten(init_val)
    avals = tuple([typeof(x) for x in first])
    repeated = _loop(cond_fun, function, as_body, structure, avals)
    if repeated.carry_avals is not None:
        first = [
            convert(x, aval.dtype, aval.weak_type) if aval is not typeof(x) else x
            for x, aval in zip(first, repeated.carry_avals, strict=True)
        ]
    results = while_p.bind(
        *repeated.cond_consts,
        *[first[i] for i in repeated.invariant],
        *repeated.body_consts,
        *[first[i] for i in repeated.varying],
        cond_jaxpr=repeated.condition,
        body_jaxpr=repeated.body,
        cond_nconsts=len(repeated.cond_consts),
        body_nconsts=len(repeated.invariant) + len(repeated.body_consts),
    )
    carry = list(first)
    for place, result in zip(repeated.varying, results, strict=True):
        carry[place] = result
    return structure.unflatten(carry)


class _Loop:
    """The functions of a loop as programs, and how their operands are laid out."""

    __slots__ = (
        "body",
        "body_consts",
        "carry_avals",
        "cond_consts",
        "condition",
        "consts",
        "invariant",
        "varying",
    )

    def __init__(
        self, condition: ClosedJaxpr, body: ClosedJaxpr, carry_avals: Sequence[Any] | None
    ):
        # The types of the carry where they are not those of `init_val`.
        self.carry_avals = carry_avals
        (condition,), self.cond_consts = with_shared_constants([condition])
        (body,), self.body_consts = with_shared_constants([body])
        self.consts = [*self.cond_consts, *self.body_consts]
        count = len(body.out_avals)
        own, inputs = len(self.body_consts), body.jaxpr.invars
        read = condition.jaxpr.invars[len(self.cond_consts) :]
        used = {atom for e in condition.eqns for atom in e.invars}.union(condition.jaxpr.outvars)
        # A member of the carry that is returned as it was, and that the condition does not ask
        # for: the body reads it, and no more.
        origin = forwarded(body.jaxpr)
        self.invariant = [i for i in range(count) if origin[i] == own + i and read[i] not in used]
        self.varying = [i for i in range(count) if i not in self.invariant]
        if self.invariant:
            moved = [inputs[own + i] for i in self.invariant]
            stay = [inputs[own + i] for i in self.varying]
            outvars = [body.jaxpr.outvars[i] for i in self.varying]
            body = ClosedJaxpr(
                body.jaxpr.replace(invars=[*moved, *inputs[:own], *stay], outvars=outvars)
            )
            reads = [*condition.jaxpr.invars[: len(self.cond_consts)]]
            reads += [read[i] for i in self.varying]
            condition = ClosedJaxpr(condition.jaxpr.replace(invars=reads))
        self.condition = condition
        self.body = body


def _loop(
    cond_fun: Callable[..., Any],
    function: Callable[..., Any],
    as_body: Callable[[Any], Callable[..., Any]] | None,
    structure: Any,
    avals: tuple[Any, ...],
) -> _Loop:
    args_tree = tree.treedef_tuple([structure])
    condition = write_down(cond_fun, "while_cond", args_tree, avals)
    _check_condition(condition)
    written = written_once(
        function,
        ("while", as_body, args_tree, avals),
        lambda: _Body(function, as_body, structure, avals),
    )
    carry_avals = written.carry_avals
    if carry_avals is not None:
        condition = write_down(cond_fun, "while_cond", args_tree, carry_avals)
        _check_condition(condition)
    # What the body keeps of its company goes with it.
    loops: dict[Any, _Loop] = written.loops
    found = loops.get(condition.program)
    if found is None:
        refuse_effects("while", condition.program.effects | written.program.effects)
        found = _Loop(condition.program, written.program, carry_avals)
        # Traced values may not outlive their function.
        if not any(isinstance(const, Tracer) for const in condition.consts):
            if len(loops) >= _MOST_LOOPS:
                loops.pop(next(iter(loops)))
            loops[condition.program] = found
    return found


# A body may be used with ever new conditions.
_MOST_LOOPS = 8


class _Body:
    """The function that is the body of a loop as a program."""

    __slots__ = ("carry_avals", "consts", "loops", "program")

    def __init__(
        self,
        function: Callable[..., Any],
        as_body: Callable[[Any], Callable[..., Any]] | None,
        structure: Any,
        avals: tuple[Any, ...],
    ):
        args_tree = tree.treedef_tuple([structure])
        body = function if as_body is None else as_body(function)
        written = written_down(body, "while_body", args_tree, avals)
        self.carry_avals = None
        if written.out_tree == structure:
            promoted = promoted_carry(avals, written.program.out_avals)
            if promoted is not None:
                self.carry_avals = avals = tuple(promoted)
                written = written_down(body, "while_body", args_tree, avals)
        returned = written.program.out_avals
        what = "while_loop body function"
        check_carry(what, lambda: carry_name(body), structure, avals, written.out_tree, returned)
        self.program = written.program
        self.consts = written.consts
        self.loops: dict[Any, _Loop] = {}


_LEAF = tree.tree_structure(0)


def _check_condition(written: Any) -> None:
    if written.out_tree != _LEAF:
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got pytree {written.out_tree}."
        )
    (aval,) = written.program.out_avals
    if aval.shape or aval.dtype != np.bool_:
        advice = ""
        if aval.dtype == np.bool_:
            advice = " Reduce it with jnp.any or jnp.all."
        elif not aval.shape:
            advice = " Compare it with something, as in `x > 0`."
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got output type(s) [{aval!r}].{advice}"
        )


# ---- fori_loop -----------------------------------------------------------------------------------


@boundary
def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """Call a function for each number of a range, on what it returned for the one before.

    With bounds 2 and 5 it is `body_fun(4, body_fun(3, body_fun(2, init_val)))`, as one operation
    that is compiled once for all steps.

    Where the bounds are numbers of Python it becomes a `scan`, of which derivatives can be taken
    in every way; where they are arrays a `while_loop`, and `grad` refuses those.

    Args:
      lower: the first number.
      upper: the number to end before.
      body_fun: of the number and the carry; it returns the next carry, of the same structure and
        types.
      init_val: the first carry: a tree of arrays.
      unroll: how many steps the compiled loop takes at a time; True for all of them. Only where
        the bounds are numbers of Python.

    Returns:
      The last carry.

    Raises:
      TypeError: if `body_fun` cannot be called or returns a carry of another structure or other
        types, or if the bounds have two dtypes.
      ValueError: if `unroll` is given and the bounds are arrays.
    """
    if not callable(body_fun):
        raise TypeError(
            "lax.fori_loop: body_fun argument should be callable; got "
            f"{source.shortened(repr(body_fun))}."
        )
    first, last = _known(lower), _known(upper)
    dtype = _dtype_of_both(lower, upper)
    if first is not None and last is not None:
        steps = max(last - first, 0)
        # Raises OverflowError where the number has no room in its dtype.
        np.asarray(first, typeof(first).dtype)
        if not steps and _disable_jit.value:
            return init_val
        unroll = 1 if unroll is None or unroll is False else unroll
        (_, carry), _ = loop(body_fun, _counting, (first, init_val), None, steps, False, unroll)
        return carry
    if unroll is not None and unroll is not False and unroll != 1:
        raise ValueError(
            "Can only use `unroll` in `fori_loop` if the loop bounds are statically known: give "
            "them as integers of Python."
        )
    if dtype is not None:
        lower, upper = convert(lower, dtype, False), convert(upper, dtype, False)
    _, _, carry = _repeat(_before_end, body_fun, _bounded, (lower, upper, init_val))
    return carry


def _dtype_of_both(lower: Any, upper: Any) -> Any:
    """The dtype that the bounds are to be converted to; None where both have one already.

    An int of Python takes the dtype of the other where that is signed.
    """
    first: Any = typeof(lower)
    second: Any = typeof(upper)
    if first.dtype == second.dtype:
        return None
    if first.dtype.kind == second.dtype.kind == "i" and first.weak_type != second.weak_type:
        return second.dtype if first.weak_type else first.dtype
    raise TypeError(
        "lower and upper arguments to fori_loop must have equal types, got "
        f"{first.dtype.name} and {second.dtype.name}: convert one of them, as in "
        f"jnp.asarray(lower, {second.dtype.name!r})"
    )


def _known(bound: Any) -> int | None:
    """A bound as an integer, where its value is known."""
    if typeof(bound).ndim:  # pyright: ignore[reportAttributeAccessIssue]
        return None
    if isinstance(bound, Tracer):
        bound = bound.to_concrete_value()
    return None if bound is None else int(bound)


def _counting(body_fun: Callable[..., Any]) -> Callable[..., Any]:
    """The step of a scan over as many steps as there are numbers."""

    def step(loop_carry, _):
        i, x = loop_carry
        return (_next(i), body_fun(i, x)), None

    return step


def _bounded(body_fun: Callable[..., Any]) -> Callable[..., Any]:
    """The body of a loop that carries the number and where it ends."""

    def body(loop_carry):
        i, upper, x = loop_carry
        return _next(i), upper, body_fun(i, x)

    return body


def _before_end(loop_carry: Any) -> Any:
    i, upper, _ = loop_carry
    return lt(i, upper)


def _next(i: Any) -> Any:
    if type(i) is int:
        return i + 1
    aval: Any = typeof(i)
    return add(i, convert(1, aval.dtype, aval.weak_type))
