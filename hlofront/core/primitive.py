"""A primitive is a name; what it means is in the rule tables."""

from collections.abc import Callable
from typing import Any

from hlofront.base.typing import Params
from hlofront.core import rules, trace
from hlofront.core.effects import Effects, no_effects

ALL: dict[str, "Primitive"] = {}


class Primitive:
    """One operation on arrays, known to every interpreter by the rules registered for it."""

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
    # Whether parameters hold jaxprs or functions: such results are not kept in `inferred`.
    carries_programs: bool
    # Whether linearization writes the scopes around it twice into its path, as JAX's does.
    repeats_scopes: bool
    # What staging learned: (avals of the operands, parameters) -> avals of the results.
    inferred: dict[Any, Any]
    # What the engine compiled: parameters -> compiled call. Owned by runtime/dispatch/engine.py.
    eager: dict[Any, Any]

    # What JAX's interpreters ask of a primitive, and what is so of every one here.
    call_primitive = False
    ref_primitive = False
    ref_allocating = False
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

    def bind(self, *args: Any, **params: Any) -> Any:
        """Hand the operation to whichever interpreter is current.

        Returns the result, or a list of results where the primitive has several.
        """
        return trace.process(self, args, params)

    def get_bind_params(self, params: Params) -> dict[str, Any]:
        """The parameters that `bind` takes, for those that an equation has: the same."""
        return params

    # ---- rules, as JAX's extensions give them ----------------------------------------------------

    @property
    def impl(self) -> Callable[..., Any]:
        """The function that runs the operation on arrays: `impl(*arrays, **params)`.

        It is the function that `def_impl` was given; without one the operation is compiled and run.
        """
        return rules.run.get(self) or self._run

    @impl.setter
    def impl(self, rule: Callable[..., Any]) -> None:
        rules.run[self] = rule
        self.eager.clear()

    def _run(self, *args: Any, **params: Any) -> Any:
        return trace.engine().process(self, args, params)

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Say how the operation runs on arrays, outside of compiled programs.

        Args:
          impl: takes the operands and parameters of `bind`, and returns its result.

        Returns:
          impl, so that this decorates it.
        """
        self.impl = impl
        return impl

    def def_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Say which type the result has, or which types the results have.

        Args:
          abstract_eval: takes the avals of the operands, and the parameters by name, and returns
            an aval, or a list of avals where the primitive has several results.

        Returns:
          abstract_eval, so that this decorates it.
        """
        self.inferred.clear()
        rules.infer[self] = abstract_eval
        rules.effects.pop(self, None)
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """As `def_abstract_eval`, of an operation with effects.

        Args:
          abstract_eval: returns what is said there, and a set of effects.
        """

        def infer(*avals: Any, **params: Any) -> Any:
            return abstract_eval(*avals, **params)[0]

        def effects(*avals: Any, **params: Any) -> Effects:
            return frozenset(abstract_eval(*avals, **params)[1])

        self.inferred.clear()
        rules.infer[self] = infer
        rules.effects[self] = effects
        return abstract_eval

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Effects]:
        """The type of the result, or a list of types, and the effects of the operation.

        Raises:
          NotImplementedError: if nothing says which types its results have.
        """
        result = rules.infer[self](*avals, **params)
        effects = rules.effects.get(self)
        return result, no_effects if effects is None else effects(*avals, **params)

    def __repr__(self):
        return self.name
