"""Functions of arrays that run eagerly as one executable, and are written inline when traced."""

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any

from hlofront.base import errors
from hlofront.base.boundary import boundary
from hlofront.bridge import client as bridge
from hlofront.bridge import fast_parts, state
from hlofront.core.trace import Tracer, is_eager
from hlofront.runtime.jit import Jitted, cpp_cache, shard_argument
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.stage import EAGER

_flatten = fast_parts.registry.flatten
_disable_jit = state.disable_jit


class Operation:
    """What stands behind an operation: its function, and how it is compiled when eager."""

    __slots__ = ("fun", "jitted")

    def __init__(self, fun: Callable[..., Any], static_argnames: Sequence[str] = ()):
        self.fun = fun
        plan = ArgumentPlan(fun, static_argnames=static_argnames)
        self.jitted = Jitted(fun, plan, traced_for=EAGER)

    @boundary
    def call(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        # While a program is being written down, running the function is writing it inline.
        if not is_eager() or _disable_jit.value:
            return self.fun(*args, **kwargs), None, False
        leaves, _ = _flatten((args, kwargs))
        for leaf in leaves:
            if isinstance(leaf, Tracer):
                return self.fun(*args, **kwargs), None, False
        try:
            return self.jitted.compile_and_call(args, kwargs)
        except (TypeError, ValueError) as error:
            errors.add_operands(error, self.fun.__name__, leaves)
            raise


def operation(
    fun: Callable[..., Any] | None = None, *, static_argnames: Sequence[str] = ()
) -> Any:
    """Make a function of arrays quick outside of jit: `@operation(static_argnames=("axis",))`.

    Eagerly it is one cached executable behind jaxlib's C++ call path; under a transformation its
    own operations are seen, without a nested program. Its arguments are arrays but for the static
    ones, which must be hashable.
    """
    if fun is None:
        return partial(operation, static_argnames=static_argnames)
    inner = Operation(fun, static_argnames)
    plan = inner.jitted.plan
    call = bridge.pjit(
        fun.__name__,
        fun,
        inner.call,
        plan.static_argnums,
        plan.static_argnames,
        "operation",
        fast_parts.registry,
        shard_argument,
        cpp_cache,
    )
    update_wrapper(call, fun)
    return call
