"""Values that XLA reshards on CPUs, whose dumps of Shardy have no lines."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
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
    split = jax.jit(lambda x: x + 1, out_shardings=struct(None, "x").sharding)
    (row,) = reshards(split)(struct("x")).rows
    assert (row.before, row.after) == ("P('x', None)", "P(None, 'x')")


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
