"""The primitives of custom_jvp and custom_vjp calls, and their functions as wrapped functions.

Interpreters of this package keep a function and its rules as parameters of the primitive.
Interpreters of other packages receive them as `WrappedFun`s of flat values, which they may
transform and bind again as `subfuns`.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base import tree
from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes, Params
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.symbolic_zeros import Cotangent, Tangent, Zero
from hlofront.core.trace import Trace
from hlofront.higher_order.custom_rules.batched_functions import (
    FlatCall,
    FlatForward,
    ForwardResult,
)
from hlofront.higher_order.custom_rules.custom_call import refuse_captured
from hlofront.higher_order.custom_rules.custom_rule import SymbolicZero
from hlofront.primitives.rules.derivatives import instantiate
from hlofront.transforms.jvp import as_tangent
from hlofront.transforms.linear_util import WrappedFun, wrap_init

# The tree definitions of results and residuals, and per residual the operand it equals, or None.
OutTrees = Callable[[], Sequence[Any]]


class CustomJVPCallPrimitive(Primitive):
    """The primitive of calls of functions with a jvp rule."""

    __slots__ = ()
    jvp_calls_user = True

    def bind(
        self, *args: Value, subfuns: Sequence[WrappedFun] | None = None, **params: Any
    ) -> Value:
        """Call a function with a jvp rule; both are `subfuns` or an equation's parameters."""
        if subfuns is not None:
            params = {**_jvp_parameters(*subfuns), **params}
        return super().bind(*args, **params)

    def bind_with_trace(
        self, trace: Trace, args: Sequence[Value], avals: Sequence[AbstractValue], params: Params, /
    ) -> Value:
        params = self.get_bind_params(params)
        fun, jvp = params["subfuns"]
        zeros = params["symbolic_zeros"]
        return trace.process_custom_jvp_call(self, fun, jvp, args, symbolic_zeros=zeros)

    def get_bind_params(self, params: Params) -> Params:
        return dict(params) if "subfuns" in params else self._wrapped(**params)

    def _wrapped(
        self,
        call_jaxpr: ClosedJaxpr | FlatCall,
        jvp_jaxpr_fun: Callable[..., list[Value]],
        num_consts: int,
        symbolic_zeros: bool,
    ) -> Params:
        # The rule does not receive captured values, and refuses their tangents unless they are
        # zero.
        symbolic = symbolic_zeros or num_consts > 0
        params = {
            "call_jaxpr": call_jaxpr,
            "jvp_jaxpr_fun": jvp_jaxpr_fun,
            "num_consts": num_consts,
            "symbolic_zeros": symbolic_zeros,
        }

        def rule(*args: Value) -> list[Value]:
            count = len(args) // 2
            tangents = [_as_zero(t) for t in args[count:]]
            results: Value
            tangents_out: Value
            results, tangents_out = rules.jvp[self](args[:count], tangents, **params)
            return [
                *results,  # pyrefly: ignore[not-iterable]
                # pyrefly: ignore[not-iterable]
                *[_as_symbolic(t) if symbolic else instantiate(t) for t in tangents_out],
            ]

        fun = _wrapped_call(call_jaxpr)
        wrapped_rule = wrap_init(rule, debug_info=fun.debug_info)
        return {"subfuns": (fun, wrapped_rule), "symbolic_zeros": symbolic}


class CustomVJPCallPrimitive(Primitive):
    """The primitive of calls of functions with forward and backward rules."""

    __slots__ = ()
    jvp_calls_user = True

    def bind(
        self, *args: Value, subfuns: Sequence[WrappedFun] | None = None, **params: Any
    ) -> Value:
        """Call a function with vjp rules; all are `subfuns` or an equation's parameters."""
        if subfuns is not None:
            fun, fwd, bwd = subfuns
            params = {**params, **_vjp_parameters(fun, fwd, bwd, params["out_trees"])}
        return super().bind(*args, **params)

    def bind_with_trace(
        self, trace: Trace, args: Sequence[Value], avals: Sequence[AbstractValue], params: Params, /
    ) -> Value:
        params = self.get_bind_params(params)
        fun, fwd, bwd = params.pop("subfuns")
        return trace.process_custom_vjp_call(self, fun, fwd, bwd, args, **params)

    def get_bind_params(self, params: Params) -> Params:
        return dict(params) if "subfuns" in params else self._wrapped(**params)

    def _wrapped(
        self,
        call_jaxpr: ClosedJaxpr | FlatCall,
        fwd_jaxpr_thunk: FlatForward,
        num_consts: int,
        symbolic_zeros: bool,
        **_: object,
    ) -> Params:
        vjp = _VJPRules(fwd_jaxpr_thunk, num_consts)
        fun = _wrapped_call(call_jaxpr)
        forward = wrap_init(vjp.forward, debug_info=fun.debug_info)
        backward = wrap_init(vjp.backward, debug_info=fun.debug_info)
        return {
            "subfuns": (fun, forward, backward),
            "out_trees": vjp.out_trees,
            "symbolic_zeros": symbolic_zeros,
        }


# ---- this package's functions as wrapped ones ----------------------------------------------------


def _wrapped_call(call: ClosedJaxpr | FlatCall) -> WrappedFun:
    """Return the function of a call, which may be a closed jaxpr, as a wrapped function."""
    if isinstance(call, ClosedJaxpr):
        program = call

        def run(*args: Value) -> list[Value]:
            return jaxpr_as_fun(program, *args)

        return wrap_init(run, debug_info=_debug_info(program))
    return wrap_init(call, debug_info=_debug_info(call))


def _debug_info(call: object) -> DebugInfo:
    info = getattr(call, "debug_info", None)
    return DebugInfo("custom derivative", "a function") if info is None else info


class _VJPRules:
    """The rules of a custom_vjp call in the form of wrapped ones, for one differentiation."""

    __slots__ = ("captured", "operands", "ran", "thunk")

    def __init__(self, thunk: FlatForward, captured: int):
        self.thunk = thunk
        # The number of leading operands that the function captured, which the rules do not take.
        self.captured = captured
        self.operands: Sequence[Value] = ()
        # The latest result of the forward rule.
        self.ran: ForwardResult | None = None

    def forward(self, *args: Value) -> list[Value]:
        """Run the forward rule on operands, each followed by whether it is perturbed."""
        self.operands, perturbed = args[::2], args[1::2]
        refuse_captured("custom_vjp", perturbed[: self.captured])
        self.ran = self.thunk(self.operands[self.captured :], list(perturbed[self.captured :]))
        results, residuals, _ = self.ran
        return [*residuals, *results]

    def result(self) -> ForwardResult:
        """Return the latest result of the forward rule.

        Raises:
          RuntimeError: if it has not run.
        """
        if self.ran is None:
            raise RuntimeError("the forward rule of a custom_vjp call runs before the backward one")
        return self.ran

    def backward(self, *args: Value) -> list[Cotangent]:
        """Return the cotangents of the operands from residuals and cotangents of the results."""
        _, residuals, run = self.result()
        count = len(residuals)
        departing = run(args[:count], [_as_zero(c) for c in args[count:]])
        captured = self.operands[: self.captured]
        return [*[Zero(typeof(x).to_tangent_aval()) for x in captured], *departing]

    def out_trees(self) -> tuple[PyTreeDef, PyTreeDef, list[int | None]]:
        """Return the tree definitions of results and residuals, if no residual is an operand."""
        results, residuals, _ = self.result()
        result_tree = tree.tree_structure([0] * len(results))
        residual_tree = tree.tree_structure([0] * len(residuals))
        return result_tree, residual_tree, [None] * len(residuals)


# ---- wrapped functions as this package's ---------------------------------------------------------


class _CallOfWrapped:
    """A wrapped function of flat values as a function with debug info."""

    __slots__ = ("debug_info", "fun")

    def __init__(self, fun: WrappedFun):
        self.fun = fun
        self.debug_info = fun.debug_info

    def __call__(self, *args: ArrayLike) -> ArrayLikes:
        return self.fun.call_wrapped(*args)


def _jvp_parameters(fun: WrappedFun, jvp: WrappedFun) -> Params:
    """Return the parameters of a call that hold a function and its jvp rule."""

    def rule(*args: ArrayLike | SymbolicZero) -> list[Tangent]:
        results = list(jvp.call_wrapped(*args))
        count = len(results) // 2
        return [*results[:count], *map(_as_zero, results[count:])]

    rule.__name__ = jvp.__name__
    return {"call_jaxpr": _CallOfWrapped(fun), "jvp_jaxpr_fun": rule, "num_consts": 0}


def _vjp_parameters(
    fun: WrappedFun, fwd: WrappedFun, bwd: WrappedFun, out_trees: OutTrees
) -> Params:
    """Return the parameters of a call that hold a function and its vjp rules."""
    return {
        "call_jaxpr": _CallOfWrapped(fun),
        "fwd_jaxpr_thunk": _forward_of_wrapped(fwd, bwd, out_trees),
        "bwd": bwd,
        "num_consts": 0,
        "out_trees": None,
    }


def _forward_of_wrapped(fwd: WrappedFun, bwd: WrappedFun, out_trees: OutTrees) -> FlatForward:
    """Return a forward rule made of wrapped rules, which also returns the backward rule."""

    def forward(primals: ArrayLikes, perturbed: Sequence[bool]) -> ForwardResult:
        args = [x for pair in zip(primals, perturbed, strict=True) for x in pair]
        outputs = list(fwd.call_wrapped(*args))
        _, residual_tree, *forwarded = out_trees()
        sources: Sequence[int | None] = [None] * residual_tree.num_leaves
        if forwarded:
            sources = forwarded[0]
        count = sum(source is None for source in sources)
        new_residuals = iter(outputs[:count])
        residuals = [
            next(new_residuals) if source is None else primals[source] for source in sources
        ]

        def backward(residuals: ArrayLikes, cotangents: Sequence[Cotangent]) -> list[Cotangent]:
            return [_as_zero(c) for c in bwd.call_wrapped(*residuals, *cotangents)]

        return outputs[count:], residuals, backward

    forward.__name__ = fwd.__name__
    return forward


def _as_zero(value: Value) -> Value:
    """Return a tangent or cotangent as a Zero if it is a SymbolicZero or has dtype float0."""
    return Zero(value.aval) if type(value) is SymbolicZero else as_tangent(value)


def _as_symbolic(value: Tangent) -> ArrayLike | SymbolicZero:
    return SymbolicZero(value.aval) if isinstance(value, Zero) else value
