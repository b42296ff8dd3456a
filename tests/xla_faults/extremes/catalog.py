"""All programs, by the texts that name them."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

from tests.xla_faults.extremes import arrays, calls, linalg
from tests.xla_faults.extremes.families import ENDLESS, EVERY, EXTREMES, FAMILIES, Program

# Their families are in the tables once they are imported.
MODULES = (arrays, calls, linalg)


def is_run(name: str) -> bool:
    """Return whether a program may be run, by its name."""
    return name.partition("(")[0] not in ENDLESS


def program(name: str) -> Program:
    """Return the program with a name, which is a call of its family."""
    return eval(name, dict(FAMILIES))


def names(pairs: int = 0) -> Iterator[str]:
    """Yield the names of all programs of one extreme, and of so many of two for each family."""
    for name, extremes in EXTREMES.items():
        every = [
            [each for each in combined if each is not None]
            for combined in itertools.product(
                *[[None, *[(key, value) for value in extremes[key]]] for key in EVERY[name]]
            )
        ]
        single = [
            [(key, value)]
            for key, values in extremes.items()
            if key not in EVERY[name]
            for value in values
        ]
        double = [
            [*one, *other]
            for one, other in itertools.combinations(single, 2)
            if one[0][0] != other[0][0]
        ]
        chosen = random.Random(name).sample(double, min(pairs, len(double)))
        for fixed in every:
            for settings in ([], *single, *chosen):
                told = ", ".join(f"{key}={_text(value)}" for key, value in [*fixed, *settings])
                yield f"{name}({told})"


def _text(value: Any) -> str:
    """Return a value as an expression, with large integers as sums of powers of two."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))}{',' * (len(value) == 1)})"
    if type(value) is not int or abs(value) < 2**15:
        return repr(value)
    power = abs(value).bit_length() - 1
    power += abs(value) * 2 > 3 << power
    rest = abs(value) - (1 << power)
    text = f"2**{power}" + (f" {'+' if rest > 0 else '-'} {abs(rest)}" if rest else "")
    return text if value > 0 else f"-({text})"
