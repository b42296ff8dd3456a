"""The class custom_jvp, for functions with a user-defined jvp rule, and its primitive."""

from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex, TypeVar, cast

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes, is_tuple_or_list
from hlofront.core import rules
from hlofront.core.aval import typeof
from hlofront.core.axes import AxisData
from hlofront.core.jaxpr import ClosedJaxpr, Value
from hlofront.core.programs.digest import not_lowered
from hlofront.core.programs.evaluate import jaxpr_as_fun
from hlofront.core.rules import BatchResult
from hlofront.core.symbolic_zeros import BatchAxes, Cotangent, Operand, Tangent, Tangents, Zero
from hlofront.core.trace import Tracer, as_result
from hlofront.higher_order.custom_rules.batched_functions import BatchedCall, BatchedRule
from hlofront.higher_order.custom_rules.custom_call import (
    batched_by_call,
    refuse_captured,
    register_custom_call,
)
from hlofront.higher_order.custom_rules.custom_rule import (
    CustomRule,
    CustomRuleArguments,
    FlatFunction,
    FunctionResult,
    SymbolicZero,
    check_values,
)
from hlofront.higher_order.custom_rules.wrapped_rules import CustomJVPCallPrimitive
from hlofront.higher_order.selecting import LinearOperands, nonzero_flags
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.primitives.rules.derivatives import add_tangents, instantiate
from hlofront.transforms.jvp import as_tangent
from hlofront.transforms.transpose import transpose_program

Function = TypeVar("Function", bound=Callable[..., object])

custom_jvp_call_p = CustomJVPCallPrimitive(
    "custom_jvp_call", multiple_results=True, carries_programs=True
)
not_lowered(custom_jvp_call_p, "jvp_jaxpr_fun")
register_custom_call(custom_jvp_call_p)


# ---- custom_jvp ----------------------------------------------------------------------------------


class custom_jvp(CustomRule):
    """A function with a user-defined jvp rule, which reverse mode transposes.

        @custom_jvp
        def log1pexp(x):
            return jnp.log(1 + jnp.exp(x))

        @log1pexp.defjvp
        def _(primals, tangents):
            (x,), (dx,) = primals, tangents
            return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * dx

    Args:
      fun: a function of pytrees of arrays.
      nondiff_argnums: positions of arguments without tangents, such as Python values and functions,
        which the rule takes first.
      nondiff_argnames: names of arguments without tangents.

    Raises:
      AttributeError: when called before `defjvp`.
      TypeError: if the rule does not return a value and a tangent of its type.

    Example:
      >>> @jax.custom_jvp
      ... def log1pexp(x):
      ...     return jnp.log(1 + jnp.exp(x))
      >>> @log1pexp.defjvp
      ... def _(primals, tangents):
      ...     (x,), (dx,) = primals, tangents
      ...     return log1pexp(x), jax.nn.sigmoid(x) * dx
      >>> jax.grad(log1pexp)(100.0)
      Array(1., dtype=float32, weak_type=True)
    """

    def __init__(
        self,
        fun: Callable[..., PyTree],
        nondiff_argnums: int | Sequence[int] | None = (),
        nondiff_argnames: Sequence[str] | None = (),
    ):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., PyTree] | None = None
        self.symbolic_zeros = False
        # Until a rule is set, calls run this function, if there is one, with its own derivatives.
        self._derived: Callable[..., PyTree] | None = None

    def defjvp(
        self, jvp: Callable[..., PyTree], symbolic_zeros: bool = False
    ) -> Callable[..., PyTree]:
        """Set the jvp rule: `jvp(*nondiff, primals, tangents) -> (result, tangent of the result)`.

        Args:
          jvp: the rule, which must be linear in the tangents.
          symbolic_zeros: whether tangents that are known to be zero are passed as SymbolicZeros.

        Returns:
          `jvp`, so that defjvp can be used as a decorator.
        """
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        self._derived = None
        return jvp

    def defjvps(self, *jvps: Callable[..., PyTree] | None) -> None:
        """Set a jvp rule per argument: `jvp(tangent, result, *arguments) -> contribution`.

        The tangent of the result is the sum of the contributions. None stands for a zero one.

        Raises:
          TypeError: if there are nondifferentiable arguments.

          Differentiation raises ValueError if the numbers of rules and arguments differ.
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``: use defjvp.")

        def jvp(primals: tuple[PyTree, ...], tangents: tuple[PyTree, ...]) -> tuple[PyTree, PyTree]:
            if len(jvps) != len(tangents):
                raise ValueError(
                    f"{self.signature.name}.defjvps has rules for {len(jvps)} arguments, and the "
                    f"function was called with {len(tangents)}: give a rule per argument, or None "
                    "where an argument adds nothing to the tangent."
                )
            result = self(*primals)
            total: PyTree = None
            for rule, tangent in zip(jvps, tangents):
                if rule is not None:
                    share = rule(tangent, result, *primals)
                    total = share if total is None else tree.tree_map(add_tangents, total, share)
            if total is None:
                total = tree.tree_map(_zero_tangent, result)
            return result, total

        self.defjvp(jvp)

    def fixed_argument(self, x: PyTree) -> PyTree:
        # The rule takes no tangent of a nondifferentiable argument.
        return stop_gradient(x) if isinstance(x, Tracer) else x

    def __call__(self, *args: object, **kwargs: object) -> PyTree:
        if self._derived is not None:
            return self._derived(*args, **kwargs)
        return self._call_with_rule(*args, **kwargs)

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        if self._derived is not None:  # A function at module level, which pickles refer to by name.
            return self.__qualname__
        return super().__reduce_ex__(protocol)

    @boundary
    def _call_with_rule(self, *args: object, **kwargs: object) -> PyTree:
        if self.jvp is None:
            raise self._no_rule("jvp")
        arguments = CustomRuleArguments(self, args, kwargs)
        result = FunctionResult(arguments, self.signature)
        rule = JVPRule(self.signature.name, arguments, result, self.jvp)
        results = custom_jvp_call_p.bind(
            *arguments.take_leaves(),
            call_jaxpr=FlatFunction(self.fun, arguments, result),
            jvp_jaxpr_fun=rule,
            num_consts=0,
            symbolic_zeros=self.symbolic_zeros,
        )
        out_tree: Any = rule.out_tree if result.tree is None else result.tree
        return out_tree.unflatten(results)


def as_custom_jvp(function: Function) -> Function:
    """Return a differentiable function as a custom_jvp, for functions that are one in JAX.

    Libraries check for the class, and set a different rule with `defjvp`.
    """
    public = custom_jvp(function)
    public._derived = function  # pyright: ignore[reportPrivateUsage]
    return cast(Function, public)


class JVPRule:
    """A user's jvp rule on flat values: (*primals, *tangents) -> (*results, *tangents).

    Args:
      function: the name of the custom_jvp function.
      arguments: the arguments of the call.
      result: the type of the function's result, which the rule's result must match.
      rule: the user's rule.
    """

    __slots__ = ("__name__", "arguments", "function", "out_tree", "result", "rule")

    def __init__(
        self,
        function: str,
        arguments: CustomRuleArguments,
        result: FunctionResult,
        rule: Callable[..., PyTree],
    ):
        self.rule = rule
        self.__name__ = source.callable_name(rule)
        self.function = function
        self.arguments = arguments
        self.result = result
        self.out_tree: PyTreeDef | None = None

    def __call__(self, *args: ArrayLike | SymbolicZero) -> list[Tangent]:
        count = len(args) // 2
        structure = self.arguments.structure
        primals = structure.unflatten(map(as_result, args[:count]))
        tangents = structure.unflatten(
            [t if type(t) is SymbolicZero else as_result(t) for t in args[count:]]
        )
        pair = self.rule(*self.arguments.fixed.values(), primals, tangents)
        about = f"Custom JVP rule {self.__name__} for function {self.function}"
        if not is_tuple_or_list(pair) or len(pair) != 2:
            raise TypeError(
                f"{about} must produce a pair (list or tuple of length two) representing primal "
                f"and tangent outputs, but got {source.shortened(repr(pair))}."
            )
        results, self.out_tree = tree.tree_flatten(pair[0])
        result_tangents, tangent_tree = tree.tree_flatten(pair[1])
        if tangent_tree != self.out_tree:
            raise TypeError(
                f"{about} must produce primal and tangent outputs with equal container (pytree) "
                f"structures, but got {self.out_tree} and {tangent_tree} respectively."
            )
        check_values(results, self.out_tree, about)
        self.result.check_agrees(about, results, self.out_tree)
        return [
            *results,
            *[self._checked(about, x, t) for x, t in zip(results, result_tangents, strict=True)],
        ]

    def _checked(self, about: str, result: ArrayLike, tangent: ArrayLike | SymbolicZero) -> Tangent:
        """Check a tangent from the user's rule, and convert a SymbolicZero to a Zero.

        Raises:
          TypeError: if the tangent's type is not the tangent type of `result`.
        """
        aval = typeof(result)
        expected = aval.to_tangent_aval()
        tangent_aval = tangent.aval if isinstance(tangent, SymbolicZero) else typeof(tangent)
        if tangent_aval.shape != expected.shape or tangent_aval.dtype != expected.dtype:
            raise TypeError(
                f"{about} must produce primal and tangent outputs with corresponding shapes and "
                f"dtypes. Expected {expected.str_short()} (tangent type of {aval.str_short()}) but "
                f"got {tangent_aval.str_short()}."
            )
        return Zero(expected) if isinstance(tangent, SymbolicZero) else as_tangent(tangent)


def _zero_tangent(primal: Value) -> ArrayLike:
    return instantiate(Zero.of(primal))


# ---- the primitive -------------------------------------------------------------------------------


@rules.jvp(custom_jvp_call_p)
def _(
    primals: ArrayLikes,
    tangents: Tangents,
    *,
    call_jaxpr: object,
    jvp_jaxpr_fun: Callable[..., list[Value]],
    num_consts: int,
    symbolic_zeros: bool,
) -> tuple[list[ArrayLike], list[Tangent]]:
    refuse_captured("custom_jvp", nonzero_flags(tangents[:num_consts]))
    rule_tangents = [
        SymbolicZero(t.aval) if symbolic_zeros and isinstance(t, Zero) else instantiate(t)
        for t in tangents[num_consts:]
    ]
    results = jvp_jaxpr_fun(*primals[num_consts:], *rule_tangents)
    count = len(results) // 2
    return results[:count], results[count:]


@rules.transpose(custom_jvp_call_p)
def _(
    cotangents: Sequence[Cotangent], *operands: Operand, call_jaxpr: ClosedJaxpr, **_: object
) -> list[Cotangent | None]:
    split = LinearOperands(cotangents, operands)
    program, present = transpose_program(call_jaxpr, split.linear, split.nonzero)
    return split.cotangents(jaxpr_as_fun(program, *split.arguments), present)


@batched_by_call(custom_jvp_call_p)
def _(
    axis: AxisData,
    values: ArrayLikes,
    axes: BatchAxes,
    *,
    call_jaxpr: Value,
    jvp_jaxpr_fun: Callable[..., list[Value]],
    num_consts: int,
    symbolic_zeros: bool,
) -> BatchResult:
    call = BatchedCall(axis, axes)
    results = custom_jvp_call_p.bind(
        *values,
        call_jaxpr=call.function(call_jaxpr),
        jvp_jaxpr_fun=BatchedRule(jvp_jaxpr_fun, call, axes[num_consts:]),
        num_consts=num_consts,
        symbolic_zeros=symbolic_zeros,
    )
    return results, call.axes_of_results()
