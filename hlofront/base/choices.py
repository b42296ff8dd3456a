"""The check of parameters that take one of a few values."""

from __future__ import annotations

from collections.abc import Sequence


def check_choice(function: str, parameter: str, value: object, choices: Sequence[object]) -> None:
    """Raise ValueError unless the value of a function's parameter is one of the choices."""
    if value not in choices:
        *others, last = map(repr, choices)
        raise ValueError(
            f"{parameter} of {function} is {', '.join(others)} or {last}: got {value!r}"
        )
