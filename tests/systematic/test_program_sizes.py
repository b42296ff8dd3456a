"""The number of equations of the library's functions does not grow with sizes without need."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlofront.scipy.linalg
import hlofront.scipy.stats
from hlofront.core.programs.subprograms import subprograms_of


def equations(jaxpr):
    """Count the equations of a program and of the programs in it."""
    return sum(
        1 + sum(equations(held.jaxpr) for held in subprograms_of(equation))
        for equation in jaxpr.eqns
    )


ONE = np.ones(1, np.float32)


def ones(size):
    return np.ones(size, np.float32)


# By name: a function of a size that returns a function and its arguments.
SIZED = {
    "vander": lambda n: (lambda x: jnp.vander(x, n), ONE),
    "polyfit": lambda n: (lambda x: jnp.polyfit(x, x, n), ones(2 * n)),
    "polyval": lambda n: (lambda p: jnp.polyval(p, 2.0), ones(n)),
    "roots": lambda n: (lambda p: jnp.roots(p, strip_zeros=False), ones(n)),
    "tile": lambda n: (lambda x: jnp.tile(x, n), ONE),
    "repeat": lambda n: (lambda x: jnp.repeat(x, n), ONE),
    "interp": lambda n: (lambda x: jnp.interp(x, x, x), ones(n)),
    "convolve": lambda n: (lambda x: jnp.convolve(x, x), ones(n)),
    "histogram": lambda n: (lambda x: jnp.histogram(x, bins=n), ones(5)),
    "quantile": lambda n: (lambda x: jnp.quantile(x, np.linspace(0, 1, n)), ones(5)),
    "toeplitz": lambda n: (jax.scipy.linalg.toeplitz, ones(n)),
    "expm": lambda n: (jax.scipy.linalg.expm, np.eye(n, dtype=np.float32)),
    "sqrtm": lambda n: (jax.scipy.linalg.sqrtm, np.eye(n, dtype=np.float32)),
    "det": lambda n: (jnp.linalg.det, np.eye(n + 3, dtype=np.float32)),
    "rankdata": lambda n: (jax.scipy.stats.rankdata, ones(n)),
    "one_hot": lambda n: (lambda x: jax.nn.one_hot(x, n), np.arange(3)),
    "bincount": lambda n: (lambda x: jnp.bincount(x, length=n), np.arange(3)),
}


@pytest.mark.parametrize("name", SIZED)
def test_programs_do_not_grow_with_sizes(name):
    counts = []
    for size in (8, 64):
        function, *args = SIZED[name](size)
        counts.append(equations(jax.make_jaxpr(function)(*args).jaxpr))
    assert counts[1] <= counts[0] + 3, counts


def test_the_equations_of_repeated_squaring_grow_as_logarithms():
    matrix = np.eye(3, dtype=np.float32)
    for size in (16, 4096):
        program = jax.make_jaxpr(lambda x, size=size: jnp.linalg.matrix_power(x, size))(matrix)
        assert equations(program.jaxpr) < 4 * np.log2(size)
