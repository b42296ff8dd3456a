"""Sparse arrays in batched coordinates: creation, operators, products, shapes, derivatives."""

import importlib
import math

import numpy as np

from tests.against_jax.describe import Anything, Corpus

A = np.array([[0, 1, 0, 0], [2, 0, 0, 0], [0, 4, 0, 3]], np.float32)
S = np.stack([A, A.T.reshape(3, 4) * 2])
V = np.array([1, -2, 3, 0.5], np.float32)
B = np.arange(8, dtype=np.float32).reshape(4, 2) - 3


def parts(x):
    """What a sparse array is made of, as arrays and texts that both sides have."""
    if hasattr(x, "indices"):
        buffers = [x.data, x.indices, *([x.indptr] if hasattr(x, "indptr") else [])]
        flags = getattr(x, "indices_sorted", 0), getattr(x, "unique_indices", 0)
        return buffers, [int(size) for size in x.shape], [int(flag) for flag in flags]
    if hasattr(x, "row"):
        return [x.data, x.row, x.col], list(x.shape)
    if isinstance(x, (tuple, list)):
        return [parts(y) for y in x]
    return x


def dense(x):
    return x.todense() if hasattr(x, "todense") else x


def sparse_of(jax):
    if isinstance(jax, Anything):
        return jax
    return importlib.import_module(f"{jax.__name__}.experimental.sparse")


class Adder:
    """Adds programs without operands whose results may be sparse."""

    def __init__(self, corpus):
        self.corpus = corpus

    def __call__(self, name, call, show=parts, **options):
        self.corpus.add(name, lambda: show(call()), **options)


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    sparse = sparse_of(jax)
    add = Adder(corpus)
    arrays = {}

    def made(name):
        """The arrays are made when a program first wants one."""
        if not arrays:
            BCOO = sparse.BCOO
            arrays.update(
                m=BCOO.fromdense(A, nse=6),
                u=BCOO.fromdense(A),
                b=BCOO.fromdense(S, n_batch=1),
                d=BCOO.fromdense(A, n_dense=1),
                v=BCOO.fromdense(V),
                dup=BCOO(
                    (
                        jnp.array([1.0, 2, 3, 0, 5]),
                        jnp.array([[2, 1], [0, 0], [2, 1], [1, 1], [3, 4]]),
                    ),
                    shape=(3, 4),
                ),
            )
            arrays["one"] = BCOO((arrays["b"].data[:1], arrays["b"].indices[:1]), shape=(2, 3, 4))
        return arrays[name]

    creation(add, sparse, jax, jnp)
    elements(add, sparse, jax, jnp, made)
    operators(add, jnp, made)
    indexing(add, jax, jnp, made)
    products(add, sparse, jax, jnp, made)
    shapes(add, sparse, jnp, lax, made)
    roles(add, sparse, made)
    derivatives(add, sparse, jax, jnp, made)
    return corpus


def creation(add, sparse, jax, jnp):
    BCOO = sparse.BCOO
    for name, keywords in {
        "plain": {},
        "more": {"nse": 6},
        "fewer": {"nse": 2},
        "int8": {"index_dtype": "int8"},
        "dense_1": {"n_dense": 1},
        "dense_2": {"n_dense": 2},
        "batch_2": {"n_batch": 2},
        "too_many": {"n_batch": 2, "n_dense": 1},
        "text": {"nse": "a"},
        "array": {"nse": np.array(3)},
        "negative": {"nse": -1},
    }.items():
        add(f"fromdense_{name}", lambda k=keywords: BCOO.fromdense(A, **k))
    add("fromdense_batch", lambda: BCOO.fromdense(S, n_batch=1))
    add("fromdense_batch_dense", lambda: BCOO.fromdense(S, n_batch=1, n_dense=1))
    add("fromdense_scalar", lambda: BCOO.fromdense(3.0))
    add("fromdense_list", lambda: BCOO.fromdense([[1, 0], [0, 2]]))
    add("fromdense_zeros", lambda: BCOO.fromdense(0 * A))
    add("fromdense_bool", lambda: BCOO.fromdense(A > 0))
    add("fromdense_complex", lambda: BCOO.fromdense(A * np.complex64(1j)))
    add("fromdense_jit", lambda: jax.jit(BCOO.fromdense)(A))
    add("fromdense_jit_nse", lambda: jax.jit(lambda x: BCOO.fromdense(x, nse=5))(A))
    add("fromdense_vmap", lambda: jax.vmap(lambda x: BCOO.fromdense(x, nse=5))(S))
    add("repr_of_strings", lambda: repr(jax.tree.map(str, BCOO.fromdense(A))))
    add("repr", lambda: [repr(BCOO.fromdense(A)), repr(BCOO.fromdense(S, n_batch=1, n_dense=1))])
    add("empty", lambda: sparse.empty((2, 3)))
    add("empty_nse", lambda: sparse.empty((2, 3), int, n_batch=1, nse=2))
    add("empty_unknown", lambda: sparse.empty((2, 3), sparse_format="x"))
    add("empty_too_many", lambda: sparse.empty((2, 3), n_batch=2, n_dense=1))
    for name, call in {
        "plain": lambda: sparse.eye(3),
        "above": lambda: sparse.eye(3, 4, 1),
        "below": lambda: sparse.eye(3, 4, -2),
        "beyond": lambda: sparse.eye(3, 4, 9),
        "batch": lambda: sparse.eye(3, n_batch=1),
        "dense": lambda: sparse.eye(3, n_dense=1),
        "both": lambda: sparse.eye(3, 4, k=-1, n_batch=1, n_dense=1),
        "unknown": lambda: sparse.eye(3, sparse_format="x"),
    }.items():
        add(f"eye_{name}", call)
    key = lambda: jax.random.key(0)
    for name, keywords in {
        "plain": {},
        "batch": {"nse": 3, "n_batch": 1},
        "repeated": {"nse": 3, "unique_indices": False},
        "sorted": {"nse": 0.5, "sorted_indices": True},
        "dense": {"nse": 2, "n_dense": 1},
        "too_many": {"nse": 30},
        "negative": {"nse": -1},
    }.items():
        add(
            f"random_{name}",
            lambda k=keywords: sparse.random_bcoo(key(), (4, 5), dtype="float32", **k),
        )
    two = np.ones(2, np.float32)
    for name, call in {
        "nse": lambda: BCOO((two, np.zeros((3, 1), int)), shape=(4,)).todense(),
        "batch": lambda: BCOO((S[0], np.zeros((2, 4, 1), int)), shape=(3, 4)).todense(),
    }.items():
        add(f"invalid_{name}", call, instead="ValueError")
    add("hash", lambda: hash(BCOO.fromdense(A)))
    add("tree", lambda: [str(jax.tree.structure(BCOO.fromdense(A)))])
    add("tree_map", lambda: jax.tree.map(lambda x: x * 2, BCOO.fromdense(A)))


def elements(add, sparse, jax, jnp, made):
    for name in ("m", "b", "d", "dup", "one", "v"):
        add(f"todense_{name}", lambda n=name: made(n).todense())
        add(f"sort_{name}", lambda n=name: made(n).sort_indices())
        add(f"sum_duplicates_{name}", lambda n=name: made(n).sum_duplicates())
        add(f"jit_{name}", lambda n=name: jax.jit(lambda x: x.todense())(made(n)))
    for shape, stored in (((2,), (3, 0)), ((), (5, 0)), ((), (0, 0)), ((3, 4), (0, 2))):
        dense = shape if stored[1] == 0 else ()
        data = np.arange(1.0, 1 + stored[0] * math.prod(dense)).reshape(stored[0], *dense)
        add(
            f"sum_duplicates_of_{stored[0]}_at_{stored[1]}_axes_of_{len(shape)}",
            lambda data=data, stored=stored, shape=shape: sparse.BCOO(
                (jnp.asarray(data, jnp.float32), jnp.zeros(stored, jnp.int32)), shape=shape
            ).sum_duplicates(),
        )
    add("sum_duplicates_more", lambda: made("dup").sum_duplicates(nse=5))
    add("sum_duplicates_fewer", lambda: made("dup").sum_duplicates(nse=1))
    add("sum_duplicates_zeros", lambda: made("dup").sum_duplicates(remove_zeros=False))
    add("sum_duplicates_function", lambda: sparse.bcoo_sum_duplicates(made("dup"), nse=7))
    add("sum_duplicates_jit", lambda: jax.jit(lambda m: m.sum_duplicates())(made("dup")))
    add("extract", lambda: sparse.bcoo_extract(made("m"), A + 1))
    add("extract_duplicates", lambda: sparse.bcoo_extract(made("dup"), A + 1))
    add(
        "extract_duplicates_each",
        lambda: sparse.bcoo_extract(made("dup"), A + 1, assume_unique=True),
    )
    add("extract_shape", lambda: sparse.bcoo_extract(made("m"), A.T))
    add("transpose", lambda: made("m").T)
    add("transpose_same", lambda: dense(made("m").transpose((0, 1))))
    add("transpose_batch", lambda: made("b").transpose((0, 2, 1)))
    add("transpose_roles", lambda: made("b").T)
    add("transpose_dense_roles", lambda: made("d").T)
    add("transpose_wrong", lambda: made("m").transpose((0, 0)))
    add("vmap_todense", lambda: jax.vmap(lambda x: x.todense())(made("b")))
    add("vmap_transpose", lambda: jax.vmap(lambda x: x.T)(made("b")))
    add("vmap_sum", lambda: jax.vmap(lambda x: x.sum_duplicates(nse=4))(made("b")))
    add("vmap_axis", lambda: jax.vmap(lambda x: x, in_axes=1)(made("b")))
    add("vmap_unbatched", lambda: jax.vmap(lambda x: x)(made("m")))
    add("vmap_out_axis", lambda: jax.vmap(lambda x: x, out_axes=1)(made("b")))
    add("todense_function", lambda: [sparse.todense(made("m")), sparse.todense(jnp.array(A))])


def operators(add, jnp, made):
    m, array = lambda: made("m"), lambda: jnp.array(A)
    for name, call in {
        "neg": lambda: -m(),
        "pos": lambda: +m(),
        "abs": lambda: abs(-m()),
        "add": lambda: m() + m(),
        "add_scalar": lambda: m() + 1,
        "add_dense": lambda: m() + array(),
        "radd_dense": lambda: array() + m(),
        "add_larger": lambda: m() + jnp.ones((2, 3, 4)),
        "add_row": lambda: m() + A[0],
        "add_shapes": lambda: m() + m().T,
        "add_roles": lambda: made("b") + made("b").update_layout(n_batch=0),
        "add_batch": lambda: made("b") + made("b"),
        "add_dense_axes": lambda: made("d") + made("d"),
        "add_dtypes": lambda: m() + m().astype(int),
        "sub": lambda: m() - made("u"),
        "sub_dense": lambda: m() - array(),
        "mul_scalar": lambda: m() * 2,
        "rmul_scalar": lambda: 2.0 * m(),
        "mul_dense": lambda: m() * A,
        "rmul_dense": lambda: array() * m(),
        "mul_row": lambda: m() * A[0],
        "mul_column": lambda: m() * A[:, 1:2],
        "mul_larger": lambda: m() * S,
        "mul_batch": lambda: made("b") * A,
        "mul_one_batch": lambda: made("one") * S,
        "mul_dense_axis": lambda: made("d") * A[:, :1],
        "div": lambda: m() / 2,
        "div_dense": lambda: m() / (A + 1),
        "rdiv": lambda: 2 / m(),
        "div_sparse": lambda: m() / m(),
        "pow": lambda: m() ** 2,
        "pow_zero": lambda: m() ** 0,
        "pow_half": lambda: m() ** 0.5,
        "rpow": lambda: 2 ** m(),
        "eq": lambda: m() == m(),
        "lt": lambda: m() < 1,
        "ge": lambda: m() >= array(),
        "len": lambda: len(m()),
        "iter": lambda: list(m()),
        "astype": lambda: m().astype(int),
        "sum": lambda: m().sum(),
        "sum_0": lambda: m().sum(0),
        "sum_1": lambda: m().sum(axis=1),
        "sum_keepdims": lambda: dense(m().sum(1, keepdims=True)),
        "sum_batch": lambda: made("b").sum(0),
        "sum_one_batch": lambda: made("one").sum(0),
        "sum_dense": lambda: made("d").sum(1),
        "sum_beyond": lambda: m().sum(5),
        "reshape": lambda: m().reshape(2, 6),
        "reshape_flat": lambda: m().reshape(-1),
        "reshape_fortran": lambda: m().reshape((2, 6), order="F"),
        "text": lambda: m() + "a",
        "list": lambda: m() @ [1, 2, 3, 4],
        "floor_divide": lambda: m() // 2,
    }.items():
        add(f"operator_{name}", call)
    add("operator_mul_sparse", lambda: m() * made("u"), dense)
    add("operator_mul_repeated", lambda: made("dup") * m(), dense)
    add("operator_mul_sparse_row", lambda: m() * made("v"), dense)
    add("operator_mul_sparse_batch", lambda: made("b") * made("b"), dense)


def indexing(add, jax, jnp, made):
    m = lambda: made("m")
    for name, call in {
        "row": lambda: m()[0],
        "last": lambda: m()[-1],
        "rows": lambda: m()[1:3],
        "element": lambda: m()[0, 1],
        "reversed": lambda: m()[::-1],
        "new": lambda: m()[None],
        "new_in_middle": lambda: m()[:, None],
        "steps": lambda: m()[:, ::2],
        "column": lambda: m()[..., 1],
        "all": lambda: m()[...],
        "none": lambda: m()[1:1],
        "array": lambda: m()[jnp.array([0, 2])],
        "arrays": lambda: m()[jnp.array([0, 1]), jnp.array([1, 0])],
        "traced": lambda: jax.jit(lambda m, i: m[i])(m(), 1),
        "batch": lambda: made("b")[0],
        "in_batch": lambda: made("b")[:, 1],
        "batch_array": lambda: made("b")[jnp.array([0, 0, 1])],
        "dense": lambda: made("d")[:, 1],
        "dense_row": lambda: made("d")[0],
        "float": lambda: m()[1.0],
        "text": lambda: m()["a"],
        "too_many": lambda: m()[0, 0, 0],
    }.items():
        add(f"index_{name}", call)
    add("index_columns", lambda: m()[:, jnp.array([0, 1])], dense)


def products(add, sparse, jax, jnp, made):
    m = lambda: made("m")
    dot = lambda x, y, *numbers, **k: sparse.bcoo_dot_general(x, y, dimension_numbers=numbers, **k)
    none = ([], [])
    for name, call in {
        "vector": lambda: m() @ V,
        "matrix": lambda: m() @ B,
        "left": lambda: jnp.array(V[:3]) @ m(),
        "left_matrix": lambda: jnp.array(B.T[:, :3]) @ m(),
        "batch_vector": lambda: made("b") @ V,
        "batch_matrices": lambda: made("b") @ S.transpose(0, 2, 1),
        "one_batch": lambda: made("one") @ V,
        "mixed": lambda: m().astype(int) @ V,
        "wrong": lambda: m() @ V[:3],
        "dense_axis": lambda: made("d") @ V,
        "scalar": lambda: m() @ 2.0,
        "contract_rows": lambda: dot(m(), A, ([0], [0]), none),
        "contract_all": lambda: dot(m(), A, ([0, 1], [0, 1]), none),
        "contract_none": lambda: dot(m(), V, none, none),
        "dense_kept": lambda: dot(made("d"), A, ([0], [0]), none),
        "dense_contracted": lambda: dot(made("d"), A, ([1], [1]), none),
        "sparse_batch": lambda: dot(m(), A, ([1], [1]), ([0], [0])),
        "batch": lambda: dot(made("b"), S, ([2], [2]), ([0], [0])),
        "batch_contracted": lambda: dot(made("b"), S, ([0], [0]), none),
        "batch_and_sparse_contracted": lambda: dot(made("b"), S, ([0, 1], [0, 1]), none),
        "batch_free": lambda: dot(made("b"), A, ([2], [1]), none),
        "dense_first": lambda: dot(S, made("b"), ([2], [2]), ([0], [0])),
        "two_dense": lambda: dot(A, A, ([1], [1]), none),
        "preferred": lambda: dot(
            m().astype("int8"), A.astype("int8"), ([1], [1]), none, preferred_element_type="int32"
        ),
        "jit": lambda: jax.jit(lambda m, v: m @ v)(m(), V),
        "vmap": lambda: jax.vmap(lambda m, v: m @ v)(made("b"), S[:, 0]),
        "vmap_right": lambda: jax.vmap(lambda v: m() @ v, in_axes=1, out_axes=1)(B),
        "vmap_left": lambda: jax.vmap(lambda m: m @ B)(made("b")),
    }.items():
        add(f"product_{name}", call)
    b, v = lambda: made("b"), lambda: made("v")
    for name, call in {
        "matrix": lambda: m() @ m().T,
        "vector": lambda: m() @ v(),
        "vectors": lambda: v() @ v(),
        "left": lambda: dot(v(), m(), ([0], [1]), none),
        "all": lambda: dot(m(), m(), ([0, 1], [0, 1]), none),
        "none": lambda: dot(m(), v(), none, none),
        "repeated": lambda: made("dup") @ m().T,
        "batch": lambda: dot(b(), b(), ([2], [2]), ([0], [0])),
        "batch_left": lambda: dot(b(), m(), ([2], [1]), none),
        "batch_right": lambda: dot(v(), b(), ([0], [2]), none),
        "both_free": lambda: dot(b(), b(), ([2], [2]), none),
        "batch_contracted": lambda: dot(b(), b(), ([0], [0]), none),
        "sparse_batch": lambda: dot(m(), m(), ([1], [1]), ([0], [0])),
        "dense": lambda: dot(made("d"), m(), ([0], [0]), none),
        "matmul_batch": lambda: b() @ b().transpose((0, 2, 1)),
        "vmap": lambda: jax.vmap(lambda m: m @ m.T)(b()),
    }.items():
        add(f"sparse_product_{name}", call)
    at = lambda *rows: np.array(rows, np.int32)
    sampled = lambda x, y, i, *numbers: sparse.bcoo_dot_general_sampled(
        x, y, i, dimension_numbers=numbers
    )
    add("sampled", lambda: sampled(A, A.T, at([0, 0], [2, 2], [3, 3], [1, 1]), ([1], [0]), none))
    add("sampled_rows", lambda: sampled(A, A.T, at([0], [2]), ([1], [0]), none))
    T = S.transpose(0, 2, 1)
    batched = np.stack([at([0, 0], [2, 2]), at([1, 2], [0, 1])])
    add("sampled_batch", lambda: sampled(S, T, batched, ([2], [1]), ([0], [0])))
    add("sampled_sparse", lambda: sampled(S, T, at([0, 0, 0], [1, 2, 2]), ([2], [1]), ([0], [0])))
    add("multiply_dense", lambda: sparse.bcoo_multiply_dense(m(), A))
    add("multiply_dense_row", lambda: sparse.bcoo_multiply_dense(made("b"), A[0]))
    add("multiply_dense_wrong", lambda: sparse.bcoo_multiply_dense(m(), A.T))
    add("multiply_sparse_ranks", lambda: sparse.bcoo_multiply_sparse(m(), b()))
    add("multiply_sparse_roles", lambda: sparse.bcoo_multiply_sparse(m(), made("d")))
    add("multiply_sparse_shapes", lambda: sparse.bcoo_multiply_sparse(m(), m().T))
    add("multiply_sparse_dense", lambda: sparse.bcoo_multiply_sparse(made("d"), made("d")), dense)
    row = lambda: sparse.BCOO.fromdense(A[2][None, None])
    kernel = lambda: sparse.BCOO.fromdense(np.array([[[1.0, 0, 2]]], np.float32))
    conv = lambda x, y, **k: sparse.bcoo_conv_general_dilated(x, y, window_strides=(1,), **k)
    add("convolution_valid", lambda: conv(row(), kernel(), padding="VALID"), dense)
    add("convolution_same", lambda: conv(row(), kernel(), padding="SAME"), dense)
    add("convolution_padded", lambda: conv(row(), kernel(), padding=[(2, 1)]), dense)
    add(
        "convolution_of_dense",
        lambda: conv(row(), jnp.array([[[1.0, 0, 2]]]), padding="SAME"),
        dense,
    )


def shapes(add, sparse, jnp, lax, made):
    m, b, d = lambda: made("m"), lambda: made("b"), lambda: made("d")
    sl = lambda x, start, limit, strides=None: sparse.bcoo_slice(
        x, start_indices=start, limit_indices=limit, strides=strides
    )
    dynamic = sparse.bcoo_dynamic_slice
    cat = lambda *xs, axis=0: sparse.bcoo_concatenate(xs, dimension=axis)
    wide = lambda x, shape, axes: sparse.bcoo_broadcast_in_dim(
        x, shape=shape, broadcast_dimensions=axes
    )
    shaped = lambda x, *shape, order=None: sparse.bcoo_reshape(x, new_sizes=shape, dimensions=order)
    numbers = lambda *n: lax.GatherDimensionNumbers(*n)
    for name, call in {
        "slice": lambda: sl(m(), (0, 1), (2, 4)),
        "slice_steps": lambda: sl(m(), (0, 0), (3, 4), (2, 2)),
        "slice_batch": lambda: sl(b(), (1, 0, 0), (2, 2, 2)),
        "slice_one_batch": lambda: sl(made("one"), (1, 0, 0), (2, 2, 2)),
        "slice_dense": lambda: sl(d(), (0, 1), (2, 3)),
        "slice_nothing": lambda: sl(m(), (1, 1), (1, 1)),
        "slice_length": lambda: sl(m(), (0,), (2,)),
        "slice_order": lambda: sl(m(), (0, 3), (2, 1)),
        "slice_negative": lambda: sl(m(), (-1, 0), (2, 2)),
        "slice_zero_step": lambda: sl(m(), (0, 0), (3, 4), (0, 1)),
        "slice_of_dense": lambda: sl(A, (0, 0), (3, 4)),
        "dynamic_slice": lambda: dynamic(m(), (1, 2), (2, 2)),
        "dynamic_slice_clamped": lambda: dynamic(m(), (2, 2), (2, 3)),
        "dynamic_slice_negative": lambda: dynamic(m(), (-1, 0), (1, 2)),
        "dynamic_slice_batch": lambda: dynamic(b(), (1, 0, 0), (1, 2, 2)),
        "dynamic_slice_dense": lambda: dynamic(d(), (1, 1), (2, 2)),
        "dynamic_slice_length": lambda: dynamic(m(), (0,), (1, 1)),
        "dynamic_slice_large": lambda: dynamic(m(), (0, 0), (5, 1)),
        "dynamic_slice_float": lambda: dynamic(m(), (0.0, 0.0), (1, 1)),
        "concatenate": lambda: cat(m(), m()),
        "concatenate_columns": lambda: cat(m(), made("u"), axis=1),
        "concatenate_batch": lambda: cat(b(), b()),
        "concatenate_in_batch": lambda: cat(b(), b(), axis=1),
        "concatenate_dense": lambda: cat(d(), d(), axis=1),
        "concatenate_roles": lambda: cat(b(), b().update_layout(n_batch=0)),
        "concatenate_shapes": lambda: cat(m(), m().T),
        "concatenate_nothing": lambda: cat(),
        "concatenate_dtypes": lambda: cat(m(), m().astype(int)),
        "concatenate_negative": lambda: cat(m(), m(), axis=-1),
        "reverse": lambda: sparse.bcoo_rev(m(), (0,)),
        "reverse_batch": lambda: sparse.bcoo_rev(b(), (0, 2)),
        "reverse_dense": lambda: sparse.bcoo_rev(d(), (1,)),
        "reverse_twice": lambda: sparse.bcoo_rev(m(), (0, 0)),
        "reverse_beyond": lambda: sparse.bcoo_rev(m(), (2,)),
        "squeeze": lambda: sparse.bcoo_squeeze(sparse.BCOO.fromdense(A[None]), dimensions=(0,)),
        "squeeze_large": lambda: sparse.bcoo_squeeze(m(), dimensions=(0,)),
        "squeeze_beyond": lambda: sparse.bcoo_squeeze(m(), dimensions=(5,)),
        "broadcast": lambda: wide(m(), (2, 3, 4), (1, 2)),
        "broadcast_batch": lambda: wide(b(), (2, 2, 3, 4), (1, 2, 3)),
        "broadcast_in_batch": lambda: wide(b(), (2, 5, 3, 4), (0, 2, 3)),
        "broadcast_sparse": lambda: wide(m(), (3, 1, 4), (0, 2)),
        "broadcast_dense": lambda: wide(d(), (3, 4, 2), (0, 1)),
        "broadcast_before_dense": lambda: wide(d(), (2, 3, 4), (1, 2)),
        "broadcast_large": lambda: wide(m(), (3, 4, 2), (0, 1)),
        "broadcast_length": lambda: wide(m(), (3, 4), (0,)),
        "reduce": lambda: sparse.bcoo_reduce_sum(m(), axes=(0,)),
        "reduce_all": lambda: dense(sparse.bcoo_reduce_sum(m(), axes=(0, 1))),
        "reduce_batch": lambda: sparse.bcoo_reduce_sum(b(), axes=(0,)),
        "reduce_in_batch": lambda: sparse.bcoo_reduce_sum(b(), axes=(1,)),
        "reduce_nothing": lambda: sparse.bcoo_reduce_sum(m(), axes=()),
        "reduce_beyond": lambda: sparse.bcoo_reduce_sum(m(), axes=(3,)),
        "reshape_sparse": lambda: shaped(m(), 3, 2, 2),
        "reshape_ones": lambda: shaped(m(), 1, 12),
        "reshape_one_after": lambda: shaped(m(), 12, 1),
        "reshape_batch": lambda: shaped(b(), 2, 12),
        "reshape_batch_ones": lambda: shaped(b(), 1, 2, 12),
        "reshape_dense": lambda: shaped(d(), 3, 2, 2),
        "reshape_order": lambda: shaped(m(), 2, 6, order=(1, 0)),
        "reshape_batch_mixed": lambda: shaped(b(), 24),
        "reshape_dense_mixed": lambda: shaped(d(), 12),
        "reshape_sizes": lambda: shaped(m(), 5, 2),
        "gather": lambda: sparse.bcoo_gather(
            m(), np.array([[0], [2]]), numbers((1,), (0,), (0,)), (1, 4)
        ),
        "gather_elements": lambda: sparse.bcoo_gather(
            m(), np.array([[0, 1], [1, 0]]), numbers((), (0, 1), (0, 1)), (1, 1)
        ),
        "gather_fill": lambda: sparse.bcoo_gather(
            m(), np.array([[0], [9]]), numbers((1,), (0,), (0,)), (1, 4), mode="fill"
        ),
    }.items():
        add(name, call)


def roles(add, sparse, made):
    m, b, d = lambda: made("m"), lambda: made("b"), lambda: made("d")
    for name, call in {
        "batch": lambda: m().update_layout(n_batch=1, on_inefficient=None),
        "batches": lambda: m().update_layout(n_batch=2, on_inefficient=None),
        "dense": lambda: m().update_layout(n_dense=1, on_inefficient=None),
        "dense_warned": lambda: dense(m().update_layout(n_dense=1, on_inefficient="warn")),
        "batch_to_sparse": lambda: b().update_layout(n_batch=0),
        "dense_to_sparse": lambda: d().update_layout(n_dense=0),
        "both": lambda: b().update_layout(n_batch=0, n_dense=1, on_inefficient=None),
        "inefficient": lambda: m().update_layout(n_batch=1),
        "inefficient_dense": lambda: m().update_layout(n_dense=1),
        "size_1": lambda: m()[:1].update_layout(n_batch=1),
        "too_many": lambda: m().update_layout(n_batch=3),
        "too_many_together": lambda: m().update_layout(n_batch=2, n_dense=1),
        "negative": lambda: m().update_layout(n_batch=-1),
        "unknown": lambda: m().update_layout(n_batch=1, on_inefficient="x"),
    }.items():
        add(f"layout_{name}", call)


def derivatives(add, sparse, jax, jnp, made):
    m, b = lambda: made("m"), lambda: made("b")
    with_data = lambda x, data: sparse.BCOO((data, x.indices), shape=x.shape)
    square = lambda x: (dense(x) ** 2).sum()
    for name, make in {
        "todense": lambda x: x,
        "sort": lambda x: x.sort_indices(),
        "transpose": lambda x: x.T,
        "sum_duplicates": lambda x: sparse.bcoo_sum_duplicates(x, nse=4),
        "product": lambda x: x @ V,
        "product_matrix": lambda x: x @ B,
        "slice": lambda x: x[1:],
        "scaled": lambda x: x * A,
        "sum": lambda x: x.sum(0),
    }.items():
        for label in ("m", "dup"):
            add(
                f"grad_{name}_{label}",
                lambda f=make, n=label: jax.grad(lambda x: square(f(with_data(made(n), x))))(
                    made(n).data
                ),
            )
            add(
                f"jvp_{name}_{label}",
                lambda f=make, n=label: jax.jvp(
                    lambda x: dense(f(with_data(made(n), x))), (made(n).data,), (made(n).data,)
                ),
            )
    dot = sparse.bcoo_dot_general
    for name, x, y, numbers in (
        ("batch", "b", S, (([2], [2]), ([0], [0]))),
        ("batch_free", "b", A, (([2], [1]), ([], []))),
        ("batch_contracted", "b", S, (([0], [0]), ([], []))),
        ("all", "m", A, (([1, 0], [1, 0]), ([], []))),
        ("dense", "d", A, (([0], [0]), ([], []))),
    ):

        def product(data, y, x=x, numbers=numbers):
            return (dot(with_data(made(x), data), y, dimension_numbers=numbers) ** 2).sum()

        add(
            f"grad_product_{name}",
            lambda f=product, x=x, y=y: jax.grad(f, (0, 1))(made(x).data, y),
        )
    add(
        "grad_sampled",
        lambda: jax.grad(
            lambda x, y: (
                sparse.bcoo_dot_general_sampled(
                    x, y, m().indices, dimension_numbers=(([1], [0]), ([], []))
                )
                ** 2
            ).sum(),
            (0, 1),
        )(A[:, :3], A[:3] + 1),
    )
    add(
        "grad_fromdense",
        lambda: jax.grad(lambda x: (sparse.BCOO.fromdense(x, nse=5).data ** 3).sum())(A),
    )
    add(
        "grad_extract",
        lambda: jax.grad(lambda x: (sparse.bcoo_extract(m(), x).data ** 2).sum())(A),
    )
    add("grad_of_indices", lambda: jax.grad(lambda m: (m @ V).sum())(m()))
    add("sparse_grad", lambda: sparse.grad(lambda m, v: ((m @ v) ** 2).sum(), (0, 1))(m(), V))
    add("sparse_value_and_grad", lambda: sparse.value_and_grad(lambda m: (m @ V).sum())(m()))
    add("sparse_grad_aux", lambda: sparse.grad(lambda m: ((m @ V).sum(), 3), has_aux=True)(m()))
    add("sparse_grad_of_dense", lambda: sparse.grad(lambda v: (m() @ v).sum())(V))
    add("sparse_jacrev", lambda: sparse.jacrev(lambda m: m @ V)(m()))
    add("sparse_jacfwd", lambda: sparse.jacfwd(lambda m: m @ V)(m()))
    add("sparse_jacobian_aux", lambda: sparse.jacfwd(lambda m: (m @ V, 1), has_aux=True)(m()))
    add("sparse_jacobian_both", lambda: sparse.jacrev(lambda m, v: m @ v, (0, 1))(m(), V))
    add(
        "hessian",
        lambda: jax.hessian(lambda v: ((m() @ v) ** 3).sum())(V),
    )
    add(
        "grad_of_vmap",
        lambda: jax.grad(lambda data: (jax.vmap(lambda x: x @ V)(with_data(b(), data)) ** 2).sum())(
            b().data
        ),
    )
    add(
        "jvp_sparse_product",
        lambda: jax.jvp(lambda x: dense(with_data(m(), x) @ m().T), (m().data,), (m().data,)),
    )
    add(
        "grad_sparse_product",
        lambda: jax.grad(lambda x: square(with_data(m(), x) @ m().T))(m().data),
    )
