"""Values that XLA reshards on CPUs, whose dumps of Shardy have no lines."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.inspect import reshards
from hlofront.inspect.sharding import sharding_text
from hlofront.sharding import NamedSharding
from hlofront.sharding import PartitionSpec as P
from tests.inspect.resharded_programs import PROGRAMS, check
from tests.many_devices.meshes import devices, mesh


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wrong_spec_is_named_with_its_cure(name):
    check(PROGRAMS[name], devices)


def struct(*spec, shape=(64, 64)):
    return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, P(*spec)))


def test_what_no_device_communicates_for_is_not_named():
    def split_twice(x, y):
        # Parts of what a device has, and of what it makes.
        return jax.lax.with_sharding_constraint(
            x + jnp.ones((64, 64)) + y, struct("x", "y").sharding
        )

    assert not reshards(split_twice)(struct("x"), struct()).rows
    assert not reshards(jnp.dot)(struct("x"), struct(None, "y")).rows
    # Partial sums are added: that is no other split.
    assert not reshards(lambda x: x.sum(0))(struct("x")).rows


def test_arguments_of_shard_map_and_results_of_jit():
    doubled = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("y"), out_specs=P("y"))
    (row,) = reshards(doubled)(struct("x")).rows
    assert (row.value, row.before, row.after) == ("argument x", "P('x', None)", "P('y', None)")
    assert (row.operation, row.file, row.needed_so) == ("shard_map", __file__, None)
    split = jax.jit(lambda x: x + 1, out_shardings=struct(None, "x").sharding)
    (row,) = reshards(split)(struct("x")).rows
    assert (row.before, row.after) == ("P('x', None)", "P(None, 'x')")


def test_axes_that_an_operation_needs_whole_and_what_xla_gathers_by_itself():
    (row,) = reshards(jnp.fft.fft)(struct(None, "y")).rows
    assert (row.operation, row.before, row.after) == ("fft", "P(None, 'y')", "P(None, None)")
    assert (row.type, row.received) == ("c64[64,64]", 64 * 64 * 8 // 2)
    # Its function's arguments are scalars, which are not split as the operands are.
    rows = reshards(lambda x: jnp.sort(x, axis=0))(struct("x", "y")).rows
    assert [(row.operation, row.after) for row in rows] == [("sort", "P(None, 'y')")]
    (row,) = reshards(lambda x: jnp.cumsum(x, axis=0))(struct("x")).rows
    assert (row.operation, row.after, row.file) == ("cumsum", "gathered by XLA", __file__)
    gathered = jax.shard_map(
        lambda x: jax.lax.all_gather(x, "x", tiled=True).sum(0, keepdims=True),
        mesh=mesh, in_specs=P("x"), out_specs=P("x"),
    )  # fmt: skip
    assert not reshards(gathered)(struct("x")).rows


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.at[jnp.array([3, 1])].add(1.0),
        lambda x: (x[::-1], jnp.roll(x, 3), x[jnp.array([3, 1])], x[:0]),
        lambda x: jax.lax.cond(x.sum() > 0, jnp.sin, lambda x: x.T, x),
        lambda x: x.reshape(4, 16, 64).transpose(1, 0, 2).reshape(64, 64).T @ x,
        lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(64)),
        lambda x: (
            jax.random.normal(jax.random.key(0), x.shape) + (x.astype("int4") + 1).astype("float32")
        ),
        lambda x: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] @ c[0], c[1] + 1), (x, 0)),
    ],
)
def test_programs_of_each_kind_have_a_report(function):
    assert reshards(function)(struct("x", "y")).text()


def test_arguments_whose_split_xla_chooses_have_no_cure():
    def product(x, w):
        return jax.lax.with_sharding_constraint(x @ w, struct(None, "x").sharding)

    whole = jax.ShapeDtypeStruct((64, 64), "float32")
    report = reshards(product)(struct("x"), whole)
    assert report.rows and not any(cure.of == "argument w" for cure in report.cures)


def test_equal_rows_are_one_and_constants_are_no_arguments():
    table = np.arange(4096, dtype=np.float32)

    def twice(x, w):
        for _ in range(2):
            x = jnp.sin(jax.lax.with_sharding_constraint(x @ w, struct(None, "x").sharding))
            x = jax.lax.with_sharding_constraint(x, struct("x").sharding)
        return x + table.sum()

    report = reshards(twice)(struct("x"), struct())
    assert [row.count for row in report.rows] and max(row.count for row in report.rows) == 2
    assert {row.line is not None for row in report.rows} == {True}
    assert report.cures[0].after == "P('x', None)"
    assert "2 times" in report.text()


def test_the_stage_says_it_and_leaves_the_program_as_it_was():
    lowered = jax.jit(jnp.dot).lower(struct("x"), struct("y"))
    before = lowered.as_text()
    compiled = lowered.compile()
    text = sharding_text(lowered, compiled)
    assert "argument b, f32[64,64]: P('y', None) -> " in text and "What would avoid it" in text
    assert "What would avoid it" not in sharding_text(lowered, compiled, tries_specs=False)
    assert lowered.as_text() == before


def test_results_of_callbacks_are_on_one_device_first():
    @jax.jit
    def with_callback(x):
        jax.debug.print("{}", x.sum())
        doubled = jax.pure_callback(lambda a: np.asarray(a) * 2, struct(), x)
        return (x @ doubled).T @ x

    (row,) = reshards(with_callback)(struct("x")).rows
    assert (row.operation, row.after) == ("pure_callback", "gathered by XLA")


def test_an_option_tells_it_when_a_program_is_compiled(capsys):
    def on_devices(*spec):
        return jax.device_put(jnp.ones((64, 64)), NamedSharding(mesh, P(*spec)))

    rows, columns = on_devices("x"), on_devices(None, "x")
    with options["hlofront_warn_reshards"](True):
        product = jax.jit(lambda rows, more_rows: rows @ more_rows)
        for _ in range(2):
            product(rows, rows)
        jax.jit(lambda columns, rows: rows * 2 + columns)(columns, columns)
    told = capsys.readouterr().err
    assert told.count("XLA reshards") == told.count("for dot_general") == 1
    assert "argument more_rows, f32[64,64]: P('x', None) -> P(None, None), " in told
