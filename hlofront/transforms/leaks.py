"""The search for leaked tracers that checking_leaks and jax_check_tracer_leaks enable."""

import gc
import sys
import types
import weakref
from collections.abc import Sequence
from typing import Any

from hlofront.base import errors
from hlofront.core.trace import Trace, Tracer

_MAX_SHOWN = 5


def raise_if_leaked(reference: "weakref.ref[Any]") -> None:
    """Raise TracerLeakError if tracers of a finished trace are still referenced, and say by what.

    Args:
      reference: a weak reference to the trace, whose function has returned. The caller must hold no
        references to the trace, or to the arguments and results of the function.

    Raises:
      TracerLeakError: if a tracer is still referenced.
    """
    # A garbage collection visits all objects of the process, so it only runs for a trace that
    # reference counting has not deleted. A trace in a reference cycle has not leaked.
    if reference() is None:
        return
    gc.collect()
    trace: Trace | None = reference()
    if trace is None:
        return
    survivors = [x for x in gc.get_referrers(trace) if isinstance(x, Tracer)]
    if not survivors:
        return
    function = survivors[0]._traced_function() or "a function"  # pyright: ignore[reportPrivateUsage]
    lines = [_line(tracer, survivors) for tracer in survivors[:_MAX_SHOWN]]
    raise errors.TracerLeakError(
        f"Leaked trace: {len(survivors)} traced value(s) of {function} are still referred to after "
        "it returned:\n" + "\n".join(lines)
    )


def _line(tracer: Tracer, survivors: Sequence[Tracer]) -> str:
    holders = _holders(tracer, survivors)
    text = f"  {tracer} is kept by {', '.join(holders) or 'something'}."
    origin = tracer._origin_message()  # pyright: ignore[reportPrivateUsage]
    return f"{text} {origin}" if origin else text


def _holders(held: object, ours: Sequence[object], depth: int = 2) -> list[str]:
    """Return descriptions of the globals, closures and containers that refer to an object.

    Args:
      held: the object.
      ours: the caller's own list, which is ignored.
      depth: how many levels of containers to describe.
    """
    descriptions: list[str] = []
    for holder in _referrers(held):
        if holder is ours or isinstance(holder, types.FrameType):
            continue
        if issubclass(type(holder), dict):
            module = holder.get("__name__") if "__builtins__" in holder else None
            keys = [str(key) for key, value in holder.items() if value is held]
            if isinstance(module, str):
                descriptions += [f"{key!r} of module {module}" for key in keys]
            else:
                descriptions += [
                    f"{key!r} of {_described_holder('a dict', holder, ours, depth)}" for key in keys
                ]
        elif issubclass(type(holder), list | tuple | set) and len(holder) < 1000:
            what = f"a {type(holder).__name__} of {len(holder)}"
            descriptions.append(_described_holder(what, holder, ours, depth))
        elif type(holder).__name__ == "cell":
            descriptions.append("a closure")
        elif isinstance(holder, Tracer):
            descriptions.append(f"another traced value, {holder}")
    return sorted(descriptions, key=_is_anonymous)[:3]


def _referrers(held: object) -> list[Any]:
    """Return the objects that refer to an object.

    `gc.get_referrers` skips objects that `gc.freeze()` has frozen, so modules and their variables
    are also searched directly.
    """
    referrers: list[Any] = gc.get_referrers(held)
    known = {id(holder) for holder in referrers}
    for module in tuple(sys.modules.values()):
        variables = getattr(module, "__dict__", {})
        for holder in (variables, *variables.values()):
            if _contains(holder, held) and id(holder) not in known:
                known.add(id(holder))
                referrers.append(holder)
    return referrers


def _contains(container: Any, held: object) -> bool:
    """Return whether an object is an element of a container, or a value of a dict."""
    if issubclass(type(container), dict):
        return any(value is held for value in container.values())
    if issubclass(type(container), list | tuple | set):
        return any(element is held for element in container)
    return False


def _is_anonymous(holder: str) -> bool:
    return "'" not in holder


def _described_holder(what: str, container: object, ours: Sequence[object], depth: int) -> str:
    """Return a description of a container and of the first named object that refers to it."""
    if depth <= 1:
        return what
    # The garbage collector's order is arbitrary, so prefer a holder with a name.
    named = [above for above in _holders(container, ours, depth - 1) if above.startswith("'")]
    return f"{what}, which is {named[0]}" if named else what
