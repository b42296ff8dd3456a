"""`show --stage sharding` and `collectives`, of real programs over eight devices."""

import io

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.cli.main import main
from hlofront.inspect import collectives
from tests.many_devices.meshes import split

PROGRAM = """
import numpy as np
import hlofront as jax
import hlofront.numpy as jnp
from tests.many_devices.meshes import split

@jax.jit
def step(w, x):
    hidden = jnp.tanh(x @ w)
    return jax.lax.fori_loop(0, 3, lambda i, v: v * 2, hidden).sum(1)

def example_args():
    struct = jax.ShapeDtypeStruct
    return (struct((32, 64), "float32", sharding=split(None, "y")),
            struct((128, 32), "float32", sharding=split("x")))
"""


def struct(shape, *entries):
    return jax.ShapeDtypeStruct(shape, np.float32, sharding=split(*entries))


def rows(function, *args):
    compiled = jax.jit(function).lower(*args).compile()
    return {(row.opcode, row.axes, row.moved_bytes, row.runs) for row in collectives(compiled).rows}


def test_the_numbers_of_known_programs():
    x, w = struct((64, 32), "x", "y"), struct((32, 16), "y")
    product = 16 * 16 * 4
    assert rows(lambda x, w: x @ w, x, w) == {("all-reduce", ("y",), product, 1)}
    assert rows(lambda w, x: jax.grad(lambda w: (x @ w).sum())(w), w, x) == {
        ("all-reduce", ("x",), 2 * product * 3 // 4, 1)
    }
    whole = jax.lax.with_sharding_constraint
    assert rows(lambda x: whole(x, split("x")), x) == {("all-gather", ("y",), 16 * 16 * 4, 1)}
    assert rows(lambda x: whole(x, split(None, "y")), x) == {
        ("all-gather", ("x",), 3 * 16 * 16 * 4, 1)
    }
    assert rows(lambda x: jnp.roll(x, 1, 0), x) == {("collective-permute", ("x",), 16 * 4, 1)}
    assert rows(jnp.sin, x) == set()

    def steps(x, w):
        return jax.lax.scan(lambda c, _: (jnp.tanh(c @ w @ w.T), None), x, None, length=5)[0]

    assert rows(steps, x, w) == {("all-reduce", ("y",), product, 5)}


def test_lines_are_those_that_ask_for_a_collective():
    x, w = struct((64, 32), "x", "y"), struct((32, 16), "y")

    def function(x, w):
        first = jnp.sin(x)
        return first @ w

    (row,) = collectives(jax.jit(function).lower(x, w).compile()).rows
    assert row.file == __file__ and row.line == function.__code__.co_firstlineno + 2


def test_each_value_is_shown_with_its_sharding(tmp_path):
    path = tmp_path / "split_step.py"
    path.write_text(PROGRAM)
    out = io.StringIO()
    assert main(("show", f"{path}:step", "--stage", "sharding"), out) == 0
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert lines[0] == "8 devices, as a mesh of x=4, y=2"
    for line in (
        "argument w f32[32,64] f32[32,32] P(None, 'y')",
        "argument x f32[128,32] f32[32,32] P('x',)",
        "result f32[128] f32[32] P('x',)",
        "dot_general f32[128,64] f32[32,32] P('x', 'y') split_step.py:9",
        "tanh f32[128,64] f32[32,32] P('x', 'y') split_step.py:9",
        "mul f32[128,64] f32[32,32] P('x', 'y') split_step.py:10",
        "reduce_sum f32[128] f32[32] P('x',) split_step.py:10",
        "Each device sends 128 bytes: 128 along y.",
    ):
        assert line in lines, (line, lines)
