"""Arrays of summands: what devices have along the unreduced axes of a PartitionSpec is added up."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import AxisType, Mesh, NamedSharding
from hlofront.sharding import PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("x", "y"))
half = Mesh(mesh.devices[:2], ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
backwards = Mesh(mesh.devices[::-1], ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
VALUES = np.arange(16, dtype=np.float32).reshape(8, 2)
TOTALS = VALUES.sum(0)
# What may be applied to the summands one by one, as functions of them and of jnp or NumPy.
LINEAR = {
    "add": lambda a, np: a + a,
    "sub": lambda a, np: a - a - a,
    "neg": lambda a, np: -a,
    "transpose": lambda a, np: np.transpose(np.reshape(a, (1, 2))),
    "reshape": lambda a, np: np.reshape(a, (2, 1)),
    "squeeze": lambda a, np: np.squeeze(np.reshape(a, (2, 1)), 1),
    "broadcast_in_dim": lambda a, np: np.broadcast_to(a, (3, 2)),
    "expand_dims": lambda a, np: a[None],
    "convert_element_type": lambda a, np: a.astype(np.float16),
    "to complex": lambda a, np: a.astype(np.complex64),
    "real and imag": lambda a, np: np.real(a + 0j) + np.imag(a + 0j),
    "slice": lambda a, np: a[:2],
    "pad": lambda a, np: np.pad(a, 2),
    "concatenate": lambda a, np: np.concatenate([a, a]),
    "stack": lambda a, np: np.stack([a, -a]),
    "stack at the end": lambda a, np: np.stack([a, -a], 1),
    "split": lambda a, np: np.split(np.concatenate([a, -a]), 2)[1],
    "select_n": lambda a, np: np.where(True, a, -a),
    "reduce_sum": lambda a, np: np.sum(a),
}
# Programs of summands `a`, whose result is `times` their sum.
PROGRAMS = {
    "jit": (4, lambda a: _doubled(_doubled(a))),
    "scan": (8, lambda a: lax.scan(lambda c, _: (c + c, None), a, None, length=3)[0]),
    "while": (8, lambda a: lax.fori_loop(0, jnp.int32(3), lambda i, c: c + c, a)),
    "cond": (2, lambda a: lax.cond(jnp.int32(1) > 0, lambda c: c + c, lambda c: c, a)),
    "cond untouched": (1, lambda a: lax.cond(jnp.int32(1) < 0, lambda c: c + c, lambda c: c, a)),
    "checkpoint": (2, jax.checkpoint(lambda a: a + a)),
    "vmap": (2, lambda a: lax.reshape(jax.vmap(lambda b: b + b)(a[None]), (2,))),
}
SPECS = [P("y", unreduced={"x"}), P(None, unreduced={"x"})]


@pytest.fixture(autouse=True)
def _mesh_in_context():
    with jax.set_mesh(mesh):
        yield


@jax.jit
def _by_column(values):
    return lax.reduce_sum(values, (0,), out_sharding=SPECS[0])


def summands(spec=SPECS[0]):
    """Return the sums of the columns of VALUES, which split axes along x and y, as summands."""
    return jax.reshard(_by_column(jax.reshard(VALUES, P("x", "y"))), spec)


@jax.jit
def _doubled(a):
    return a + a


def shards(x):
    return [shard.data.tolist() for shard in x.addressable_shards]


def test_each_device_has_its_summand():
    assert shards(summands()) == [[s] for s in (2, 4, 10, 12, 18, 20, 26, 28)]
    assert shards(summands(SPECS[1]))[::2] == [[2, 4], [10, 12], [18, 20], [26, 28]]


@pytest.mark.parametrize("spec", SPECS)
def test_programs_take_and_return_summands(spec):
    doubled = jax.jit(lambda a: a + a)(summands(spec))
    assert doubled.sharding.spec == spec
    np.testing.assert_array_equal(jax.reshard(doubled, P()), 2 * TOTALS)
    added = jax.jit(lambda a: jax.reshard(a + a, P("y")))(summands(spec))
    np.testing.assert_array_equal(added, 2 * TOTALS)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("spec", SPECS)
def test_linear_operations_are_applied_to_summands(name, spec):
    operation = LINEAR[name]
    result = jax.jit(lambda a: operation(a, jnp))(summands(spec))
    assert result.sharding.spec.unreduced == {"x"}
    np.testing.assert_array_equal(jax.reshard(result, P()), operation(TOTALS, np))
    eager = operation(summands(spec), jnp)
    np.testing.assert_array_equal(jax.reshard(eager, P()), operation(TOTALS, np))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_inside_of_programs_keep_summands(name):
    times, program = PROGRAMS[name]
    result = jax.jit(program)(summands())
    assert result.sharding.spec == SPECS[0]
    np.testing.assert_array_equal(jax.reshard(result, P()), times * TOTALS)


def test_conjugation_is_refused_for_summands():
    with pytest.raises(jax.errors.ShardingTypeError, match="conj of summands"):
        jnp.conj(summands() + 0j)


def test_summands_stay_unreduced_in_a_sum_and_are_not_reshaped_into_whole_values():
    total = lax.reduce_sum(summands(), (0,), out_sharding=P())
    assert total.sharding.spec == P(unreduced={"x"})
    with pytest.raises(ValueError, match="unreduced along the axes of its operand"):
        summands().reshape((2, 1), out_sharding=P())


def test_scalars_are_summands_too():
    total = summands().sum()
    assert str(jax.typeof(total)) == "float32[]{U:x}"
    assert total.sharding.spec == P(unreduced={"x"})
    assert jax.reshard(total, P()) == TOTALS.sum()
    mapped = jax.shard_map(lambda a: lax.psum(a, "x"), out_specs=P())
    assert mapped(total) == TOTALS.sum()
    back = jax.grad(lambda a: jax.reshard(a * 1, P()))(jax.reshard(np.float32(2), P()))
    assert back == 1


@pytest.mark.parametrize(
    "read",
    [np.asarray, float, lambda a: a.tolist(), lambda a: a.addressable_shards[0].index],
    ids=["asarray", "float", "tolist", "index"],
)
def test_summands_are_not_read_as_the_array(read):
    with pytest.raises(NotImplementedError, match="summands of an array"):
        read(summands().sum())


def test_summands_are_printed_without_a_value():
    text = repr(summands())
    assert text == str(summands()) and text.startswith("Array(shape=(2,), dtype=float32, sharding=")


def test_shardings_know_summands():
    whole, terms = (NamedSharding(mesh, spec) for spec in (P(), SPECS[1]))
    assert not terms.is_fully_replicated
    assert not terms.is_equivalent_to(whole, 1)
    assert not whole.is_equivalent_to(terms, 1)
    assert not terms.is_equivalent_to(NamedSharding(mesh, P(unreduced={"y"})), 1)
    assert terms.is_equivalent_to(NamedSharding(mesh, P(unreduced={"x"})), 1)
    assert not NamedSharding(backwards, SPECS[1]).is_equivalent_to(terms, 1)
    assert "last_tile_dims={unreduced, replicated}" in str(terms._to_xla_hlo_sharding(1))
    one = jax.make_mesh((1, 8), ("x", "y"))
    assert NamedSharding(one, SPECS[1]).is_equivalent_to(NamedSharding(one, P()), 1)


@pytest.mark.parametrize(
    "target",
    [
        NamedSharding(mesh, P()),
        NamedSharding(mesh, P("x")),
        NamedSharding(half, P("x")),
        NamedSharding(backwards, P("y")),
        jax.sharding.SingleDeviceSharding(jax.devices()[3]),
    ],
    ids=str,
)
def test_summands_are_added_up_where_they_are_moved(target):
    if "x" in str(getattr(target, "spec", "")):
        values, totals = np.ones((8, 8), np.float32), np.full(8, 8.0)
    else:
        values, totals = VALUES, TOTALS
    split = jax.reshard(values, P("x", "y"))
    moved = jax.device_put(_by_column(split), target)
    assert moved.sharding == target
    np.testing.assert_array_equal(moved, totals)


@pytest.mark.parametrize("target", [mesh, half, backwards], ids=["mesh", "half", "backwards"])
def test_values_that_become_summands_are_there_once(target):
    terms = NamedSharding(target, SPECS[1])
    for start in (TOTALS, jax.device_put(TOTALS, NamedSharding(mesh, P("y"))), summands()):
        x = jax.device_put(start, terms)
        assert x.sharding == terms
        assert str(jax.typeof(x)) == "float32[2]{U:x}"
        parts = [shard.data for shard in x.addressable_shards]
        np.testing.assert_array_equal(sum(map(np.asarray, parts[::2])), TOTALS)
        np.testing.assert_array_equal(jax.device_put(x, NamedSharding(target, P())), TOTALS)


def test_donated_summands_are_added_up_right():
    x = summands()
    doubled = jax.jit(lambda a: a + a, donate_argnums=0)(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(jax.reshard(doubled, P()), 2 * TOTALS)


def test_a_part_is_written_into_summands():
    written = jax.jit(lambda a: lax.dynamic_update_slice(a + a, a, (0,)))(summands())
    np.testing.assert_array_equal(jax.reshard(written, P()), TOTALS)


def test_gradients_go_through_summands_between_programs():
    def loss(values):
        return (jax.reshard(_by_column(values * values), P()) ** 2).sum()

    split = jax.reshard(VALUES, P("x", "y"))
    expected = 4 * VALUES * (VALUES**2).sum(0)
    np.testing.assert_array_equal(jax.grad(loss)(split), expected)
    np.testing.assert_array_equal(jax.jit(jax.grad(loss))(split), expected)


def test_results_of_shard_map_are_summands():
    def columns(part):
        return lax.pcast(part.sum(0), "x", to="unreduced")

    mapped = jax.shard_map(columns, in_specs=P("x", "y"), out_specs=SPECS[0])
    x = mapped(jax.reshard(VALUES, P("x", "y")))
    assert shards(x) == shards(summands())
    np.testing.assert_array_equal(jax.reshard(x, P()), TOTALS)


def test_a_reduced_result_of_shard_map_needs_a_spec_that_says_so():
    def mapped(out_specs):
        return jax.shard_map(lambda x: x, in_specs=P(reduced={"x"}), out_specs=out_specs)

    x = jax.reshard(TOTALS, P(reduced={"x"}))
    assert mapped(P(reduced={"x"}))(x).sharding.spec == P(reduced={"x"})
    with pytest.raises(ValueError, match="require replication which can't be statically inferred"):
        mapped(P())(x)


def test_meshes_with_auto_axes_have_no_summands():
    mixed = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Explicit, AxisType.Auto))
    with jax.set_mesh(mixed), pytest.raises(ValueError, match="without axes of type Auto"):
        lax.reduce_sum(jax.reshard(VALUES, P("x")), (0,), out_sharding=P(unreduced={"x"}))
