"""The option no_collectives, which forbids communication along axes of a mesh, on eight devices."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.core import rules
from hlofront.errors import ForbiddenCollectiveError
from hlofront.primitives.collectives.exchanges import all_gather_p
from hlofront.primitives.collectives.varying import psum_invariant_p
from hlofront.primitives.sharding.resharding import reshard_p
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


# ---- derivatives ---------------------------------------------------------------------------------

# Functions of an array that x splits by rows, or of one that it does not split, whose cotangents
# communicate along x, and those whose cotangents do not.
SUMMED_COTANGENTS = {
    "a product with what is not split": ("whole", lambda w: jnp.dot(split("x"), w)),
    "a reshard that splits": ("whole", lambda w: reshard(w, P("x"))),
    "the same inside of checkpoint": ("whole", jax.checkpoint(lambda w: jnp.dot(split("x"), w))),
    "a value that is the same on all devices": (
        "whole",
        jax.shard_map(
            lambda w, x: w[:4] * x,
            mesh=mesh,
            in_specs=(P(), P("x")),
            out_specs=P("x"),
            axis_names={"x"},
        ),
    ),
}
LOCAL_COTANGENTS = {
    "a product of rows": ("rows", lambda a: jnp.dot(a, split())),
    "a sum of each row": ("rows", lambda a: jnp.sin(a).sum(1)),
    "an element of each device": (
        "rows",
        jax.shard_map(jnp.sin, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"}),
    ),
}


def operands(kind, function):
    """The operands of a function, and a cotangent of its result."""
    primals = [split() if kind == "whole" else split("x")]
    if function is SUMMED_COTANGENTS["a value that is the same on all devices"][1]:
        primals.append(split("x"))
    result = function(*primals)
    return primals, jax.device_put(np.ones(result.shape, np.float32), result.sharding)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", SUMMED_COTANGENTS)
def test_a_cotangent_that_is_summed_over_devices_is_refused_where_it_is_pulled_back(name, compiled):
    kind, function = SUMMED_COTANGENTS[name]
    with set_mesh(mesh):
        primals, cotangent = operands(kind, function)
        function = jax.jit(function) if compiled else function
        pull_back = jax.vjp(function, *primals)[1]
        pull_back(cotangent)
        with no_collectives({"x"}):
            pull_back_later = jax.vjp(function, *primals)[1]
            with pytest.raises(ForbiddenCollectiveError, match="'x'"):
                pull_back(cotangent)
        with no_collectives({"y"}):
            pull_back(cotangent)
        pull_back_later(cotangent)


@pytest.mark.parametrize("name", LOCAL_COTANGENTS)
def test_derivatives_without_communication_are_allowed(name):
    kind, function = LOCAL_COTANGENTS[name]
    with set_mesh(mesh):
        primals, cotangent = operands(kind, function)
        with no_collectives({"x"}):
            jax.jit(lambda a, ct: jax.vjp(function, a)[1](ct))(*primals, cotangent)
            jax.jvp(function, primals, primals)


def test_a_gradient_inside_of_shard_map_is_refused_where_it_sums_over_devices():
    def gradient_by(position):
        return jax.jit(
            jax.shard_map(
                lambda w, x: jax.grad(lambda w, x: (w[:4] * x).sum(), position)(w, x),
                mesh=mesh,
                in_specs=(P(), P("x")),
                out_specs=(P(), P("x"))[position],
                axis_names={"x"},
            )
        )

    with set_mesh(mesh), no_collectives({"x"}):
        gradient_by(1)(split(), split("x"))
        with pytest.raises(ForbiddenCollectiveError, match="'x'"):
            gradient_by(0)(split(), split("x"))


# ---- vmap ----------------------------------------------------------------------------------------

summed_over_x = jax.shard_map(
    COLLECTIVES["psum"], mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"}
)

MAPPED_AND_REFUSED = {
    "a sum over split elements": lambda a, b: jax.vmap(jnp.sum)(b),
    "a sum over the split axis": lambda a, b: jax.vmap(jnp.sum, in_axes=1)(a),
    "psum of each example": lambda a, b: jax.vmap(summed_over_x)(b),
    "the gradient by what is not mapped": lambda a, b: jax.grad(
        lambda w: jax.vmap(lambda row: jnp.dot(row, w))(a).sum(1).sum()
    )(jnp.ones((8, 8))),
}
MAPPED_AND_ALLOWED = {
    "a sum of each example": lambda a, b: jax.vmap(jnp.sum)(a),
    "a sum of each example, by name": lambda a, b: jax.vmap(jnp.sum, spmd_axis_name="x")(a),
    "the gradient of each example": lambda a, b: jax.vmap(jax.grad(lambda row: jnp.sin(row).sum()))(
        a
    ),
    "a result whose examples are along another axis": lambda a, b: jax.vmap(jnp.sin, out_axes=1)(a),
}


@pytest.mark.parametrize("name", MAPPED_AND_REFUSED)
def test_communication_of_examples_is_refused(name):
    function = MAPPED_AND_REFUSED[name]
    with set_mesh(mesh):
        function(split("x"), split(None, "x"))
        with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError, match="'x'"):
            function(split("x"), split(None, "x"))


@pytest.mark.parametrize("name", MAPPED_AND_ALLOWED)
def test_examples_that_stay_on_their_devices_are_allowed(name):
    with set_mesh(mesh), no_collectives({"x"}):
        MAPPED_AND_ALLOWED[name](split("x"), split(None, "x"))


@pytest.mark.parametrize("inner", [jax.jit, jax.checkpoint, lambda function: function])
def test_an_axis_that_vmap_maps_is_none_of_the_mesh_by_the_same_name(inner):
    def total(a):
        return lax.scan(lambda c, b: (c + lax.psum(b, "x"), b), 0.0, a)[0]

    examples = jnp.arange(6.0).reshape(2, 3)
    wanted = jax.vmap(jax.value_and_grad(inner(total)), axis_name="x")(examples)
    with no_collectives({"x"}):
        found = jax.vmap(jax.value_and_grad(inner(total)), axis_name="x")(examples)
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize("primitive", [psum_invariant_p, all_gather_p, reshard_p])
def test_types_of_operations_that_communicate_are_inferred_once(primitive, monkeypatch):
    """Twice where `no_collectives` is put on in between: the rule may refuse the operation then."""
    jax.clear_caches()  # Other tests use operations on the same types.
    rule, inferred = rules.infer[primitive], []

    def counting(*avals, **params):
        inferred.append(avals)
        return rule(*avals, **params)

    monkeypatch.setitem(rules.infer, primitive, counting)

    @jax.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P(None), check_vma=False, axis_names={"x"})
    def gathered(x):
        return lax.all_gather(lax.all_gather(x, "x").sum(0), "x").sum(0)

    function = {
        psum_invariant_p: jax.shard_map(
            lambda x: lax.psum(jnp.sin(x), "x") + lax.psum(jnp.cos(x), "x"),
            mesh=mesh,
            in_specs=P("x"),
            out_specs=P(),
            axis_names={"x"},
        ),
        all_gather_p: gathered,
        reshard_p: lambda x: reshard(jnp.sin(x), P("y")) + reshard(jnp.cos(x), P("y")),
    }[primitive]
    with set_mesh(mesh):
        jax.jit(function).trace(split("x"))
        assert len(inferred) == 1
        with no_collectives({"x"}), pytest.raises(ForbiddenCollectiveError):
            jax.jit(function).trace(split("x"))


def test_forbidden_axes_are_given_as_a_set():
    with pytest.raises(TypeError, match="set or frozenset"):
        no_collectives("x")
