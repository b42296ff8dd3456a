"""The call primitives `call` and `closed_call`, and the class for those of other packages."""

from collections.abc import Sequence
from typing import Any

from hlofront.base.typing import Params
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.jaxpr import DebugInfo, Value
from hlofront.core.primitive import Primitive
from hlofront.core.programs.evaluate import eval_jaxpr
from hlofront.core.programs.subprograms import Program, closed
from hlofront.core.symbolic_zeros import Cotangent
from hlofront.core.trace import Trace, is_eager
from hlofront.higher_order.calls.jit_call import CallRules, split_captured
from hlofront.transforms.linear_util import WrappedFun, wrap_init
from hlofront.transforms.stage import stage
from hlofront.transforms.transpose import transpose_jaxpr


class CallPrimitive(Primitive):
    """A primitive that calls a function, whose program an equation holds as `call_jaxpr`.

    Its operands are arrays, and the only member of `subfuns` is the function, a `WrappedFun` of
    flat arrays that returns a list of arrays. The derivative of a call calls the function's
    derivative, and likewise for batching. Packages that define one register its lowering.
    """

    __slots__ = ()

    multiple_results = True
    call_primitive = True

    def __init__(self, name: str):
        super().__init__(name, multiple_results=True, carries_programs=True)
        call_rules = CallRules(self, "call_jaxpr")
        rules.partial_eval(self)(call_rules.partial_eval)

    def bind(
        self, *args: Value, subfuns: Sequence[WrappedFun] | None = None, **params: Any
    ) -> list[Value]:
        """Call the function in `subfuns`, or the jaxpr in `call_jaxpr`, with the operands `args`.

        Raises:
          TypeError: unless exactly one of the two is passed.
        """
        if subfuns is None:
            if "call_jaxpr" not in params:
                raise TypeError(
                    f"{self.name} calls a function: bind(*operands, subfuns=(function,)), where "
                    "the function is one of jax.extend.linear_util.wrap_init"
                )
            return super().bind(*args, **params)
        (function,) = subfuns
        if is_eager():
            run = rules.run.get(self, call_impl)
            return list(run(function, *args, **params))
        info = function.debug_info
        program = stage(
            function.call_wrapped,
            [typeof(x) for x in args],
            DebugInfo(info.traced_for, lambda: info.func_src_info, lambda: info.arg_names),
            args,
        )
        program, captured = split_captured(program)
        return super().bind(*captured, *args, call_jaxpr=program, **params)

    def bind_with_trace(
        self, trace: Trace, args: Sequence[Value], avals: Sequence[AbstractValue], params: Params, /
    ) -> Value:
        other_params = dict(params if "subfuns" in params else self.get_bind_params(params))
        (function,) = other_params.pop("subfuns")
        return trace.process_call(self, function, args, other_params)

    def get_bind_params(self, params: Params) -> Params:
        """Return the parameters for `bind`: an equation's, with the jaxpr moved to `subfuns`."""
        params = dict(params)
        program = closed(params.pop("call_jaxpr"))

        def run(*args: Value) -> list[Value]:
            return eval_jaxpr(program.jaxpr, program.consts, *args)

        return {**params, "subfuns": (wrap_init(run, debug_info=program.debug_info),)}


def call_impl(f: WrappedFun, *args: Value, **params: object) -> list[Value]:
    """Run the function of a call on arrays; the call's parameters are ignored."""
    return f.call_wrapped(*args)


def eval_jaxpr_transpose(
    prim: Primitive, ct: Sequence[Cotangent], *args: Value, call_jaxpr: Program, **params: object
) -> list[Value]:
    """Transpose a call by transposing its program inline.

    Args:
      prim: the primitive of the call.
      ct: the cotangents of the call's results.
      args: the call's operands, with UndefinedPrimals for the linear ones.
      call_jaxpr: the program of the call.

    Returns:
      The cotangent of each operand, or None for an operand whose value is known.
    """
    program = closed(call_jaxpr)
    return transpose_jaxpr(program.jaxpr, program.consts, args, ct)


def register_call_primitive_rules(
    prim: Primitive,
    name: str | None = None,
    transpose_rule: Any = None,
    inline_jax_late: bool = True,
) -> None:
    """Register the rules of a call primitive: jvp, transpose, batching, lowering and others.

    Args:
      prim: a primitive whose equations hold a program as `call_jaxpr`.
      name: the name of the function in the lowered module; by default the primitive's name.
      transpose_rule: `transpose_rule(prim, cotangents, *operands, **params)`; by default the rule
        calls the transposed program.
      inline_jax_late: whether lowering inlines the program at the call, rather than emitting a
        function.
    """
    if prim not in rules.subprograms:
        call_rules = CallRules(prim, "call_jaxpr")
        rules.partial_eval(prim)(call_rules.partial_eval)
    if transpose_rule is not None:

        def transpose(cotangents: Sequence[Cotangent], *operands: Value, **params: object) -> Value:
            return transpose_rule(prim, cotangents, *operands, **params)

        rules.transpose[prim] = transpose
    symbol = prim.name if name is None else name

    def lowering(build: Any, *args: Any, call_jaxpr: Program, **_: object) -> list[Any]:
        program = closed(call_jaxpr)
        if inline_jax_late:
            return build.inline(program.jaxpr, program.consts, args)
        return build.call(program, symbol, args)

    rules.lower[prim] = lowering


def create_call_primitive(name: str, inline_jax_late: bool = True) -> CallPrimitive:
    """Return a new primitive that calls a function, with all its rules.

    Args:
      name: the name of the primitive.
      inline_jax_late: whether lowering inlines the function's operations at the call.
    """
    primitive = CallPrimitive(name)
    register_call_primitive_rules(primitive, inline_jax_late=inline_jax_late)
    return primitive


call_p = CallPrimitive("call")
