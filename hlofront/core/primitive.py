"""Primitives: operations by name, whose meaning is in the rule tables."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from hlofront.base.typing import Params, Value
from hlofront.core import rules, trace
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.effects import Effects, no_effects

# (trace, operands, their avals, parameters) -> the result of `bind`.
BindWithTrace = Callable[[trace.Trace, Sequence[Value], Sequence[AbstractValue], Params], Value]

# The function of a rule, whose parameters are those of its operation.
Rule = Callable[..., Any]
# The aval of the result of an operation, or the avals of several.
InferredTypes = AbstractValue | Sequence[AbstractValue]

ALL: dict[str, "Primitive"] = {}

# The attribute that holds the `impl` of a primitive before another one was set.
_FIRST_IMPL = "_first_impl"


class Primitive:
    """An operation on arrays, which interpreters handle by the rules registered for it."""

    __slots__ = (
        "__dict__",
        "__weakref__",
        "carries_programs",
        "eager",
        "inferred",
        "multiple_results",
        "name",
        "repeats_scopes",
    )

    name: str
    multiple_results: bool
    # Whether parameters hold jaxprs or functions: then `inferred` is not filled.
    carries_programs: bool
    # Whether linearization repeats the scopes around the operation in its path, as in JAX.
    repeats_scopes: bool
    # The cache of infer rules: (avals of the operands, parameters) -> avals of the results.
    inferred: dict[Hashable, Any]
    # The engine's cache: parameters -> compiled call. Owned by runtime/dispatch/engine.py.
    eager: dict[Hashable, Any]

    # Whether operands may be mutable references. Otherwise, only primitives with subprograms accept
    # them.
    ref_primitive = False
    # Whether an operand may be a future: true only of the `*_done` primitives, which await one.
    takes_futures = False
    # Whether the result is a new mutable reference.
    ref_allocating = False
    # A function of the parameters: whether the transpose rule may return nonzero cotangents for
    # zero ones. None if it never does.
    transposes_zeros: Callable[[Params], bool] | None = None
    # Whether the jvp rule calls a user's function, which reads the shapes and dtypes of operands.
    jvp_calls_user = False
    # Whether results may be in a different memory from the operands.
    moves_memory = False
    # Attributes that JAX's interpreters read; all primitives here have these values.
    call_primitive = False
    skip_canonicalization = False
    is_effectful = None

    def __init__(
        self, name: str, *, multiple_results: bool = False, carries_programs: bool = False
    ):
        self.name = name
        self.multiple_results = multiple_results
        self.carries_programs = carries_programs
        self.repeats_scopes = False
        self.inferred = {}
        self.eager = {}
        ALL.setdefault(name, self)
        kind = type(self)
        if kind is not Primitive:
            self._register_methods(kind)

    def _register_methods(self, kind: type["Primitive"]) -> None:
        """Register a subclass's methods `impl` and `abstract_eval` as rules of the primitive."""
        if kind.multiple_results is True:  # It is a class attribute of the subclass.
            self.multiple_results = True
        if kind.impl is not Primitive.impl:
            rules.run[self] = self.impl
        if kind.abstract_eval is not Primitive.abstract_eval:
            self.def_effectful_abstract_eval(self.abstract_eval)

    def bind(self, *args: Value, **params: object) -> Value:
        """Apply the primitive to operands, in the current interpreter.

        Returns:
          The result, or a list of results if `multiple_results`.
        """
        return trace.process(self, args, params)

    def bind_with_trace(
        self,
        trace: trace.Trace,
        args: Sequence[Value],
        avals: Sequence[AbstractValue],
        params: Params,
        /,
    ) -> Value:
        """Apply the primitive to operands, in an interpreter.

        Args:
          trace: the interpreter.
          args: the operands.
          avals: their avals, for functions that are set by `def_bind_with_trace`.
          params: the parameters.
        """
        return trace.process_primitive(self, args, params)

    def def_bind_with_trace(self, bind_with_trace: BindWithTrace) -> BindWithTrace:
        """Set what `bind` does: `bind_with_trace(trace, operands, avals, params)`.

        It may change operands and parameters before it calls `trace.process_primitive`.

        Returns:
          bind_with_trace, so that this is a decorator.
        """

        def bind(*args: Value, **params: object) -> Value:
            return bind_with_trace(trace.current_trace(), args, [typeof(x) for x in args], params)

        # Attributes of this primitive go before the methods of the class.
        vars(self).update(bind=bind, bind_with_trace=bind_with_trace)
        return bind_with_trace

    def get_bind_params(self, params: Params) -> Params:
        """Return the parameters to `bind` for an equation's parameters: here, the same."""
        return params

    # ---- rules under JAX's names -----------------------------------------------------------------

    @property
    def impl(self) -> Rule:
        """The function that runs the operation on arrays: `impl(*arrays, **params)`.

        It is the argument of `def_impl`; without one the operation is compiled and run.
        """
        return rules.run.get(self) or self._run_compiled

    @impl.setter
    def impl(self, rule: Rule) -> None:
        vars(self).setdefault(_FIRST_IMPL, rules.run.get(self, self._run_compiled))
        if rule == self._run_compiled:
            rules.run.pop(self, None)
        else:
            rules.run[self] = rule
        self.eager.clear()

    @impl.deleter
    def impl(self) -> None:
        # `mock.patch.object` deletes what it has set on objects without such an attribute.
        self.impl = vars(self).pop(_FIRST_IMPL)

    def _run_compiled(self, *args: Value, **params: object) -> Value:
        return trace.engine().run_compiled(self, args, params)

    def def_impl(self, impl: Rule) -> Rule:
        """Register the function that runs the operation on arrays, outside of compiled programs.

        Args:
          impl: takes the operands and parameters of `bind`, and returns its result.

        Returns:
          impl, so that this is a decorator.
        """
        Primitive.impl.__set__(self, impl)
        if type(self).impl is not Primitive.impl:  # It takes precedence over a subclass's method.
            vars(self)["impl"] = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Register the infer rule of the primitive, which returns the avals of its results.

        Args:
          abstract_eval: takes the avals of the operands, and the parameters by name, and returns
            an aval, or a list of avals if the primitive has several results.

        Returns:
          abstract_eval, so that this is a decorator.
        """
        self.inferred.clear()
        rules.infer[self] = abstract_eval
        rules.effects.pop(self, None)
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Rule) -> Rule:
        """Register the infer rule of a primitive with effects.

        Args:
          abstract_eval: takes the avals of the operands, and the parameters by name, and returns
            a pair: an aval, or a list of avals for several results, and a set of effects.

        Returns:
          abstract_eval, so that this is a decorator.
        """

        def infer(*avals: AbstractValue, **params: object) -> InferredTypes:
            return abstract_eval(*avals, **params)[0]

        def effects(*avals: AbstractValue, **params: object) -> Effects:
            return frozenset(abstract_eval(*avals, **params)[1])

        self.inferred.clear()
        rules.infer[self] = infer
        rules.effects[self] = effects
        return abstract_eval

    def abstract_eval(
        self, *avals: AbstractValue, **params: object
    ) -> tuple[InferredTypes, Effects]:
        """Return the aval of the result, or a list of avals, and the effects of the operation.

        Raises:
          NotImplementedError: if the primitive has no infer rule.
        """
        result = rules.infer[self](*avals, **params)
        effects = rules.effects.get(self)
        return result, no_effects if effects is None else effects(*avals, **params)

    def __repr__(self) -> str:
        return self.name
