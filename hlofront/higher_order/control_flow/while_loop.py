"""The functions `while_loop` and `fori_loop`, and the while primitive."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from hlofront.base import errors, source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import Array, ArrayLike, DType
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.aval import ShapedArray, SymbolicSize, typeof
from hlofront.core.effects import Effects
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.core.programs.check import types_match
from hlofront.core.programs.liveness import variables_read
from hlofront.core.programs.subprograms import Subprogram
from hlofront.core.trace import Tracer
from hlofront.higher_order.control_flow.bodies import (
    carry_name,
    check_carry,
    promoted_carry,
    refuse_effects,
    written_once,
)
from hlofront.higher_order.control_flow.cond import (
    TracedFunction,
    as_array,
    trace_function,
    trace_function_once,
    with_shared_constants,
)
from hlofront.higher_order.control_flow.scan import loop
from hlofront.higher_order.selecting import three_parts
from hlofront.primitives.elementwise.compare import lt
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.elementwise.elementwise import add
from hlofront.transforms.flatten import check_hashable
from hlofront.transforms.simplify import forwarded

# Operands: the constants of the condition, the constants of the body, and the first carry. The
# jaxprs have no constants. The condition returns a boolean; under vmap it may return one per
# example, along the leading axes of the whole carry: each example continues while its own boolean
# is True.
while_p = Primitive("while", multiple_results=True, carries_programs=True)

_disable_jit = state.disable_jit
_Carry = TypeVar("_Carry")


@rules.subprograms(while_p)
def _(
    *, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, cond_nconsts: int, body_nconsts: int
) -> tuple[Subprogram, Subprogram]:
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
def _(
    *avals: ShapedArray,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[ShapedArray]:
    cond_consts, body_consts, carry = three_parts(avals, cond_nconsts, body_nconsts)
    for what, program, operands in (
        ("condition", cond_jaxpr, [*cond_consts, *carry]),
        ("body", body_jaxpr, [*body_consts, *carry]),
    ):
        if len(operands) != len(program.in_avals) or not all(
            map(types_match, operands, program.in_avals)
        ):
            raise TypeError(
                f"the {what} of a while takes {[a.str_short() for a in program.in_avals]}, and it "
                f"got {[a.str_short() for a in operands]}"
            )
    return body_jaxpr.out_avals


@rules.effects(while_p)
def _(
    *avals: ShapedArray, cond_jaxpr: ClosedJaxpr, body_jaxpr: ClosedJaxpr, **_: object
) -> Effects:
    return cond_jaxpr.effects | body_jaxpr.effects


@boundary
def while_loop(
    cond_fun: Callable[[_Carry], ArrayLike], body_fun: Callable[[_Carry], _Carry], init_val: _Carry
) -> _Carry:
    """Apply `body_fun` to a carry repeatedly while `cond_fun` of the carry is True.

    The result is that of the following loop, compiled as one operation:

        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    The number of iterations depends on values, so there are only forward-mode derivatives (`jvp`,
    `jacfwd`, `linearize`): `grad` would have to save residuals of each iteration. Under `vmap` the
    loop runs until the condition is False for all examples; finished ones do not change.

    Args:
      cond_fun: a function of the carry that returns a boolean scalar.
      body_fun: a function of the carry that returns the next carry, of equal structure and types.
        It is traced once.
      init_val: the first carry: a pytree of arrays.

    Returns:
      The first carry for which `cond_fun` is False.

    Raises:
      TypeError: if a function cannot be called, `cond_fun` does not return a boolean scalar, or
        `body_fun` returns a carry of another structure or other types.

    Example:
      >>> lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3)
      Array(192, dtype=int32, weak_type=True)
    """
    if not (callable(cond_fun) and callable(body_fun)):
        raise TypeError(
            "lax.while_loop: body_fun and cond_fun arguments should be callable; got "
            f"{source.shortened(repr(cond_fun))} and {source.shortened(repr(body_fun))}."
        )
    check_hashable(cond_fun, body_fun)
    return _repeat(cond_fun, body_fun, None, init_val)


# Turns a user's function into the body of a while loop; None if the function is the body.
AsBody = Callable[[Callable[..., PyTree]], Callable[[PyTree], PyTree]] | None


def _repeat(
    cond_fun: Callable[[PyTree], ArrayLike],
    function: Callable[..., PyTree],
    as_body: AsBody,
    init_val: PyTree,
) -> PyTree:
    """Run a while loop from `init_val`, and return the last carry.

    Args:
      cond_fun: a function of the carry; the loop continues while it returns True.
      function: the user's function.
      as_body: turns `function` into the body; it must be a module-level function, because the
        program is cached by both. If None, `function` is the body.
      init_val: the first carry: a pytree of arrays.
    """
    if _disable_jit.value:
        body = function if as_body is None else as_body(function)
        try:
            carry = tree.tree_map(as_array, init_val)
            while cond_fun(carry):
                carry = body(carry)
            return carry
        except errors.ConcretizationTypeError:
            # The number of iterations depends on a tracer, so the loop is staged.
            pass
    first, structure = tree.tree_flatten(init_val)
    avals: tuple[ShapedArray, ...] = tuple([typeof(x) for x in first])
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
    for index, result in zip(repeated.varying, results, strict=True):
        carry[index] = result
    return structure.unflatten(carry)


class _Loop:
    """The traced condition and body of a while loop, and the layout of their operands.

    Attributes:
      carry_avals: the types of the carry if they differ from those of `init_val`, else None.
      condition: the closed jaxpr of the condition, without constants.
      body: the closed jaxpr of the body, without constants.
      cond_consts: the values that the condition closes over.
      body_consts: the values that the body closes over.
      invariant: the indices of the members of the carry that the body returns unchanged and the
        condition does not read, which become constants of the body.
      varying: the indices of the other members of the carry.
    """

    __slots__ = (
        "body",
        "body_consts",
        "carry_avals",
        "cond_consts",
        "condition",
        "invariant",
        "varying",
    )

    def __init__(
        self,
        condition: ClosedJaxpr,
        body: ClosedJaxpr,
        carry_avals: tuple[ShapedArray, ...] | None,
    ):
        self.carry_avals = carry_avals
        (condition,), self.cond_consts = with_shared_constants([condition])
        (body,), self.body_consts = with_shared_constants([body])
        count = len(body.out_avals)
        const_count, inputs = len(self.body_consts), body.jaxpr.invars
        cond_consts, cond_carry, _ = three_parts(
            condition.jaxpr.invars, len(self.cond_consts), count
        )
        read = variables_read(condition.eqns, condition.jaxpr.outvars)
        origin = forwarded(body.jaxpr)
        self.invariant = [
            i for i in range(count) if origin[i] == const_count + i and cond_carry[i] not in read
        ]
        self.varying = [i for i in range(count) if i not in self.invariant]
        if self.invariant:
            invariant = [inputs[const_count + i] for i in self.invariant]
            varying = [inputs[const_count + i] for i in self.varying]
            outvars = [body.jaxpr.outvars[i] for i in self.varying]
            body = ClosedJaxpr(
                body.jaxpr.replace(
                    invars=[*invariant, *inputs[:const_count], *varying], outvars=outvars
                )
            )
            invars = [*cond_consts, *[cond_carry[i] for i in self.varying]]
            condition = ClosedJaxpr(condition.jaxpr.replace(invars=invars))
        self.condition = condition
        self.body = body


def _loop(
    cond_fun: Callable[[PyTree], ArrayLike],
    function: Callable[..., PyTree],
    as_body: AsBody,
    structure: PyTreeDef,
    avals: tuple[ShapedArray, ...],
) -> _Loop:
    args_tree = tree.treedef_tuple([structure])
    condition = trace_function_once(cond_fun, "while_cond", args_tree, avals)
    _check_condition(condition)
    body = written_once(
        function,
        ("while", as_body, args_tree, avals),
        lambda: _Body(function, as_body, structure, avals),
    )
    carry_avals = body.carry_avals
    if carry_avals is not None:
        condition = trace_function_once(cond_fun, "while_cond", args_tree, carry_avals)
        _check_condition(condition)
    traced_loop = body.loops.get(condition.program)
    if traced_loop is None:
        refuse_effects("while", condition.program.effects | body.program.effects)
        traced_loop = _Loop(condition.program, body.program, carry_avals)
        # Tracers must not outlive the function that is being traced.
        if not any(isinstance(const, Tracer) for const in condition.consts):
            if len(body.loops) >= _MAX_LOOPS:
                body.loops.pop(next(iter(body.loops)))
            body.loops[condition.program] = traced_loop
    return traced_loop


# A body may be used with any number of conditions, so the number of loops is limited.
_MAX_LOOPS = 8


class _Body:
    """The traced body of a while loop.

    Attributes:
      program: the closed jaxpr of the body.
      consts: the values that the body closes over.
      carry_avals: the types of the carry if they differ from those of `init_val`, else None.
      loops: the loops with this body, by the program of the condition.
    """

    __slots__ = ("carry_avals", "consts", "loops", "program")

    def __init__(
        self,
        function: Callable[..., PyTree],
        as_body: AsBody,
        structure: PyTreeDef,
        avals: tuple[ShapedArray, ...],
    ):
        args_tree = tree.treedef_tuple([structure])
        body = function if as_body is None else as_body(function)
        traced = trace_function(body, "while_body", args_tree, avals)
        self.carry_avals: tuple[ShapedArray, ...] | None = None
        if traced.out_tree == structure:
            promoted = promoted_carry(avals, traced.program.out_avals)
            if promoted is not None:
                self.carry_avals = avals = tuple(promoted)
                traced = trace_function(body, "while_body", args_tree, avals)
        returned = traced.program.out_avals
        what = "while_loop body function"
        check_carry(what, lambda: carry_name(body), structure, avals, traced.out_tree, returned)
        self.program = traced.program
        self.consts = traced.consts
        self.loops: dict[ClosedJaxpr, _Loop] = {}


_LEAF = tree.tree_structure(0)


def _check_condition(condition: TracedFunction) -> None:
    """Raise a TypeError if a while loop's condition does not return a boolean scalar."""
    if condition.out_tree != _LEAF:
        raise TypeError(
            f"cond_fun must return a boolean scalar, but got pytree {condition.out_tree}."
        )
    (aval,) = condition.program.out_avals
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
def fori_loop(
    lower: ArrayLike,
    upper: ArrayLike,
    body_fun: Callable[[Array, _Carry], _Carry],
    init_val: _Carry,
    *,
    unroll: int | bool | None = None,
) -> _Carry:
    """Run a loop over a range: call a function with each index and the carry.

    With bounds 2 and 5 it is `body_fun(4, body_fun(3, body_fun(2, init_val)))`, as one operation
    that is compiled once for all iterations.

    If the bounds are Python integers, it is a `scan`, which has forward and reverse derivatives; if
    they are arrays, it is a `while_loop`, which `grad` refuses.

    Args:
      lower: the first index, an integer scalar.
      upper: the exclusive end of the range, an integer scalar.
      body_fun: `body_fun(index, carry)` returns the next carry, of the same structure and types.
      init_val: the first carry: a pytree of arrays.
      unroll: the number of iterations per iteration of the compiled loop, or True for all; only if
        the bounds are Python integers.

    Returns:
      The last carry.

    Raises:
      TypeError: if `body_fun` cannot be called or returns a carry of another structure or other
          types, or if the bounds' dtypes differ.
      ValueError: if `unroll` is passed and the bounds are arrays.

    Example:
      >>> lax.fori_loop(0, 5, lambda i, total: total + i, 0)
      Array(10, dtype=int32, weak_type=True)
    """
    if not callable(body_fun):
        raise TypeError(
            "lax.fori_loop: body_fun argument should be callable; got "
            f"{source.shortened(repr(body_fun))}."
        )
    check_hashable(body_fun)
    first, last = _known(lower), _known(upper)
    dtype = _dtype_of_both(lower, upper)
    if first is not None and last is not None:
        steps = max(last - first, 0)
        # Raises OverflowError if the number is out of the range of its dtype.
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


def _dtype_of_both(lower: ArrayLike, upper: ArrayLike) -> DType | None:
    """Return the dtype to convert the bounds of a fori_loop to; None if their dtypes are equal.

    A Python int takes the dtype of the other bound if that dtype is signed.
    """
    first, second = typeof(lower), typeof(upper)
    if first.dtype == second.dtype:
        return None
    if first.dtype.kind == second.dtype.kind == "i" and first.weak_type != second.weak_type:
        return second.dtype if first.weak_type else first.dtype
    raise TypeError(
        "lower and upper arguments to fori_loop must have equal types, got "
        f"{first.dtype.name} and {second.dtype.name}: convert one of them, as in "
        f"jnp.asarray(lower, {second.dtype.name!r})"
    )


def _known(bound: ArrayLike) -> int | None:
    """Return a bound of a fori_loop as an int, or None if its value is unknown while tracing."""
    if typeof(bound).ndim or isinstance(bound, SymbolicSize):
        return None
    value: Any = bound.to_concrete_value() if isinstance(bound, Tracer) else bound
    return None if value is None else int(value)


# (index, carry) of a fori_loop; and (index, upper bound, carry).
Counted = tuple[ArrayLike, PyTree]
Bounded = tuple[ArrayLike, ArrayLike, PyTree]


def _counting(
    body_fun: Callable[[ArrayLike, PyTree], PyTree],
) -> Callable[[Counted, None], tuple[Counted, None]]:
    """Return the body of a scan that runs a fori_loop: it carries the index and the carry."""

    def step(loop_carry: Counted, _: None) -> tuple[Counted, None]:
        i, x = loop_carry
        return (_next(i), body_fun(i, x)), None

    return step


def _bounded(body_fun: Callable[[ArrayLike, PyTree], PyTree]) -> Callable[[Bounded], Bounded]:
    """Return the body of a while loop that runs a fori_loop: it carries index, bound and carry."""

    def body(loop_carry: Bounded) -> Bounded:
        i, upper, x = loop_carry
        return _next(i), upper, body_fun(i, x)

    return body


def _before_end(loop_carry: Bounded) -> Array:
    i, upper, _ = loop_carry
    return lt(i, upper)


def _next(i: ArrayLike) -> ArrayLike:
    if type(i) is int:
        return i + 1
    aval = typeof(i)
    return add(i, convert(1, aval.dtype, aval.weak_type))
