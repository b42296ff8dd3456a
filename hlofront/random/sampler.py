"""What samplers share: the checks before they draw, their documentation, their nested program."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from hlofront.base.boundary import boundary
from hlofront.random.arguments import checked_key, checked_shape, floating, own_shape
from hlofront.runtime.dispatch.operation import operation

_MISSING = inspect.Parameter.empty


def sampler(
    fun: Callable[..., Any] | None = None, *, nested: bool = True, **static: Callable[..., Any]
) -> Any:
    """Make a sampler of a function that draws: `@sampler` on `def cauchy(key, shape=(), ...)`.

    The function gets a single typed key, the whole shape and a dtype of floats. Unless its default
    shape is (), its parameters must broadcast to the shape, and None is the shape that they have
    together. Its own documentation says what is special to it; what all samplers share is added.

    What it gives is checked at each call; the attribute `unchecked` of that is without the checks.

    Args:
      fun: the function; without it, sampler returns a decorator.
      nested: whether under a transformation it is one nested program, as a jitted function is.
      static: the parameters that are no arrays, and what checks each: a function of the sampler's
        name and the value, which returns the value. Also for a shape or dtype of another kind.
    """
    if fun is None:
        return functools.partial(sampler, nested=nested, **static)
    name, parameters = fun.__name__, inspect.signature(fun).parameters
    names = [p.name for p in parameters.values() if p.kind is not p.KEYWORD_ONLY]
    place = {name: i for i, name in enumerate(names)}
    rest = [parameters[p].default for p in names]
    needed = rest.count(_MISSING)
    of_shape = []
    if parameters["shape"].default in (None, _MISSING) and "shape" not in static:
        of_shape = [p for p in names if p not in ("key", "shape", "dtype") and p not in static]
    checks = {} if of_shape and parameters["shape"].default is None else {"shape": own_shape}
    checks |= ({"dtype": floating} if "dtype" in names else {}) | static
    checked = [(place[p], check) for p, check in checks.items()]
    shape_place, shape_places = place["shape"], [place[p] for p in of_shape]

    # Python's own binding, and no more: samplers are called in loops.
    @boundary
    @functools.wraps(fun)
    def draw(*args: Any, **kwargs: Any) -> Any:
        count, sharding = len(args), None
        given = [*args, *rest[count:]]
        for parameter, value in kwargs.items():
            i = place.get(parameter, -1)
            if i >= count:
                given[i] = value
            elif parameter == "out_sharding" and parameter in parameters:
                sharding = value
            else:
                return fun(*args, **kwargs)  # Python says what is wrong.
        missing = count < needed and any(x is _MISSING for x in given)
        if missing or len(given) != len(names):
            return fun(*args, **kwargs)
        given[0] = checked_key(name, given[0], sharding)
        for i, check in checked:
            given[i] = check(name, given[i])
        if shape_places:
            operands = [given[i] for i in shape_places]
            given[shape_place] = checked_shape(name, given[shape_place], *operands)
        return unchecked(*given)

    draw.__doc__ = fun.__doc__ and _documentation(fun.__doc__, parameters.keys(), of_shape)
    # The name of the nested program.
    fun.__name__ = f"_{name}"
    unchecked = operation(fun, static_argnames=("shape", *checks), nested=nested)
    draw.unchecked = unchecked  # type: ignore[attr-defined]
    return draw


def _documentation(own: str, parameters: Any, of_shape: list[str]) -> str:
    """A sampler's documentation: what it says itself, and what is common to those of its kind."""
    summary, _, arguments = inspect.cleandoc(own).partition("\n\nArgs:\n")
    those = f"`{of_shape[0]}`" if len(of_shape) == 1 else "the parameters"
    common = {
        "key": "a random key.",
        "shape": f"of the result; None is that of {those}." if of_shape else "of the result.",
        "dtype": "of floats; by default float32, with x64 float64.",
        "out_sharding": "None.",
    }
    key, *others = [
        f"  {parameter}: {said}"
        for parameter, said in common.items()
        if parameter in parameters and f"  {parameter}: " not in arguments
    ]
    errors = "the dtype is another, or " if "dtype" in parameters else ""
    errors += f"{those} and the shape do not fit, or " if of_shape else ""
    return "\n".join(
        [
            f"{summary}\n\nArgs:",
            key,
            *filter(None, [arguments]),
            *others,
            f"\nRaises:\n  ValueError: if {errors}there are several keys.",
            "  TypeError: if `key` is no key.",
        ]
    )
