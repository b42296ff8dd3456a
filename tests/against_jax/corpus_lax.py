"""Programs of one lax operation, or one form of it: the jaxpr's text, and the results."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, f8_e4m3, f8_e5m2, floats, ints, unit

FLOAT_UNARY = """acos asin asinh atan cbrt ceil cos cosh digamma erf erf_inv erfc exp exp2 expm1
    floor is_finite lgamma log log1p logistic reciprocal rsqrt sin sinh sqrt tan tanh
    bessel_i0e bessel_i1e""".split()
ANY_UNARY = "abs neg sign square".split()
INT_UNARY = "bitwise_not clz population_count abs sign neg".split()
COMPLEX_UNARY = "real imag conj abs exp log sin cos tanh sqrt sign rsqrt neg".split()
BINARY = "add sub mul div rem max min pow atan2 nextafter eq ne lt le gt ge".split()
INT_BINARY = """add sub mul div rem max min bitwise_and bitwise_or bitwise_xor shift_left
    shift_right_arithmetic shift_right_logical eq lt""".split()


def programs(jax, jnp, lax):
    corpus = Corpus(("jaxpr", "jit"))
    elementwise(corpus, lax)
    making_and_converting(corpus, jnp, lax)
    shaping(corpus, lax)
    slicing(corpus, lax)
    gathering(corpus, lax)
    reducing(corpus, lax)
    contracting(corpus, jnp, lax)
    windows(corpus, lax)
    sorting_and_bits(corpus, lax)
    return corpus


def elementwise(corpus, lax):
    def unary(name):
        return lambda x: getattr(lax, name)(x)

    def binary(name):
        return lambda x, y: getattr(lax, name)(x, y)

    for name in FLOAT_UNARY + ANY_UNARY:
        # Polynomial approximations differ between the last bits of one build and another.
        corpus.add(f"{name}_f32", unary(name), unit(3), tolerance=1e-5)
    for name in INT_UNARY:
        corpus.add(f"{name}_i32", unary(name), ints(4))
    for name in COMPLEX_UNARY:
        corpus.add(f"{name}_c64", unary(name), complexes(2, 2), tolerance=1e-5)
    for name in BINARY:
        corpus.add(f"{name}_f32", binary(name), unit(2, 3), floats(2, 3), tolerance=1e-5)
    for name in INT_BINARY:
        corpus.add(f"{name}_i32", binary(name), ints(5), np.abs(ints(5)[::-1]) + 1)

    @corpus.program(bools(3), ints(3) > 0)
    def logic_of_bools(p, q):
        return lax.bitwise_and(p, q), lax.bitwise_xor(p, lax.bitwise_not(q)), lax.bitwise_or(p, q)

    @corpus.program(ints(4, dtype=np.uint8), ints(4, dtype=np.uint8))
    def unsigned_shifts(x, y):
        return lax.shift_right_logical(x, y), lax.sub(x, y)

    @corpus.program(floats(3))
    def integer_pow(x):
        return lax.integer_pow(x, 3), lax.integer_pow(x, -2), lax.integer_pow(x, 0)

    @corpus.program(unit(3), ints(3))
    def pow_of_float_by_int(x, n):
        return lax.pow(x, n)

    @corpus.program(floats(6))
    def round_both_ways(x):
        return (
            lax.round(x),
            lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        )

    @corpus.program(floats(2, 2))
    def clamp_by_scalars(x):
        return lax.clamp(-1.0, x, 1.0)

    @corpus.program(floats(3), floats(3), floats(3))
    def clamp_by_arrays(low, x, high):
        return lax.clamp(low, x, high)

    @corpus.program(bools(3), floats(3), unit(3))
    def select(p, x, y):
        return lax.select(p, x, y)

    @corpus.program(np.array([0, 2, 1], np.int32), floats(3), unit(3), floats(3))
    def select_n_of_three(which, x, y, z):
        return lax.select_n(which, x, y, z)

    @corpus.program(np.bool_(True), floats(3), unit(3))
    def select_by_scalar(p, x, y):
        return lax.select(p, x, y)

    @corpus.program(floats(3))
    def select_with_literals(x):
        return lax.select(lax.gt(x, 0.0), x, lax.full_like(x, 0))

    @corpus.program(floats(3), unit(3))
    def complex_from_parts(x, y):
        return lax.complex(x, y)

    @corpus.program(unit(3), unit(3), unit(3), tolerance=1e-4)
    def special_functions(a, b, x):
        return (
            lax.betainc(a, b, x),
            lax.igamma(a, x),
            lax.igammac(a, x),
            lax.polygamma(lax.full_like(x, 1), x),
            lax.zeta(lax.add(x, 1.5), x),
        )

    @corpus.program(floats(3))
    def with_accuracy(x):
        return lax.exp(x, accuracy=lax.AccuracyMode.DEFAULT), lax.tanh(x)

    @corpus.program(floats(3))
    def reduce_precision(x):
        return lax.reduce_precision(x, exponent_bits=5, mantissa_bits=10)

    @corpus.program(ints(3), ints(3))
    def high_half_of_a_product(x, y):
        return lax.mulhi(x, y)

    @corpus.program(floats(3))
    def stop_gradient(x):
        return lax.stop_gradient(x), lax.stop_gradient({"a": x, "n": 3})

    @corpus.program(floats(2), ints(2))
    def barrier(x, n):
        return lax.optimization_barrier((x, n))


def making_and_converting(corpus, jnp, lax):
    for dtype in (np.int8, np.uint16, np.float16, bf16, np.bool_, np.complex64):
        name = np.dtype(dtype).name
        corpus.add(
            f"convert_to_{name}", lambda x, t=dtype: lax.convert_element_type(x, t), floats(3)
        )

    @corpus.program(floats(3))
    def convert_to_float8(x):
        return lax.convert_element_type(x, f8_e4m3), lax.convert_element_type(x, f8_e5m2)

    @corpus.program(floats(3, dtype=bf16))
    def bf16_arithmetic(x):
        return lax.add(lax.mul(x, x), x)

    @corpus.program(floats(3, dtype=f8_e4m3))
    def float8_and_back(x):
        return lax.convert_element_type(lax.convert_element_type(x, np.float32), f8_e4m3)

    @corpus.program(3)
    def convert_a_weak_scalar(x):
        return lax.convert_element_type(x, np.int32), lax.convert_element_type(x, np.float32)

    @corpus.program(2.5)
    def convert_to_python_types(x):
        return lax.convert_element_type(x, int), lax.convert_element_type(x, complex)

    @corpus.program(floats(3))
    def convert_to_the_same(x):
        return lax.convert_element_type(x, np.float32)

    @corpus.program(floats(3))
    def bitcast(x):
        return lax.bitcast_convert_type(x, np.int32)

    @corpus.program(floats(3))
    def bitcast_to_narrower(x):
        return lax.bitcast_convert_type(x, np.uint8)

    @corpus.program()
    def iota():
        return lax.iota(np.int32, 5), lax.iota(np.float32, 3)

    @corpus.program()
    def broadcasted_iota():
        return lax.broadcasted_iota(np.int8, (2, 3), 1)

    @corpus.program()
    def full():
        return lax.full((2, 3), 7.0), lax.full((2,), 1, np.uint8), lax.full((1,), True)

    # The reference writes a scalar down as a literal, ours as a broadcast of one.
    @corpus.program(modes=("jit",))
    def full_of_no_axes():
        return lax.full((), True), lax.full((), 1.5), lax.full((), 1, np.uint8)

    @corpus.program(floats(2, 2))
    def full_like(x):
        return lax.full_like(x, 1), lax.full_like(x, 2, dtype=np.int32, shape=(3,))

    @corpus.program(np.float32(2.0))
    def full_with_a_traced_value(x):
        return lax.full((2, 2), x)


def shaping(corpus, lax):
    @corpus.program(floats(3))
    def broadcast(x):
        return lax.broadcast(x, (2, 1))

    @corpus.program(floats(3))
    def broadcast_in_dim(x):
        return lax.broadcast_in_dim(x, (2, 3, 4), (1,))

    @corpus.program(np.float32(1.5))
    def broadcast_a_scalar(x):
        return lax.broadcast_in_dim(x, (2, 3), ())

    @corpus.program(floats(2, 6))
    def reshape(x):
        return lax.reshape(x, (3, 4)), lax.reshape(x, (12,)), lax.reshape(x, (2, 1, 6))

    @corpus.program(floats(2, 3))
    def reshape_in_another_order(x):
        return lax.reshape(x, (6,), dimensions=(1, 0))

    @corpus.program(floats(2, 3, 4))
    def transpose(x):
        return lax.transpose(x, (2, 0, 1)), lax.transpose(x, (0, 1, 2))

    @corpus.program(floats(1, 3, 1))
    def squeeze(x):
        return lax.squeeze(x, (0, 2)), lax.squeeze(x, (-1,))

    @corpus.program(floats(3))
    def expand_dims(x):
        return lax.expand_dims(x, (0,)), lax.expand_dims(x, (0, 2, -1))

    @corpus.program(floats(2, 3, 4))
    def collapse(x):
        return lax.collapse(x, 1), lax.collapse(x, 0, 2)

    @corpus.program(floats(2, 3))
    def rev(x):
        return lax.rev(x, (0, 1)), lax.rev(x, (1,))

    @corpus.program(floats(2, 3), unit(1, 3))
    def concatenate(x, y):
        return lax.concatenate([x, y, x], 0)

    @corpus.program(floats(3))
    def concatenate_one(x):
        return lax.concatenate([x], 0)

    @corpus.program(floats(2, 3))
    def pad(x):
        return lax.pad(x, 0.0, [(1, 2, 0), (0, -1, 1)])

    @corpus.program(ints(3), np.int32(-1))
    def pad_with_an_operand(x, value):
        return lax.pad(x, value, [(-1, 3, 2)])

    @corpus.program(floats(2, 2))
    def tile(x):
        return lax.tile(x, (1, 3))

    @corpus.program(floats(6, 2))
    def split(x):
        return lax.split(x, [1, 2, 3], axis=0)

    @corpus.program(floats(0, 3))
    def nothing(x):
        return lax.reshape(x, (3, 0)), lax.add(x, 1.0), lax.reduce_sum(x, (0,))

    @corpus.program(floats(1, 3), floats(2, 1))
    def ranks_meet(x, y):
        return lax.broadcast_in_dim(x, (2, 3), (0, 1)), lax.broadcast_to_rank(y, 4)


def slicing(corpus, lax):
    @corpus.program(floats(4, 5))
    def slice_plain_and_strided(x):
        return lax.slice(x, (1, 0), (3, 5)), lax.slice(x, (0, 1), (4, 5), (2, 3))

    @corpus.program(floats(6, 2))
    def slice_in_dim(x):
        return lax.slice_in_dim(x, 1, -1, stride=2), lax.slice_in_dim(x, None, 1, axis=1)

    @corpus.program(floats(4, 2))
    def index_in_dim(x):
        return lax.index_in_dim(x, 2), lax.index_in_dim(x, -1, axis=1, keepdims=False)

    @corpus.program(floats(5, 4), np.int32(1), np.int32(2))
    def dynamic_slice(x, i, j):
        return lax.dynamic_slice(x, (i, j), (2, 2))

    @corpus.program(floats(5, 4), np.uint8(1))
    def dynamic_slice_by_unsigned(x, i):
        return lax.dynamic_slice(x, (i, i), (2, 2))

    @corpus.program(floats(5, 4), np.int32(1))
    def dynamic_slice_with_a_constant_start(x, i):
        return lax.dynamic_slice(x, (i, 0), (2, 4)), lax.dynamic_slice(x, (2, -1), (1, 1))

    @corpus.program(floats(5), np.int32(-2))
    def dynamic_slice_in_dim(x, i):
        return lax.dynamic_slice_in_dim(x, i, 2)

    # The reference nests programs of its own inside these two: the texts are not compared.
    @corpus.program(floats(5), np.int32(-2), modes=("jit",))
    def dynamic_index_in_dim(x, i):
        return lax.dynamic_index_in_dim(x, i), lax.dynamic_index_in_dim(x, i, keepdims=False)

    @corpus.program(floats(5, 2), unit(2), np.int32(1), modes=("jit",))
    def dynamic_update_index_in_dim(x, y, i):
        return lax.dynamic_update_index_in_dim(x, y, i, 0)

    @corpus.program(floats(5), np.int32(2))
    def dynamic_slice_without_negatives(x, i):
        return lax.dynamic_slice(x, (i,), (2,), allow_negative_indices=False)

    @corpus.program(floats(5, 4), unit(2, 2), np.int32(1))
    def dynamic_update_slice(x, y, i):
        return lax.dynamic_update_slice(x, y, (i, i))

    @corpus.program(floats(5, 2), unit(2, 2), np.int32(1))
    def dynamic_update_slice_in_dim(x, y, i):
        return lax.dynamic_update_slice_in_dim(x, y, i, axis=0)


def gathering(corpus, lax):
    rows = np.array([[0], [2], [9]], np.int32)

    def dimensions():
        return lax.GatherDimensionNumbers(
            offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
        )

    for mode in ("clip", "fill", "promise_in_bounds", None):
        corpus.add(
            f"gather_{mode}",
            lambda x, i, mode=mode: lax.gather(x, i, dimensions(), (1, 3), mode=mode),
            floats(4, 3),
            rows if mode != "promise_in_bounds" else rows % 4,
        )

    @corpus.program(floats(4, 3), rows)
    def gather_with_a_fill_value(x, i):
        return lax.gather(
            x,
            i,
            dimensions(),
            (1, 3),
            mode=lax.GatherScatterMode.FILL_OR_DROP,
            fill_value=-1.0,
            indices_are_sorted=True,
            unique_indices=True,
        )

    @corpus.program(floats(2, 4), np.array([[[0]], [[3]]], np.int32))
    def gather_in_batches(x, i):
        numbers = lax.GatherDimensionNumbers(
            offset_dims=(),
            collapsed_slice_dims=(1,),
            start_index_map=(1,),
            operand_batching_dims=(0,),
            start_indices_batching_dims=(0,),
        )
        return lax.gather(x, i, numbers, (1, 1))

    def into_rows():
        return lax.ScatterDimensionNumbers(
            update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
        )

    for name in (
        "scatter",
        "scatter_add",
        "scatter_mul",
        "scatter_min",
        "scatter_max",
        "scatter_sub",
    ):
        corpus.add(
            name,
            lambda x, i, y, name=name: getattr(lax, name)(x, i, y, into_rows()),
            floats(4, 3),
            rows,
            unit(3, 3),
        )
    for mode in ("clip", "fill", "promise_in_bounds"):
        corpus.add(
            f"scatter_add_{mode}",
            lambda x, i, y, mode=mode: lax.scatter_add(
                x, i, y, into_rows(), mode=mode, unique_indices=mode == "promise_in_bounds"
            ),
            floats(4, 3),
            rows % 4 if mode == "promise_in_bounds" else rows,
            unit(3, 3),
        )


def reducing(corpus, lax):
    for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min"):
        corpus.add(
            f"{name}_f32",
            lambda x, name=name: (getattr(lax, name)(x, (0, 1)), getattr(lax, name)(x, (1,))),
            floats(3, 4),
        )
    for name in ("reduce_and", "reduce_or", "reduce_xor"):
        corpus.add(f"{name}_bool", lambda x, name=name: getattr(lax, name)(x, (0,)), bools(3, 4))
        corpus.add(f"{name}_i32", lambda x, name=name: getattr(lax, name)(x, (0,)), ints(3, 4))
    for name in ("argmax", "argmin"):
        corpus.add(
            name,
            lambda x, name=name: (
                getattr(lax, name)(x, 1, np.int32),
                getattr(lax, name)(x, 0, np.uint8),
            ),
            floats(3, 4),
        )
    for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"):
        corpus.add(
            name,
            lambda x, name=name: (
                getattr(lax, name)(x),
                getattr(lax, name)(x, axis=1, reverse=True),
            ),
            floats(3, 4),
            tolerance=1e-5,
        )

    @corpus.program(floats(3, 4))
    def reduce_by_a_known_function(x):
        return lax.reduce(x, 0.0, lax.add, (0,)), lax.reduce(x, -np.inf, lax.max, (0, 1))

    @corpus.program(floats(3, 4), np.float32(1))
    def reduce_by_a_user_function(x, init):
        return lax.reduce(x, init, lambda a, b: lax.mul(a, lax.sin(b)), (1,))

    @corpus.program(floats(3, 4), ints(3, 4))
    def reduce_two_at_once(x, n):
        def larger(a, b):
            keep = lax.ge(a[0], b[0])
            return lax.select(keep, a[0], b[0]), lax.select(keep, a[1], b[1])

        return lax.reduce((x, n), (np.float32(-np.inf), np.int32(0)), larger, (0,))

    @corpus.program(floats(2, 2, dtype=bf16))
    def reduce_sum_bf16(x):
        return lax.reduce_sum(x, (0, 1))


def contracting(corpus, jnp, lax):
    @corpus.program(floats(2, 3), unit(3, 4))
    def dot_of_matrices(x, y):
        return lax.dot(x, y)

    @corpus.program(floats(3), unit(3))
    def dot_of_vectors(x, y):
        return lax.dot(x, y)

    @corpus.program(floats(2, 3), unit(2, 3, 4))
    def dot_general_in_batches(x, y):
        return lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,))))

    @corpus.program(floats(2, 3), unit(3, 4))
    def dot_with_precision(x, y):
        return (
            lax.dot(x, y, precision=lax.Precision.HIGHEST),
            lax.dot(x, y, precision="high"),
            lax.dot(x, y, precision=("default", "highest")),
        )

    @corpus.program(floats(2, 3, dtype=bf16), unit(3, 4, dtype=bf16))
    def dot_accumulated_wider(x, y):
        return lax.dot(x, y, preferred_element_type=np.float32)

    @corpus.program(ints(2, 3, dtype=np.int8), ints(3, 4, dtype=np.int8))
    def dot_of_small_ints(x, y):
        return lax.dot(x, y, preferred_element_type=np.int32)

    @corpus.program(floats(2, 2, 3), unit(2, 3, 2))
    def batch_matmul(x, y):
        return lax.batch_matmul(x, y)

    @corpus.program(floats(1, 2, 6), unit(3, 2, 3))
    def conv_one_dimension(x, k):
        return lax.conv(x, k, (1,), "SAME"), lax.conv(x, k, (2,), "VALID")

    @corpus.program(floats(1, 5, 5, 2), unit(3, 3, 2, 4), tolerance=1e-5)
    def conv_two_dimensions(x, k):
        return lax.conv_general_dilated(
            x, k, (1, 2), [(1, 1), (0, 2)], dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    @corpus.program(floats(1, 4, 7), unit(4, 2, 3), tolerance=1e-5)
    def conv_dilated_in_groups(x, k):
        return lax.conv_general_dilated(
            x,
            k,
            (1,),
            [(2, 1)],
            lhs_dilation=(2,),
            rhs_dilation=(2,),
            feature_group_count=2,
            precision=lax.Precision.HIGHEST,
            preferred_element_type=np.float32,
        )

    @corpus.program(floats(1, 4, 4, 2), unit(3, 3, 2, 3), tolerance=1e-5)
    def conv_transpose(x, k):
        return lax.conv_transpose(x, k, (2, 2), "SAME")


def windows(corpus, lax):
    @corpus.program(floats(4, 6))
    def reduce_window_known(x):
        return (
            lax.reduce_window(x, 0.0, lax.add, (2, 2), (2, 2), "VALID"),
            lax.reduce_window(x, -np.inf, lax.max, (3, 3), (1, 1), "SAME"),
            lax.reduce_window(x, np.inf, lax.min, (1, 2), (1, 1), [(0, 0), (1, 0)]),
        )

    @corpus.program(floats(6))
    def reduce_window_of_a_user_function(x):
        return lax.reduce_window(x, 1.0, lax.mul, (3,), (1,), "VALID", window_dilation=(2,))


def sorting_and_bits(corpus, lax):
    @corpus.program(floats(3, 4))
    def sort(x):
        return lax.sort(x), lax.sort(x, dimension=0, is_stable=False)

    @corpus.program(ints(6), floats(6))
    def sort_two_keys(n, x):
        return lax.sort((n, x, n), num_keys=2), lax.sort_key_val(n, x)

    @corpus.program(floats(2, 5))
    def top_k(x):
        return lax.top_k(x, 2)

    @corpus.program(ints(6))
    def top_k_of_ints(x):
        return lax.top_k(x, k=3)

    @corpus.program(np.array([1, 2, 3, 4], np.uint32))
    def rng_bits(key):
        return lax.rng_bit_generator(key, (2, 3), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)

    @corpus.program(np.array([1, 2, 3, 4], np.uint32))
    def rng_bits_as_bytes(key):
        return lax.rng_bit_generator(key, (5,), np.uint8)
