"""What each function of the numpy namespace is tried with: one file per chapter of hlofront/numpy.

    tried("sum prod", *each(NUMBERS, lambda t: call(t[2, 3], axis=1)), call(f32[0, 3]))
    tried("copysign", call(f32[3], -1.0), special=True)

An entry names functions, and calls of each: operands and keywords, which may be Specs (dtype and
shape; values are drawn, the same ones each time), arrays, numbers, or lists and tuples of them.
Every call is held against NumPy, against jax, and, where there are floats, differentiated and
mapped over. The files name no namespace, as both sides import them.
"""

import dataclasses
import importlib
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.cases import (
    Case,
    Spec,
    b1,
    bf16,
    c64,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    u8,
    u32,
)

INTEGERS = (i8, i32, u8, u32, i64)
FLOATS = (bf16, f16, f32, f64)
REALS = (*INTEGERS, *FLOATS)
NUMBERS = (*REALS, c64)
ALL = (b1, *NUMBERS)
# One of a kind, for functions that move elements and do not look at them.
KINDS = (b1, u8, bf16, c64)
# What elementwise functions treat in their own way.
ODD = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-30, -3e38])


class AnObject:
    """That is no array."""

    def __repr__(self):
        return "an object"


AN_OBJECT = AnObject()


@dataclasses.dataclass
class Call(Case):
    """One way to call one function, which goes by its name as no namespace is said."""

    chapter: str = ""
    # What NumPy answers with: its own function of the name unless said, or why there is none.
    numpy: Callable[..., Any] | str | None = None
    # Runs as it is, not under jit: shapes depend on values, or results are no arrays.
    concrete: bool = False
    # NumPy computes in the operands' dtypes: in wider ones the function means something else.
    narrow: bool = False
    # Whether jax's result is weak where ours is not, or the other way round: of Python scalars.
    other_weakness: bool = False
    # NumPy's result is of another kind: a float, where ours is an integer.
    other_kind: bool = False
    # Whether values may be infinite or NaN.
    special: bool = False
    # Why `vmap` is not compared with a loop.
    not_batched: str | None = None
    # Only values drawn at random will do: of others, NumPy chooses by rounding errors.
    fragile: bool = False

    @property
    def name(self) -> str:
        shown = [_shown(x) for x in self.operands]
        shown += [f"{key}={_shown(value)}" for key, value in self.keywords.items()]
        return f"{self.function}({', '.join(shown)})"

    def on(self, namespace: Any) -> Callable[..., Any]:
        """The call as a function of the values of its specs alone."""

        def function(*values):
            operands, keywords = self.arguments(values)
            return getattr(namespace, self.function)(*operands, **keywords)

        return function


def _shown(x: Any) -> str:
    if type(x) in (list, tuple):
        inside = ", ".join(map(_shown, x))
        return f"[{inside}]" if type(x) is list else f"({inside})"
    if isinstance(x, np.ndarray):
        values = ",".join(str(v) for v in x.ravel().tolist()[:12])
        return f"{x.dtype.name}{list(x.shape)}<{values}>"
    if isinstance(x, Spec) and (x.low, x.high) != (-3.0, 3.0):
        return f"{x!r} from {x.low} to {x.high}"
    return getattr(x, "__name__", None) or repr(x)


# ---- what the files of chapters say --------------------------------------------------------------

CALLS: dict[str, list[Call]] = {}  # by function
# By function: calls that are wrong, and raise what jax raises.
WRONG: dict[str, list[Call]] = {}
# By name: the function that has it too.
ALIASES: dict[str, str] = {}
# By name: why it is not tried here.
EXCLUDED: dict[str, str] = {}


def call(*operands: Any, **keywords: Any) -> Call:
    return Call("", operands, keywords)


def each(makers: tuple[Any, ...], make: Callable[[Any], Call]) -> list[Call]:
    """A call for each dtype."""
    return [make(maker) for maker in makers]


def tried(names: str, *calls: Call, **options: Any) -> None:
    """Register calls of each of the functions; options are the fields of Call."""
    for name in names.split():
        for one in calls:
            own = {key: value for key, value in options.items() if not _is_set(one, key)}
            changed = dataclasses.replace(one, function=name, chapter=_chapter(), **own)
            CALLS.setdefault(name, []).append(changed)


def _is_set(one: Call, field: str) -> bool:
    return getattr(one, field) is not Call.__dataclass_fields__[field].default


def but(one: Call, **options: Any) -> Call:
    """A call with options of its own."""
    return dataclasses.replace(one, **options)


def wrong(names: str, *calls: Call) -> None:
    """Register calls that both sides refuse."""
    for name in names.split():
        for one in calls:
            WRONG.setdefault(name, []).append(
                dataclasses.replace(one, function=name, chapter=_chapter())
            )


def alias(**others: str) -> None:
    """Names of functions that have another one."""
    ALIASES.update(others)


def excluded(names: str, reason: str) -> None:
    EXCLUDED.update(dict.fromkeys(names.split(), reason))


def _chapter() -> str:
    """The file that calls our caller."""
    return sys._getframe(2).f_globals["__name__"].rpartition(".")[2]


CHAPTERS = sorted(
    path.stem for path in pathlib.Path(__file__).parent.glob("*.py") if path.stem != "__init__"
)


def load() -> None:
    for chapter in CHAPTERS:
        importlib.import_module(f"tests.numpy.catalogue.{chapter}")


def of_chapter(chapter: str, calls: dict[str, list[Call]] = CALLS) -> list[Call]:
    load()
    return [one for several in calls.values() for one in several if one.chapter == chapter]
