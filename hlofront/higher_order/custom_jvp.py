"""custom_jvp: a function whose forward derivative is the user's."""

from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.errors import UnexpectedTracerError
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.digest import not_lowered
from hlofront.core.evaluate import jaxpr_as_fun
from hlofront.core.jaxpr import ClosedJaxpr, Equation
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import calls
from hlofront.core.symbolic_zeros import UndefinedPrimal, Zero
from hlofront.core.trace import Tracer, as_array
from hlofront.higher_order.batched_functions import BatchedCall, BatchedRule, in_program
from hlofront.higher_order.custom_rule import (
    CustomRule,
    CustomRuleArguments,
    FlatFunction,
    SymbolicZero,
    check_values,
)
from hlofront.higher_order.jit_call import split_captured, spread
from hlofront.primitives.converting import stop_gradient
from hlofront.primitives.derivatives import add_tangents, instantiate
from hlofront.transforms.jvp import as_tangent
from hlofront.transforms.simplify import dead_code_program
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_program

custom_jvp_call_p = Primitive("custom_jvp_call", multiple_results=True, carries_programs=True)
not_lowered(custom_jvp_call_p, "jvp_jaxpr_fun")
rules.subprograms(custom_jvp_call_p)(calls("call_jaxpr"))


# ---- custom_jvp ----------------------------------------------------------------------------------


class custom_jvp(CustomRule):
    """A function whose forward derivative is given by a rule; reverse mode transposes that rule.

        @custom_jvp
        def log1pexp(x):
            return jnp.log(1 + jnp.exp(x))

        @log1pexp.defjvp
        def _(primals, tangents):
            (x,), (dx,) = primals, tangents
            return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * dx

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments that the rule is given first and that have no
        tangents: Python values, functions.
      nondiff_argnames: the same by name.

    Raises:
      AttributeError: when called before `defjvp`.
      TypeError: if the rule does not return a value and a tangent of its type.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Give the rule: `jvp(*nondiff, primals, tangents) -> (result, tangent of the result)`.

        Args:
          jvp: the rule, which must be linear in the tangents.
          symbolic_zeros: whether tangents that are known to be zero are SymbolicZeros.

        Returns:
          `jvp`, so that defjvp decorates it.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Give one rule per argument: `jvp(tangent, result, *arguments) -> share of the tangent`.

        None says that the result does not vary with an argument. The shares are summed.

        Raises:
          TypeError: if there are arguments that are not differentiated.
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``: use defjvp.")

        def jvp(primals, tangents):
            result = self(*primals)
            total: Any = None
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is not None:
                    share = rule(tangent, result, *primals)
                    total = share if total is None else tree.tree_map(add_tangents, total, share)
            if total is None:
                total = tree.tree_map(lambda x: instantiate(Zero.of(x)), result)
            return result, total

        self.defjvp(jvp)

    def fixed_argument(self, x: Any) -> Any:
        # The rule has no tangent of it.
        return stop_gradient(x) if isinstance(x, Tracer) else x

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            raise self._no_rule("jvp")
        arguments = CustomRuleArguments(self, args, kwargs)
        call = FlatFunction(self.fun, arguments, self.signature)
        rule = JVPRule(self, arguments, call)
        results = custom_jvp_call_p.bind(
            *arguments.take_leaves(),
            call_jaxpr=call,
            jvp_jaxpr_fun=rule,
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        out_tree = call.out_tree if call.out_tree is not None else rule.out_tree
        return out_tree.unflatten(results)


class JVPRule:
    """The user's rule on flat values: (*primals, *tangents) -> (*results, *tangents)."""

    __slots__ = ("__name__", "arguments", "call", "function", "out_tree", "rule")

    def __init__(self, owner: custom_jvp, arguments: CustomRuleArguments, call: FlatFunction):
        self.rule = owner.jvp
        self.__name__ = source.callable_name(owner.jvp)
        self.function = owner.signature.name
        self.arguments = arguments
        self.call = call
        self.out_tree: Any = None

    def __call__(self, *args: Any) -> list[Any]:
        count = len(args) // 2
        structure = self.arguments.structure
        primals = structure.unflatten(map(as_array, args[:count]))
        tangents = structure.unflatten(
            [t if type(t) is SymbolicZero else as_array(t) for t in args[count:]]
        )
        pair = self.rule(*self.arguments.fixed.values(), primals, tangents)  # type: ignore[misc]
        about = f"Custom JVP rule {self.__name__} for function {self.function}"
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise TypeError(
                f"{about} must produce a pair (list or tuple of length two) representing primal "
                f"and tangent outputs, but got {source.shortened(repr(pair))}."
            )
        results, self.out_tree = tree.tree_flatten(pair[0])
        moved, tangent_tree = tree.tree_flatten(pair[1])
        if tangent_tree != self.out_tree:
            raise TypeError(
                f"{about} must produce primal and tangent outputs with equal container (pytree) "
                f"structures, but got {self.out_tree} and {tangent_tree} respectively."
            )
        check_values(results, self.out_tree, about)
        self.call.check_agrees(about, results, self.out_tree)
        return [
            *results,
            *[self._checked(about, x, t) for x, t in zip(results, moved, strict=True)],
        ]

    def _checked(self, about: str, result: Any, tangent: Any) -> Any:
        aval = typeof(result)
        wanted = aval.to_tangent_aval()
        symbolic = type(tangent) is SymbolicZero
        found = tangent.aval if symbolic else typeof(tangent)
        if found.shape != wanted.shape or found.dtype != wanted.dtype:
            raise TypeError(
                f"{about} must produce primal and tangent outputs with corresponding shapes and "
                f"dtypes. Expected {wanted.str_short()} (tangent type of {aval.str_short()}) but "
                f"got {found.str_short()}."
            )
        return Zero(wanted) if symbolic else as_tangent(tangent)


# ---- the primitive -------------------------------------------------------------------------------
# `call_jaxpr` is a FlatFunction until it is written down, and then a program.


def as_function(call: Any) -> Callable[..., Sequence[Any]]:
    if isinstance(call, ClosedJaxpr):
        return lambda *args: jaxpr_as_fun(call, *args)
    return call


@rules.infer(custom_jvp_call_p)
def _(*avals, call_jaxpr, **_):
    return call_jaxpr.out_avals


@rules.effects(custom_jvp_call_p)
def _(*avals, call_jaxpr, **_):
    return call_jaxpr.effects


@rules.run(custom_jvp_call_p)
def _(*args, call_jaxpr, **_):
    return as_function(call_jaxpr)(*args)


def write_down(call: Any, args: Sequence[Any], num_consts: int) -> tuple[ClosedJaxpr, Any, int]:
    """The program of a call, its operands with the values it captured, and how many those are."""
    if isinstance(call, ClosedJaxpr):
        return call, args, num_consts
    program = stage(in_program(call), [typeof(x) for x in args], getattr(call, "debug_info", None))
    program, captured = split_captured(program)
    return program, (*captured, *args), num_consts + len(captured)


def without_dead_code(
    used: Sequence[bool], equation: Equation
) -> tuple[list[bool], Equation | None]:
    """Return the call of a function with a custom rule, whose program has no dead code.

    All operands and results stay, as the rule is written for them; a call without effects that no
    result is used of is None.
    """
    if not any(used) and not equation.effects:
        return [False] * len(equation.invars), None
    program = equation.params["call_jaxpr"]
    smaller, stays = dead_code_program(program, (True,) * len(used), instantiate=True)
    if smaller is not program:
        equation = equation.replace(params={**equation.params, "call_jaxpr": smaller})
    return list(stays), equation


rules.simplify(custom_jvp_call_p)(without_dead_code)


@rules.staged(custom_jvp_call_p)
def _(trace, *args, call_jaxpr, num_consts, **params):
    program, args, num_consts = write_down(call_jaxpr, args, num_consts)
    return trace.write(
        custom_jvp_call_p, args, {"call_jaxpr": program, "num_consts": num_consts, **params}
    )


def refuse_captured(kind: str, tangents: Sequence[Any]) -> None:
    """Values that the function closes over have no place in its rule, so they must not move."""
    if any(type(t) is not Zero for t in tangents):
        raise UnexpectedTracerError(
            f"Detected differentiation of a {kind} function with respect to a closed-over value: "
            "its rule has no place for it. Pass the value as an argument instead of closing over "
            "it, so that the rule is given it."
        )


@rules.jvp(custom_jvp_call_p)
def _(primals, tangents, *, call_jaxpr, jvp_jaxpr_fun, num_consts, symbolic_zeros):
    refuse_captured("custom_jvp", tangents[:num_consts])
    given = [
        SymbolicZero(t.aval) if symbolic_zeros and type(t) is Zero else instantiate(t)
        for t in tangents[num_consts:]
    ]
    results = jvp_jaxpr_fun(*primals[num_consts:], *given)
    count = len(results) // 2
    return results[:count], results[count:]


@rules.transpose(custom_jvp_call_p)
def _(cotangents, *operands, call_jaxpr, **_):
    linear = [type(x) is UndefinedPrimal for x in operands]
    program, present = transpose_program(
        call_jaxpr, linear, [type(c) is not Zero for c in cotangents]
    )
    known = [x for x in operands if type(x) is not UndefinedPrimal]
    given = [c for c in cotangents if type(c) is not Zero]
    wanted = [x.aval for x in operands if type(x) is UndefinedPrimal]
    found = iter(spread(jaxpr_as_fun(program, *known, *given), present, wanted))
    return [next(found) if is_linear else None for is_linear in linear]


def _batch(axis, tag, values, axes, *, call_jaxpr, jvp_jaxpr_fun, num_consts, **params):
    call = BatchedCall(axis, tag, axes)
    results = custom_jvp_call_p.bind(
        *values,
        call_jaxpr=call.function(call_jaxpr),
        jvp_jaxpr_fun=BatchedRule(jvp_jaxpr_fun, call, axes[num_consts:]),
        num_consts=num_consts,
        **params,
    )
    return results, call.result_axes


@rules.batch_with_axis(custom_jvp_call_p)
def _(axis, values, axes, **params):
    return _batch(axis, object(), values, axes, **params)


@rules.batch_with_trace(custom_jvp_call_p)
def _(trace, values, axes, **params):
    return _batch(trace.axis, trace.tag, values, axes, **params)
