"""hlofront.scipy.linalg against the reference."""

import importlib

import numpy as np

from tests.against_jax.corpus_linalg import RANK_ONE, draw, hermitian, positive
from tests.against_jax.describe import Anything, Corpus

C = np.complex64
SQUARE, BATCH, TALL, WIDE = draw(3, 3), draw(2, 3, 3), draw(4, 3), draw(3, 5)
COMPLEX, LARGE = draw(3, 3, dtype=C), draw(5, 5)
INTEGERS = np.array([[4, 1], [2, 3]])
# The rotation has complex eigenvalues.
ROTATION = np.float32([[0, -2], [1, 0]])


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        la = jax
    else:
        la = importlib.import_module(f"{jax.__name__}.scipy.linalg")
    special_matrices(corpus, la)
    decompositions(corpus, la)
    systems(corpus, la)
    functions(corpus, jax, jnp, la)
    refused(corpus, jnp, la)
    return corpus


def special_matrices(corpus, la):
    v, w = draw(4), np.array([3, 1, 2])
    for name in ("toeplitz", "hankel", "circulant", "companion", "fiedler", "fiedler_companion"):
        function = getattr(la, name)
        corpus.add(
            f"{name}_of_several",
            lambda v, w, f=function: (f(v), f(w), f(v[:2]), f(v.reshape(2, 2) + 3)),
            v,
            w,
        )
    corpus.add(
        "two_vectors",
        lambda v, w: (la.toeplitz(v, w), la.toeplitz(v * 1j), la.hankel(v, w), la.leslie(v, w)),
        v,
        w,
    )
    corpus.add("of_numbers", lambda: (la.toeplitz(2.0), la.circulant(2.0), la.fiedler(2.0)))
    corpus.add("of_nothing", lambda x: (la.toeplitz(x), la.circulant(x)), np.zeros(0, np.float32))
    for mode in ("full", "valid", "same"):
        corpus.add(
            f"convolution_matrix_{mode}",
            lambda v, m=mode: (la.convolution_matrix(v, 2, m), la.convolution_matrix(v, 6, m)),
            v,
        )
    corpus.add(
        "of_sizes",
        lambda: [
            la.hilbert(4),
            la.pascal(4),
            la.pascal(3, "upper"),
            la.pascal(3, "lower"),
            la.invpascal(4),
            la.invpascal(3, "lower"),
            la.hadamard(4),
            la.hadamard(2, float),
            la.helmert(3),
            la.helmert(4, full=True),
            la.dft(4),
            la.dft(3, "sqrtn"),
            la.dft(3, "n"),
            la.hilbert(0),
            la.helmert(1),
        ],
    )
    # Theirs is rounded several times.
    corpus.add("invhilbert", lambda: (la.invhilbert(1), la.invhilbert(3)), tolerance=1e-5)
    corpus.add(
        "block_diag",
        lambda v, w: (la.block_diag(v, w, 2.0, v[:, None]), la.block_diag(), la.block_diag(w)),
        v,
        w,
    )


def decompositions(corpus, la):
    near = {"tolerance": 2e-5}
    corpus.add(
        "cholesky", lambda x: (la.cholesky(x), la.cholesky(x, lower=True)), positive(3), **near
    )
    corpus.add("cholesky_complex", la.cholesky, positive(3, C), **near)
    corpus.add("cholesky_of_one_triangle", la.cholesky, np.triu(positive(3)), **near)
    for name, x in (("square", SQUARE), ("tall", TALL), ("wide", WIDE), ("complex", COMPLEX)):
        corpus.add(f"lu_{name}", lambda x: (la.lu(x), la.lu(x, permute_l=True)), x, **near)
        corpus.add(f"lu_factor_{name}", la.lu_factor, x, **near)
        corpus.add(
            f"qr_{name}",
            lambda x: (
                la.qr(x),
                la.qr(x, mode="economic"),
                la.qr(x, mode="r"),
                la.qr(x, pivoting=True),
                la.qr(x, mode="r", pivoting=True),
            ),
            x,
            **near,
        )
    corpus.add("lu_integers", la.lu, INTEGERS, **near)
    for mode, c in (("right", draw(2, 4)), ("left", draw(3, 2))):
        corpus.add(
            f"qr_multiply_{mode}",
            lambda a, c, m=mode: (
                la.qr_multiply(a, c, m),
                la.qr_multiply(a, c, m, pivoting=True),
                la.qr_multiply(a * 1j, c, m, conjugate=True),
            ),
            TALL,
            c,
            **near,
        )
    corpus.add("qr_multiply_vector", la.qr_multiply, SQUARE, draw(3), **near)
    corpus.add(
        "svd", lambda x: (la.svd(x), la.svd(x, compute_uv=False), la.svd(x, False)), TALL, **near
    )
    corpus.add("svd_gesvd", lambda x: la.svd(x, lapack_driver="gesvd"), TALL, **near)
    corpus.add("eigh", lambda x: (la.eigh(x), la.eigh(x, eigvals_only=True)), hermitian(3), **near)
    corpus.add("schur", la.schur, SQUARE, **near)
    corpus.add("schur_complex", lambda x: la.schur(x, output="complex"), SQUARE, **near)
    corpus.add("schur_rotation", lambda x: la.rsf2csf(*la.schur(x)), ROTATION, **near)
    corpus.add("rsf2csf", lambda x: la.rsf2csf(*la.schur(x)), LARGE, tolerance=2e-4)
    corpus.add("hessenberg", lambda x: la.hessenberg(x, calc_q=True), draw(4, 4), **near)
    corpus.add("hessenberg_batch", la.hessenberg, BATCH, **near)
    corpus.add("hessenberg_of_nothing", la.hessenberg, np.zeros((0, 0)))
    corpus.add("hessenberg_of_one", lambda x: la.hessenberg(x, calc_q=True), np.ones((1, 1)))
    corpus.add("polar", lambda x: (la.polar(x), la.polar(x, method="svd")), TALL, **near)
    corpus.add(
        "polar_left",
        lambda x: (la.polar(x, "left"), la.polar(x, "left", method="svd")),
        draw(2, 3, dtype=C),
        **near,
    )
    d, e = draw(4), draw(3)
    corpus.add(
        "eigh_tridiagonal",
        lambda d, e: (
            la.eigh_tridiagonal(d, e, eigvals_only=True),
            la.eigh_tridiagonal(d, e, eigvals_only=True, select="i", select_range=(1, 2)),
            abs(la.eigh_tridiagonal(d, e)[1]),
        ),
        d,
        e,
        tolerance=1e-3,
    )
    corpus.add(
        "eigh_tridiagonal_of_one",
        lambda d: la.eigh_tridiagonal(d, d[:0], eigvals_only=True),
        d[:1],
        **near,
    )


def systems(corpus, la):
    near = {"tolerance": 5e-5}
    for name, x, b in (
        ("vector", positive(3), draw(3)),
        ("matrix", positive(3), draw(3, 2)),
        ("complex", positive(3, C), draw(3, 2)),
    ):
        corpus.add(
            f"cholesky_solves_{name}",
            lambda a, b: (
                la.cho_solve((la.cho_factor(a)[0], False), b),
                la.cho_solve((la.cho_factor(a, lower=True)[0], True), b),
                la.solve(a, b, assume_a="pos"),
                la.solve(a, b, assume_a="pos", lower=True),
            ),
            x,
            b,
            **near,
        )
        corpus.add(
            f"lu_solves_{name}",
            lambda a, b: [
                *[la.lu_solve(la.lu_factor(a), b, trans=trans) for trans in (0, 1, 2)],
                *[la.solve(a, b, assume_a=kind) for kind in ("gen", "sym", "her")],
            ],
            x,
            b,
            **near,
        )
        corpus.add(
            f"triangular_{name}",
            lambda a, b: [
                la.solve_triangular(a, b, trans, lower)
                for trans in (0, 1, "C")
                for lower in (False, True)
            ],
            x,
            b,
            **near,
        )
    corpus.add("triangular_batch", la.solve_triangular, positive(3, batch=(2,)), draw(2, 3), **near)
    corpus.add("triangular_of_integers", la.solve_triangular, INTEGERS, np.array([1, 2]))
    corpus.add("det_and_inv", lambda x: (la.det(x), la.inv(x)), SQUARE, **near)
    for method in ("schur", "eigen"):
        corpus.add(
            f"sylvester_{method}",
            lambda a, b, c, m=method: (
                la.solve_sylvester(a, b, c, method=m),
                la.solve_sylvester(a * 1j, b, c, method=m),
            ),
            positive(3),
            positive(2),
            draw(3, 2),
            **near,
        )
        corpus.add(
            f"sylvester_singular_{method}",
            lambda a, m=method: la.solve_sylvester(a, -a, a, method=m),
            np.float32([[1, 0], [0, 2]]),
        )


def functions(corpus, jax, jnp, la):
    near = {"tolerance": 2e-4}
    rows = (("plain", SQUARE), ("complex", COMPLEX), ("integers", INTEGERS), ("rank_one", RANK_ONE))
    for name, x in rows:
        corpus.add(f"expm_{name}", la.expm, x, **near)
        corpus.add(f"sqrtm_{name}", la.sqrtm, x, tolerance=2e-3)
    for name, x in (
        ("batch", BATCH * np.float32([[[1]], [[4]]])),
        ("large", LARGE * 6),
        ("nothing", np.zeros((0, 0), np.float32)),
        ("number", np.float32([[2]])),
        ("zero", np.zeros((2, 2), np.float32)),
        ("too_large", SQUARE * 1e7),
        ("not_a_number", np.full((2, 2), np.nan, np.float32)),
    ):
        corpus.add(f"expm_{name}", lambda x: la.expm(x) / (1 + abs(la.expm(x)).max()), x, **near)
    corpus.add("expm_upper", lambda x: la.expm(x, upper_triangular=True), np.triu(SQUARE), **near)
    corpus.add("expm_squarings", lambda x: la.expm(x, max_squarings=1), SQUARE * 20)
    corpus.add("expm_x64", la.expm, LARGE.astype(np.float64) * 3, x64=True, tolerance=1e-9)
    corpus.add("expm_frechet", la.expm_frechet, SQUARE, draw(3, 3, seed=1), **near)
    corpus.add(
        "expm_frechet_alone",
        lambda x, y: la.expm_frechet(x, y, compute_expm=False),
        BATCH,
        draw(2, 3, 3, seed=1),
        **near,
    )
    corpus.add("funm", lambda x: la.funm(x, jnp.exp), SQUARE, tolerance=1e-3)
    corpus.add("funm_of_rotation", lambda x: la.funm(x, jnp.sin), ROTATION, **near)
    corpus.add("funm_of_identity", lambda x: la.funm(x, jnp.exp), np.eye(2, dtype=np.float32))
    jit = {"modes": ("jit",), "tolerance": 2e-3}
    corpus.add("grad_of_expm", jax.grad(lambda x: la.expm(x).sum()), SQUARE * 3, **jit)
    corpus.add("vmap_of_expm", jax.vmap(la.expm), BATCH * np.float32([[[1]], [[4]]]), **jit)
    corpus.add("hessian_of_expm", jax.hessian(lambda x: la.expm(x).sum()), draw(2, 2), **jit)
    corpus.add(
        "grad_of_solve",
        jax.grad(lambda x: la.solve(x, x[0], assume_a="pos").sum()),
        positive(3),
        **jit,
    )
    corpus.add(
        "grad_of_cho_solve",
        jax.grad(lambda x: la.cho_solve(la.cho_factor(x), x[0]).sum()),
        positive(3),
        modes=("value",),
        tolerance=2e-3,
    )
    corpus.add("grad_of_toeplitz", jax.grad(lambda x: (la.toeplitz(x) ** 2).sum()), draw(3))


def refused(corpus, jnp, la):
    v = draw(3)
    for name, function, *args in (
        ("lu_solve_trans", lambda a, b: la.lu_solve(la.lu_factor(a), b, trans=3), SQUARE, v),
        ("lu_solve_sizes", lambda a, b: la.lu_solve(la.lu_factor(a), b), SQUARE, draw(2)),
        ("triangular_trans", lambda a, b: la.solve_triangular(a, b, trans="x"), SQUARE, v),
        ("assume_a", lambda a, b: la.solve(a, b, assume_a="x"), SQUARE, v),
        ("qr_mode", lambda a: la.qr(a, mode="x"), SQUARE),
        ("qr_multiply_mode", lambda a: la.qr_multiply(a, a, mode="x"), SQUARE),
        ("qr_multiply_sizes", lambda a, b: la.qr_multiply(a, b), TALL, v),
        ("schur_output", lambda a: la.schur(a, output="x"), SQUARE),
        ("schur_of_tall", la.schur, TALL),
        ("eigh_generalized", lambda a: la.eigh(a, a), SQUARE),
        ("eigh_type", lambda a: la.eigh(a, type=2), SQUARE),
        ("polar_side", lambda a: la.polar(a, "x"), SQUARE),
        ("polar_method", lambda a: la.polar(a, method="x"), SQUARE),
        ("polar_wide", la.polar, WIDE),
        ("hessenberg_of_tall", la.hessenberg, TALL),
        ("sylvester_method", lambda a: la.solve_sylvester(a, a, a, method="x"), SQUARE),
        ("sylvester_sizes", la.solve_sylvester, SQUARE, SQUARE, TALL),
        ("expm_of_tall", la.expm, TALL),
        ("expm_of_vector", la.expm, v),
        ("frechet_sizes", la.expm_frechet, SQUARE, TALL),
        ("sqrtm_blocks", lambda a: la.sqrtm(a, blocksize=2), SQUARE),
        ("sqrtm_of_vector", la.sqrtm, v),
        ("funm_of_vector", lambda a: la.funm(a, jnp.exp), v),
        ("tridiagonal_select", lambda d: la.eigh_tridiagonal(d, d[1:], select="x"), v),
        ("tridiagonal_range", lambda d: la.eigh_tridiagonal(d, d[1:], select="i"), v),
        ("tridiagonal_interval", lambda d: la.eigh_tridiagonal(d, d[1:], select="v"), v),
        ("tridiagonal_integers", la.eigh_tridiagonal, np.arange(3), np.arange(2)),
        ("tridiagonal_dtypes", la.eigh_tridiagonal, v, v[1:] * 1j),
        ("toeplitz_of_a_list", la.toeplitz, [1.0, 2.0]),
        ("hankel_of_number", la.hankel, 1.0),
        ("companion_of_one", la.companion, v[:1]),
        ("leslie_sizes", la.leslie, v, v),
        ("convolution_mode", lambda v: la.convolution_matrix(v, 2, "x"), v),
        ("convolution_size", lambda v: la.convolution_matrix(v, 0), v),
        ("hadamard_size", lambda: la.hadamard(3)),
        ("helmert_size", lambda: la.helmert(0)),
        ("pascal_kind", lambda: la.pascal(3, "x")),
        ("dft_scale", lambda: la.dft(3, "x")),
        ("dft_dtype", lambda: la.dft(3, dtype=np.float32)),
        ("hilbert_of_half", lambda: la.hilbert(2.0)),
        ("block_diag_of_cube", la.block_diag, BATCH),
    ):
        corpus.add(f"refused_{name}", function, *args)
