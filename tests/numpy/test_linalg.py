"""Linear algebra: reconstruction, batches, complex, degenerate and empty inputs, derivatives."""

import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.core.programs.subprograms import subjaxprs
from hlofront.test_util import check_grads
from tests.support.closeness import assert_trees_close

DTYPES = (np.float32, np.complex64)
both_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "complex64"])


def draw(*shape, dtype=np.float32, seed=0):
    generator = np.random.default_rng((seed, *shape))
    values = generator.normal(size=shape)
    if dtype is np.complex64:
        values = values + 1j * generator.normal(size=shape)
    return values.astype(dtype)


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def positive(*shape, dtype=np.float32):
    x = draw(*shape, dtype=dtype)
    return (x @ adjoint(x) + np.eye(shape[-1])).astype(dtype)


@both_dtypes
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (3, 5), (6, 1)], ids=str)
def test_factors_give_the_matrix(dtype, shape):
    x = draw(*shape, dtype=dtype)
    for full in (True, False):
        u, s, vh = map(np.asarray, jnp.linalg.svd(x, full_matrices=full))
        k = s.shape[-1]
        assert_trees_close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
        gram = adjoint(u) @ u
        assert_trees_close(gram, np.broadcast_to(np.eye(u.shape[-1]), gram.shape))
        q, r = map(np.asarray, jnp.linalg.qr(x, "complete" if full else "reduced"))
        assert_trees_close(q @ r, x)
        assert_trees_close(np.tril(r, -1), np.zeros_like(r))
        q, r, columns = map(np.asarray, lax.linalg.qr(x, pivoting=True, full_matrices=full))
        assert_trees_close(q @ r, np.take_along_axis(x, columns[..., None, :], -1))
    factors, _, order = map(np.asarray, lax.linalg.lu(x))
    k = min(shape[-2:])
    lower = np.tril(factors[..., :k], -1) + np.eye(shape[-2], k)
    assert_trees_close(
        lower @ np.triu(factors[..., :k, :]), np.take_along_axis(x, order[..., None], -2)
    )


@both_dtypes
def test_eigenvectors(dtype):
    x = draw(2, 4, 4, dtype=dtype)
    w, v = map(np.asarray, jnp.linalg.eig(x))
    assert_trees_close(x @ v, v * w[..., None, :], 1e-4)
    w, left = map(np.asarray, lax.linalg.eig(x, compute_right_eigenvectors=False))
    assert_trees_close(adjoint(left) @ x, w[..., None] * adjoint(left), 1e-4)
    assert_trees_close(np.linalg.norm(left, axis=-2), np.ones((2, 4)))
    x = positive(2, 4, 4, dtype=dtype)
    w, v = map(np.asarray, jnp.linalg.eigh(x))
    assert_trees_close((v * w[..., None, :]) @ adjoint(v), x, 1e-4)
    assert (np.diff(w) >= 0).all()


@both_dtypes
def test_batch_is_loop(dtype):
    x, b = positive(2, 3, 4, 4, dtype=dtype), draw(2, 3, 4, 2, dtype=dtype)
    functions = (
        jnp.linalg.cholesky,
        jnp.linalg.inv,
        jnp.linalg.det,
        jnp.linalg.eigvalsh,
        jnp.linalg.pinv,
        jnp.linalg.slogdet,
        jnp.linalg.cond,
        jnp.linalg.matrix_rank,
    )
    for function in functions:
        whole = jax.tree.leaves(function(x))
        mapped = jax.tree.leaves(jax.vmap(jax.vmap(function))(x))
        single = jax.tree.leaves(function(x[1, 2]))
        for one, other, part in zip(whole, mapped, single, strict=True):
            assert_trees_close(one, np.asarray(other), 1e-4)
            assert_trees_close(one[1, 2], np.asarray(part), 1e-4)
    found = np.asarray(jnp.linalg.solve(x, b))
    assert_trees_close(x @ found, b, 1e-3)
    # One matrix, many right sides.
    shared = np.asarray(jax.vmap(lambda b: jnp.linalg.solve(x[0, 0], b))(b[0]))
    assert_trees_close(x[0, 0] @ shared, b[0], 1e-3)
    triangle, right = x[0, 0], draw(4, 5, 2, dtype=dtype)
    mapped = jax.vmap(lambda b: lax.linalg.triangular_solve(triangle, b, left_side=True), 1, 1)
    found = np.asarray(mapped(right))
    for i in range(5):
        assert_trees_close(np.triu(triangle) @ found[:, i], right[:, i], 1e-3)


def test_failures_are_nan():
    mixed = np.float32([[[2, 0], [0, 2]], [[1, 2], [2, 1]]])
    factors = np.asarray(jnp.linalg.cholesky(mixed))
    assert np.isfinite(factors[0]).all() and np.isnan(factors[1][np.tril_indices(2)]).all()
    nan = np.full((2, 2), np.nan, np.float32)
    for function in (jnp.linalg.eigh, jnp.linalg.svd, jnp.linalg.eigvals, jnp.linalg.inv):
        for leaf in jax.tree.leaves(function(nan)):
            assert np.isnan(np.asarray(leaf)).all()
    singular = np.ones((2, 2), np.float32)
    assert not np.isfinite(np.asarray(jnp.linalg.inv(singular))).all()
    one = np.ones(3, np.float32)
    solved = lax.linalg.tridiagonal_solve(0 * one, 0 * one, 0 * one, one[:, None])
    assert np.isnan(np.asarray(solved)).all()


@pytest.mark.parametrize("shape", [(0, 0), (2, 0, 0), (0, 3, 3)], ids=str)
def test_nothing(shape):
    x = np.zeros(shape, np.float32)
    for name in ("cholesky", "eig", "eigh", "svd", "qr", "inv", "pinv", "det", "slogdet"):
        wanted = getattr(np.linalg, name)(x)
        found = getattr(jnp.linalg, name)(x)
        shapes = [np.shape(part) for part in (wanted if isinstance(wanted, tuple) else (wanted,))]
        assert [leaf.shape for leaf in jax.tree.leaves(found)] == shapes, name
    assert_trees_close(jnp.linalg.det(np.zeros((0, 0))), 1)


def test_determinants_of_singular_matrices_have_derivatives():
    """The derivative is the adjugate, wherever the zero pivot is."""
    for zero in range(4):
        diagonal = np.float64([1, 2, 3, 4])
        diagonal[zero] = 0
        unit = draw(4, 4).astype(np.float64)
        x = np.linalg.qr(unit)[0] @ np.diag(diagonal) @ np.linalg.qr(unit.T)[0]
        with jax.enable_x64(True):
            found = np.asarray(jax.grad(jnp.linalg.det)(np.diag(diagonal)))
            close = np.asarray(jax.grad(jnp.linalg.det)(x))
        wanted = np.zeros((4, 4))
        wanted[zero, zero] = np.prod(np.delete(diagonal, zero))
        assert_trees_close(found, wanted)
        u, s, vh = np.linalg.svd(x)
        adjugate = np.linalg.det(u) * np.linalg.det(vh) * np.prod(s[:3]) * np.outer(u[:, 3], vh[3])
        assert_trees_close(close, adjugate, 1e-6)
    rank_two = np.diag(np.float32([1, 2, 0, 0]))
    assert_trees_close(jax.grad(jnp.linalg.det)(rank_two), np.zeros((4, 4)))


def test_derivatives_where_eigenvalues_are_equal():
    """Those of the values are finite, and those of the vectors are not: there are none."""
    x = np.eye(3, dtype=np.float32)
    assert_trees_close(jax.grad(lambda x: jnp.linalg.eigvalsh(x).sum())(x), x)
    assert not np.isfinite(np.asarray(jax.grad(lambda x: jnp.linalg.eigh(x)[1].sum())(x))).all()


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (jnp.linalg.inv, positive(3, 3)),
        (jnp.linalg.cholesky, positive(3, 3)),
        (jnp.linalg.det, positive(4, 4) / 4),
        (lambda x: jnp.linalg.solve(x, x[0]), positive(3, 3)),
        (jnp.linalg.pinv, draw(4, 2)),
        (lambda x: jnp.linalg.lstsq(x, x[:, 0] ** 2)[0], draw(4, 2)),
        (lambda x: jnp.linalg.eigvals(x).real, positive(3, 3)),
        (lambda x: lax.linalg.lu(x)[0], draw(3, 4) + 3 * np.eye(3, 4)),
    ],
    ids=["inv", "cholesky", "det", "solve", "pinv", "lstsq", "eigvals", "lu"],
)
def test_second_derivatives(function, x):
    with jax.enable_x64(True):
        check_grads(function, (np.asarray(x, np.float64),), order=2, modes=["fwd", "rev"])


def test_results_are_named():
    x = positive(3, 3)
    assert jnp.linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert jnp.linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert jnp.linalg.svd(x)._fields == ("U", "S", "Vh")
    assert jnp.linalg.qr(x)._fields == ("Q", "R")
    assert jnp.linalg.slogdet(x)._fields == ("sign", "logabsdet")


def test_nothing_is_loaded_until_it_is_asked_for():
    script = (
        "import sys, hlofront.numpy\n"
        "loaded = [n for n in sys.modules if n.startswith(('hlofront.numpy.linalg', "
        "'hlofront.numpy.fft', 'hlofront.scipy', 'hlofront.lax.linalg', 'scipy'))]\n"
        "assert not loaded, loaded\n"
        "hlofront.numpy.linalg.inv, hlofront.numpy.fft.fft, hlofront.scipy.linalg.expm\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shape", [(2000, 7), (7, 2000)])
def test_derivatives_of_pinv_make_nothing_larger_than_the_matrix(shape):
    """A square matrix of the longer side would be 300 times as large."""

    def greatest(jaxpr):
        sizes = [var.aval.size for equation in jaxpr.eqns for var in equation.outvars]
        inner = [greatest(program) for program in subjaxprs(jaxpr)]
        return max(sizes + inner, default=0)

    x = np.zeros(shape, np.float32)
    pinv = jnp.linalg.pinv
    forward = jax.make_jaxpr(lambda x: jax.jvp(pinv, (x,), (x,)))(x)
    backward = jax.make_jaxpr(jax.grad(lambda x: pinv(x).sum()))(x)
    assert greatest(forward.jaxpr) == greatest(backward.jaxpr) == x.size


def test_second_derivatives_of_eigh_are_symmetric_also_if_it_reads_one_triangle():
    a, direction = draw(3, 3, seed=1), draw(3, 3, seed=2)
    a = a + a.T

    def function(x):
        w, v = jnp.linalg.eigh(x, symmetrize_input=False)
        return jnp.sum((v * jnp.exp(w)) @ v.T * direction)

    found = jax.grad(lambda x: jax.jvp(function, (x,), (direction,))[1])(a)
    assert_trees_close(found, found.T)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_slogdet_of_few_rows_is_a_formula(size, dtype):
    """No factorization is called; values and derivatives are those by LU, of any magnitude."""
    rng = np.random.default_rng(size)
    a = rng.normal(size=(3, size, size)).astype(dtype)
    if dtype == "complex64":
        a += (1j * rng.normal(size=a.shape)).astype(dtype)
    assert "custom_call" not in jax.jit(jnp.linalg.slogdet).lower(a).as_text()
    for scale in (1, 1e30, 1e-30):
        sign, logarithm = jnp.linalg.slogdet(a * np.float32(scale))
        wanted = np.linalg.slogdet(a.astype("complex128") * scale)
        np.testing.assert_allclose(sign, wanted[0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(logarithm, wanted[1], rtol=1e-5, atol=1e-5)
    # The tangent is that of the same matrix among more rows, which is factored.
    whole = np.tile(np.eye(3, dtype=dtype), (3, 1, 1))
    change = rng.normal(size=a.shape).astype(dtype)

    def inside(x):
        return jnp.linalg.slogdet(jnp.asarray(whole).at[:, :size, :size].set(x))

    assert "custom_call" in jax.jit(inside).lower(a).as_text()
    for ours, theirs in zip(
        jax.jvp(jnp.linalg.slogdet, (a,), (change,)), jax.jvp(inside, (a,), (change,))
    ):
        for x, y in zip(ours, theirs):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_gradients_of_slogdet_of_few_rows_keep_the_inverse_alone(size, dtype):
    rng = np.random.default_rng(size)
    a = rng.normal(size=(3, size, size)).astype(dtype)
    if dtype == "complex64":
        a += (1j * rng.normal(size=a.shape)).astype(dtype)

    def log_modulus(x):
        return jnp.linalg.slogdet(x)[1]

    for scale in (1, 1e30, 1e-30):
        x = a * np.float32(scale)
        _, pulled_back = jax.vjp(log_modulus, x)
        # The sign of a complex number has a derivative too.
        kept = [a.shape] if dtype == "float32" else [a.shape, (3,)]
        assert [each.shape for each in jax.tree.leaves(pulled_back)] == kept
        (found,) = pulled_back(np.ones(3, np.float32))
        wanted = np.linalg.inv(x.astype("complex128")).swapaxes(1, 2)
        np.testing.assert_allclose(found * scale, wanted * scale, rtol=1e-4, atol=1e-5)
    jax.test_util.check_grads(jnp.linalg.slogdet, (a,), 2, atol=0.02, rtol=0.02)


def test_slogdet_of_singular_and_infinite_matrices():
    values = [[[0, 0], [0, 0]], [[1, 2], [2, 4]], [[np.nan, 1], [1, 1]]]
    signs, logarithms = jnp.linalg.slogdet(np.array(values, np.float32))
    np.testing.assert_array_equal(signs, [0, 0, np.nan])
    np.testing.assert_array_equal(logarithms, [-np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("x64", [False, True])
def test_ranks_are_of_the_default_dtype_of_integers(x64):
    with jax.enable_x64(x64):
        expected = jnp.arange(1).dtype
        for shape in ((3, 2), (0, 2, 2), (2, 0)):
            assert jnp.linalg.matrix_rank(np.ones(shape)).dtype == expected, shape
        for rows in (3, 0):
            assert jnp.linalg.lstsq(np.ones((rows, 2)), np.ones(rows))[2].dtype == expected
