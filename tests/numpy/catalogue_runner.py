"""Runs the catalogue, alike under hlofront and under jax: the namespaces are handed in."""

import copy
import dataclasses
import functools
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np

from tests.numpy import catalogue
from tests.support.outcomes import Raised, describe_leaf, own_name
from tests.systematic import trials

# How many calls are compiled as one program.
AT_ONCE = 40


def is_array(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")


def described(result: Any, jax: Any) -> Any:
    """The structure of a result, and (kind, type, value) of each leaf; or the error."""
    if isinstance(result, Exception):
        return Raised.of(result)
    leaves, structure = jax.tree_util.tree_flatten(result)
    return own_name(str(structure)), [describe_leaf(leaf, jax) for leaf in leaves]


class Batch:
    """Calls of one chapter that are compiled as one program, or run one by one as they are."""

    def __init__(self, calls: list[Any], concrete: bool, x64: bool, jax: Any, jnp: Any):
        self.calls = calls
        self.concrete = concrete
        self.x64 = x64
        self.jax = jax
        self.functions = [one.on(jnp) for one in calls]
        self.program = None if concrete else trials.Together(self.functions, x64, jax)

    def run(self, all_values: list[Any]) -> list[Any]:
        """For each call its described result, or the exception that it raised."""
        if self.program is not None:
            results = self.program(all_values)
        else:
            with trials.quiet(), self.jax.enable_x64(self.x64):
                results = [
                    attempt(function, values)
                    for function, values in zip(self.functions, all_values, strict=True)
                ]
        return [described(result, self.jax) for result in results]


def attempt(function: Any, values: Any) -> Any:
    try:
        return function(*values)
    except Exception as error:
        return error


def batches(chapter: str, jax: Any, jnp: Any, names: Collection[str] | None = None) -> list[Batch]:
    """The calls of a chapter, or those of these names; so many at once, 64 bits by themselves."""
    found = []
    for concrete in (False, True):
        for x64 in (False, True):
            calls = [
                one
                for one in catalogue.of_chapter(chapter)
                if one.concrete is concrete
                and one.needs_x64() is x64
                and (names is None or one.name in names)
            ]
            found += [
                Batch(calls[start : start + AT_ONCE], concrete, x64, jax, jnp)
                for start in range(0, len(calls), AT_ONCE)
            ]
    return found


def outcomes(chapter: str, names: Collection[str], jax: Any, jnp: Any, *_: Any) -> dict[str, Any]:
    """By the names of calls of a chapter what came out."""
    return {
        one.name: outcome
        for batch in batches(chapter, jax, jnp, names)
        for one, outcome in zip(
            batch.calls, batch.run([one.values() for one in batch.calls]), strict=True
        )
    }


# ---- NumPy --------------------------------------------------------------------------------------

WIDE = {"f": np.float64, "V": np.float64, "c": np.complex128}


def wide(x: Any) -> Any:
    """Arrays of floats and dtypes, in 64 bits."""
    if isinstance(x, np.ndarray | np.generic):
        return np.asarray(x).astype(WIDE.get(x.dtype.kind, x.dtype))
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        return type(x)([wide(branch) for branch in x])
    if isinstance(x, type | np.dtype):
        return np.dtype(WIDE.get(np.dtype(x).kind, x))
    return x


def by_numpy(one: Any, values: list[np.ndarray]) -> list[Any]:
    """NumPy's result, as leaves."""
    reference = one.numpy or getattr(np, one.function)
    operands, keywords = one.arguments(values)
    # Some of NumPy's functions write to what they are given.
    operands, keywords = copy.deepcopy((operands, keywords))
    if not one.narrow:
        operands = tuple(wide(x) for x in operands)
        keywords = {key: wide(value) for key, value in keywords.items()}
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        return flat(reference(*operands, **keywords))


def flat(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [leaf for branch in result for leaf in flat(branch)]
    return [result]


# ---- wrong calls --------------------------------------------------------------------------------

# What is given in place of an operand.
INSTEAD = {
    "None": None,
    "a string": "abc",
    "a list": [1.0, 2.0],
    "an object": catalogue.AN_OBJECT,
    "an array of strings": np.array(["a", "b"]),
    "of another shape": np.ones((5, 7), np.float32),
    "a complex number": 1j,
    "a boolean": True,
    "a float": 2.5,
    "a mask": np.array([True, False, True]),
    "unsigned": np.array([1, 2, 3], np.uint8),
}
# Many of these are right, and take long where each is compiled by itself.
COMPUTED = ("of another shape", "a complex number", "a boolean", "a float", "a mask", "unsigned")
# What is given for a keyword, or a parameter that has a default.
INSTEAD_BY_NAME = {
    "axis": (7, -9, "x", 1.5, (0, 0), (0, 7), None),
    "dtype": ("nonsense", 3, np.float32, "S3"),
    "out": (np.ones(3),),
    "mode": ("bounce", 3),
    "method": ("nonsense",),
    "side": ("middle",),
    "order": ("X",),
    "where": ("x", None),
    "initial": ("x",),
    "keepdims": (True,),
    "size": (-1, "x"),
}


@functools.cache
def wrong_calls(chapter: str) -> list[tuple[str, Any]]:
    """Calls of a chapter that are likely wrong, each with a name: the first one, distorted."""
    found = [(one.name, one) for one in catalogue.of_chapter(chapter, catalogue.WRONG)]
    seen = set()
    for one in catalogue.of_chapter(chapter):
        if one.function in seen:
            continue
        seen.add(one.function)
        found += [(f"{one.function} {how}", other) for how, other in distorted(one)]
    return found


def distorted(one: Any) -> list[tuple[str, Any]]:
    found = [("of nothing", changed(one, operands=()))]
    found.append(("of one more", changed(one, operands=(*one.operands, *[None] * 9))))
    found.append(("with a keyword", changed(one, keywords={**one.keywords, "nonsense": 1})))
    for place, _ in enumerate(one.operands):
        for how, value in INSTEAD.items():
            if one.concrete and how in COMPUTED:
                continue
            operands = (*one.operands[:place], value, *one.operands[place + 1 :])
            found.append((f"of {how} at {place}", changed(one, operands=operands)))
    for name, values in INSTEAD_BY_NAME.items():
        for value in values:
            keywords = {**one.keywords, name: value}
            found.append(
                (f"with {name}={catalogue._shown(value)}", changed(one, keywords=keywords))
            )
    return found


def changed(one: Any, **fields: Any) -> Any:
    return dataclasses.replace(one, **fields)


def outcomes_of_wrong(
    chapter: str, names: Collection[str], jax: Any, jnp: Any, *_: Any
) -> dict[str, Any]:
    """By the names of wrong calls: what they raise, or the structure and types of results."""
    found = {}
    calls = dict(wrong_calls(chapter))
    for name in names:
        one = calls[name]
        values = one.values()
        with trials.quiet(), jax.enable_x64(False):
            try:
                if one.concrete:
                    result = one.on(jnp)(*values)
                else:
                    result = jax.eval_shape(one.on(jnp), *values)
                leaves, structure = jax.tree_util.tree_flatten(result)
                found[name] = (own_name(str(structure)), [_type_of(leaf) for leaf in leaves])
            except Exception as error:
                found[name] = Raised.of(error)
    return found


def _type_of(leaf: Any) -> str:
    if not is_array(leaf):
        return type(leaf).__name__
    weak = "weak " if getattr(leaf, "weak_type", False) else ""
    return f"{weak}{leaf.dtype}{list(leaf.shape)}"
