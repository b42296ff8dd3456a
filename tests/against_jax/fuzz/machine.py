"""Runs the steps of a drawn program, alike under hlofront and jax: the namespace is handed in."""

import collections
import contextlib
import dataclasses
import functools
import importlib
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.against_jax.fuzz.choices import Draw
from tests.against_jax.fuzz.mistakes import Mistake

OPERATIONS: dict[str, Callable[..., Any]] = {}
WEIGHTS: dict[str, float] = {}
# How many functions an operation hands on; none where it is not named.
BODIES: dict[str, int] = {}

Pair = collections.namedtuple("Pair", "first second")


@dataclasses.dataclass
class Box:
    """A class of the user's that holds values, and something that is none."""

    inside: Any
    more: Any
    label: str = "box"


@functools.cache
def register_box(jax: Any) -> None:
    jax.tree_util.register_dataclass(Box, data_fields=["inside", "more"], meta_fields=["label"])


def operation(weight: float = 1.0, bodies: int = 0):
    """Adds an operation by its function's name: `(machine, draw, values[, bodies]) -> results`."""

    def register(function):
        OPERATIONS[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        BODIES[function.__name__] = bodies
        return function

    return register


def kind_of(x: Any) -> str:
    """b, i, u, f, c as NumPy has them (bfloat16: f, int4: i), k for random keys, 0 for float0."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return {bool: "b", int: "i", float: "f", complex: "c"}[type(x)]
    if not isinstance(dtype, np.dtype):
        return "k"
    if dtype.names:
        return "0"
    if dtype.kind == "V":
        return {"i": "i", "u": "u"}.get(dtype.name[0], "f")
    return dtype.kind


class Machine:
    """What runs programs under one of the two: `call` is where it meets it."""

    def __init__(self, jax: Any, nudge: int | None = None):
        self.jax = jax
        # The seed of changes in the last bit of arguments and constants; None for none.
        self.nudge = nudge
        places = {
            "jnp": "numpy",
            "lax": "lax",
            "nn": "nn",
            "special": "scipy.special",
            "linalg": "scipy.linalg",
            "random": "random",
            "tree": "tree_util",
            "ad_checkpoint": "ad_checkpoint",
            "ops": "ops",
        }
        self.roots = {
            name: importlib.import_module(f"{jax.__name__}.{place}")
            for name, place in places.items()
        }
        self.roots |= {"jax": jax, "operator": operator}
        self.jnp, self.lax = self.roots["jnp"], self.roots["lax"]
        # The named axes in scope, innermost last, with their sizes.
        self.axes: list[tuple[str, int]] = []
        # How many axes of layers have names.
        self.outer_axes = 0
        # What spoils the calls of the step or layer that runs.
        self.mistake: Any = None
        # Where calls are written down as text, and what the values are called there.
        self.said: list[str] | None = None
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []
        register_box(jax)

    def new_axis_name(self) -> str:
        """The name of an axis that a layer maps: no two layers have the same."""
        self.outer_axes += 1
        return f"o{self.outer_axes}"

    # ---- calls -----------------------------------------------------------------------------------

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function by its dotted name: `jnp.sum`."""
        first, *rest = name.split(".")
        function = functools.reduce(getattr, rest, self.roots[first])
        return self.applied(name, function, *args, **kwargs)

    def method(self, x: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of a value, which is made an array if it has none."""
        if isinstance(x, np.ndarray | np.generic | bool | int | float | complex):
            x = self.jnp.asarray(x)
        function = functools.reduce(getattr, name.split("."), x)
        return self.applied(f"{self.shown(x)}.{name}", function, *args, **kwargs)

    def applied(self, said: str, function: Any, *args: Any, **kwargs: Any) -> Any:
        if self.mistake is not None:
            args, kwargs = self.mistake.spoil(args, kwargs)
        if self.said is None:
            return function(*args, **kwargs)
        shown = [self.shown(x) for x in args]
        shown += [f"{key}={self.shown(x)}" for key, x in kwargs.items()]
        line = f"{said}({', '.join(shown)})"
        place = len(self.said)
        self.said.append(line)
        try:
            result = function(*args, **kwargs)
        except Exception as error:
            self.said[place] = f"{line}   # {type(error).__name__}"
            raise
        self.said[place] = f"{self.named(result)} = {line}"
        return result

    def shown(self, x: Any) -> str:
        if self.said is None:
            return ""  # Nothing is written down, and no tracer may be kept.
        if isinstance(x, tuple | list) and not hasattr(x, "_fields"):
            inside = ", ".join(map(self.shown, x))
            return f"({inside},)" if isinstance(x, tuple) else f"[{inside}]"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{key}: {self.shown(y)}" for key, y in x.items()) + "}"
        if hasattr(x, "aval") or isinstance(x, np.ndarray):
            return self.names.get(id(x)) or self.named(x)
        if callable(x):
            return getattr(x, "__name__", type(x).__name__)
        return repr(x)

    def named(self, x: Any) -> str:
        if hasattr(x, "aval") or isinstance(x, np.ndarray):
            weak = "~" if getattr(getattr(x, "aval", None), "weak_type", False) else ""
            numpy = "np " if isinstance(x, np.ndarray) else ""
            self.kept.append(x)  # so that no other value gets its id
            self.names[id(x)] = f"v{len(self.kept)}"
            return f"v{len(self.kept)}:{numpy}{x.dtype}{weak}{list(np.shape(x))}"
        if isinstance(x, tuple | list):
            return f"({', '.join(map(self.named, x))})"
        return type(x).__name__

    # ---- steps -----------------------------------------------------------------------------------

    def run(self, steps: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        """The values, and what the steps add to them."""
        values = list(values)
        for name, seed, bodies, *mistake in steps:
            draw = Draw(seed)
            arguments = (bodies,) if BODIES[name] else ()
            with self.spoilt(mistake):
                found = OPERATIONS[name](self, draw, values, *arguments)
            values += [x for x in self.leaves(found) if math.prod(np.shape(x)) <= 100]
        return values

    @contextlib.contextmanager
    def spoilt(self, mistake: Sequence[Any]):
        """In this block calls are made with the mistake, if one is given."""
        before = self.mistake
        self.mistake = Mistake(*mistake[0]) if mistake else None
        try:
            yield
        finally:
            self.mistake = before

    def leaves(self, tree: Any) -> list[Any]:
        kinds = (bool, int, float, complex, np.ndarray, np.generic)
        found = self.jax.tree_util.tree_leaves(tree)
        return [x for x in found if isinstance(x, kinds) or hasattr(x, "aval")]

    def body(self, steps: Sequence[Any], captured: Sequence[Any], name: str = "body"):
        """A function `(*trees) -> list of values`, which also sees the captured values."""

        def run(*trees):
            with self.spoilt(()):
                return self.run(steps, [*captured, *self.leaves(trees)])

        run.__name__ = name
        return run

    # ---- values ----------------------------------------------------------------------------------

    def pick(self, draw: Draw, values: Sequence[Any], kinds: str = "biufc") -> Any:
        """One of the values, as one of these kinds: converted where none is."""
        fitting = [x for x in values if kind_of(x) in kinds]
        if fitting and not draw.chance(0.1):
            return draw.recent(fitting)
        x = draw.recent([x for x in values if kind_of(x) not in "k0"] or [draw.of((2, 0.5))])
        return x if kind_of(x) in kinds else self.as_kind(x, draw.of(kinds))

    def as_kind(self, x: Any, kind: str) -> Any:
        jnp = self.jnp
        if kind_of(x) == "c" and kind != "c":
            x = jnp.real(x)
        if kind == "b":
            return x != 0 if kind_of(x) != "b" else x
        if kind_of(x) == "f" and kind in "iu":
            x = jnp.nan_to_num(jnp.clip(jnp.trunc(x), -100, 100))
        names = {"i": "int32", "u": "uint8", "f": "float32", "c": "complex64"}
        return x if kind_of(x) == kind else jnp.asarray(x, names[kind])

    def pick_array(self, draw: Draw, values: Sequence[Any], kinds: str = "biufc") -> Any:
        """One with at least one axis, and elements."""
        fitting = [x for x in values if kind_of(x) in kinds and math.prod(np.shape(x)) > 0]
        arrays = [x for x in fitting if np.ndim(x)]
        if arrays and not draw.chance(0.05):
            return draw.recent(arrays)
        x = self.pick(draw, fitting or [1.5], kinds)
        return self.jnp.broadcast_to(x, (draw.between(1, 3), *np.shape(x)))

    def matrix(self, draw: Draw, values: Sequence[Any], kinds: str = "f") -> Any:
        """A square matrix (or several), made of one of the values."""
        x = self.jnp.ravel(self.pick_array(draw, values, kinds))
        size = draw.between(1, 3)
        x = self.jnp.resize(x, (size, size))
        return self.jnp.asarray(x, "float32") if x.dtype.itemsize < 4 else x

    def constant(self, draw: Draw, shape: Sequence[int], kinds: str = "biufc") -> np.ndarray:
        """A NumPy array."""
        kind = draw.of(kinds)
        dtype = {"b": "bool", "i": "int32", "u": "uint8", "f": "float32", "c": "complex64"}[kind]
        return self.nudged(array_of(dtype, shape, draw.seed()))

    def literal(self, draw: Draw, kinds: str = "biufc") -> Any:
        """A Python or NumPy scalar."""
        half = 0.5 if self.nudge is None else self.nudged(np.array(0.5, np.float32)).item()
        found = {"b": True, "i": 2, "u": np.uint8(3), "f": half, "c": 1j}[draw.of(kinds)]
        if draw.chance(0.25) and not isinstance(found, np.generic):
            types = {bool: np.bool_, int: np.int32, float: np.float32, complex: np.complex64}
            return types[type(found)](found)
        return found

    def nudged(self, x: np.ndarray) -> np.ndarray:
        """Numbers that differ from these in about the last bit, if the machine nudges floats."""
        if self.nudge is None or kind_of(x) not in "fc":
            return x
        epsilon = float(ml_dtypes.finfo(x.dtype).eps)
        signs = np.random.default_rng(self.nudge).choice([-1, 1], x.shape)
        return np.asarray(x * (1 + epsilon * signs)).astype(x.dtype)

    def second(self, draw: Draw, x: Any, values: Sequence[Any], kinds: str = "biufc") -> Any:
        """What can be broadcast together with x."""
        if draw.chance(0.2):
            return self.literal(draw, kinds)
        if draw.chance(0.1):
            shape = [draw.of((1, size)) for size in np.shape(x)]
            return self.constant(draw, shape[draw.below(len(shape) + 1) :], kinds)
        return self.meet(x, self.pick(draw, values, kinds))

    def meet(self, x: Any, y: Any) -> Any:
        """y, or some of it where the two cannot be broadcast together."""
        try:
            np.broadcast_shapes(np.shape(x), np.shape(y))
        except ValueError:
            return self.scalar(y)
        return y

    def scalar(self, x: Any) -> Any:
        """An element of x as an array without axes."""
        if not np.ndim(x):
            return x
        if not math.prod(np.shape(x)):
            return self.jnp.zeros((), x.dtype)
        return self.jnp.ravel(x)[0]

    def fit(self, value: Any, like: Any) -> Any:
        """Something with the shape and the dtype of `like`, made of both."""
        jnp = self.jnp
        if kind_of(like) in "k0" or kind_of(value) in "k0":
            return like
        dtype = jnp.result_type(like) if not hasattr(like, "dtype") else like.dtype
        try:
            fits = np.broadcast_shapes(np.shape(value), np.shape(like)) == np.shape(like)
        except ValueError:
            fits = False
        if not fits:
            value = self.scalar(value)
        kind = kind_of(like)
        if kind == "b":
            return jnp.logical_xor(like, self.as_kind(value, "b"))
        if kind in "iu":
            value = value if kind_of(value) in "biu" else self.as_kind(value, "b")
            return like + jnp.asarray(value).astype(dtype)
        if kind_of(value) == "c" and kind != "c":
            value = jnp.imag(value)
        return jnp.sin(jnp.asarray(value).astype(dtype)) * 0.5 + like * 0.5

    def tree(self, draw: Draw, leaves: Sequence[Any], depth: int = 0) -> Any:
        """A pytree with these leaves."""
        if len(leaves) == 1 and (depth > 1 or draw.chance(0.6)):
            return leaves[0]
        if not leaves and draw.chance(0.7):
            return draw.of((None, (), {}))
        cut = draw.below(len(leaves) + 1)
        if depth > 2:
            return tuple(leaves)
        parts = [self.tree(draw, part, depth + 1) for part in (leaves[:cut], leaves[cut:])]
        form = draw.below(5)
        if form == 0:
            return dict(zip(("b", "a"), parts, strict=True))
        if form == 1:
            return Pair(*parts)
        if form == 2:
            return Box(*parts)
        return parts if form == 3 else tuple(parts)

    def like_tree(self, tree: Any, leaves: Sequence[Any]) -> Any:
        return self.jax.tree_util.tree_unflatten(self.jax.tree_util.tree_structure(tree), leaves)

    def outputs(self, draw: Draw, results: Sequence[Any], most: int = 3) -> Any:
        """A tree of some results."""
        return self.tree(draw, draw.some(list(results)[-6:], 1, most))


def array_of(dtype: str, shape: Sequence[int], seed: int) -> np.ndarray:
    """A NumPy array of moderate numbers."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    if kind.kind == "b":
        return generator.random(shape) < 0.5
    if kind.name.startswith(("int", "uint")) and kind.kind == "V":
        return generator.integers(0 if kind.name[0] == "u" else -2, 2, shape).astype(kind)
    if kind.kind in "iu":
        return generator.integers(0 if kind.kind == "u" else -4, 5, shape).astype(kind)
    numbers = generator.uniform(-2, 2, shape)
    if kind.kind == "c":
        numbers = numbers + 1j * generator.uniform(-2, 2, shape)
    return np.asarray(numbers).astype(kind)
