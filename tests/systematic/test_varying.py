"""The library's functions inside shard_map, of arguments that vary along an axis of the mesh.

Their own loops and branches must not be refused where one argument varies and another does not.
"""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.sharding import AxisType
from hlofront.sharding import PartitionSpec as P
from tests.numpy import catalogue, catalogue_part
from tests.scipy.library_calls import CASES
from tests.systematic import trials

MESH = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))


def ways(count):
    """Which arguments vary: all of them, and each one of several."""
    yield (True,) * count
    if count > 1:
        yield from (tuple(i == j for j in range(count)) for i in range(count))


def refused(function, values):
    """Trace a function of arguments that vary in each way; return what is refused."""
    said = []
    for varies in ways(len(values)):

        def per_device(*shards, varies=varies):
            args = [x[0] if flag else x for x, flag in zip(shards, varies, strict=True)]
            return [jnp.asarray(x)[None] for x in jax.tree.leaves(function(*args))]

        specs = tuple(P("x") if flag else P() for flag in varies)
        args = [jnp.asarray(x)[None] if flag else x for x, flag in zip(values, varies, strict=True)]
        mapped = jax.shard_map(per_device, mesh=MESH, in_specs=specs, out_specs=P("x"))
        try:
            jax.make_jaxpr(mapped)(*args)
        except (TypeError, ValueError) as error:
            said.append(f"{varies}: {type(error).__name__}: {str(error)[:200]}")
    return said


@pytest.mark.each_part
@pytest.mark.parametrize("chapter", catalogue.CHAPTERS)
def test_calls_of_the_catalogue_take_arguments_that_vary(chapter):
    report = []
    for one in catalogue_part.of_part(chapter):
        if not one.concrete and one.specs():
            with jax.enable_x64(one.needs_x64()), trials.quiet():
                report += [f"{one.name} {text}" for text in refused(one.on(jnp), one.values())]
    assert not report, "\n".join(report)


@pytest.mark.long
def test_functions_beyond_numpy_take_arguments_that_vary():
    report = []
    for name, (function, *values) in CASES.items():
        if values:
            with trials.quiet():
                report += [f"{name} {text}" for text in refused(function, values)]
    assert not report, "\n".join(report)


def mapped(function, *specs, out=P("x")):
    """Return a function inside shard_map, of one row of each argument with the spec P("x")."""

    def per_device(*shards):
        args = [x[0] if spec == P("x") else x for x, spec in zip(shards, specs, strict=True)]
        results = function(*args)
        return jax.tree.map(lambda r: r[None], results) if out == P("x") else results

    return jax.shard_map(per_device, mesh=MESH, in_specs=specs, out_specs=out)


ROW = np.float32([[0.3, 0.5, 0.7]])
MATRIX = np.float32([[0.2, 0.1, 0.4], [0.5, 0.3, 0.6], [0.7, 0.2, 0.1]])


def test_results_vary_only_where_arguments_do():
    def function(x, w):
        return jnp.searchsorted(w, w), jnp.gcd(4, jnp.arange(3))

    found = mapped(function, P("x"), P(), out=P())(ROW, ROW[0])
    np.testing.assert_array_equal(found[0], [0, 1, 2])
    np.testing.assert_array_equal(found[1], [4, 1, 2])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: jax.lax.cond(x[0] > 0, lambda x: (w @ x).sum(), lambda x: x.sum(), x),
        lambda x, w: jax.lax.switch(1, [jnp.sin, lambda x: w @ x], x).sum(),
        lambda x, w: jax.lax.scan(lambda c, _: (jnp.sin(w @ c), None), x, None, 3)[0].sum(),
        lambda x, w: (x * w).sum(),
    ],
    ids=["cond", "switch", "scan", "product"],
)
@pytest.mark.parametrize("derivative", [jax.grad, jax.hessian])
def test_derivatives_of_control_flow_by_arguments_that_vary_and_those_that_do_not(
    function, derivative
):
    both = derivative(function, (0, 1))
    found = mapped(both, P("x"), P())(ROW, MATRIX)
    wanted = both(ROW[0], MATRIX)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one[0], other, rtol=1e-6, atol=1e-7)


def test_a_tangent_may_vary_where_its_primal_does_not():
    def function(x, w):
        def loop(w):
            return jax.lax.fori_loop(0, 2, lambda i, c: jnp.sin(w @ c), w[0])

        return jax.jvp(loop, (w,), (w * x,))

    found = mapped(function, P("x"), P())(ROW, MATRIX)
    wanted = function(ROW[0], MATRIX)
    np.testing.assert_allclose(found[1][0], wanted[1], rtol=1e-6)


SOLVES = {
    "inv": lambda x, w: jnp.linalg.inv(jnp.diag(x)),
    "solve": lambda x, w: jnp.linalg.solve(w + jnp.diag(x), w[0]),
    "both vary": lambda x, w: jnp.linalg.solve(w + jnp.diag(x), x),
    "matrix_power": lambda x, w: jnp.linalg.matrix_power(w + jnp.diag(x), -2),
    "positive": lambda x, w: jax.scipy.linalg.solve(jnp.diag(x), w, assume_a="pos"),
    "cg": lambda x, w: jax.scipy.sparse.linalg.cg(lambda y: x * y, w[0])[0],
}


@pytest.mark.parametrize("name", SOLVES)
def test_solutions_vary_as_the_matrix_does(name):
    def per_device(x, w):
        result = SOLVES[name](x, w)
        assert jax.typeof(result).manual_axis_type.varying == {"x"}
        return result, jax.grad(lambda x, w: (SOLVES[name](x, w) ** 2).sum(), (0, 1))(x, w)

    found = mapped(per_device, P("x"), P())(ROW, MATRIX)
    with pytest.raises(ValueError, match="replication"):
        mapped(SOLVES[name], P("x"), P(), out=P())(ROW, MATRIX)
    gradients = jax.grad(lambda x, w: (SOLVES[name](x, w) ** 2).sum(), (0, 1))(ROW[0], MATRIX)
    wanted = SOLVES[name](ROW[0], MATRIX), gradients
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(one[0], other, rtol=1e-4, atol=1e-5)
