"""hlofront.scipy.linalg: against SciPy, batches, derivatives."""

import numpy as np
import pytest
import scipy.linalg

import hlofront as jax
import hlofront.scipy.linalg as la
from hlofront import numpy as jnp
from hlofront.test_util import check_grads
from tests.support.closeness import assert_trees_close

both_kinds = pytest.mark.parametrize("is_complex", [False, True], ids=["real", "complex"])


def draw(*shape, is_complex=False):
    generator = np.random.default_rng(shape)
    values = generator.normal(size=shape)
    return values + 1j * generator.normal(size=shape) if is_complex else values


@both_kinds
def test_decompositions(is_complex):
    x = draw(4, 4, is_complex=is_complex)
    with jax.enable_x64(True):
        assert_trees_close(la.lu(x), scipy.linalg.lu(x))
        assert_trees_close(la.lu(x[:3], permute_l=True), scipy.linalg.lu(x[:3], permute_l=True))
        assert_trees_close(la.qr(x, pivoting=True), scipy.linalg.qr(x, pivoting=True))
        assert_trees_close(la.hessenberg(x, calc_q=True), scipy.linalg.hessenberg(x, calc_q=True))
        assert_trees_close(la.polar(x[:, :3]), scipy.linalg.polar(x[:, :3]))
        assert_trees_close(la.polar(x[:3], "left"), scipy.linalg.polar(x[:3], "left"))
        for c, mode in ((x, "right"), (x[0], "left")):
            wanted = scipy.linalg.qr_multiply(x, c, mode, pivoting=True)
            assert_trees_close(la.qr_multiply(x, c, mode, pivoting=True), wanted)
        t, z = la.rsf2csf(*la.schur(x))
        assert_trees_close(np.tril(t, -1), np.zeros((4, 4)))
        assert_trees_close(z @ t @ np.conj(z).T, x.astype(complex))


@both_kinds
def test_systems(is_complex):
    x, y = draw(4, 4, is_complex=is_complex), draw(3, 3)
    positive = x @ np.conj(x).T + np.eye(4)
    with jax.enable_x64(True):
        for trans in (0, 1, 2):
            wanted = scipy.linalg.lu_solve(scipy.linalg.lu_factor(x), x[0], trans)
            assert_trees_close(la.lu_solve(la.lu_factor(x), x[0], trans), wanted)
            wanted = scipy.linalg.solve_triangular(x, x, trans)
            assert_trees_close(la.solve_triangular(x, x, trans), wanted)
        for lower in (False, True):
            assert_trees_close(positive @ la.cho_solve(la.cho_factor(positive, lower), x), x)
        assert_trees_close(positive @ la.solve(positive, x, assume_a="pos"), x)
        for method in ("schur", "eigen"):
            found = np.asarray(la.solve_sylvester(x, y, x[:, :3], method=method))
            assert_trees_close(x @ found + found @ y, x[:, :3])


@both_kinds
def test_functions(is_complex):
    x = draw(5, 5, is_complex=is_complex)
    with jax.enable_x64(True):
        for scale in (1e-3, 1, 30):
            wanted = scipy.linalg.expm(x * scale)
            size = np.abs(wanted).max()
            assert_trees_close(la.expm(x * scale) / size, wanted / size)
        wanted = scipy.linalg.expm(np.triu(x))
        assert_trees_close(la.expm(np.triu(x), upper_triangular=True), wanted)
        assert_trees_close(la.expm_frechet(x, x), scipy.linalg.expm_frechet(x, x))
        assert_trees_close(la.funm(x, jnp.exp), scipy.linalg.expm(x).astype(complex), 1e-6)
        stack = np.stack([x, x @ x])
        roots = np.asarray(la.sqrtm(stack))
        assert_trees_close(roots @ roots, stack.astype(complex))
        # Each matrix of a batch is scaled as it needs.
        stack = np.stack([x / 50, x * 5])
        for found in (la.expm(stack), jax.vmap(la.expm)(stack)):
            for one, matrix in zip(found, stack, strict=True):
                wanted = scipy.linalg.expm(matrix)
                assert_trees_close(one / np.abs(wanted).max(), wanted / np.abs(wanted).max())


def test_degenerate():
    zeros, jordan = np.zeros((3, 3)), np.eye(3, k=1)
    with jax.enable_x64(True):
        assert_trees_close(la.expm(zeros), np.eye(3))
        assert_trees_close(la.expm(jordan), scipy.linalg.expm(jordan))
        assert_trees_close(la.sqrtm(zeros), zeros.astype(complex))
        assert not np.isfinite(np.asarray(la.sqrtm(jordan))).all()
        assert np.isnan(np.asarray(la.solve_sylvester(np.eye(2), -np.eye(2), np.eye(2)))).all()
        assert np.isnan(np.asarray(la.expm(np.eye(2) * 1e9))).all()


def test_special_matrices():
    v, w = draw(5), draw(3)
    with jax.enable_x64(True):
        for name in ("toeplitz", "hankel"):
            assert_trees_close(getattr(la, name)(v, w), getattr(scipy.linalg, name)(v, w))
        for name in ("circulant", "companion", "fiedler", "fiedler_companion"):
            assert_trees_close(getattr(la, name)(v), getattr(scipy.linalg, name)(v))
        for name in ("hilbert", "invhilbert", "pascal", "invpascal", "dft", "helmert"):
            assert_trees_close(getattr(la, name)(6), getattr(scipy.linalg, name)(6))
        for mode in ("full", "valid", "same"):
            wanted = scipy.linalg.convolution_matrix(v, 4, mode)
            assert_trees_close(la.convolution_matrix(v, 4, mode), wanted)
        assert_trees_close(la.leslie(v, v[1:]), scipy.linalg.leslie(v, v[1:]))
        assert_trees_close(la.block_diag(v, w, 2.0), scipy.linalg.block_diag(v, w, 2.0))
        assert_trees_close(la.hadamard(8), scipy.linalg.hadamard(8))


def test_eigenvalues_of_three_diagonals():
    d, e = draw(6), draw(5)
    with jax.enable_x64(True):
        w, v = map(np.asarray, la.eigh_tridiagonal(d, e))
        matrix = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        assert_trees_close(matrix @ v, v * w)
        some = la.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 3))
        assert_trees_close(some, w[1:4])
        rough = la.eigh_tridiagonal(d, e, eigvals_only=True, tol=0.1)
        assert 0 < np.abs(rough - w).max() < 0.1
        # Of many equal ones, and where the matrix falls into parts.
        apart = la.eigh_tridiagonal(np.ones(7), np.zeros(6), eigvals_only=True)
        assert_trees_close(apart, np.ones(7))
        assert np.isnan(la.eigh_tridiagonal(d * np.nan, e, eigvals_only=True)).all()

        def values(d, e):
            some = {"select": "i", "select_range": (1, 3)}
            return la.eigh_tridiagonal(d, e, eigvals_only=True, **some)

        check_grads(values, (d, e), order=1)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 60])
def test_eigenvalues_of_second_differences(size):
    d, e = np.full(size, 2.0, np.float32), np.full(size - 1, -1.0, np.float32)
    wanted = 2 - 2 * np.cos(np.arange(1, size + 1) * np.pi / (size + 1))
    for shift in (0, 10, -10):
        found = la.eigh_tridiagonal(d + np.float32(shift), e, eigvals_only=True)
        np.testing.assert_allclose(found, wanted + shift, atol=4e-6)


def test_small_eigenvalues_are_halved_on_where_large_ones_have_no_number_inside():
    d, e = np.array([1, 1e-4, 1e-8, -1e-3], np.float32), np.zeros(3, np.float32)
    found = la.eigh_tridiagonal(d, e, eigvals_only=True)
    np.testing.assert_allclose(found, np.sort(d), rtol=2e-7, atol=1e-9)
    program = str(jax.make_jaxpr(lambda d, e: la.eigh_tridiagonal(d, e, eigvals_only=True))(d, e))
    assert program.count("reduce_or") == 1


def test_derivatives():
    x = draw(3, 3)
    positive = x @ x.T + np.eye(3)
    with jax.enable_x64(True):
        check_grads(la.expm, (x,), order=1)
        # A norm at which it is squared.
        check_grads(lambda x: la.expm(x * 20), (x - 4 * np.eye(3),), order=1, modes=["rev"])
        check_grads(
            lambda a, b: (
                la.solve(a + a.T, b, assume_a="pos"),
                la.lu_solve(la.lu_factor(a), b),
                la.solve_triangular(a, b, trans="C"),
            ),
            (positive, x),
            order=1,
        )


def test_methods_that_there_are_not_are_refused():
    a = jnp.eye(3)
    for driver in ("gesdd", "gesvd"):
        assert la.svd(a, lapack_driver=driver)[1].shape == (3,)
    with pytest.raises(ValueError, match="lapack_driver of svd is 'gesdd' or 'gesvd': got 'best'"):
        la.svd(a, lapack_driver="best")
    for method in (None, "SPS", "blockEnlarge"):
        assert la.expm_frechet(a, a, method=method)[0].shape == (3, 3)
    with pytest.raises(ValueError, match=r"method of expm_frechet is .*: got 'best'"):
        la.expm_frechet(a, a, method="best")
