"""Verified functions: `jit(f, verify=True)` checks the first calls for faults of XLA's compiler."""

import functools
from collections.abc import Callable

from hlofront.base import tree
from hlofront.base.boundary import named_as
from hlofront.base.tree import PyTree
from hlofront.core.trace import Tracer, is_eager
from hlofront.inspect.miscompile.report import MiscompileReport
from hlofront.inspect.miscompile.search import Search, refuse_effects
from hlofront.inspect.miscompile.trials import Trials
from hlofront.inspect.stepwise.call import search_on_values
from hlofront.runtime.dispatch.stages import Lowered, Traced, Wrapped

# The number of calls that `verify=True` checks.
DEFAULT_CALLS = 2


class MiscompileError(RuntimeError):
    """The error that a function, as XLA compiles it, contradicts its operations run one by one.

    The attribute `report` says what is wrong; `find_miscompile` also finds what cures it.
    """

    __module__ = "hlofront.inspect"

    def __init__(self, report: MiscompileReport):
        super().__init__(
            f"{report}\nfind_miscompile says which options cure it. verify=False leaves this "
            "check out"
        )
        self.report = report


class VerifiedFunction:
    """A jitted function whose first calls also run operation by operation.

    Args:
      function: the jitted function.
      calls: how many calls are checked.
    """

    def __init__(self, function: Wrapped, calls: int):
        self._function = function
        self._left = calls
        named_as(self, function)

    def __call__(self, *args: object, **kwargs: object) -> PyTree:
        leaves = tree.tree_leaves((args, kwargs))
        if self._left > 0 and is_eager() and not any(isinstance(x, Tracer) for x in leaves):
            self._left -= 1
            report = search_on_values("jit with verify", self._function, _judge)(*args, **kwargs)
            if report:
                raise MiscompileError(report)
        return self._function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Callable[..., PyTree]:
        return self if instance is None else functools.partial(self, instance)

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """Trace the function for these arguments."""
        return self._function.trace(*args, **kwargs)

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """Trace and lower the function for these arguments."""
        return self._function.lower(*args, **kwargs)

    def __getattr__(self, name: str) -> object:
        if name == "_function":
            raise AttributeError(name)
        return getattr(self._function, name)


def _judge(traced: Traced, arrays: list[object]) -> MiscompileReport:
    refuse_effects(traced.jaxpr, "jit with verify")
    trials = Trials(dict(traced._jitted.compiler_options), seconds=60.0)
    report, _ = Search(traced, arrays, trials, lambda text: None).run(try_apart=False)
    return report


def verified(function: Wrapped, verify: int) -> VerifiedFunction:
    """Return a jitted function whose first calls are checked.

    Args:
      function: the jitted function.
      verify: True, or how many calls are checked.

    Raises:
      ValueError: if it is negative.
      TypeError: if it is neither.
    """
    if not isinstance(verify, int):
        raise TypeError(f"verify is True, False, or how many calls are checked: got {verify!r}")
    if verify < 0:
        raise ValueError(f"verify is how many calls are checked, at least 0: got {verify}")
    return VerifiedFunction(function, DEFAULT_CALLS if verify is True else verify)
