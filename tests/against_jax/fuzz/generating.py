"""Draws programs: plain data that says what is called with what, by a seed."""

from typing import Any

import numpy as np

from tests.against_jax.fuzz import (
    arrays,
    indexing,
    layers,
    loops_and_branches,
    mistakes,
    surrounding_state,
)
from tests.against_jax.fuzz.choices import Draw
from tests.against_jax.fuzz.machine import (
    BODIES,
    OPERATIONS,
    WEIGHTS,
    Machine,
    array_of,
    kind_of,
)

FAMILIES = (arrays, indexing, loops_and_branches, surrounding_state)
NAMES = sorted(OPERATIONS)
LIKELY = np.array([WEIGHTS[name] for name in NAMES])
LIKELY = LIKELY / LIKELY.sum()
# Bodies hold fewer steps that have bodies, the deeper they are.
SIMPLE = np.array([0.3 if BODIES[name] else 1.0 for name in NAMES])
LAYERS = sorted(layers.LAYERS)
LIKELY_LAYERS = np.array([layers.WEIGHTS[name] for name in LAYERS])
LIKELY_LAYERS = LIKELY_LAYERS / LIKELY_LAYERS.sum()

DTYPES = "float32 float32 float32 float32 bfloat16 float16 int32 int32 int8 uint8 bool complex64"
WIDE = "float64 int64 complex128 float64"
SHAPES = ((), (), (3,), (3,), (2,), (2, 3), (2, 3), (3, 3), (1, 2), (1,), (0,), (2, 0), (2, 1, 3))


def draw(seed: int, looks: str = "") -> dict[str, Any]:
    """A program: what it is called with, its steps, layers around it, and how it is looked at."""
    d = Draw(seed)
    x64 = d.chance(0.15)
    args = [random_argument(d, x64) for _ in range(d.of((1, 1, 2, 2, 3)))]
    program = {
        "seed": seed,
        "x64": x64,
        "args": args,
        "steps": random_steps(d, d.between(3, 12), 0),
        "layers": [
            [LAYERS[d.generator.choice(len(LAYERS), p=LIKELY_LAYERS)], d.seed()]
            for _ in range(d.of((0, 0, 1, 1, 1, 2, 2, 3)))
        ],
        "out": d.seed(),
        "modes": list(d.of((("jit",), ("value",)))),
    }
    rest = d.chance(0.5)
    if looks == "written" or (not looks and rest):
        program["modes"] = ["equations", "shape"]
    elif looks:
        program["modes"] = looks.split(",")
    if d.chance(0.15):
        mistakes.plant(d, program)
        program["modes"] = ["shape"] if d.chance(0.7) else ["value"]
    return program


# Layers and steps that differentiate.
DERIVATIVES = {
    "grad",
    "grad_by_integers",
    "jvp",
    "vjp",
    "linearize",
    "jacobian",
    "holomorphic",
    "checkpointed_loop",
    "derivative",
    "closed_by_vmap",
    "custom_over_mapped",
}


def differentiates(program: dict[str, Any]) -> bool:
    """Whether a program differentiates, in a layer or in a step."""
    names = {layer[0] for layer in program["layers"]}
    steps = list(program["steps"])
    for name, _, bodies, *_ in steps:
        names.add(name)
        steps += [step for body in bodies for step in body]
    return not names.isdisjoint(DERIVATIVES)


def random_argument(d: Draw, x64: bool) -> dict[str, Any]:
    """The leaves of one argument as (dtype, shape, form, seed), and what draws its tree."""
    leaves = []
    for _ in range(d.of((1, 1, 1, 2, 3))):
        dtype = d.of((DTYPES + (" " + WIDE if x64 else "")).split())
        form = d.of(("numpy", "numpy", "array", "array", "python", "weak"))
        leaves.append([dtype, list(d.of(SHAPES)), form, d.seed()])
    return {"leaves": leaves, "tree": d.seed()}


def random_steps(d: Draw, count: int, depth: int) -> list[Any]:
    likely = LIKELY * SIMPLE**depth
    found = []
    for _ in range(count):
        name = NAMES[d.generator.choice(len(NAMES), p=likely / likely.sum())]
        bodies = [random_steps(d, d.between(1, 4), depth + 1) for _ in range(BODIES[name])]
        found.append([name, d.seed(), bodies])
    return found


def arguments(m: Machine, program: dict[str, Any]) -> list[Any]:
    """What the program is called with."""
    found = []
    for argument in program["args"]:
        leaves = []
        for dtype, shape, form, seed in argument["leaves"]:
            x = m.nudged(array_of(dtype, shape, seed))
            if form == "python" and not shape and dtype not in ("bfloat16", "float16"):
                x = x.item()
            elif form == "weak" and not shape and kind_of(x) in "bifc":
                x = m.jnp.asarray(x.item() if dtype != "bfloat16" else float(x))
            elif form != "numpy":
                x = m.jnp.asarray(x)
            leaves.append(x)
        found.append(m.tree(Draw(argument["tree"]), leaves))
    return found


def function_of(m: Machine, program: dict[str, Any]):
    """The function of the steps alone."""

    def function(*args):
        values = m.run(program["steps"], m.leaves(args))
        d = Draw(program["out"])
        results = [
            m.jax.random.key_data(x) if kind_of(x) == "k" else x
            for x in d.some(values[-8:], 1, 4) + values[-1:]
        ]
        return m.tree(d, results)

    return function


def build(m: Machine, program: dict[str, Any]):
    """The function with its layers, and what it is called with."""
    return layers.wrap(m, program["layers"], function_of(m, program), arguments(m, program))
