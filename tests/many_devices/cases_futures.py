"""psum_scatter_start and `done` give what psum_scatter gives, as two operations."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import AxisType
from hlofront.sharding import PartitionSpec as P

VALUES = np.cos(np.arange(32 * 8 * 4, dtype=np.float32)).reshape(32, 8, 4)
MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def in_one(x, axis_name, **options):
    return lax.psum_scatter(x, axis_name, **options)


def in_two(x, axis_name, **options):
    return lax.psum_scatter_start(x, axis_name, **options).done()


def mapped(function, names=("x",), **options):
    """Map over the leading axis; XLA splits arrays along the other axes of the mesh."""
    spec = P(names)
    return jax.shard_map(
        function, mesh=MESH, in_specs=spec, out_specs=spec, axis_names=set(names), **options
    )


BOTH = ("x", "y")
GROUPS = {"axis_index_groups": [[0, 3], [1, 2]], "tiled": True}


@pytest.mark.parametrize(
    "names, axis_name, options",
    [
        (("x",), "x", {"tiled": True}),
        (("x",), "x", {"tiled": True, "scatter_dimension": 1}),
        (("x",), "x", {"scatter_dimension": 2}),
        (("x",), "x", {"scatter_dimension": -1}),
        (("x",), "x", GROUPS),
        (BOTH, "x", {"tiled": True}),
        (BOTH, BOTH, {"scatter_dimension": 1}),
        (BOTH, ("y", "x"), {"tiled": True, "scatter_dimension": 1}),
    ],
    ids=str,
)
def test_value_and_derivatives(names, axis_name, options):
    def results(function):
        whole = mapped(
            lambda x: function(x, axis_name, **options), names, check_vma=options is not GROUPS
        )
        result, pull = jax.vjp(jax.jit(whole), VALUES)
        _, tangent = jax.jvp(jax.jit(whole), (VALUES,), (np.sin(VALUES),))
        squares = jax.grad(lambda x: (whole(x) ** 2).sum())
        return whole(VALUES), result, pull(np.sin(result))[0], tangent, squares(VALUES)

    for here, wanted in zip(results(in_two), results(in_one), strict=True):
        np.testing.assert_array_equal(here, wanted)


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("batch_axis", [0, 1, 2])
def test_under_vmap(batch_axis, dimension, tiled):
    values = np.cos(np.arange(4 * 4 * 4 * 4, dtype=np.float32)).reshape(16, 4, 4)
    options = {"scatter_dimension": dimension, "tiled": tiled}

    def result(function):
        each = jax.vmap(lambda x: function(x, "x", **options), batch_axis)
        return jax.jit(mapped(each))(values)

    np.testing.assert_array_equal(result(in_two), result(in_one))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint32", "complex64"])
def test_dtypes(dtype):
    values = jnp.arange(64).reshape(16, 4).astype(dtype)

    def result(function):
        return jax.jit(mapped(lambda x: function(x, "x", tiled=True)))(values)

    assert result(in_two).dtype == dtype
    np.testing.assert_array_equal(result(in_two), result(in_one))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.jit(lambda y: in_two(y, "x", tiled=True))(x),
        lambda x: in_two({"a": x, "b": [x * 2]}, "x", tiled=True)["b"][0] / 2,
        lambda x: lax.scan(lambda c, y: (c, in_two(y, "x", tiled=True)), 0, x[None])[1][0],
        lambda x: lax.cond(True, lambda y: in_two(y, "x", tiled=True), lambda y: y[:2], x),
        lambda x: jax.checkpoint(lambda y: in_two(y, "x", tiled=True))(x),
        lambda x: jax.jit(lambda y: lax.psum_scatter_start(y, "x", tiled=True).done())(x),
    ],
    ids=["jit", "tree", "scan", "cond", "checkpoint", "started in jit"],
)
def test_in_programs(function):
    summed = jax.jit(mapped(function))
    wanted = jax.jit(mapped(lambda x: in_one(x, "x", tiled=True)))
    np.testing.assert_array_equal(summed(VALUES), wanted(VALUES))
    gradients = [jax.grad(lambda x, f=f: (f(x) ** 2).sum())(VALUES) for f in (summed, wanted)]
    np.testing.assert_array_equal(*gradients)


def test_summands_are_scattered():
    def function(scatter):
        def each(x):
            summands = lax.pcast(x, "x", to="unreduced")
            return scatter(summands, "x", tiled=True)

        return jax.jit(mapped(each))

    np.testing.assert_array_equal(function(in_two)(VALUES), function(in_one)(VALUES))
    assert "unreduced_reduce_scatter_start" in str(jax.make_jaxpr(function(in_two))(VALUES))


def test_the_program_is_that_of_jax():
    program = mapped(lambda x: in_two(x, "x", tiled=True))
    shown = str(jax.make_jaxpr(program)(np.ones((16, 4), np.float32)))
    assert ":AbstractFuture{f32[1,4]{V:x}} = reduce_scatter_start[" in shown
    assert ":f32[1,4]{V:x} = reduce_scatter_done " in shown
    lowered = jax.jit(program).lower(np.ones((16, 4), np.float32)).as_text()
    assert '"stablehlo.async_start"(' in lowered
    assert "!stablehlo.future<tensor<1x4xf32>>) -> tensor<1x4xf32>" in lowered


def test_a_future_is_no_array():
    def start(x):
        return lax.psum_scatter_start(x, "x", tiled=True).x

    with pytest.raises(TypeError, match="add requires arrays, and operand 0 is a future"):
        mapped(lambda x: start(x) + 1)(VALUES)
    with pytest.raises(TypeError, match=r"result is a future of type .* Await it by its method"):
        mapped(start)(VALUES)
    with pytest.raises(ValueError, match="dimension size 3 must be divisible by shard_count 4"):
        mapped(lambda x: in_two(x[:3], "x", tiled=True))(VALUES)


def test_what_was_started_prints_its_type():
    def each(x):
        future = lax.psum_scatter_start({"a": x}, "x", tiled=True)
        assert repr(future) == "Future(type={'a': AbstractFuture{float32[2,8,4]{V:x}}})"
        return future.done()["a"]

    mapped(each)(VALUES)
