"""Linear algebra: hlofront.numpy.linalg and hlofront.lax.linalg against the reference."""

import numpy as np

from tests.against_jax.describe import Corpus


def draw(*shape, seed=0, dtype=np.float32):
    generator = np.random.default_rng(seed + 17 * sum(shape))
    values = generator.normal(size=shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * generator.normal(size=shape)
    return values.astype(dtype)


def hermitian(size, dtype=np.float32, batch=()):
    x = draw(*batch, size, size, dtype=dtype)
    return x + np.conj(np.swapaxes(x, -1, -2))


def positive(size, dtype=np.float32, batch=()):
    x = draw(*batch, size, size, dtype=dtype)
    return (x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(size)).astype(dtype)


C = np.complex64
SQUARE, BATCH = draw(3, 3), draw(2, 3, 3)
TALL, WIDE, LARGE = draw(4, 3), draw(3, 5), draw(5, 5)
COMPLEX = draw(3, 3, dtype=C)
INTEGERS = np.array([[4, 1], [2, 3]], np.int32)
RANK_ONE = np.outer([1, 2, 3], [1, -1, 2]).astype(np.float32)
NAN = np.full((2, 2), np.nan, np.float32)


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    decompositions(corpus, jnp)
    systems(corpus, jnp)
    scalars(corpus, jax, jnp)
    norms(corpus, jnp)
    products(corpus, jnp)
    derivatives(corpus, jax, jnp)
    operations(corpus, jax, lax)
    refused(corpus, jax, jnp, lax)
    return corpus


def several(corpus, name, function, rows, **options):
    """One program per row of arguments: (label, *args)."""
    for label, *args in rows:
        corpus.add(f"{name}_{label}", function, *args, **options)


def decompositions(corpus, jnp):
    la = jnp.linalg
    several(
        corpus,
        "cholesky",
        la.cholesky,
        [
            ("plain", positive(3)),
            ("complex_batch", positive(2, C, (2,))),
            ("integers", np.array([[2, 1], [1, 2]])),
            ("failed", np.array([[1.0, 2.0], [2.0, 1.0]], np.float32)),
            ("empty", np.zeros((0, 0), np.float32)),
            ("weak", [[4.0]][0][0] * np.eye(2, dtype=np.float32)),
        ],
        tolerance=1e-5,
    )
    corpus.add("cholesky_upper", lambda x: la.cholesky(x, upper=True), positive(3, C))
    corpus.add(
        "cholesky_as_it_is",
        lambda x: (
            la.cholesky(x, symmetrize_input=False),
            la.cholesky(x, upper=True, symmetrize_input=False),
        ),
        positive(3) + np.triu(np.ones((3, 3), np.float32), 1) * 0.1,
        tolerance=1e-5,
    )
    for mode in ("reduced", "complete", "r", "raw", "full"):
        corpus.add(f"qr_{mode}", lambda x, mode=mode: la.qr(x, mode), TALL, tolerance=1e-5)
    several(
        corpus,
        "qr",
        la.qr,
        [("wide", WIDE), ("batch", BATCH), ("complex", COMPLEX), ("integers", INTEGERS)],
        tolerance=1e-5,
    )
    rows = [
        ("plain", SQUARE),
        ("batch", BATCH),
        ("complex", COMPLEX),
        ("integers", INTEGERS),
        ("empty", np.zeros((2, 0, 0), np.float32)),
        ("failed", NAN),
    ]
    several(corpus, "eig", la.eig, rows, tolerance=1e-4)
    several(corpus, "eigvals", la.eigvals, rows[:3], tolerance=1e-4)
    several(corpus, "eigh", la.eigh, rows, tolerance=1e-4)
    several(corpus, "eigvalsh", la.eigvalsh, rows[:3], tolerance=1e-4)
    corpus.add(
        "eigh_upper", lambda x: la.eigh(x, "U", symmetrize_input=False), SQUARE, tolerance=1e-4
    )
    rows = [*rows, ("tall", TALL), ("wide", draw(2, 2, 4, dtype=C)), ("none", np.zeros((0, 3)))]
    several(corpus, "svd", la.svd, rows, tolerance=1e-4)
    corpus.add("svd_thin", lambda x: la.svd(x, full_matrices=False), TALL, tolerance=1e-5)
    corpus.add("svd_hermitian", lambda x: la.svd(x, hermitian=True), hermitian(3), tolerance=1e-5)
    corpus.add(
        "svd_values", lambda x: (la.svd(x, compute_uv=False), la.svdvals(x)), WIDE, tolerance=1e-5
    )
    corpus.add(
        "svd_values_hermitian",
        lambda x: la.svd(x, compute_uv=False, hermitian=True),
        hermitian(3, C),
        tolerance=1e-5,
    )


def systems(corpus, jnp):
    la = jnp.linalg
    several(
        corpus,
        "solve",
        la.solve,
        [
            ("vector", SQUARE, draw(3)),
            ("matrix", SQUARE, draw(3, 2)),
            ("batch", BATCH, draw(2, 3, 2)),
            ("batch_of_matrices", BATCH, draw(3)),
            ("broadcast", BATCH, draw(3, 2)),
            ("many_right_sides", SQUARE, draw(2, 3, 4)),
            ("complex", COMPLEX, draw(3)),
            ("integers", INTEGERS, np.array([1, 2])),
            ("singular", np.ones((2, 2), np.float32), np.float32([1, 2])),
            ("empty", np.zeros((0, 0), np.float32), np.zeros((0, 2), np.float32)),
            ("one", np.float32([[2]]), np.float32([3])),
            ("row", SQUARE, draw(1, 3, 3)),
        ],
        tolerance=2e-5,
    )
    rows = [("plain", SQUARE), ("batch", BATCH), ("complex", COMPLEX), ("integers", INTEGERS)]
    several(
        corpus,
        "inv",
        la.inv,
        [*rows, ("empty", np.zeros((0, 0)))],
        tolerance=2e-5,
    )
    several(
        corpus,
        "pinv",
        la.pinv,
        [*rows, ("tall", TALL), ("wide", WIDE), ("rank_one", RANK_ONE), ("none", np.zeros((0, 3)))],
        tolerance=2e-5,
    )
    corpus.add("pinv_hermitian", lambda x: la.pinv(x, hermitian=True), hermitian(3), tolerance=2e-5)
    corpus.add(
        "pinv_cut",
        lambda x: (la.pinv(x, rtol=0.5), la.pinv(x, rcond=jnp.array([0.1, 0.5]))),
        BATCH,
        tolerance=2e-5,
    )
    several(
        corpus,
        "lstsq",
        la.lstsq,
        [
            ("tall", TALL, draw(4)),
            ("wide", WIDE, draw(3, 2)),
            ("rank_one", RANK_ONE, draw(3)),
            ("complex", draw(4, 2, dtype=C), draw(4)),
            ("cut", TALL, draw(4), 0.5),
            ("negative", TALL, draw(4), -1.0),
            ("none", np.zeros((3, 0), np.float32), draw(3)),
            ("integers", INTEGERS, np.array([[1], [2]])),
        ],
        tolerance=2e-5,
    )
    corpus.add(
        "lstsq_as_numpy",
        lambda x, y: (la.lstsq(x, y, numpy_resid=True), la.lstsq(x.T, x.T, numpy_resid=True)),
        TALL,
        draw(4, 2),
        modes=("value",),
        tolerance=2e-5,
    )
    corpus.add("tensorinv", la.tensorinv, draw(2, 3, 6), tolerance=5e-5)
    corpus.add("tensorinv_first", lambda x: la.tensorinv(x, ind=1), draw(6, 3, 2), tolerance=5e-5)
    corpus.add("tensorsolve", la.tensorsolve, draw(2, 3, 6), draw(2, 3), tolerance=5e-5)
    corpus.add(
        "tensorsolve_axes",
        lambda a, b: la.tensorsolve(a, b, axes=(0,)),
        draw(6, 2, 3),
        draw(2, 3),
        tolerance=5e-5,
    )


def scalars(corpus, jax, jnp):
    la = jnp.linalg
    rows = [
        ("plain", SQUARE),
        ("batch", BATCH),
        ("complex", COMPLEX),
        ("integers", INTEGERS),
        ("large", LARGE),
        ("large_complex", draw(2, 4, 4, dtype=C)),
        ("singular", RANK_ONE),
        ("large_singular", np.diag(np.float32([1, 2, 0, 3]))),
        ("one", np.float32([[-2]])),
        ("empty", np.zeros((0, 0))),
    ]
    several(corpus, "det", la.det, rows, tolerance=1e-5)
    several(corpus, "slogdet", la.slogdet, rows, tolerance=1e-4)
    real = [rows[0], rows[1], rows[4]]
    by_qr = lambda x: la.slogdet(x, method="qr")
    several(corpus, "slogdet_qr", by_qr, real, tolerance=1e-4)
    slopes = lambda x: (jax.jvp(by_qr, (x,), (x + 1,)), jax.vjp(by_qr, x)[1](by_qr(x)))
    several(corpus, "slopes_of_slogdet_qr", slopes, real, tolerance=1e-3)
    rows = [*rows[:7], ("tall", TALL), ("wide", WIDE)]
    several(corpus, "matrix_rank", la.matrix_rank, [*rows, ("vector", draw(3)), ("number", 2.0)])
    corpus.add(
        "matrix_rank_cut",
        lambda x: (la.matrix_rank(x, 0.5), la.matrix_rank(x, rtol=0.9)),
        BATCH,
    )
    corpus.add("matrix_rank_hermitian", lambda x: la.matrix_rank(x, hermitian=True), hermitian(3))
    for p in (None, 2, -2, 1, -1, np.inf, "fro", "nuc"):
        corpus.add(f"cond_{p}", lambda x, p=p: la.cond(x, p), BATCH, tolerance=1e-4)
    corpus.add("cond_tall", la.cond, TALL, tolerance=1e-4)
    corpus.add("cond_singular", lambda x: la.cond(x, 1), np.zeros((2, 2), np.float32))
    corpus.add("cond_nan", lambda x: la.cond(x, 1), NAN)


def norms(corpus, jnp):
    la = jnp.linalg
    for order in (None, 0, 1, 2, 3, -1, 0.5, np.inf, -np.inf):
        corpus.add(f"norm_of_vector_{order}", lambda x, o=order: la.norm(x, o), draw(5))
    for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        corpus.add(
            f"norm_of_matrix_{order}",
            lambda x, o=order: (
                la.norm(x, o),
                la.norm(x, o, keepdims=True),
                la.norm(x * 1j, o),
            ),
            TALL,
            tolerance=1e-5,
        )
    corpus.add(
        "norm_of_axes",
        lambda x: (
            la.norm(x, axis=1),
            la.norm(x, axis=-1, keepdims=True),
            la.norm(x, 1, axis=(0, 2)),
            la.norm(x, "nuc", axis=(2, 0), keepdims=True),
            la.norm(x),
            la.norm(x, keepdims=True),
        ),
        draw(2, 3, 4),
        tolerance=1e-5,
    )
    corpus.add("norm_of_integers", lambda x: (la.norm(x), la.norm(x, 0, axis=0)), INTEGERS)
    corpus.add("norm_of_nothing", lambda x: (la.norm(x), la.norm(x, np.inf)), np.zeros(0))
    corpus.add("norm_of_number", la.norm, 3.0)
    corpus.add(
        "vector_norm",
        lambda x: (
            la.vector_norm(x),
            la.vector_norm(x, axis=0, ord=1),
            la.vector_norm(x, axis=(0, 1), keepdims=True),
            la.vector_norm(x, ord=np.inf),
            la.vector_norm(x, axis=(1,), ord=0),
        ),
        draw(2, 3, dtype=C),
    )
    corpus.add(
        "matrix_norm",
        lambda x: (la.matrix_norm(x), la.matrix_norm(x, ord=1, keepdims=True)),
        BATCH,
    )


def products(corpus, jnp):
    la = jnp.linalg
    corpus.add("multi_dot", lambda *x: la.multi_dot(x), draw(2, 3), draw(3, 4), draw(4, 2))
    corpus.add("multi_dot_vectors", lambda *x: la.multi_dot(x), draw(3), draw(3, 4), draw(4))
    corpus.add("multi_dot_two", lambda *x: la.multi_dot(x), draw(2, 3), draw(3))
    for n in (0, 1, 2, 3, 5, -1, -2):
        corpus.add(f"matrix_power_{n}", lambda x, n=n: la.matrix_power(x, n), BATCH, tolerance=1e-4)
    corpus.add("matrix_power_of_integers", lambda x: la.matrix_power(x, 3), INTEGERS)
    corpus.add(
        "simple",
        lambda x, y: (
            la.outer(x, y),
            la.cross(x, y),
            la.vecdot(x, y),
            la.matrix_transpose(y[:, None]),
            la.matmul(x, y),
            la.tensordot(x, y, axes=1),
        ),
        draw(3),
        draw(3, dtype=C),
    )
    corpus.add(
        "diagonals",
        lambda x: (
            la.diagonal(x),
            la.diagonal(x, offset=1),
            la.trace(x),
            la.trace(x, offset=-1, dtype=jnp.int32),
        ),
        BATCH,
    )


def derivatives(corpus, jax, jnp):
    la = jnp.linalg

    def total(function):
        def f(x):
            leaves = jax.tree_util.tree_leaves(function(x))
            return sum((jnp.abs(leaf) ** 2).sum() for leaf in leaves)

        return f

    for name, function, x in (
        ("inv", la.inv, SQUARE),
        ("det_small", la.det, SQUARE),
        ("det_large", la.det, LARGE),
        ("det_complex", la.det, draw(4, 4, dtype=C)),
        ("det_singular", la.det, np.diag(np.float32([1, 2, 3, 0]))),
        ("slogdet", la.slogdet, LARGE),
        ("slogdet_complex", la.slogdet, COMPLEX),
        ("solve", lambda x: la.solve(x, x[0]), SQUARE),
        ("cholesky", la.cholesky, positive(3)),
        ("cholesky_complex", la.cholesky, positive(3, C)),
        ("qr", la.qr, TALL),
        ("qr_complete", lambda x: la.qr(x, "complete")[1][:2], TALL),
        ("eigh", la.eigh, hermitian(3)),
        ("eigh_degenerate", la.eigh, np.eye(2, dtype=np.float32)),
        ("eigvalsh_degenerate", la.eigvalsh, np.eye(2, dtype=np.float32)),
        ("eigvals", la.eigvals, SQUARE),
        ("svd", lambda x: la.svd(x, full_matrices=False), TALL),
        ("svd_degenerate", lambda x: la.svd(x, full_matrices=False), np.eye(2, 3) * 1.0),
        ("svd_values", lambda x: la.svd(x, compute_uv=False), WIDE),
        ("pinv", la.pinv, TALL),
        ("pinv_complex", la.pinv, draw(2, 3, dtype=C)),
        ("lstsq", lambda x: la.lstsq(x, x[:, 0] + 1)[0], TALL),
        ("norm", la.norm, SQUARE),
        ("norm_at_zero", la.norm, np.zeros(3, np.float32)),
        ("norm_2", lambda x: la.norm(x, 2), SQUARE),
        ("norm_3", lambda x: la.norm(x, 3, axis=0), SQUARE),
        ("matrix_power", lambda x: la.matrix_power(x, 3), SQUARE),
        ("cond", la.cond, SQUARE),
    ):
        # Derivatives of what is no function of a matrix near it: equal eigenvalues.
        corpus.add(f"grad_of_{name}", jax.grad(total(function)), x, tolerance=2e-3, modes=("jit",))
    for name, function, x in (
        ("inv", la.inv, SQUARE),
        ("cholesky", la.cholesky, positive(2)),
        ("det", la.det, draw(4, 4)),
        ("eigh", la.eigh, hermitian(2)),
        ("svd_values", la.svdvals, draw(2, 3)),
    ):
        hessian = jax.jacfwd(jax.grad(total(function)))
        corpus.add(f"hessian_of_{name}", hessian, x, tolerance=5e-3, modes=("jit",))
    for name, function, args in (
        ("inv", la.inv, (BATCH,)),
        ("cholesky", la.cholesky, (positive(2, batch=(3,)),)),
        ("eigh", la.eigh, (hermitian(3, batch=(2,)),)),
        ("svd", la.svd, (BATCH,)),
        ("det", la.det, (draw(2, 4, 4),)),
        ("solve", la.solve, (BATCH, draw(2, 3))),
    ):
        corpus.add(f"vmap_of_{name}", jax.vmap(function), *args, tolerance=1e-4, modes=("jit",))
    corpus.add(
        "vmap_of_solve_of_one_matrix",
        jax.vmap(la.solve, (None, 1), 1),
        SQUARE,
        draw(3, 4),
        tolerance=1e-4,
    )


def operations(corpus, jax, lax):
    la = lax.linalg
    text = ("jaxpr", "value")
    near = {"tolerance": 1e-5, "modes": text}
    corpus.add("lax_cholesky", la.cholesky, positive(3), tolerance=1e-5)
    corpus.add("lax_lu", la.lu, TALL, **near)
    corpus.add("lax_qr", la.qr, TALL, **near)
    corpus.add("lax_qr_pivoting", lambda x: la.qr(x, pivoting=True), TALL, **near)
    corpus.add("lax_eigh", la.eigh, hermitian(3), **near)
    corpus.add("lax_eig", la.eig, SQUARE, **near)
    corpus.add("lax_svd", la.svd, TALL, **near)
    corpus.add("lax_schur", la.schur, SQUARE, **near)
    corpus.add("lax_hessenberg", la.hessenberg, SQUARE, **near)
    corpus.add("lax_tridiagonal", la.tridiagonal, hermitian(3), **near)
    corpus.add(
        "lax_triangular_solve",
        lambda a, b: la.triangular_solve(a, b, left_side=True, lower=True),
        positive(3),
        draw(3),
        **near,
    )
    corpus.add("lax_householder_product", la.householder_product, TALL, draw(3), **near)
    corpus.add("lax_ormqr", la.ormqr, TALL, draw(3), draw(4, 2), **near)
    corpus.add(
        "lax_pivots", lambda p: la.lu_pivots_to_permutation(p, 4), np.int32([2, 2]), modes=text
    )
    corpus.add("lax_cholesky_update", la.cholesky_update, np.triu(positive(3)), draw(3), **near)
    corpus.add("lax_symmetric_product", la.symmetric_product, TALL, positive(4), **near)
    corpus.add(
        "lax_tridiagonal_solve",
        la.tridiagonal_solve,
        draw(3),
        draw(3) + 4,
        draw(3),
        draw(3, 2),
        **near,
    )
    corpus.add("lax_qdwh", la.qdwh, TALL, tolerance=1e-5)
    corpus.add("lax_qdwh_complex", la.qdwh, draw(4, 3, dtype=C), tolerance=1e-5)
    corpus.add(
        "lax_qdwh_hermitian",
        lambda x: la.qdwh(x, is_hermitian=True)[:2],
        positive(3),
        tolerance=1e-5,
    )
    corpus.add(
        "derivative_of_eigenvectors",
        lambda x: jax.jvp(
            lambda x: la.eig(x, enable_eigvec_derivs=True),
            (x,),
            (x * x,),
        ),
        SQUARE,
        tolerance=1e-4,
    )
    for name, function, x in (
        ("cholesky", la.cholesky, positive(3)),
        ("lu", la.lu, SQUARE),
        ("qr", lambda x: la.qr(x, full_matrices=False), TALL),
        ("eigh", la.eigh, hermitian(3)),
        ("svd", lambda x: la.svd(x, full_matrices=False), TALL),
        ("triangular_solve", lambda x: la.triangular_solve(x, x), SQUARE),
    ):
        corpus.add(
            f"jvp_of_lax_{name}",
            lambda x, f=function: jax.jvp(f, (x,), (x * 2,)),
            x,
            modes=("equations", "value"),
            tolerance=1e-3,
        )


def refused(corpus, jax, jnp, lax):
    la, ll = jnp.linalg, lax.linalg
    square, vector = SQUARE, draw(3)
    for name, function, *args in (
        ("cholesky_of_a_list", la.cholesky, [[1.0]]),
        ("cholesky_of_a_vector", la.cholesky, vector),
        ("cholesky_of_tall", la.cholesky, TALL),
        ("inv_of_tall", la.inv, TALL),
        ("inv_of_vector", la.inv, vector),
        ("inv_of_a_list", la.inv, [[1.0]]),
        ("det_of_tall", la.det, TALL),
        ("slogdet_of_tall", la.slogdet, TALL),
        ("slogdet_method", lambda x: la.slogdet(x, method="x"), square),
        ("eig_of_tall", la.eig, TALL),
        ("eigh_of_tall", la.eigh, TALL),
        ("eigh_uplo", lambda x: la.eigh(x, "X"), square),
        ("eigvals_of_vector", la.eigvals, vector),
        ("svd_of_vector", la.svd, vector),
        ("qr_of_vector", la.qr, vector),
        ("qr_mode", lambda x: la.qr(x, "x"), square),
        ("solve_sizes", la.solve, square, draw(2)),
        ("solve_of_tall", la.solve, TALL, vector),
        ("solve_number", la.solve, square, 1.0),
        ("lstsq_of_vector", la.lstsq, vector, vector),
        ("lstsq_sizes", la.lstsq, TALL, vector),
        ("lstsq_cube", la.lstsq, TALL, BATCH),
        ("norm_order", lambda x: la.norm(x, "x"), square),
        ("norm_order_of_vector", lambda x: la.norm(x, "fro"), vector),
        ("norm_axes", lambda x: la.norm(x, 2, (0, 1, 2)), BATCH),
        ("norm_cube", lambda x: la.norm(x, 2), BATCH),
        ("norm_same_axes", lambda x: la.norm(x, 2, (0, 0)), BATCH),
        ("cond_of_vector", la.cond, vector),
        ("cond_of_tall", lambda x: la.cond(x, 1), TALL),
        ("cond_of_nothing", la.cond, np.zeros((0, 0))),
        ("matrix_power_of_tall", lambda x: la.matrix_power(x, 2), TALL),
        ("matrix_power_of_half", lambda x: la.matrix_power(x, 0.5), square),
        ("matrix_power_of_vector", lambda x: la.matrix_power(x, 2), vector),
        ("multi_dot_of_one", lambda x: la.multi_dot([x]), square),
        ("multi_dot_sizes", lambda x, y: la.multi_dot([x, y]), square, TALL),
        ("multi_dot_cube", lambda x, y: la.multi_dot([x, y]), square, BATCH),
        ("outer_of_matrices", la.outer, square, square),
        ("cross_of_pairs", la.cross, draw(2), draw(2)),
        ("matrix_transpose_of_vector", la.matrix_transpose, vector),
        ("tensorinv_ind", lambda x: la.tensorinv(x, 0), square),
        ("tensorinv_sizes", la.tensorinv, draw(2, 3, 4)),
        ("tensorsolve_sizes", la.tensorsolve, draw(2, 3, 4), draw(2, 3)),
        ("pinv_of_vector", la.pinv, vector),
        ("pinv_both", lambda x: la.pinv(x, rtol=1, rcond=1), square),
        ("half_precision", la.svd, SQUARE.astype(np.float16)),
        ("lax_lu_of_integers", ll.lu, INTEGERS),
        ("lax_lu_of_vector", ll.lu, vector),
        ("lax_eig_of_tall", ll.eig, TALL),
        ("lax_triangular_solve_dtypes", ll.triangular_solve, square, COMPLEX),
        ("lax_triangular_solve_sizes", ll.triangular_solve, square, draw(2, 2)),
        ("lax_triangular_solve_batches", ll.triangular_solve, square, BATCH),
        ("lax_schur_sorted", lambda x: ll.schur(x, sort_eig_vals=True), square),
        ("lax_svd_subset", lambda x: ll.svd(x, subset_by_index=(0, 1)), square),
        ("lax_eigh_subset", lambda x: ll.eigh(x, subset_by_index=(0, 1)), square),
        ("lax_householder_of_wide", ll.householder_product, WIDE, vector),
        ("lax_pivots_of_floats", lambda p: ll.lu_pivots_to_permutation(p, 4), vector),
        ("lax_cholesky_update_sizes", ll.cholesky_update, square, draw(2)),
        ("lax_qdwh_of_wide", ll.qdwh, WIDE),
        ("grad_of_full_svd", jax.grad(lambda x: la.svd(x)[0].sum()), TALL),
        ("grad_of_eigenvectors", jax.grad(lambda x: abs(la.eig(x)[1]).sum()), square),
        ("grad_of_schur", jax.grad(lambda x: ll.schur(x)[0].sum()), square),
    ):
        corpus.add(f"refused_{name}", function, *args, modes=("value",))
