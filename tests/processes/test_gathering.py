"""Values that processes bring to all: multihost_utils, and arrays made of the processes' parts."""

import ml_dtypes
import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.experimental import multihost_utils
from tests.processes.group import Group

TWO = """
import hlofront as jax, hlofront.numpy as jnp, ml_dtypes, numpy as np
from hlofront.experimental.multihost_utils import *
jax.distributed.initialize()
me = jax.process_index()
P = jax.P
def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
values = {
    "wide": np.int64(2**40) + me,
    "zero": np.float32(-0.0),
    "small": np.full((2, 2), 1.5 + me, ml_dtypes.bfloat16),
    "text": np.array("abc"),
    "empty": np.zeros((0, 3)),
    "none": None,
}
"""

EXCHANGES = (
    TWO
    + """
zeroth, first = broadcast_one_to_all(values), broadcast_one_to_all(values, is_source=me == 1)
assert [zeroth["wide"] - 2**40, first["wide"] - 2**40] == [0, 1]
assert zeroth["wide"].dtype == np.int64 and np.signbit(zeroth["zero"])
assert first["small"].dtype == ml_dtypes.bfloat16 and (first["small"] == 2.5).all()
assert zeroth["text"] == "abc" and zeroth["empty"].shape == (0, 3) and zeroth["none"] is None
stacked, tiled = process_allgather(values), process_allgather(values, tiled=True)
assert (stacked["wide"] == 2**40 + np.arange(2)).all() and (tiled["wide"] == stacked["wide"]).all()
assert stacked["small"].shape == (2, 2, 2) and tiled["small"].shape == (4, 2)
assert "numbers and of fixed-size text" in raised(broadcast_one_to_all, np.array([None]))
assert_equal({"a": np.arange(3)})
sync_global_devices("one")
error = raised(assert_equal, {"a": np.arange(3) + me}, "steps")
assert "AssertionError: steps. Expected: {'a': array([0, 1, 2])}" in error, error
assert "process 1 has {'a': array([1, 2, 3])}" in error, error
assert "differ" in raised(assert_equal, np.zeros(me + 1)), "shapes"
assert "name mismatch ('two" in raised(sync_global_devices, f"two{me}")
over_all = jax.NamedSharding(jax.make_mesh((4,), ("x",)), P())
for value in (np.float32([1, 1 + me]), np.arange(2 + me), 2.5 + me, jnp.ones(3, int) * me):
    error = raised(jax.device_put, value, over_all)
    assert "AssertionError: process 1 of 2 has another value than process 0" in error, error
    assert "passed to device_put is not the same on each process" in error, error
assert "process 1: device_put of float32[2] has float32[2] array([1., 2.]" in raised(
    jax.device_put, np.float32([1, 1 + me]), over_all
)
for again in range(2):
    assert (np.asarray(jax.device_put(np.arange(3), over_all)) == np.arange(3)).all()
with jax.default_device(jax.local_devices()[0]):
    assert (np.asarray(jax.device_put(jnp.arange(3), over_all)) == np.arange(3)).all()
own = jax.NamedSharding(jax.sharding.Mesh(jax.local_devices(), "x"), P())
assert float(jax.device_put(1.5 + me, own)) == 1.5 + me
print("done")
"""
)

PARTS = (
    TWO
    + """
mesh = jax.make_mesh((4,), ("x",), (jax.sharding.AxisType.Auto,))
rows = np.arange(8.0, dtype=np.float32).reshape(4, 2) + 100 * me
whole = np.concatenate([rows - 100 * me, rows - 100 * me + 100])
split, same = jax.NamedSharding(mesh, P("x")), jax.NamedSharding(mesh, P())
make = jax.make_array_from_process_local_data
x = host_local_array_to_global_array(rows, mesh, P("x"))
assert x.sharding == split and x.shape == (8, 2) and not x.is_fully_addressable
assert (process_allgather(x, tiled=True) == whole).all()
assert (np.asarray(global_array_to_host_local_array(x, mesh, P("x"))) == rows).all()
assert (np.asarray(global_array_to_host_local_array(x, mesh, P())) == whole).all()
tree = host_local_array_to_global_array({"a": rows, "b": np.ones(3)}, mesh, {"a": P("x"), "b": P()})
assert tree["b"].shape == (3,) and tree["b"].is_fully_replicated
assert (np.asarray(tree["b"]) == 1).all()
batched = jax.vmap(lambda a: host_local_array_to_global_array(a, mesh, P("x")))(rows.T)
assert batched.shape == (2, 8) and batched.sharding.spec == P(None, "x")
within = jax.jit(lambda a: host_local_array_to_global_array(a, mesh, P("x")))
assert "outside of programs" in raised(within, rows)
assert "only supports tiled=True" in raised(process_allgather, x)
for data, shape in [(rows, None), (rows, (8, 2)), (whole, (8, 2))]:
    assert (process_allgather(make(split, data, shape), tiled=True) == whole).all(), shape
assert make(same, rows).shape == (4, 2)
wide = make(split, rows.astype(np.float64))
assert wide.dtype == np.float32 and (process_allgather(wide, tiled=True) == whole).all()
assert "should match either global or process shape" in raised(make, split, rows[:3], (8, 2))
assert "has Nones" in raised(make, split, rows, (None, 2))
square = jax.make_mesh((2, 2), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2)
across = jax.NamedSharding(square, P("y", "x"))
blocks = np.concatenate([rows - 100 * me, rows - 100 * me + 100], 1)
assert (process_allgather(make(across, rows), tiled=True) == blocks).all()
copied = jnp.array(x)
assert (process_allgather(copied, tiled=True) == whole).all()
donating = jax.jit(lambda a: a + 1, donate_argnums=0)
assert (process_allgather(donating(copied), tiled=True) == whole + 1).all() and copied.is_deleted()
moved = jax.device_put(whole, across)
moved = jax.device_put(moved, jax.NamedSharding(square, P("x", "y")))
assert (process_allgather(moved, tiled=True) == whole).all()
assert repr(x) == "Array(shape=(8, 2), dtype=float32)" == str(x), repr(x)
row = x[5]
assert float(x.sum()) == whole.sum() and row.is_fully_replicated
assert (np.asarray(row) == whole[5]).all()
assert "multihost_utils.process_allgather" in raised(np.asarray, x)
sync_global_devices("end")
print("done")
"""
)


@pytest.mark.parametrize("script", [EXCHANGES, PARTS], ids=["exchanges", "parts"])
def test_two_processes_exchange_values(tmp_path, script):
    with Group(tmp_path, script, 2, devices=2) as group:
        assert group.wait() == [0, 0], group.outputs()
        assert [group.output(number) for number in range(2)] == ["done"] * 2


def test_one_process_has_what_all_have():
    tree = {"a": np.arange(3), "b": 1, "c": jnp.ones((2, 2), jnp.bfloat16), "none": None}
    same = multihost_utils.broadcast_one_to_all(tree, is_source=False)
    assert same["a"].dtype == np.int64 and same["c"].dtype == ml_dtypes.bfloat16
    assert multihost_utils.process_allgather(tree)["a"].shape == (1, 3)
    assert multihost_utils.process_allgather(tree, tiled=True)["a"].shape == (3,)
    assert multihost_utils.assert_equal(tree) is None
    assert multihost_utils.sync_global_devices("here") is None


def test_parts_of_one_process_are_whole_arrays_that_are_differentiated_and_batched():
    mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    values = np.arange(8.0, dtype=np.float32)

    def there_and_back(x):
        x = multihost_utils.host_local_array_to_global_array(x, mesh, jax.P("x"))
        return multihost_utils.global_array_to_host_local_array(x, mesh, jax.P("x"))

    assert (there_and_back(values) == values).all()
    assert (jax.jit(there_and_back)(values) == values).all()
    assert (jax.grad(lambda x: there_and_back(x)[2] * 3)(values) == 3 * (np.arange(8) == 2)).all()
    assert (jax.jit(jax.vmap(there_and_back))(values.reshape(2, 4)) == values.reshape(2, 4)).all()


def test_rules_by_the_names_of_jax():
    mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    aval = jax.core.ShapedArray((4, 3), np.float32)
    params = {"global_mesh": mesh, "pspec": jax.P("x")}
    assert multihost_utils.ltg_abstract_eval(aval, **params) == aval
    assert multihost_utils.gtl_abstract_eval(aval, **params) == aval

    bind = multihost_utils.host_local_array_to_global_array_p.bind
    batched = jax.vmap(lambda x: bind(x, **params), in_axes=1, spmd_axis_name="x")
    jaxpr = jax.make_jaxpr(batched)(np.ones((4, 3), np.float32))
    assert jaxpr.eqns[0].params["pspec"] == jax.P("x", "x")


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (None, "not a valid input to the pspecs"),
        (jax.P("y"), "not found in mesh"),
        (jax.P(None, None), "at most one entry per axis"),
        ({"a": jax.P()}, "must be a tree prefix"),
    ],
)
def test_specs_that_do_not_fit(spec, text):
    mesh = jax.make_mesh((1,), ("x",), (jax.sharding.AxisType.Auto,))
    with pytest.raises(ValueError, match=text):
        multihost_utils.host_local_array_to_global_array(np.ones(8), mesh, spec)
