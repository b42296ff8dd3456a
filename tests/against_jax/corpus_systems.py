"""Linear systems in batches, operators, and second derivatives of matrices' functions."""

import importlib

import numpy as np

from tests.against_jax.corpus_linalg import draw, positive
from tests.against_jax.describe import Anything, Corpus

F, Z = np.float64, np.complex128


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        scipy = sparse = jax
    else:
        scipy = importlib.import_module(f"{jax.__name__}.scipy.linalg")
        sparse = importlib.import_module(f"{jax.__name__}.scipy.sparse.linalg")
    derivatives(corpus, jax, jnp)
    batches(corpus, jnp, scipy)
    schur_forms(corpus, jax, scipy)
    special_matrices(corpus, jnp, scipy)
    operators(corpus, jax, jnp, sparse)
    custom_linear_solve(corpus, jax, jnp, lax)
    return corpus


def derivatives(corpus, jax, jnp):
    la = jnp.linalg
    for label, dtype, n in (("one", Z, 1), ("complex", Z, 3), ("real", F, 4)):
        a, t, u = (draw(n, n, seed=i, dtype=dtype) for i in range(3))

        def twice(a, t, u):
            first = lambda a: jax.jvp(la.slogdet, (a,), (t,))[1]
            return jax.jvp(first, (a,), (u,))

        corpus.add(f"slogdet_twice_{label}", twice, a, t, u, x64=True)
        batch = np.stack([a, a + u, 2 * a])
        corpus.add(f"slogdet_twice_{label}_batch", twice, batch, batch * 0 + t, batch, x64=True)

    for label, dtype in (("real", F), ("complex", Z)):
        a, t = draw(3, 3, dtype=dtype), draw(3, 3, seed=1, dtype=dtype)

        def along(a, t, jnp=jnp):
            pinv = lambda a: la.pinv(a, hermitian=True)
            return jax.jvp(pinv, (a + jnp.conj(a.T),), (t,)), jax.jvp(pinv, (a,), (t,))

        corpus.add(f"pinv_hermitian_tangent_{label}", along, a, t, x64=True)
        for shape in ((5, 2), (2, 5), (2, 4, 3), (2, 3, 4)):
            x, t = (draw(*shape, seed=i, dtype=dtype) for i in range(2))
            corpus.add(
                f"pinv_twice_{label}_{'x'.join(map(str, shape))}",
                lambda x, t: jax.jvp(lambda x: jax.jvp(la.pinv, (x,), (t,)), (x,), (t,)),
                x,
                t,
                x64=True,
            )


def batches(corpus, jnp, scipy):
    shapes = {
        "matrices_vector": ((3, 4, 4), (4,)),
        "matrices_columns": ((3, 4, 4), (4, 2)),
        "matrix_of_many": ((4, 4), (3, 4, 2)),
        "vectors": ((3, 4, 4), (3, 4)),
        "as_many_as_rows": ((4, 4, 4), (4, 4)),
        "of_two_axes": ((3, 1, 4, 4), (2, 4, 2)),
        "too_few": ((4, 4), (3, 4)),
        "not_alike": ((3, 4, 4), (2, 4, 2)),
        "too_short": ((4, 4), (3,)),
    }
    for label, (left, right) in shapes.items():
        a = (np.eye(4) * 4 + draw(*left, dtype=F)).astype(F)
        b = draw(*right, seed=1, dtype=F)

        def triangular(a, b):
            return [
                scipy.solve_triangular(a, b, trans=trans, lower=lower)
                for trans, lower in ((0, False), (1, True), ("C", False))
            ]

        corpus.add(f"solve_triangular_{label}", triangular, a, b, x64=True)
        factors = lambda a, b: [scipy.cho_solve((a, lower), b) for lower in (True, False)]
        corpus.add(f"cho_solve_{label}", factors, a, b, x64=True)

        def factored(a, b):
            pivots = jnp.broadcast_to(jnp.array([1, 1, 3, 3], "int32"), a.shape[:-1])
            return [scipy.lu_solve((a, pivots), b, trans) for trans in (0, 1, 2)]

        corpus.add(f"lu_solve_{label}", factored, a, b, x64=True)
    for label in ("vectors", "as_many_as_rows", "too_few", "not_alike", "too_short"):
        left, right = shapes[label]
        a = positive(4, F, left[:-2])
        corpus.add(
            f"solve_positive_{label}",
            lambda a, b: scipy.solve(a, b, assume_a="pos"),
            a,
            draw(*right, dtype=F),
            x64=True,
        )
    for method in ("schur", "eigen"):
        for label, shapes_of in {
            "one_b": ((2, 3, 3), (4, 4), (2, 3, 4)),
            "two_axes": ((2, 3, 3), (5, 1, 4, 4), (3, 4)),
            "not_square": ((3, 3), (4, 3), (3, 4)),
            "not_alike": ((2, 3, 3), (3, 4, 4), (3, 4)),
        }.items():
            corpus.add(
                f"solve_sylvester_{method}_{label}",
                lambda a, b, c, m=method: scipy.solve_sylvester(a, b, c, method=m),
                *[draw(*shape, dtype=F) for shape in shapes_of],
                x64=True,
            )
    for shape in ((2, 3, 3), (2, 4, 3), (2, 3, 4), (0, 3, 3), (3,)):
        for options in ({}, {"side": "left"}, {"method": "svd"}):
            label = "_".join([*map(str, shape), *options.values()])
            corpus.add(
                f"polar_{label}",
                lambda x, o=options: scipy.polar(x, **o),
                draw(*shape, dtype=F),
                x64=True,
            )


def schur_forms(corpus, jax, scipy):
    T, Z_ = draw(5, 5, dtype=F), draw(5, 5, seed=1, dtype=F)
    corpus.add("rsf2csf_of_no_schur_form", scipy.rsf2csf, T, Z_, x64=True)
    corpus.add(
        "rsf2csf_batch", scipy.rsf2csf, draw(2, 4, 4, dtype=F), draw(4, 4, dtype=F), x64=True
    )
    corpus.add("rsf2csf_sizes", scipy.rsf2csf, draw(2, 3, 3), draw(4, 4))
    form = np.triu(T)
    form[1, 0] = -2 * np.sign(form[0, 1])
    corpus.add(
        "rsf2csf_derivative",
        lambda T, Z, t: jax.jvp(scipy.rsf2csf, (T, Z), (t, Z)),
        form,
        Z_,
        T,
        x64=True,
    )


def special_matrices(corpus, jnp, scipy):
    def refused(name, call):
        corpus.add(f"refused_{name}", call)

    one, two, none = np.float32([1]), np.float32([1, 2]), np.float32([])
    number = np.float32(2)
    refused("convolution_matrix_of_number", lambda: scipy.convolution_matrix(number, 3))
    refused("convolution_matrix_float_size", lambda: scipy.convolution_matrix(two, 2.0))
    refused("leslie_of_one", lambda: scipy.leslie(one, none))
    refused("leslie_of_number", lambda: scipy.leslie(number, none))
    refused("leslie_of_none", lambda: scipy.leslie(none, none))
    refused("leslie_batch_of_one", lambda: scipy.leslie(one[None], np.zeros((1, 0), np.float32)))
    refused("hankel_row_of_number", lambda: scipy.hankel(two, number))
    corpus.add("leslie_of_two", lambda: (scipy.leslie(two, one), scipy.leslie(two, number)))


def operators(corpus, jax, jnp, sparse):
    class Operator:
        def __init__(self, a):
            self.a, self.shape = a, a.shape

        def __matmul__(self, x):
            return self.a @ x

    a = positive(3, F)
    for name in ("cg", "bicgstab", "gmres"):
        solver = getattr(sparse, name)

        def solved(a, b, solver=solver):
            of_objects = solver(Operator(a), b, M=Operator(jnp.eye(3)))[0]
            gradient = jax.grad(lambda a: solver(Operator(a), b)[0].sum())
            return of_objects, gradient(a)

        corpus.add(f"{name}_of_objects", solved, a, draw(3, dtype=F), x64=True, tolerance=1e-4)
        corpus.add(f"{name}_not_square", lambda s=solver: s(Operator(np.ones((2, 3))), np.ones(2)))
        corpus.add(f"{name}_of_a_list", lambda s=solver: s([[2.0, 1], [1, 3]], np.ones(2)))
        same = lambda x: x
        corpus.add(
            f"{name}_weak_types",
            lambda s=solver: [
                s(same, 1.0)[0],
                s(same, np.float32(1))[0],
                s(same, 1.0, x0=np.float32(0))[0],
                s(lambda x: 2 * x, 1.0)[0],
                s(lambda x: x * np.float32(2), 1.0)[0],
                s(same, np.float32(1), x0=0.0)[0],
            ],
        )


def custom_linear_solve(corpus, jax, jnp, lax):
    solve = lax.custom_linear_solve
    a = np.array([[2.0, 1], [1, 3]])

    def both(a, b):
        x = lambda a, b: solve(
            lambda x: a @ x,
            b,
            solve=lambda _, b: jnp.linalg.solve(a, b),
            transpose_solve=lambda vecmat, b: 2 * jnp.linalg.solve(a.T, b) + 0 * vecmat(b),
            symmetric=True,
        )
        return x(a, b), jax.jacrev(x, 1)(a, b), jax.jacfwd(x, 1)(a, b)

    corpus.add("symmetric_with_transpose_solve", both, a, np.ones(2), x64=True)
    b = (np.ones(2, np.float32),)
    same, in_list = lambda x: x, lambda x: [x[0]]
    first = lambda _, b: b
    wrong = lambda _, b: [b[0]]
    corpus.add("matvec_tree", lambda b: solve(in_list, b, solve=first), b)
    corpus.add("matvec_count", lambda b: solve(lambda x: (x, x), b, solve=first), b)
    corpus.add("solve_tree", lambda b: solve(same, b, solve=wrong), b)
    corpus.add("transpose_solve_tree", lambda b: solve(same, b, first, transpose_solve=wrong), b)
    corpus.add("aux_tree", lambda b: solve(same, b, lambda _, b: ([b[0]], 3), has_aux=True), b)
