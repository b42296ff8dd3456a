"""The forms of custom_vjp's backward rules: plain, with logs, and with accumulators."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from hlofront.base import source
from hlofront.base.elements import float0
from hlofront.base.tree import PyTree
from hlofront.base.typing import is_tuple_or_list
from hlofront.core.aval import ShapedArray
from hlofront.core.symbolic_zeros import Zero
from hlofront.higher_order.custom_rules.custom_rule import CustomRuleArguments
from hlofront.higher_order.hi_prim.accumulators import GradAccum, NullAccum, ValAccum
from hlofront.transforms.backward_logs import Logs, log

BackwardRule = Callable[..., PyTree]


class BackwardForm:
    """A backward rule that returns cotangents, as for `custom_vjp.defvjp`.

    Args:
      rule: takes the nondifferentiable arguments, the residuals and the cotangent of the result.
    """

    __slots__ = ("rule",)

    may_log = False

    def __init__(self, rule: BackwardRule):
        self.rule = rule

    @property
    def about(self) -> str:
        """The start of error messages about the rule."""
        return f"Custom VJP bwd rule {source.callable_name(self.rule)}"

    def run(
        self, arguments: CustomRuleArguments, perturbed: Sequence[bool] | None, args: Sequence[Any]
    ) -> PyTree:
        """Return the rule's cotangents, a prefix of the tuple of arguments.

        Args:
          arguments: the arguments of the call of the differentiated function.
          perturbed: per leaf of the arguments, whether its cotangent is needed; None if unknown.
          args: the arguments of the rule.
        """
        return self.rule(*args)


class LoggingForm(BackwardForm):
    """A backward rule that returns a pair of cotangents and a dict of logs, or None."""

    __slots__ = ()

    may_log = True

    def run(
        self, arguments: CustomRuleArguments, perturbed: Sequence[bool] | None, args: Sequence[Any]
    ) -> PyTree:
        output = self.rule(*args)
        if not is_tuple_or_list(output) or len(output) != 2:
            raise TypeError(
                f"{self.about} was registered with defvjp_with_logs and so must produce a pair "
                f"(in_cts, logs), but got {source.shortened(repr(output))}"
            )
        cotangents, logs = output
        self._log(logs, "the second element of the pair it returns")
        return cotangents

    def _log(self, logs: object, what: str) -> None:
        if logs is None:
            return
        if not isinstance(logs, dict):
            raise TypeError(
                f"{self.about}: {what} must be None or a dict of backward-pass log entries, but "
                f"got {type(logs).__name__}"
            )
        log(cast("Logs", logs), self.about)


class AccumulatingForm(LoggingForm):
    """A backward rule that adds to accumulators of cotangents; it returns None or a dict of logs.

    After its other arguments, it takes a pytree like the differentiated arguments, with an
    accumulator per leaf.
    """

    __slots__ = ()

    def run(
        self, arguments: CustomRuleArguments, perturbed: Sequence[bool] | None, args: Sequence[Any]
    ) -> PyTree:
        flags = perturbed or [True] * len(arguments.avals)
        sums = [accumulator(t, flag) for t, flag in zip(arguments.avals, flags, strict=True)]
        self._log(self.rule(*args, *arguments.structure.unflatten(sums)), "what it returns")
        return arguments.structure.unflatten(map(cotangent_of, sums))


def accumulator(primal: ShapedArray, is_perturbed: bool = True) -> GradAccum:
    """Return an accumulator for the cotangent of an argument leaf of this type."""
    aval = primal.to_cotangent_aval()
    return (ValAccum if is_perturbed and aval.dtype != float0 else NullAccum)(aval)


def cotangent_of(total: GradAccum) -> Any:
    """Return the sum in an accumulator; None if nothing was added or it is not needed."""
    value = total.freeze() if isinstance(total, ValAccum) else None
    return None if isinstance(value, Zero) else value
