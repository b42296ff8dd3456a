"""Programs that no jax need understand: those of tests/against_jax/fuzz, with more in them.

Arguments are also of narrow dtypes, and of shapes with zeros and ones. Most programs are a sample
of a primitive (tests/samples) or a call of the catalogue (tests/numpy), whose sizes and dtypes are
others. What a step refuses, it refuses in every way that a program runs: such steps are left out,
by `pruned`.
"""

import contextlib
import copy
import functools
import linecache
import pathlib
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes

import hlofront as jax
from hlofront.base.config import options
from tests.against_jax.fuzz import generating
from tests.against_jax.fuzz.choices import Draw
from tests.against_jax.fuzz.machine import Machine, kind_of, operation
from tests.numpy import catalogue
from tests.support.cases import Case, Spec
from tests.systematic import trials

NARROW = (
    "int2 uint2 int4 uint4 int8 uint8 int16 uint16 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz "
    "float8_e3m4 float4_e2m1fn bfloat16 float16"
).split()
SHAPES = ((0,), (1,), (1, 1), (0, 1), (3, 0), (1, 3), (3, 1), (2, 1, 0), (1, 2, 1), (4,))
# Steps whose functions have, on purpose, rules that say something else than the functions.
UNEQUAL = {"custom_vmap_closure", "custom_vmap_of_vmap"}
# Steps under options that raise where a value is NaN, or choose generators that vmap otherwise.
UNDER_OPTIONS = {"under_option", "jit_under_options"}
# A callback's order is not that of a loop, and barriers are compared elsewhere.
_LEFT_OUT = {"callbacks", "barriers", "random_bits"}
# What a user may be told of a program that is wrong.
REFUSALS = (
    TypeError,
    ValueError,
    IndexError,
    NotImplementedError,
    OverflowError,
    ZeroDivisionError,
    FloatingPointError,
    jax.errors.JaxRuntimeError,
)
ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = tuple(f"{ROOT}/{name}/" for name in ("hlofront", "hlotools"))


def draw(seed: int) -> dict[str, Any]:
    """Return the program of a seed, as plain data."""
    program = generating.draw(seed, "value")
    program["layers"] = [layer[:2] for layer in program["layers"]]
    d = Draw(seed, 1)
    return _of_one_call(program, d) if d.chance(0.6) else _of_steps(program, d)


def _of_one_call(program: dict[str, Any], d: Draw) -> dict[str, Any]:
    """Return a program of a call of one function, in which sizes and dtypes are others.

    Its operands are the program's arguments; a step and a transformation may follow.
    """
    for _ in range(8):
        seed = d.seed()
        *_, specs = changed_call(seed)
        args = [
            {"leaves": [[spec.dtype.name, list(spec.shape), "numpy", d.seed()]], "tree": 0}
            for spec in specs
        ]
        one = {**program, "args": args, "steps": [["changed", seed, []]], "layers": []}
        if args and pruned(one)["steps"]:
            break
    steps = _comparable(program["steps"])[: d.below(2)]
    return {**one, "steps": one["steps"] + steps, "layers": program["layers"][:1]}


@functools.cache
def _calls() -> list[Case]:
    """Samples, and calls of NumPy's functions whose results have known shapes."""
    catalogue.load()
    calls = [call for several in catalogue.CALLS.values() for call in several]
    return [
        *(call for call in calls if not call.concrete and not call.not_batched),
        *(
            sample
            for file, samples in trials.load().items()
            for sample in samples
            if file not in _LEFT_OUT and not sample.unlike_loop and "vmap" not in sample.refused
        ),
    ]


def changed_call(seed: int) -> tuple[Case, Any, list[Spec]]:
    """Return a case, the function that it calls, and specs of other sizes and dtypes."""
    d = Draw(seed)
    case = d.of(_calls())
    sizes: dict[int, int] = {}
    dtypes: dict[Any, Any] = {}
    specs = []
    for spec in case.specs():
        for size in spec.shape:
            sizes.setdefault(size, d.of((size, size, size, 0, 1, 2, 5)))
        dtypes.setdefault(spec.dtype, d.of((spec.dtype,) * 20 + (*DTYPES, *NARROW)))
        shape = tuple(sizes[size] for size in spec.shape)
        specs.append(Spec(_dtype(dtypes[spec.dtype]), shape))
    name = case.function
    return case, getattr(jax.numpy, name) if isinstance(name, str) else name, specs


DTYPES = "float32 float64 int32 uint32 bool complex64".split()


def _dtype(name: Any) -> Any:
    return getattr(ml_dtypes, name, name) if isinstance(name, str) else name


def _of_steps(program: dict[str, Any], d: Draw) -> dict[str, Any]:
    for argument in program["args"]:
        for leaf in argument["leaves"]:
            if d.chance(0.25):
                leaf[0], leaf[2] = d.of(NARROW), d.of(("numpy", "array"))
            if d.chance(0.2):
                leaf[1] = list(d.of(SHAPES))
    steps = _comparable(program["steps"])
    # Short programs compile quickly, and what is wrong is rarely wrong in long ones alone.
    del steps[d.between(0, 5) :]
    for _ in range(d.between(0, 2)):
        steps.insert(d.below(len(steps) + 1), ["narrow", d.seed(), []])
    return {**program, "steps": steps}


def _comparable(steps: list[Any]) -> list[Any]:
    """Return steps without those that are left out, and without mistakes."""
    return [
        [name, seed, [_comparable(body) for body in bodies]]
        for name, seed, bodies, *_ in steps
        if name not in UNEQUAL | UNDER_OPTIONS
    ]


@operation()
def changed(m: Machine, d: Draw, values: Sequence[Any]) -> Any:
    """A call of one function on the first values, which are of the specs of `changed_call`."""
    case, function, specs = changed_call(d.first)
    operands, keywords = case.arguments(list(values[: len(specs)]))
    return m.applied(f"{function.__name__} {case.name}", function, *operands, **keywords)


@operation()
def narrow(m: Machine, d: Draw, values: Sequence[Any]) -> Any:
    """A value in a narrow dtype, and in the one that it came from."""
    x = m.jnp.asarray(m.pick(d, values, "iuf"))
    dtype = d.of(NARROW)
    if "int" in dtype:
        x = m.jnp.clip(m.as_kind(x, "i"), 0, 1)
    made = m.method(x, "astype", dtype)
    return made, m.method(made, "astype", x.dtype)


class _Pruning(Machine):
    """Takes steps that raise out of the program that it runs."""

    def __init__(self) -> None:
        super().__init__(jax)
        self.internal: BaseException | None = None

    def run(self, steps: list[Any], values: Sequence[Any]) -> list[Any]:
        values = list(values)
        for step in list(steps):
            try:
                values = super().run([step], values)
            except REFUSALS as error:
                if is_internal(error):
                    raise
                steps.remove(step)
        return values


def pruned(program: dict[str, Any]) -> dict[str, Any]:
    """Return the program without the steps and layers that raise while it is traced."""
    program = copy.deepcopy(program)
    # What a step's removal leaves may raise elsewhere, such as where a branch has another type.
    for _ in range(4):
        with settings_of(program):
            before = copy.deepcopy(program)
            function, args = generating.build(_Pruning(), program)
            try:
                jax.eval_shape(function, *args)
            except REFUSALS as error:
                if is_internal(error):
                    raise
                program["layers"] = program["layers"][:-1]
                continue
        if program == before:
            return program
    return {**program, "steps": [], "layers": []}


@contextlib.contextmanager
def settings_of(program: dict[str, Any]) -> Iterator[None]:
    """Options under which a program is traced and run; tracebacks have all frames."""
    with (
        trials.quiet(),
        jax.enable_x64(program["x64"]),
        options["hlofront_cpu_formulas"](False),
        options["jax_traceback_filtering"]("off"),
    ):
        yield


def is_internal(error: BaseException) -> bool:
    """Whether an error comes from a line of hlofront that does not raise: it is not a refusal."""
    frames = list(traceback.walk_tb(error.__traceback__))
    if not frames:
        return False
    frame, line = frames[-1]
    if not frame.f_code.co_filename.startswith(PACKAGES):
        return False
    return not linecache.getline(frame.f_code.co_filename, line).strip().startswith("raise")


def flat(program: dict[str, Any], nudge: int | None = None) -> tuple[Any, list[Any]]:
    """Return a program as a function of arrays to a list of arrays, and its arguments."""
    machine = Machine(jax, nudge)
    function, args = generating.build(machine, program)
    leaves, tree = jax.tree.flatten(args)

    def call(*leaves: Any) -> list[Any]:
        results = machine.leaves(function(*jax.tree.unflatten(tree, leaves)))
        return [jax.numpy.asarray(x) for x in results if kind_of(x) != "0"]

    return call, leaves
