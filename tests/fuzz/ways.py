"""The ways to run one program, and what each must give: what `jit` gives of the same arguments.

A way is a function of a `Trial` that returns results and those wanted. It may refuse what the user
may be refused; results that differ are a find, unless arguments and constants that differ in their
last bit give results of `jit` that are as far apart.
"""

import functools
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export
from tests.against_jax.fuzz import running, shrinking
from tests.against_jax.fuzz.choices import Draw
from tests.fuzz import drawing
from tests.support import formulas
from tests.systematic import differentiating, trials

Arrays = list[Any]
Both = tuple[Sequence[Any], Sequence[Any]]
WAYS: dict[str, tuple[float, bool, Callable[["Trial"], Both]]] = {}
# How many entries a batch has; one for each device where it is split.
ENTRIES = 3
DEVICES = 8
# In how many ways a program is tried.
_EACH = 1
# What programs do where a difference quotient says nothing of their derivatives.
NOT_SMOOTH = ("stop_gradient", "custom", "bitcast", "checkpoint", "reduce_precision", "random")


def way(weight: float = 1.0, refuses: bool = False) -> Callable[..., Any]:
    """Register a way to run a program.

    Args:
      weight: how often it is tried, compared with others.
      refuses: whether it may refuse programs that `jit` takes.
    """

    def register(function: Callable[["Trial"], Both]) -> Callable[["Trial"], Both]:
        WAYS[function.__name__] = weight, refuses, function
        return function

    return register


class Trial:
    """A program with arguments, compiled once; entries are arguments of the same types."""

    def __init__(self, program: dict[str, Any], nudge: int | None = None):
        self.draw = Draw(program["seed"], 2)
        self.call, leaves = drawing.flat(program, nudge)
        self.values = [np.asarray(jnp.asarray(x)) for x in leaves]
        self.jitted = jax.jit(self.call, compiler_options=trials.COMPILES_FAST)

    @functools.cached_property
    def wanted(self) -> Arrays:
        return list(map(np.asarray, self.jitted(*self.values)))

    def has_floats_of(self, *dtypes: str) -> bool:
        """Whether any value of the program has such a dtype, named as in jaxprs."""
        return any(re.search(rf"\b{dtype}", self.text) for dtype in dtypes)

    @functools.cached_property
    def text(self) -> str:
        return str(jax.make_jaxpr(self.call)(*self.values))

    def compiled(self, function: Callable[..., Any], **how: Any) -> Callable[..., Any]:
        return jax.jit(function, compiler_options=trials.COMPILES_FAST, **how)

    def entries(self, count: int) -> list[Arrays]:
        """Return arguments of the same types: the program's own, and these in other orders."""
        generator = np.random.default_rng(self.draw.seed())
        others = [
            [x.ravel()[generator.permutation(x.size)].reshape(x.shape) for x in self.values]
            for _ in range(count - 1)
        ]
        return [self.values, *others]

    def stacked(self, count: int) -> tuple[Arrays, Arrays]:
        """Return arguments with a first axis, and the results wanted of a batch of them."""
        entries = self.entries(count)
        results = [list(map(np.asarray, self.jitted(*entry))) for entry in entries]
        return list(map(np.stack, zip(*entries, strict=True))), _stacks(results)

    def moving(self) -> list[int]:
        """The places of the arguments that have tangents."""
        return [i for i, x in enumerate(self.values) if differentiating.moves(x)]

    def directions(self) -> Arrays:
        generator = np.random.default_rng(self.draw.seed())
        return [_normal(generator, self.values[i]) for i in self.moving()]

    def of_moving(self, *moved: Any) -> Arrays:
        """The results that have tangents, as a function of the arguments that have them."""
        each = dict(zip(self.moving(), moved, strict=True))
        results = self.call(*map(each.get, range(len(self.values)), self.values))
        return [x for x in results if differentiating.moves(x)]


def _stacks(results: list[Arrays]) -> Arrays:
    return [np.stack(column) for column in zip(*results, strict=True)]


def _normal(generator: np.random.Generator, x: Any) -> np.ndarray:
    numbers = generator.uniform(-1, 1, x.shape)
    if np.dtype(x.dtype).kind == "c":
        numbers = numbers + 1j * generator.uniform(-1, 1, x.shape)
    return np.asarray(numbers).astype(x.dtype)


# ---- ways ----------------------------------------------------------------------------------------


@way(0.1, refuses=True)
def eager(t: Trial) -> Both:
    return t.call(*t.values), t.wanted


@way()
def vmapped(t: Trial) -> Both:
    """Along other axes for each argument, and not at all for some."""
    entries = t.entries(ENTRIES)
    axes: list[int | None] = [
        None if t.draw.chance(0.25) else t.draw.between(-x.ndim - 1, x.ndim) for x in t.values
    ]
    if all(axis is None for axis in axes):
        axes[0] = 0
    given = [
        x if axis is None else np.stack(column, axis)
        for x, axis, column in zip(t.values, axes, zip(*entries, strict=True), strict=True)
    ]
    entries = [
        [entry[i] if axes[i] is not None else t.values[i] for i in range(len(axes))]
        for entry in entries
    ]
    found = t.compiled(jax.vmap(t.call, tuple(axes)))(*given)
    return found, _stacks([list(map(np.asarray, t.jitted(*entry))) for entry in entries])


@way(0.6, refuses=True)
def transposed(t: Trial) -> Both:
    """Tangents times cotangents, the first pushed forward or the second pulled back."""
    moving, directions = [t.values[i] for i in t.moving()], t.directions()
    if not moving or t.has_floats_of("f8_", "f4_"):
        return [], []
    seed = t.draw.seed()

    def products(moving: Arrays, directions: Arrays) -> Arrays:
        out, pushed = jax.jvp(t.of_moving, moving, directions)
        generator = np.random.default_rng(seed)
        cotangents = [_normal(generator, x) for x in out]
        pulled = jax.vjp(t.of_moving, *moving)[1](cotangents)
        return [_terms(cotangents, pushed), _terms(pulled, directions)]

    forward, backward = map(np.asarray, t.compiled(products)(moving, directions))
    # Both are sums of terms whose sizes say how far they may be off.
    size = max(forward[1], backward[1])
    if not np.isfinite(size) or size == 0:
        return [], []
    if t.has_floats_of("f16", "bf16") and abs(forward[0] - backward[0]) < 0.1 * size:
        return [], []
    return [backward[:1] / size], [forward[:1] / size]


@way(0.4, refuses=True)
def sloped(t: Trial) -> Both:
    """Tangents are difference quotients, where quotients of several steps are about equal."""
    moving, directions = [t.values[i] for i in t.moving()], t.directions()
    if not moving or t.has_floats_of("f8_", "f4_", "f16", "bf16"):
        return [], []
    pushed = t.compiled(lambda x, d: jax.jvp(t.of_moving, x, d)[1])(moving, directions)
    function = t.compiled(t.of_moving)

    def at(step: float) -> Arrays:
        moved = [(x + step * d).astype(x.dtype) for x, d in zip(moving, directions, strict=True)]
        return [_wide(x) for x in function(*moved)]

    here = at(0)
    quotients = [
        [(one - zero) / step for one, zero in zip(at(step), here, strict=True)]
        for step in (1e-2, -1e-2, 3e-3, -3e-3)
    ]
    found, wanted = [], []
    for tangent, *each in zip(map(_wide, pushed), *quotients, strict=True):
        scale = np.max(np.abs(each), initial=0.0) + np.max(np.abs(tangent), initial=0.0) + 1e-6
        agree = np.ptp(np.abs(each), axis=0) + np.abs(each[0] - each[1]) < 0.03 * scale
        close = np.abs(tangent - each[3]) < 0.1 * scale
        found.append(np.where(agree & ~close, tangent, 0))
        wanted.append(np.where(agree & ~close, each[3], 0))
    return found, wanted


@way(0.15, refuses=True)
def exported(t: Trial) -> Both:
    made = export.export(jax.jit(t.call))(*t.values).serialize()
    return t.compiled(export.deserialize(made).call)(*t.values), t.wanted


@way(0.3)
def with_formulas(t: Trial) -> Both:
    """With the replacements for CPUs, whose arrays are usually larger."""
    with formulas.for_arrays_of_any_size():
        return t.compiled(lambda *xs: t.call(*xs))(*t.values), t.wanted


@way(0.4, refuses=True)
def padded(t: Trial) -> Both:
    """A batch in a bucket that is longer."""
    stacks, wanted = t.stacked(ENTRIES)
    function = jax.jit(lambda stacks: jax.vmap(t.call)(*stacks), buckets={"stacks": (8,)})
    return function(stacks), wanted


@way(0.2, refuses=True)
def split(t: Trial) -> Both:
    """A batch with an entry on each device, and the same in shard_map."""
    stacks, wanted = t.stacked(DEVICES)
    mesh = jax.make_mesh((DEVICES,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    mapped = jax.vmap(t.call)
    given = jax.device_put(stacks, jax.sharding.NamedSharding(mesh, spec))
    manual = jax.shard_map(mapped, mesh=mesh, in_specs=spec, out_specs=spec)
    found = t.compiled(lambda *xs: (mapped(*xs), manual(*xs)))(*given)
    return [*found[0], *found[1]], [*wanted, *wanted]


def _terms(one: Arrays, other: Arrays) -> Any:
    """The sum of products, and that of their sizes."""
    total = size = jnp.float32(0)
    for x, y in zip(one, other, strict=True):
        if x.dtype != jax.float0:
            x, y = (
                a.astype("complex128" if jax.config.jax_enable_x64 else "complex64")
                if np.dtype(a.dtype).kind == "c"
                else a.astype(jnp.result_type(float))
                for a in (x, y)
            )
            total, size = total + jnp.sum(x * y).real, size + jnp.sum(jnp.abs(x * y))
    return jnp.stack([total, size])


def _wide(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


# ---- comparing -----------------------------------------------------------------------------------


def difference(program: dict[str, Any], only: str = "") -> str:
    """Say in which way a program gives something else, and what; "" if it does so in none."""
    with drawing.settings_of(program):
        trial = Trial(program)
        try:
            trial.wanted
        except drawing.REFUSALS as error:
            # A derivative that a custom rule lacks is missed when the program is lowered.
            return f"jit: {error}" if drawing.is_internal(error) else ""
        for name in [only] if only else _tried(program["seed"]):
            _, refuses, function = WAYS[name]
            try:
                found = compared(*function(trial))
            except drawing.REFUSALS as error:
                if refuses and not drawing.is_internal(error):
                    continue
                found = f"{type(error).__name__}: {error}"
            if found and not _says_nothing(program, trial, name):
                return f"{name}: {found}"
    return ""


def _tried(seed: int) -> list[str]:
    """Return the ways in which the program of a seed is tried.

    Each is compiled anew, so that one way for each of many programs finds more than all for few.
    """
    weights = [weight for weight, *_ in WAYS.values()]
    return random.Random(seed).choices(list(WAYS), weights, k=_EACH)


def compared(found: Sequence[Any], wanted: Sequence[Any]) -> str:
    found, wanted = [np.asarray(x) for x in found], [np.asarray(x) for x in wanted]
    if len(found) != len(wanted):
        return f"{len(found)} results, not {len(wanted)}"
    for place, (one, other) in enumerate(zip(found, wanted, strict=True)):
        try:
            shrinking.assert_near(one, other, f"output {place}")
        except AssertionError as error:
            return f"{error} {one.dtype}{list(one.shape)}, {other.dtype}{list(other.shape)}"
    return ""


def _says_nothing(program: dict[str, Any], trial: Trial, name: str) -> bool:
    """Whether results of `jit` are as far apart when numbers change in their last bit."""
    if name == "sloped":
        text = running.calls_of({**program, "modes": ["jit"]}, jax)
        if any(word in text for word in NOT_SMOOTH):
            return True
    return any(compared(Trial(program, nudge).wanted, trial.wanted) for nudge in range(3))
