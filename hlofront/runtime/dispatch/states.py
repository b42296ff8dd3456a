"""Calls of jitted functions with stateful values, whose state the function may change."""

from collections.abc import Callable
from typing import Any, Protocol

from hlofront.base.tree import PyTree
from hlofront.primitives.references.mutable_values import (
    keep_states,
    on_passed_states,
    passed_states,
)


class _Jitted(Protocol):
    """A protocol of jitted functions."""

    name: str
    fun: Callable[..., Any]
    on_states: Any
    jit_shardings: Any
    jit_layouts: Any

    def of_function(self, fun: Callable[..., object]) -> Any: ...


def _on_states(jitted: _Jitted) -> Any:
    """Return the jitted function of PassedStates, which also returns the final states.

    Raises:
      TypeError: if shardings or layouts are requested, as these are for other arguments.
    """
    if jitted.jit_shardings is not None or jitted.jit_layouts is not None:
        raise TypeError(
            f"{jitted.name} is jitted with shardings or layouts of arguments or results, and was "
            "given a value with a state: leave them out, or pass the arrays that it holds"
        )
    if jitted.on_states is None:
        jitted.on_states = jitted.of_function(on_passed_states(jitted.fun))
    return jitted.on_states


def result_on_states(
    jitted: _Jitted, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[PyTree] | None:
    """Return the result of a call, in a tuple, and change the arguments that have a state.

    None is returned if no argument has one.
    """
    (passed, passed_by_name), objects = passed_states((args, kwargs))
    if not objects:
        return None
    (result, left), *_ = _on_states(jitted).compile_and_call(passed, passed_by_name)
    keep_states(objects, left)
    return (result,)


def shape_on_states(
    jitted: _Jitted, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[PyTree] | None:
    """Return the shapes and dtypes of the result of a call, in a tuple.

    None is returned if no argument has a state.
    """
    (passed, passed_by_name), objects = passed_states((args, kwargs))
    if not objects:
        return None
    result, _ = _on_states(jitted).eval_shape(*passed, **passed_by_name)
    return (result,)
