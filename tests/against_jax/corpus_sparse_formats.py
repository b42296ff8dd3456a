"""Sparse arrays of other formats, sparsified functions, and sparse linear algebra."""

import importlib

import numpy as np

from tests.against_jax.corpus_sparse import A, Adder, B, S, V, dense, sparse_of
from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    sparse = sparse_of(jax)
    add = Adder(corpus)
    rows(add, sparse, jax, jnp)
    for name in ("COO", "CSR", "CSC"):
        matrices(add, name.lower(), getattr(sparse, name), sparse, jax, jnp)
    sparsified(add, sparse, jax, jnp, lax)
    if isinstance(jax, Anything):
        linalg = jax
    else:
        linalg = importlib.import_module(f"{jax.__name__}.experimental.sparse.linalg")
    solutions(add, linalg, jax, jnp)
    return corpus


def of_no_arrays(jax, matrix):
    """Return sparse matrices of what functions on pytrees may put in the place of arrays."""
    functions = (str, lambda x: None, lambda x: x.shape, lambda x: 1, jax.typeof)
    return [jax.tree.map(function, matrix) for function in functions]


def rows(add, sparse, jax, jnp):
    BCSR = sparse.BCSR
    r = lambda: BCSR.fromdense(A, nse=6)
    batch = lambda: BCSR.fromdense(S, n_batch=1)
    with_data = lambda data: BCSR((data, r().indices, r().indptr), shape=r().shape)
    dup = lambda: sparse.BCOO(
        (jnp.array([1.0, 2, 3, 5]), jnp.array([[2, 1], [0, 0], [2, 1], [3, 4]])), shape=(3, 4)
    )
    dot = lambda x, y, *numbers: sparse.bcsr_dot_general(x, y, dimension_numbers=numbers)
    for name, call in {
        "fromdense": r,
        "fromdense_batch": batch,
        "fromdense_dense": lambda: BCSR.fromdense(np.stack([A, A], 2), n_dense=1),
        "fromdense_vector": lambda: BCSR.fromdense(V),
        "fromdense_jit": lambda: jax.jit(BCSR.fromdense)(A),
        "todense": lambda: [r().todense(), batch().todense()],
        "from_bcoo": lambda: BCSR.from_bcoo(dup()),
        "from_bcoo_vector": lambda: BCSR.from_bcoo(sparse.BCOO.fromdense(V)),
        "to_bcoo": lambda: r().to_bcoo(),
        "repr": lambda: [repr(r()), repr(batch())],
        "repr_of_no_arrays": lambda: [repr(m) for m in of_no_arrays(jax, r())],
        "empty": lambda: sparse.empty((2, 3), sparse_format="bcsr"),
        "sum_duplicates": lambda: BCSR.from_bcoo(dup()).sum_duplicates(),
        "sum_duplicates_nse": lambda: sparse.bcsr_sum_duplicates(r(), nse=5),
        "extract": lambda: sparse.bcsr_extract(r().indices, r().indptr, A + 1),
        "vector": lambda: r() @ V,
        "matrix": lambda: r() @ B,
        "batch_product": lambda: dot(batch(), S, ([2], [2]), ([0], [0])),
        "contract_rows": lambda: dot(r(), A, ([0], [0]), ([], [])),
        "left": lambda: dot(A, r(), ([1], [1]), ([], [])),
        "two": lambda: dot(r(), r(), ([1], [1]), ([], [])),
        "vmap": lambda: jax.vmap(lambda r, v: r @ v)(batch(), S[:, 0]),
        "vmap_todense": lambda: jax.vmap(lambda r: r.todense())(batch()),
        "grad": lambda: jax.grad(lambda d, v: ((with_data(d) @ v) ** 2).sum(), (0, 1))(r().data, V),
        "grad_todense": lambda: jax.grad(lambda d: (with_data(d).todense() ** 2).sum())(r().data),
        "grad_fromdense": lambda: jax.grad(lambda x: (BCSR.fromdense(x, nse=5).data ** 3).sum())(A),
        "broadcast": lambda: sparse.bcsr_broadcast_in_dim(
            r(), shape=(2, 3, 4), broadcast_dimensions=(1, 2)
        ),
        "concatenate": lambda: dense(sparse.bcsr_concatenate([r(), r()], dimension=0)),
        "concatenate_columns": lambda: dense(sparse.bcsr_concatenate([r(), r()], dimension=1)),
        "transpose": lambda: r().T,
        "mul": lambda: r() * 2,
        "neg": lambda: -r(),
        "add": lambda: r() + r(),
        "index": lambda: r()[0],
        "sum": lambda: r().sum(),
        "invalid": lambda: BCSR((r().data, r().indices, r().indptr[:-1]), shape=(3, 4)).todense(),
    }.items():
        add(f"bcsr_{name}", call)


def matrices(add, name, Format, sparse, jax, jnp):
    made = lambda: Format.fromdense(A, nse=6)

    def with_data(data):
        leaves, structure = jax.tree.flatten(made())
        return structure.unflatten([data, *leaves[1:]])

    for label, call in {
        "fromdense": made,
        "fromdense_all": lambda: Format.fromdense(A),
        "fromdense_vector": lambda: Format.fromdense(V),
        "fromdense_jit": lambda: jax.jit(Format.fromdense)(A),
        "todense": lambda: made().todense(),
        "transpose": lambda: made().T,
        "transpose_axes": lambda: made().transpose((0, 1)),
        "vector": lambda: made() @ V,
        "matrix": lambda: made() @ B,
        "transposed_vector": lambda: made().T @ V[:3],
        "transposed_matrix": lambda: made().T @ B[:3],
        "integers": lambda: made() @ np.arange(4),
        "list": lambda: made() @ [1.0, 2, 3, 4],
        "three_axes": lambda: made() @ S,
        "two_sparse": lambda: made() @ made(),
        "add": lambda: made() + 1,
        "mul": lambda: made() * 2,
        "neg": lambda: -made(),
        "sum": lambda: made().sum(),
        "index": lambda: made()[0],
        "length": lambda: len(made()),
        "repr": lambda: repr(made()),
        "repr_of_no_arrays": lambda: [repr(m) for m in of_no_arrays(jax, made())],
        "empty": lambda: sparse.empty((2, 3), sparse_format=name),
        "empty_3": lambda: sparse.empty((2, 3, 4), sparse_format=name),
        "eye": lambda: sparse.eye(3, 4, 1, sparse_format=name),
        "eye_below": lambda: dense(sparse.eye(3, 4, -1, sparse_format=name)),
        "jit": lambda: jax.jit(lambda m, v: m @ v)(made(), V),
        "grad_todense": lambda: jax.grad(lambda d: (with_data(d).todense() ** 2).sum())(
            made().data
        ),
        "grad_fromdense": lambda: jax.grad(lambda x: (Format.fromdense(x, nse=4).data ** 3).sum())(
            A
        ),
        "jvp": lambda: jax.jvp(lambda v: made() @ v, (V,), (V,)),
        "vmap": lambda: jax.vmap(lambda v: made() @ v)(S[:, 0]),
    }.items():
        add(f"{name}_{label}", call)
    if name == "csc":  # JAX takes the transpose of the matrix in its derivative by the data.
        return
    # At padding, the derivative of JAX is that of another element.
    whole = lambda: jax.tree.flatten(Format.fromdense(A))
    product = lambda d, v: whole()[1].unflatten([d, *whole()[0][1:]]) @ v
    square = lambda d, v: (product(d, v) ** 2).sum()
    for label, factor in (("vector", V), ("matrix", B)):
        add(
            f"{name}_grad_{label}",
            lambda v=factor: jax.grad(square, (0, 1))(whole()[0][0], v),
        )


def sparsified(add, sparse, jax, jnp, lax):
    m = lambda: sparse.BCOO.fromdense(A, nse=6)
    on = lambda f, *args, **k: sparse.sparsify(f, **k)(m(), *args)
    custom = lambda: jax.custom_jvp(lambda x: x * 3)

    def with_rule(x):
        f = custom()
        f.defjvp(lambda p, t: (p[0] * 3, t[0] * 3))
        return f(x)

    for name, call in {
        "twice": lambda: on(lambda x: x + x),
        "square": lambda: on(lambda x: x * x),
        "difference": lambda: on(lambda x: x - x),
        "multiples": lambda: on(lambda x: x + 2 * x),
        "arguments": lambda: on(jnp.add, m()),
        "sin": lambda: on(jnp.sin),
        "tanh": lambda: on(jnp.tanh),
        "log1p": lambda: on(jnp.log1p),
        "sqrt": lambda: on(jnp.sqrt),
        "real": lambda: on(jnp.real),
        "cos": lambda: on(jnp.cos),
        "max": lambda: on(jnp.maximum, m()),
        "where": lambda: on(lambda x: jnp.where(x > 0, x, 0)),
        "cumsum": lambda: on(jnp.cumsum),
        "sort": lambda: on(jnp.sort),
        "mean": lambda: on(jnp.mean),
        "dense": lambda: sparse.sparsify(jnp.cos)(A),
        "jit": lambda: on(jax.jit(lambda x: x * 2)),
        "under_jit": lambda: jax.jit(sparse.sparsify(lambda x: x * 2))(m()),
        "vmap": lambda: on(jax.vmap(lambda x: x * 2)),
        "grad": lambda: on(jax.grad(lambda x: x.sum())),
        "cond": lambda: on(lambda x: lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, x)),
        "cond_types": lambda: on(
            lambda x: lax.cond(True, lambda x: x * 2, lambda x: x + x[::-1], x)
        ),
        "loop": lambda: on(lambda x: lax.fori_loop(0, 3, lambda i, x: x * 2, x)),
        "while": lambda: on(lambda x: lax.while_loop(lambda c: c.sum() < 50, lambda c: c * 2, x)),
        "todense": lambda: on(lambda x: sparse.todense(x) + 1),
        "transpose": lambda: on(lambda x: x.T),
        "reshape": lambda: on(lambda x: x.reshape(-1)),
        "concatenate": lambda: on(lambda x: jnp.concatenate([x, x])),
        "concatenate_dense": lambda: on(lambda x: jnp.concatenate([x, A])),
        "stack": lambda: on(lambda x: jnp.stack([x, x])),
        "einsum": lambda: on(lambda x, y: jnp.einsum("ij,kj->ik", x, y), A),
        "tensordot": lambda: on(lambda x, y: jnp.tensordot(x, y, 2), A),
        "dot_dense": lambda: on(lambda x, v: jnp.sin(x) @ v, V),
        "outer": lambda: on(jnp.outer, V),
        "add_dense": lambda: on(lambda x, y: y + x, A),
        "sub_dense": lambda: on(lambda x, y: y - x, A),
        "mul_dense": lambda: on(lambda x, y: y * x, A),
        "div": lambda: on(lambda x, y: y / x, A),
        "broadcast": lambda: on(lambda x: jnp.broadcast_to(x, (2, 3, 4))),
        "flip": lambda: on(jnp.flip),
        "custom_jvp": lambda: on(with_rule),
        "tree": lambda: list(
            sparse.sparsify(lambda d: {"a": d["x"] * 2, "b": d["x"].sum()})({"x": m()}).values()
        ),
        "keyword": lambda: sparse.sparsify(lambda x, *, axis: x.sum(axis))(m(), axis=0),
        "none": lambda: on(lambda x, y: x, None),
        "nested": lambda: on(sparse.sparsify(lambda x: x * 2)),
        "constant": lambda: on(lambda x: x * np.ones((3, 4), np.float32)),
        "tracer": lambda: on(lambda x: x * 2, use_tracer=True),
        "rows": lambda: sparse.sparsify(lambda x, v: jnp.sin(x) @ v)(sparse.BCSR.fromdense(A), V),
        "rows_mul": lambda: sparse.sparsify(lambda x: x * 2)(sparse.BCSR.fromdense(A)),
        "other_format": lambda: sparse.sparsify(lambda x, v: x @ v)(sparse.CSR.fromdense(A), V),
        "derivative": lambda: jax.grad(
            lambda v: (sparse.sparsify(lambda m, v: m @ v)(m(), v) ** 2).sum()
        )(V),
    }.items():
        add(f"sparsify_{name}", call)


def solutions(add, linalg, jax, jnp):
    matrix = np.array([[4, 0, 1], [0, 3, 0], [2, 0, 5]], np.float32)
    data = matrix[matrix != 0]
    indices = np.array([0, 2, 1, 0, 2], np.int32)
    indptr = np.array([0, 2, 3, 5], np.int32)
    b = np.array([1, 2, 3], np.float32)
    solve = lambda d=data, i=indices, p=indptr, b=b, **k: linalg.spsolve(d, i, p, b, **k)
    for name, call in {
        "plain": solve,
        "jit": lambda: jax.jit(linalg.spsolve)(data, indices, indptr, b),
        "grad": lambda: jax.grad(lambda d, b: (solve(d, b=b) ** 2).sum(), (0, 1))(data, b),
        "jvp": lambda: jax.jvp(lambda d, b: solve(d, b=b), (data, b), (data, b)),
        "complex": lambda: solve(data.astype("complex64"), b=b.astype("complex64")),
        "length": lambda: solve(b=V),
        "matrix": lambda: solve(b=B),
        "float_indices": lambda: solve(i=indices.astype("float32")),
        "dtypes": lambda: solve(data.astype("int32")),
        "reorder": lambda: solve(reorder=7),
    }.items():
        add(f"spsolve_{name}", call)
    diagonal = np.diag(np.arange(1, 21).astype(np.float32))
    start = np.asarray(np.random.RandomState(0).randn(20, 2), np.float32)
    lobpcg = linalg.lobpcg_standard

    def eigenvectors():
        values, vectors, _ = lobpcg(diagonal, start)
        return values, jnp.abs(vectors[-2:]).round(2)

    add("lobpcg", eigenvectors, tolerance=1e-3)
    add("lobpcg_function", lambda: lobpcg(lambda x: diagonal @ x, start)[0], tolerance=1e-3)
    add("lobpcg_jit", lambda: jax.jit(lambda x: lobpcg(diagonal, x)[0])(start), tolerance=1e-3)
    add("lobpcg_negative", lambda: lobpcg(-diagonal, start, 200)[0], tolerance=1e-2)
    for name, call in {
        "wide": lambda: lobpcg(np.eye(5, dtype="float32"), np.ones((5, 2), "float32")),
        "vector": lambda: lobpcg(np.eye(5, dtype="float32"), np.ones(5, "float32")),
        "none": lambda: lobpcg(diagonal, start[:, :0]),
        "shape": lambda: lobpcg(diagonal, start[:19]),
        "dtypes": lambda: lobpcg(diagonal.astype("complex64"), start),
    }.items():
        add(f"lobpcg_{name}", call)
