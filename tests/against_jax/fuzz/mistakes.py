"""One mistake in a drawn program: a call that is given something it cannot take."""

from typing import Any

import numpy as np

from tests.against_jax.fuzz.choices import Draw


class Mistake:
    """Spoils one call of those that a step makes."""

    def __init__(self, seed: int, place: int):
        self.seed, self.left = seed, place

    def spoil(self, given: tuple[Any, ...], kwargs: dict[str, Any]):
        self.left -= 1
        if self.left != -1:
            return given, kwargs
        d = Draw(self.seed)
        args, kwargs = list(given), dict(kwargs)
        if kwargs and d.chance(0.4):
            key = d.of(sorted(kwargs))
            kwargs[key] = spoilt(d, kwargs[key])
            return tuple(args), kwargs
        form = d.below(8)
        if form == 0 and args:
            args.pop(d.below(len(args)))
        elif form == 1:
            args.insert(d.below(len(args) + 1), d.of((None, 1, "text", np.ones((7, 5)))))
        elif form == 2:
            kwargs["surplus"] = 1
        elif args:
            place = d.below(len(args))
            args[place] = spoilt(d, args[place])
        return tuple(args), kwargs


def spoilt(d: Draw, x: Any) -> Any:
    """Something else in the place of an argument."""
    if callable(x) and not hasattr(x, "aval"):
        form = d.below(6)
        if form == 0:
            return d.of((None, 3, "text"))
        if form == 1:
            return lambda: 1
        if form == 2:
            return lambda *args, **kwargs: None
        if form == 3:
            return lambda *args, **kwargs: (x(*args, **kwargs), 1)
        if form == 4:
            return lambda *args, **kwargs: spoilt(d, x(*args, **kwargs))
        return lambda *args, **kwargs: "text"
    if isinstance(x, bool):
        return d.of((None, "text", 2, []))
    if isinstance(x, int):
        return d.of((7, -9, 1.5, "text", None, np.int32(5), (0, 0), [0], True))
    if isinstance(x, str):
        return d.of(("no such thing", None, 1, "i9", "float99"))
    if isinstance(x, tuple | list):
        items = list(x)
        form = d.below(4)
        if form == 0 and items:
            items.pop()
        elif form == 1:
            items.append(d.of((0, None, 7)))
        elif form == 2 and items:
            place = d.below(len(items))
            items[place] = spoilt(d, items[place])
        else:
            return d.of((None, 3, "text"))
        return tuple(items) if isinstance(x, tuple) and not hasattr(x, "_fields") else items
    if isinstance(x, dict):
        return {**x, "surplus": 1} if d.chance(0.5) else list(x)
    if hasattr(x, "dtype") or isinstance(x, float | complex):
        form = d.below(7)
        if form == 0:
            return d.of((None, "text", {}, [1, "text"], b"x", (1, 2)))
        if form == 1:
            return np.ones((7, 5), np.float32)
        if form == 2:
            return np.array(["a", "b"])
        if form == 3:
            return object
        if form == 4:
            return [x]
        if form == 5:
            return np.ones(np.shape(x), np.complex64)
        return np.ones(np.shape(x), np.int16)
    return d.of((None, "text", 3, 1.5))


def plant(d: Draw, program: dict[str, Any]) -> None:
    """Put a mistake into one step or layer of a program."""
    spots = [*program["steps"], *program["layers"]]
    for step in program["steps"]:
        spots += [inner for body in step[2] for inner in body]
    d.of(spots).append([d.seed(), d.of((0, 0, 0, 1))])
