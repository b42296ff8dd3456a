"""Second derivatives of linear algebra: of real and complex matrices, symmetric and not."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus

KNOWN = {
    r"^eigenvalues_": "jax refuses second derivatives of eigenvalues of general matrices",
    r"^solve_positive_hermitian_\w+_(forward_over_reverse|reverse_over_forward)$": "jax takes the"
    " matrix for its own transpose: its grad is not that of a general solve, which ours is",
    r"^solve_positive_symmetric_any_forward_over_reverse$": "as before, where it is pushed"
    " along what is not symmetric",
}


def matrices():
    """Square matrices by name, well conditioned, with eigenvalues far apart."""
    base = np.array([[2.0, 0.3, -0.4], [0.7, -1.5, 0.6], [0.2, -0.9, 4.0]])
    imaginary = np.array([[0.5, -0.2, 0.8], [0.1, 0.9, -0.6], [-0.3, 0.4, 0.7]])
    other = base + 1j * imaginary
    return {
        "real": base,
        "symmetric": base + base.T,
        "complex": other,
        "hermitian": other + other.conj().T,
        "complex_symmetric": other + other.T,
    }


def tangents(kind):
    """Two directions for a matrix: of any kind, and symmetric or Hermitian as the matrix is."""
    one = np.sin(np.arange(1.0, 10)).reshape(3, 3)
    two = np.cos(np.arange(1.0, 10) * 1.3).reshape(3, 3)
    if "complex" in kind or kind == "hermitian":
        one, two = one + 0.5j * two, two - 0.25j * one
    yield "any", one, two
    if kind == "symmetric" or kind == "hermitian":
        yield "alike", one + one.conj().T, two + two.conj().T


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    sl = jax
    if not isinstance(jax, Anything):
        sl = importlib.import_module(f"{jax.__name__}.scipy.linalg")
    for kind, matrix in matrices().items():
        for name, function in functions(jnp, lax, sl, kind).items():
            for direction, one, two in tangents(kind):
                for way, derivative in derivatives(jax, jnp).items():

                    def second(a, one, two, function=function, derivative=derivative):
                        return derivative(function, a, one, two)

                    corpus.add(
                        f"{name}_{kind}_{direction}_{way}",
                        second,
                        matrix,
                        one,
                        two,
                        x64=True,
                        tolerance=1e-7,
                    )
    return corpus


def derivatives(jax, jnp):
    def forward(f, a, one, two):
        return jax.jvp(lambda x: jax.jvp(f, (x,), (one,))[1], (a,), (two,))[1]

    def squares(f):
        """Return a real function of all results, whose gradient says all of them."""

        def total(x):
            leaves = jax.tree_util.tree_leaves(f(x))
            return sum(
                jnp.sum(jnp.real(leaf) * weight + jnp.imag(leaf) ** 2)
                for weight, leaf in enumerate(leaves, 1)
            )

        return total

    def forward_over_reverse(f, a, one, two):
        return jax.jvp(jax.grad(squares(f)), (a,), (two,))[1]

    def reverse_over_forward(f, a, one, two):
        return jax.grad(lambda x: squares(lambda y: jax.jvp(f, (y,), (one,))[1])(x))(a)

    return {
        "forward": forward,
        "forward_over_reverse": forward_over_reverse,
        "reverse_over_forward": reverse_over_forward,
    }


def functions(jnp, lax, sl, kind):
    la = jnp.linalg
    made = {
        "det": la.det,
        "slogdet": la.slogdet,
        "inv": la.inv,
        "pinv": la.pinv,
        "pinv_of_tall": lambda a: la.pinv(a[:, :2]),
        "pinv_of_wide": lambda a: la.pinv(a[:2]),
        "solve": lambda a: la.solve(a, a[:, :2]),
        "lstsq": lambda a: la.lstsq(a[:, :2], a[:, 2])[0],
        "qr": la.qr,
        "qr_of_tall": lambda a: la.qr(a[:, :2]),
        "lu": sl.lu,
        "lu_factor": lambda a: sl.lu_factor(a)[0],
        "lu_solve": lambda a: sl.lu_solve(sl.lu_factor(a), a[:, 0]),
        "singular_values": lambda a: la.svd(a, compute_uv=False),
        "svd_product": lambda a: _svd_product(jnp, la.svd(a, full_matrices=False)),
        "norm_2": lambda a: la.norm(a, 2),
        "norm_nuclear": lambda a: la.norm(a, "nuc"),
        "norm_least": lambda a: la.norm(a, -2),
        "cond": la.cond,
        "expm": sl.expm,
        "sqrtm_of_power": lambda a: la.matrix_power(a, -2),
        "eigenvalues": la.eigvals,
        "triangular_solve": lambda a: [
            sl.solve_triangular(a, a[:, :2], lower=lower, trans=trans)
            for lower in (False, True)
            for trans in (0, 1, 2)
        ],
        "unit_triangular": lambda a: sl.solve_triangular(a, a[:, 0], unit_diagonal=True),
        "matrix_exponential_action": lambda a: sl.expm(a * 0.1) @ a[:, 0],
        "polar": sl.polar,
        "sylvester": lambda a: sl.solve_sylvester(a, a + 5 * jnp.eye(3), a[::-1]),
        "multi_dot": lambda a: la.multi_dot([a, a.T, a]),
        "tensorsolve": lambda a: la.tensorsolve(a, a[0]),
        "tensorinv": lambda a: la.tensorinv(a.reshape(3, 3), ind=1),
        "vector_norms": lambda a: [la.norm(a[0], p) for p in (1, 2, 3, 0.5)],
        "kron": lambda a: jnp.kron(a, a),
        "tridiagonal_solve": lambda a: lax.linalg.tridiagonal_solve(
            jnp.concatenate([jnp.zeros(1), a[1:, 0]]) if kind in ("real", "symmetric") else a[:, 0],
            a[:, 1] + 5,
            a[:, 2],
            a,
        ),
    }
    if kind in ("symmetric", "hermitian"):
        made |= {
            "eigh_values": la.eigvalsh,
            "eigh_product": lambda a: _eigh_product(jnp, *la.eigh(a)),
            "eigh_upper": lambda a: la.eigvalsh(a, UPLO="U"),
            "eigh_not_symmetrized": lambda a: _eigh_product(
                jnp, *la.eigh(a, symmetrize_input=False)
            ),
            "pinv_hermitian": lambda a: la.pinv(a, hermitian=True),
            "cholesky": lambda a: la.cholesky(a @ a + jnp.eye(3)),
            "cho_solve": lambda a: sl.cho_solve(sl.cho_factor(a @ a + jnp.eye(3)), a[:, 0]),
            "solve_positive": lambda a: sl.solve(a @ a + jnp.eye(3), a[:, 0], assume_a="pos"),
            "matrix_rank": la.matrix_rank,
            "svd_hermitian": lambda a: la.svd(a, compute_uv=False, hermitian=True),
        }
    if kind == "complex" or kind == "real":
        made["eig_product"] = lambda a: _eig_product(jnp, *la.eig(a))
    return made


def _svd_product(jnp, parts):
    """What does not depend on the signs of singular vectors."""
    u, s, vh = parts
    return (u * jnp.exp(s)) @ vh


def _eigh_product(jnp, w, v):
    return (v * jnp.exp(w / 5)) @ v.conj().T


def _eig_product(jnp, w, v):
    return (v * jnp.exp(w / 5)) @ jnp.linalg.inv(v)
