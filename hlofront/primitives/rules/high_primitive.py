"""Primitives defined by the methods of a class, on arrays and values of several arrays."""

from collections.abc import Sequence
from typing import Any

from hlofront.base.typing import Params
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, typeof
from hlofront.core.effects import Effects
from hlofront.core.high_types import HiType, MutableHiType, low_types, lowered, raised
from hlofront.core.primitive import Primitive
from hlofront.core.symbolic_zeros import UndefinedPrimal, Zero
from hlofront.core.trace import is_eager, process
from hlofront.primitives.references.mutable_values import has_state, made, makes_state, operate
from hlofront.primitives.rules.derivatives import instantiate

# The parameter that holds the user's types of operands, some of which are several arrays.
_TYPES = "hi_types"


class HiPrimitive(Primitive):
    """A primitive whose rules are its methods, which receive values of the user's classes.

    Subclasses define `abstract_eval`, which returns the type of the result and a set of effects,
    and `to_lojax`, which computes the result with other operations; `jvp`, `transpose` and `impl`
    where there are derivatives, or a different function outside programs. With the class attribute
    `multiple_results = True` results are sequences. A high value is a value of a user's class, and
    its low values are the arrays that it consists of; equations have the low values of operands.
    """

    __slots__ = ("low",)

    # The primitive of equations, whose operands and results are low values.
    low: Primitive

    def __init__(self, name: str):
        several = getattr(type(self), "multiple_results", False) is True
        # Made first, so that the table of all primitives has this one, which is in equations.
        self.low = low = Primitive(name, multiple_results=True)
        super().__init__(name, multiple_results=several)
        rules.infer[low] = self._infer
        rules.effects[low] = self._effects
        rules.jvp[low] = self._jvp
        rules.transpose[low] = self._transpose
        rules.run[low] = self._run
        rules.lower[low] = self._lower

    def _register_methods(self, kind: type[Primitive]) -> None:
        """Register nothing: the methods receive users' values, and `low` has the rules."""

    # ---- what subclasses define

    def is_high(self, *avals: AbstractValue, **params: Any) -> bool:
        """Return whether the operation acts on high values; hlofront never calls this method."""
        return True

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        """Return the type of the result, or a sequence of types, and a set of effects."""
        raise AssertionError(f"{self.name} must override abstract_eval")

    def to_lojax(self, *args: Any, **params: Any) -> Any:
        """Return the result of the operation, computed with other operations."""
        raise AssertionError(f"{self.name} must override to_lojax")

    def impl(self, *args: Any, **params: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the result of the operation outside programs."""
        return self.to_lojax(*args, **params)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        """Return the result and its tangent."""
        raise AssertionError(f"{self.name} must override jvp")

    def transpose(self, *args: Any, **params: Any) -> Any:
        """Return the operands' cotangents, from the result's cotangent and the operands."""
        raise AssertionError(f"{self.name} must override transpose")

    # ---- operations on values

    def bind(self, *args: Any, **params: Any) -> Any:
        """Apply the primitive to operands; return the result, or a sequence of results."""
        if any(map(has_state, args)):
            return operate(self._compute, self, args, params)
        types = [typeof(x) for x in args]
        if any(isinstance(type_, MutableHiType) for type_ in types) or (
            any(map(makes_state, self._types_out(types, params)))
        ):
            return self._compute(*args, **params)
        low = lowered(types, args)
        if any(isinstance(type_, HiType) for type_ in types):
            params = {**params, _TYPES: tuple(types)}
        results = process(self.low, tuple(low), params)
        types_out = self._types_out(types, self._own(params))
        return self._result(raised(types_out, results))

    def _compute(self, *args: Any, **params: Any) -> Any:
        """Return the result of an operation on values of users' classes, which may have state."""
        run = self.impl if is_eager() else self.to_lojax
        results = self._results(run(*args, **params))
        for x in results:
            if has_state(x):
                made(x)
        return self._result(results)

    def _own(self, params: Params) -> dict[str, Any]:
        return {name: value for name, value in params.items() if name != _TYPES}

    def _types_out(self, types: Sequence[Any], params: Params) -> list[Any]:
        result, _ = self.abstract_eval(*types, **params)
        return list(result) if self.multiple_results else [result]

    def _result(self, values: Sequence[Any]) -> Any:
        return list(values) if self.multiple_results else values[0]

    def _results(self, result: Any) -> list[Any]:
        return list(result) if self.multiple_results else [result]

    # ---- rules of equations, whose operands are low values

    def _infer(self, *avals: Any, **params: Any) -> list[Any]:
        types_out = self._types_out(params.get(_TYPES, avals), self._own(params))
        return low_types(types_out)

    def _effects(self, *avals: Any, **params: Any) -> Effects:
        return frozenset(self.abstract_eval(*params.get(_TYPES, avals), **self._own(params))[1])

    def _apply(self, method: Any, low: Sequence[Any], params: Params) -> list[Any]:
        types = params.get(_TYPES) or [typeof(x) for x in low]
        user_params = self._own(params)
        results = self._results(method(*raised(types, low), **user_params))
        return lowered(self._types_out(types, user_params), results)

    def _run(self, *low: Any, **params: Any) -> list[Any]:
        return self._apply(self.impl, low, params)

    def _lower(self, build: Any, *low: Any, **params: Any) -> list[Any]:
        def computed(*low: Any) -> list[Any]:
            return self._apply(self.to_lojax, low, params)

        return build.by_tracing(computed, low)

    def _jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[list[Any], list[Any]]:
        types = params.get(_TYPES) or [typeof(x) for x in primals]
        user_params = self._own(params)
        moved: list[Any] = []
        position = 0
        for type_ in types:
            if isinstance(type_, HiType):
                count = len(type_.lo_ty())
                low = map(instantiate, tangents[position : position + count])
                moved.append(type_.to_tangent_aval().raise_val(*low))
                position += count
            else:
                moved.append(tangents[position])
                position += 1
        result, tangent = self.jvp(raised(types, primals), moved, **user_params)
        types_out = self._types_out(types, user_params)
        tangent_types = [t.to_tangent_aval() for t in types_out]
        low_tangents = lowered(tangent_types, self._results(tangent))
        return lowered(types_out, self._results(result)), low_tangents

    def _transpose(self, cotangents: Sequence[Any], *low: Any, **params: Any) -> list[Any]:
        avals = [x.aval if type(x) is UndefinedPrimal else typeof(x) for x in low]
        types = params.get(_TYPES) or avals
        user_params = self._own(params)
        operands: list[Any] = []
        position = 0
        for type_ in types:
            count = len(type_.lo_ty()) if isinstance(type_, HiType) else 1
            part = low[position : position + count]
            if any(type(x) is UndefinedPrimal for x in part):
                operands.append(UndefinedPrimal(type_))
            else:
                operands += raised([type_], part)
            position += count
        types_out = [t.to_tangent_aval() for t in self._types_out(types, user_params)]
        if any(isinstance(type_, HiType) for type_ in types_out):
            cotangents = list(map(instantiate, cotangents))
        arriving = self._result(raised(types_out, cotangents))
        operand_cotangents = self.transpose(arriving, *operands, **user_params)
        results: list[Any] = []
        for type_, cotangent in zip(types, operand_cotangents, strict=True):
            if not isinstance(type_, HiType):
                results.append(cotangent)
            elif cotangent is None or type(cotangent) is Zero:
                results += [None] * len(type_.lo_ty())
            else:
                results += type_.to_tangent_aval().lower_val(cotangent)
        return results
