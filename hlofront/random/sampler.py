"""The decorator of samplers: their checks, their documentation, their nested program."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection
from typing import ParamSpec, overload

from hlofront.base.boundary import boundary
from hlofront.base.typing import Array
from hlofront.higher_order.shard_map.axis_types import with_sharding
from hlofront.random.arguments import checked_key, checked_shape, floating, own_shape
from hlofront.runtime.dispatch.operation import operation

P = ParamSpec("P")
_MISSING = inspect.Parameter.empty
_OUT_SHARDING = inspect.Parameter(
    "out_sharding", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="OutSharding"
)


@overload
def sampler(fun: Callable[P, Array], /) -> Callable[P, Array]: ...
@overload
def sampler(
    *, nested: bool = True, has_out_sharding: bool = True, **static: Callable[..., object]
) -> Callable[[Callable[P, Array]], Callable[P, Array]]: ...
def sampler(
    fun: Callable[..., Array] | None = None,
    /,
    *,
    nested: bool = True,
    has_out_sharding: bool = True,
    **static: Callable[..., object],
) -> Callable[..., object]:
    """Return a sampler made from a function: `@sampler` on `def cauchy(key, shape=(), ...)`.

    The function receives a scalar typed key, the result's shape and a floating-point dtype. Unless
    the default of its `shape` is (), its parameters must broadcast to the shape, and None means
    their broadcast shape. The documentation that all samplers share is added to the function's own.

    The sampler checks its arguments at each call; its attribute `unchecked` is the same function
    without the checks.

    Args:
      fun: the function; without it, sampler returns a decorator.
      nested: whether transformations see the sampler as one nested program, like a jitted one.
      has_out_sharding: whether the sampler has a parameter `out_sharding`.
      static: the check of each static argument: a function of the sampler's name and the value,
        which returns the value. A check of `shape` or `dtype` replaces the default one.
    """
    if fun is None:
        return functools.partial(
            sampler, nested=nested, has_out_sharding=has_out_sharding, **static
        )
    name, signature = fun.__name__, inspect.signature(fun)
    parameters = signature.parameters
    names = list(parameters)
    positions = {name: i for i, name in enumerate(names)}
    by_name = [p for p in names if parameters[p].kind is inspect.Parameter.KEYWORD_ONLY]
    most = len(names) - len(by_name)
    defaults = [parameters[p].default for p in names]
    needed = defaults.count(_MISSING)
    of_shape = []
    if parameters["shape"].default in (None, _MISSING) and "shape" not in static:
        of_shape = [p for p in names if p not in ("key", "shape", "dtype") and p not in static]
    checks = {} if of_shape and parameters["shape"].default is None else {"shape": own_shape}
    checks |= ({"dtype": floating} if "dtype" in names else {}) | static
    checked = [(positions[p], check) for p, check in checks.items()]
    array_positions = [i for p, i in positions.items() if p not in ("shape", *checks)]
    shape_position, of_shape_positions = positions["shape"], [positions[p] for p in of_shape]

    # The arguments are bound without `inspect` for speed, as samplers are called in loops.
    @boundary
    @functools.wraps(fun)
    def draw(*args: object, **kwargs: object) -> Array:
        sharding = kwargs.pop("out_sharding", None) if has_out_sharding else None
        count = len(args)
        values = [*args, *defaults[count:]]
        for parameter, value in kwargs.items():
            i = positions.get(parameter, -1)
            if i >= count:
                values[i] = value
            else:
                return fun(*args, **kwargs)  # Python raises TypeError.
        missing = count < needed and any(x is _MISSING for x in values)
        if missing or count > most:
            return fun(*args, **kwargs)
        values[0] = checked_key(name, values[0])
        for i, check in checked:
            values[i] = check(name, values[i])
        if of_shape_positions:
            operands = [values[i] for i in of_shape_positions]
            values[shape_position] = checked_shape(name, values[shape_position], *operands)
        if sharding is None:
            return unchecked(*values) if not by_name else draw_with(values)

        def draw_from(*arrays: object) -> Array:
            for i, value in zip(array_positions, arrays, strict=True):
                values[i] = value
            return draw_with(values)

        arrays = [values[i] for i in array_positions]
        return with_sharding(name, draw_from, arrays, sharding)

    def draw_with(values: list[object]) -> Array:
        return unchecked(*values[:most], **dict(zip(by_name, values[most:], strict=True)))

    if has_out_sharding:
        signature = signature.replace(parameters=[*parameters.values(), _OUT_SHARDING])
    draw.__signature__ = signature  # type: ignore[attr-defined]
    draw.__doc__ = fun.__doc__ and _documentation(fun.__doc__, signature.parameters, of_shape)
    # The nested program is named for the function.
    fun.__name__ = f"_{name}"
    unchecked = operation(fun, static_argnames=("shape", *checks), nested=nested)
    draw.unchecked = unchecked  # type: ignore[attr-defined]
    return draw


def _documentation(docstring: str, parameters: Collection[str], of_shape: list[str]) -> str:
    """Return a sampler's documentation: its own text and the text that all samplers share."""
    summary, *sections = re.split(r"\n\n(?=(?:Args|Example):\n)", inspect.cleandoc(docstring))
    text = dict(section.split(":\n", 1) for section in sections)
    arguments = text.get("Args", "")
    those = f"`{of_shape[0]}`" if len(of_shape) == 1 else "the parameters"
    common = {
        "key": "a random key.",
        "shape": f"of the result; None is that of {those}." if of_shape else "of the result.",
        "dtype": "of floats; by default float32, with x64 float64.",
        "out_sharding": "how the result is split over a mesh.",
    }
    key, *others = [
        f"  {parameter}: {said}"
        for parameter, said in common.items()
        if parameter in parameters and f"  {parameter}: " not in arguments
    ]
    errors = "the dtype is of another kind, or " if "dtype" in parameters else ""
    errors += f"{those} and the shape do not fit, or " if of_shape else ""
    return "\n".join(
        [
            f"{summary}\n\nArgs:",
            key,
            *filter(None, [arguments]),
            *others,
            f"\nRaises:\n  ValueError: if {errors}there are several keys.",
            "  TypeError: if `key` is not a key.",
            *([f"\nExample:\n{text['Example']}"] if "Example" in text else []),
        ]
    )
