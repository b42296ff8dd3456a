"""Programs for eight devices with one wrong PartitionSpec each: an argument's, or a constraint's.

A wrong constraint is on a line with the comment `# wrong`.
"""

import inspect
import pathlib

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.inspect import reshards
from hlofront.sharding import Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P

BATCH, WIDE, NARROW = 64, 1024, 128


class Program:
    """A function for a mesh of 2 x 4 devices, its arguments, and which of them is wrong.

    Args:
      function: takes the mesh, and then the arguments.
      arguments: the shape and the spec of each, by name.
      wrong: the name of the argument with the wrong spec; None if a constraint is wrong.
      phase: when the value is split anew.
    """

    def __init__(self, function, arguments, wrong=None, phase="forward"):
        self.function = function
        self.arguments = arguments
        self.wrong = wrong
        self.phase = phase

    def on(self, devices):
        """Return the function and its arguments' types for eight devices."""
        mesh = Mesh(np.array(devices).reshape(2, 4), ("data", "model"))

        def on(*spec):
            return NamedSharding(mesh, P(*spec))

        structs = {
            name: jax.ShapeDtypeStruct(shape, jnp.float32, sharding=on(*spec))
            for name, (shape, spec) in self.arguments.items()
        }
        return lambda **kwargs: self.function(on, **kwargs), structs


def mlp(on, x, w, v):
    return lax.with_sharding_constraint(jnp.tanh(x @ w) @ v, on("data"))


def hidden(on, x, w, v):
    h = jnp.tanh(x @ w)
    h = lax.with_sharding_constraint(h, on("model", None))  # wrong
    return lax.with_sharding_constraint(jnp.sin(h) @ v, on("data"))


def residual(on, x, w, v):
    h = lax.with_sharding_constraint(x + jnp.tanh(x @ w) @ v, on(None, "model"))  # wrong
    return lax.with_sharding_constraint(h + jnp.tanh(h @ w) @ v, on("data", None))


def normalized(on, x, w, v):
    x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return lax.with_sharding_constraint(jnp.tanh(x @ w) @ v, on("data", None))


def attention(on, q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    weights = lax.with_sharding_constraint(weights, on("data", None, None, "model"))  # wrong
    out = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return lax.with_sharding_constraint(out, on("data", None, "model", None))


def embedded(on, tokens, table):
    # One-hot rows, as in models for TPUs.
    return lax.with_sharding_constraint(tokens @ table, on("data", None))


def steps(on, x, w):
    def step(x, _):
        x = lax.with_sharding_constraint(jnp.tanh(x @ w), on(None, "data"))  # wrong
        return lax.with_sharding_constraint(x, on("data", None)), None

    return lax.scan(step, x, None, length=3)[0]


def trained(on, x, w, v):
    def loss(w, v):
        h = lax.with_sharding_constraint(jnp.tanh(x @ w), on("data", "model"))
        return (lax.with_sharding_constraint(h @ v, on("data", None)) ** 2).sum()

    dw, dv = jax.grad(loss, (0, 1))(w, v)
    dw = lax.with_sharding_constraint(dw, on(None, "model"))
    dv = lax.with_sharding_constraint(dv, on(None, "model"))  # wrong
    return dw, dv


def recomputed(on, x, w, v):
    @jax.checkpoint
    def layer(w, v):
        h = lax.with_sharding_constraint(jnp.tanh(x @ w), on("model", None))  # wrong
        return (lax.with_sharding_constraint(jnp.sin(h) @ v, on("data", None)) ** 2).sum()

    return jax.grad(layer, (0, 1))(w, v)


def merged(on, x, w):
    rows = x.reshape(-1, x.shape[-1])
    rows = lax.with_sharding_constraint(rows, on("model", None))  # wrong
    return lax.with_sharding_constraint(jnp.tanh(rows @ w), on("data", None))


def convolved(on, images, kernel):
    features = lax.conv_general_dilated(
        images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return lax.with_sharding_constraint(jnp.tanh(features), on("data", None, None, "model"))


def transposed(on, x, y):
    return lax.with_sharding_constraint(x.T * 2 + y, on("model", "data"))


TWO_LAYERS = {
    "x": ((BATCH, NARROW), ("data", None)),
    "w": ((NARROW, WIDE), (None, "model")),
    "v": ((WIDE, NARROW), ("model", None)),
}
HEADS = ((8, 32, 4, 16), ("data", None, "model", None))

PROGRAMS = {
    "the second layer is split as the first": Program(
        mlp, {**TWO_LAYERS, "v": ((WIDE, NARROW), (None, "model"))}, "v"
    ),
    "a batch is split along the other axis": Program(hidden, TWO_LAYERS),
    "a residual stream is split along features": Program(residual, TWO_LAYERS),
    "features are split that are summed": Program(
        normalized, {**TWO_LAYERS, "x": ((BATCH, NARROW), (None, "data"))}, "x"
    ),
    "weights of attention are split along keys": Program(
        attention, {"q": HEADS, "k": HEADS, "v": HEADS}
    ),
    "rows of a table are split along the axis of the batch": Program(
        embedded,
        {"tokens": ((BATCH, WIDE), ("data", None)), "table": ((WIDE, NARROW), ("data", None))},
        "table",
    ),
    "the carry of a scan changes its split in each step": Program(
        steps, {"x": ((BATCH, NARROW), ("data", None)), "w": ((NARROW, NARROW), (None, None))}
    ),
    "a gradient is split as another parameter": Program(trained, TWO_LAYERS, phase="backward"),
    "a recomputed activation is split along the other axis": Program(
        recomputed, TWO_LAYERS, phase="recomputed"
    ),
    "merged batch and sequence are split along the other axis": Program(
        merged,
        {"x": ((8, 32, NARROW), ("data", None, None)), "w": ((NARROW, WIDE), (None, None))},
    ),
    "a kernel is split along its inputs": Program(
        convolved,
        {
            "images": ((8, 8, 8, 64), ("data", None, None, None)),
            "kernel": ((3, 3, 64, 64), (None, None, "model", None)),
        },
        "kernel",
    ),
    "a summand is split as its transpose": Program(
        transposed,
        {"x": ((BATCH, NARROW), ("data", "model")), "y": ((NARROW, BATCH), ("data", "model"))},
        "y",
    ),
}


def check(program, devices):
    """Check that a report names the wrong spec, and that the right one is the best cure."""
    function, structs = program.on(devices)
    report = reshards(function)(**structs)
    file = program.function.__code__.co_filename
    wrong = f"argument {program.wrong}"
    if program.wrong is None:
        source, first = inspect.getsourcelines(program.function)
        (offset,) = (i for i, line in enumerate(source) if line.endswith("  # wrong\n"))
        wrong = f"{pathlib.Path(file).name}:{first + offset}"
    said = [f"{row.value} {row.made_so} {row.needed_so}" for row in report.rows]
    assert any(wrong in text for text in said), report.text()
    assert program.phase in {row.phase for row in report.rows}
    assert all(row.file == file for row in report.rows)
    best = report.cures[0]
    assert wrong in best.of and best.sent < 0.9 * best.sent_before, report.text()
