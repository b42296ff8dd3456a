"""The option no_collectives, which forbids communication along axes of a mesh, on eight devices."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.errors import ForbiddenCollectiveError
from hlofront.sharding import NamedSharding, no_collectives, reshard, set_mesh
from hlofront.sharding import PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("x", "y"))

COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "x"),
    "pmean": lambda x: lax.pmean(x, ("x",)),
    "pmax": lambda x: lax.pmax(x, "x"),
    "all_gather": lambda x: lax.all_gather(x, "x"),
    "all_to_all": lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "x", [(0, 1), (1, 0)]),
    "psum_scatter": lambda x: lax.psum_scatter(x, "x", tiled=True),
    "pbroadcast": lambda x: lax.pbroadcast(x, "x", 0),
}

# Functions of arrays a, which x splits by rows, and b, which x splits by columns.
EXPLICIT = {
    "a sum": lambda a, b: a.sum(0),
    "a sum whose result is asked for": lambda a, b: lax.reduce_sum(
        a, (0,), out_sharding=NamedSharding(mesh, P())
    ),
    "a contraction": lambda a, b: jnp.dot(b, a, out_sharding=P()),
    "a contraction that is split again": lambda a, b: jnp.dot(b, a, out_sharding=P("x")),
    "an axis moved by a product": lambda a, b: jnp.dot(a, a, out_sharding=P(None, "x")),
    "a gathering reshard": lambda a, b: reshard(a, P()),
    "a moving reshard": lambda a, b: reshard(a, P(None, "x")),
    "a sum of summands": lambda a, b: reshard(jnp.dot(b, a, out_sharding=P(unreduced={"x"})), P()),
    "a maximum": lambda a, b: a.max(0),
}
ALLOWED = {
    "arithmetic": lambda a, b: jnp.sin(a) * 2 + a,
    "a sum along the other axis": lambda a, b: a.sum(1),
    "a transposition": lambda a, b: a.T + b,
    "summands": lambda a, b: jnp.dot(b, a, out_sharding=P(unreduced={"x"})),
    "a product with the whole": lambda a, b: jnp.dot(a, reshard(jnp.ones((8, 8)), P())),
    "a reshard that splits": lambda a, b: reshard(jnp.ones((8, 8)), P("x")),
}


def mapped(function):
    return jax.jit(
        jax.shard_map(
            function, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False
        )
    )


def split(*entries):
    return jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, P(*entries)))


@pytest.mark.parametrize("name", COLLECTIVES)
def test_a_collective_is_refused_along_forbidden_axes_alone(name):
    traced = mapped(COLLECTIVES[name])
    traced.trace(split("x", "y"))
    with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError, match="'x'"):
        traced.trace(split("x", "y"))
    with no_collectives({"y"}):
        traced.trace(split("x", "y"))


@pytest.mark.parametrize("name", ["psum", "pmax", "all_gather", "psum_scatter"])
def test_collectives_whose_types_vary_are_refused(name):
    traced = jax.shard_map(COLLECTIVES[name], mesh=mesh, in_specs=P("x", "y"), out_specs=P())
    with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError, match="'x'"):
        jax.jit(traced).trace(split("x", "y"))


def test_an_index_along_a_forbidden_axis_is_no_collective():
    with no_collectives({"x", "y"}):
        mapped(lambda x: x + lax.axis_index("x")).trace(split("x", "y"))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", EXPLICIT)
def test_an_operation_that_gathers_or_adds_up_is_refused(name, compiled):
    function = jax.jit(EXPLICIT[name]) if compiled else EXPLICIT[name]
    with set_mesh(mesh):
        function(split("x"), split(None, "x"))
        with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError, match="'x'"):
            function(split("x"), split(None, "x"))
        with no_collectives({"y"}):
            function(split("x"), split(None, "x"))


@pytest.mark.parametrize("name", ALLOWED)
def test_an_operation_without_communication_is_allowed(name):
    with set_mesh(mesh), no_collectives({"x"}):
        jax.jit(ALLOWED[name])(split("x"), split(None, "x"))


def test_forbidden_axes_are_given_as_a_set():
    with pytest.raises(TypeError, match="set or frozenset"):
        no_collectives("x")
