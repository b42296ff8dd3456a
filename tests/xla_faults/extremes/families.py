"""The families of programs, and the texts that name their programs."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import hlofront as jax

Program = tuple[Callable[..., Any], Sequence[Any]]
Family = Callable[..., Program]

FAMILIES: dict[str, Family] = {}
EXTREMES: dict[str, dict[str, Sequence[Any]]] = {}
EVERY: dict[str, Sequence[str]] = {}
# The names of those that are not run.
ENDLESS: set[str] = set()

# Sizes at the limits of types, and around them.
SIZES = (0, 1, 3, 2**15, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1)
SIGNED = (*SIZES, -1, -2, -(2**31), -(2**31) - 1, -(2**62), -(2**63))
NARROW = ("int2", "uint2", "int4", "uint4", "bool", "int8", "uint64")
SMALL_FLOATS = (
    "float4_e2m1fn",
    "float8_e3m4",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
DTYPES = (*NARROW, *SMALL_FLOATS, "float16", "bfloat16", "float64", "complex64", "complex128")


def family(*every: str, runs: bool = True, **extremes: Sequence[Any]) -> Callable[[Family], Family]:
    """Return the decorator of a family with the extremes of its parameters.

    Args:
      every: the parameters each of whose values is tried with each value of all others.
      runs: whether programs are run where they need little memory; loops would take for ever.
      extremes: the extremes of each parameter.
    """

    def added(function: Family) -> Family:
        name = function.__name__
        assert (
            name not in FAMILIES
            and extremes.keys() <= inspect.signature(function).parameters.keys()
        )
        FAMILIES[name], EXTREMES[name], EVERY[name] = function, extremes, every
        if not runs:
            ENDLESS.add(name)
        return function

    return added


def of(*shape: int, dtype: str = "float32") -> jax.ShapeDtypeStruct:
    """Return the type of an array."""
    return jax.ShapeDtypeStruct(shape, dtype)
