"""Bad input: each raises the class that the reference raises, and the process lives on."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats, ints

# Where the reference stumbles instead of refusing, ours may raise this class as well.
INSTEAD = {
    "lax_rng_of_a_wrong_key": "TypeError",
    "lax_slice_with_step_zero": "TypeError",
    "lax_slice_of_another_rank": "TypeError",
    "lax_reshape": "TypeError",
    "lax_conv_of_unknown_padding": "ValueError",
    "swap_an_axis_too_high": "ValueError",
    "array_deletion": "TypeError",
    "sin_of_huge_int_in_a_list": "TypeError",
    # NumPy's class for NumPy's arrays, where its own arrays give the other.
    "reshape_to_another_size": "TypeError",
    "reshape_with_two_unknowns": "TypeError",
    "reshape_unknown_that_does_not_divide": "TypeError",
    "reshape_to_a_negative": "TypeError",
}


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    making_arrays(corpus, jnp)
    shapes_and_axes(corpus, jnp, lax)
    dtypes(corpus, jax, jnp, lax)
    tracers(corpus, jax, jnp, lax)
    calling_jit(corpus, jax, jnp, lax)
    unhashable_functions(corpus, jax, jnp, lax)
    arrays(corpus, jax, jnp)
    trees(corpus, jax)
    odd_but_right(corpus, jax, jnp)
    for name, class_name in INSTEAD.items():
        corpus.programs[name].instead = class_name
    return corpus


def making_arrays(corpus, jnp):
    for name, value in {
        "ragged_list": [[1, 2], [3]],
        "ragged_deeper": [[[1], [2]], [[3], [4, 5]]],
        "list_of_none": [None, 1],
        "none": None,
        "string": "text",
        "list_of_strings": ["a", "b"],
        "object": object(),
        "dictionary": {"a": 1},
        "set": {1, 2},
        "function": len,
        "object_array": np.array([1, None], dtype=object),
        "string_array": np.array(["a", "b"]),
        "datetime_array": np.array(["2020-01-01"], dtype="datetime64[D]"),
        "structured_array": np.zeros(2, dtype=[("a", np.int32)]),
        "huge_int": 2**40,
        "huger_int": 2**100,
        "negative_huge_int": -(2**70),
        "huge_int_in_a_list": [1, 2**80],
    }.items():
        corpus.add(f"array_of_{name}", lambda value=value: jnp.array(value))
        corpus.add(f"asarray_of_{name}", lambda value=value: jnp.asarray(value))
        corpus.add(f"sin_of_{name}", lambda value=value: jnp.sin(value))
        corpus.add(f"add_one_to_{name}", lambda value=value: jnp.add(value, 1))

    for name, make in {
        "zeros_of_a_negative_size": lambda: jnp.zeros(-1),
        "zeros_of_a_float_size": lambda: jnp.zeros(2.5),
        "zeros_of_a_string": lambda: jnp.zeros("3"),
        "zeros_of_none": lambda: jnp.zeros(None),
        "ones_of_nested_sizes": lambda: jnp.ones(((2, 3),)),
        "full_of_a_shape_that_does_not_fit": lambda: jnp.full((2,), jnp.arange(3)),
        "dtype_that_is_unknown": lambda: jnp.zeros(2, dtype="float99"),
        "dtype_object": lambda: jnp.zeros(2, dtype=object),
        "dtype_string": lambda: jnp.array([1], dtype=str),
        "dtype_that_is_no_dtype": lambda: jnp.zeros(2, dtype=3),
        "arange_of_nothing": lambda: jnp.arange(),
        "arange_with_step_zero": lambda: jnp.arange(0, 3, 0),
        "arange_of_a_complex": lambda: jnp.arange(1j),
        "arange_of_a_string": lambda: jnp.arange("a"),
        "linspace_of_a_negative_number": lambda: jnp.linspace(0, 1, -1),
        "eye_of_a_negative": lambda: jnp.eye(-1),
        "eye_of_a_float": lambda: jnp.eye(2.0),
        "int_of_complex": lambda: jnp.array([1j], dtype=int),
        "concatenate_nothing": lambda: jnp.concatenate([]),
        "concatenate_scalars": lambda: jnp.concatenate([1, 2]),
        "concatenate_an_array": lambda: jnp.concatenate(3),
        "stack_nothing": lambda: jnp.stack([]),
        "stack_of_different_shapes": lambda: jnp.stack([jnp.ones(2), jnp.ones(3)]),
        "too_many_values_for_int8": lambda: jnp.int8(300),
        "uint8_of_a_negative": lambda: jnp.uint8(-1),
        "array_int8_of_300": lambda: jnp.array(300, dtype=jnp.int8),
        "array_uint32_of_a_negative": lambda: jnp.array([-1], dtype=jnp.uint32),
    }.items():
        corpus.add(name, make)


def shapes_and_axes(corpus, jnp, lax):
    x = floats(2, 3)
    for name, function in {
        "shapes_that_do_not_broadcast": lambda: jnp.add(x, np.ones(2, np.float32)),
        "operator_of_shapes_that_do_not_broadcast": lambda: jnp.asarray(x) + np.ones(2, np.float32),
        "where_of_shapes_that_do_not_broadcast": lambda: jnp.where(x > 0, x, np.ones(2)),
        "reshape_to_another_size": lambda: jnp.reshape(x, (4, 2)),
        "reshape_with_two_unknowns": lambda: jnp.reshape(x, (-1, -1)),
        "reshape_unknown_that_does_not_divide": lambda: jnp.reshape(x, (4, -1)),
        "reshape_to_a_float": lambda: jnp.reshape(x, 6.0),
        "reshape_to_a_negative": lambda: jnp.reshape(x, (-2, -3)),
        "transpose_of_too_few": lambda: jnp.transpose(x, (0,)),
        "transpose_of_repeated": lambda: jnp.transpose(x, (0, 0)),
        "squeeze_of_a_long_axis": lambda: jnp.squeeze(x, 0),
        "expand_dims_out_of_range": lambda: jnp.expand_dims(x, 5),
        "expand_dims_twice_the_same": lambda: jnp.expand_dims(x, (0, 0)),
        "sum_over_an_axis_too_high": lambda: jnp.sum(x, axis=2),
        "sum_over_an_axis_too_low": lambda: jnp.sum(x, axis=-3),
        "sum_over_an_axis_twice": lambda: jnp.sum(x, axis=(0, 0)),
        "sum_over_a_float_axis": lambda: jnp.sum(x, axis=1.0),
        "argmax_over_two_axes": lambda: jnp.argmax(x, axis=(0, 1)),
        "max_of_nothing": lambda: jnp.max(np.zeros((0,), np.float32)),
        "min_of_nothing_along_an_axis": lambda: jnp.min(np.zeros((2, 0), np.float32), axis=1),
        "argmax_of_nothing": lambda: jnp.argmax(np.zeros((0,), np.float32)),
        "concatenate_of_other_sizes": lambda: jnp.concatenate([x, np.ones((2, 2), np.float32)]),
        "concatenate_of_other_ranks": lambda: jnp.concatenate([x, x[0]]),
        "concatenate_axis_out_of_range": lambda: jnp.concatenate([x, x], axis=2),
        "dot_of_shapes_that_do_not_fit": lambda: jnp.dot(x, x),
        "matmul_of_shapes_that_do_not_fit": lambda: jnp.asarray(x) @ x,
        "matmul_of_a_scalar": lambda: jnp.matmul(x, 2.0),
        "einsum_of_too_few": lambda: jnp.einsum("ij,jk->ik", x),
        "einsum_of_sizes_that_differ": lambda: jnp.einsum("ij,jk->ik", x, x),
        "broadcast_to_smaller": lambda: jnp.broadcast_to(x, (2,)),
        "split_unevenly": lambda: jnp.split(x, 4, axis=1),
        "swap_an_axis_too_high": lambda: jnp.swapaxes(x, 0, 2),
        "flip_an_axis_too_high": lambda: jnp.flip(x, 2),
        "take_along_an_axis_too_high": lambda: jnp.take(x, np.array([0]), axis=3),
        "cumsum_along_an_axis_too_high": lambda: jnp.cumsum(x, axis=2),
        "sort_along_an_axis_too_high": lambda: jnp.sort(x, axis=2),
        "lax_add_of_shapes": lambda: lax.add(x, x[0]),
        "lax_reshape": lambda: lax.reshape(x, (5,)),
        "lax_reshape_unknown": lambda: lax.reshape(x, (-1,)),
        "lax_transpose": lambda: lax.transpose(x, (0, 2)),
        "lax_broadcast_in_dim": lambda: lax.broadcast_in_dim(x, (2, 4), (0, 1)),
        "lax_concatenate": lambda: lax.concatenate([x, x[:1]], 1),
        "lax_concatenate_nothing": lambda: lax.concatenate([], 0),
        "lax_slice_past_the_end": lambda: lax.slice(x, (0, 0), (2, 4)),
        "lax_slice_backwards": lambda: lax.slice(x, (1, 0), (0, 3)),
        "lax_slice_of_another_rank": lambda: lax.slice(x, (0,), (1,)),
        "lax_slice_with_step_zero": lambda: lax.slice(x, (0, 0), (1, 1), (0, 1)),
        "lax_dynamic_slice_too_large": lambda: lax.dynamic_slice(x, (0, 0), (3, 3)),
        "lax_dynamic_slice_of_another_rank": lambda: lax.dynamic_slice(x, (0,), (1, 1)),
        "lax_dynamic_update_slice_too_large": lambda: lax.dynamic_update_slice(
            x, floats(3, 3), (0, 0)
        ),
        "lax_pad_of_another_rank": lambda: lax.pad(x, np.float32(0), [(0, 0, 0)]),
        "lax_pad_below_nothing": lambda: lax.pad(x, np.float32(0), [(-3, 0, 0), (0, 0, 0)]),
        "lax_pad_negative_interior": lambda: lax.pad(x, np.float32(0), [(0, 0, -1), (0, 0, 0)]),
        "lax_squeeze": lambda: lax.squeeze(x, (0,)),
        "lax_expand_dims": lambda: lax.expand_dims(x, (4,)),
        "lax_rev_twice": lambda: lax.rev(x, (0, 0)),
        "lax_rev_out_of_range": lambda: lax.rev(x, (2,)),
        "lax_reduce_out_of_range": lambda: lax.reduce_sum(x, (2,)),
        "lax_reduce_twice": lambda: lax.reduce_max(x, (0, 0)),
        "lax_argmax_out_of_range": lambda: lax.argmax(x, 2, np.int32),
        "lax_cumsum_out_of_range": lambda: lax.cumsum(x, axis=2),
        "lax_dot": lambda: lax.dot(x, x),
        "lax_dot_general_of_other_sizes": lambda: lax.dot_general(x, x, (((1,), (0,)), ((), ()))),
        "lax_dot_general_of_other_lengths": lambda: lax.dot_general(
            x, x, (((0, 1), (0,)), ((), ()))
        ),
        "lax_dot_general_twice": lambda: lax.dot_general(x, x, (((0,), (0,)), ((0,), (0,)))),
        "lax_conv_of_other_features": lambda: lax.conv(
            floats(1, 2, 5), floats(1, 3, 2), (1,), "SAME"
        ),
        "lax_conv_of_another_rank": lambda: lax.conv(
            floats(1, 2, 5), floats(1, 2, 2, 2), (1,), "SAME"
        ),
        "lax_conv_of_unknown_padding": lambda: lax.conv(
            floats(1, 2, 5), floats(1, 2, 2), (1,), "NONE"
        ),
        "lax_select_of_shapes": lambda: lax.select(x > 0, x, x[0]),
        "lax_select_n_of_nothing": lambda: lax.select_n(x > 0),
        "lax_clamp_of_shapes": lambda: lax.clamp(x[0], x, x[0]),
        "lax_iota_of_a_negative": lambda: lax.iota(np.int32, -1),
        "lax_full_of_a_negative": lambda: lax.full((-1,), 0.0),
        "lax_top_k_of_too_many": lambda: lax.top_k(x, 4),
        "lax_top_k_of_a_negative": lambda: lax.top_k(x, -1),
        "lax_top_k_of_a_scalar": lambda: lax.top_k(1.0, 1),
        "lax_sort_of_shapes": lambda: lax.sort((x, x[0])),
        "lax_sort_out_of_range": lambda: lax.sort(x, dimension=2),
        "lax_sort_by_no_keys": lambda: lax.sort((x, x), num_keys=0),
        "lax_reduce_window_of_another_rank": lambda: lax.reduce_window(
            x, np.float32(0), lax.add, (2,), (1,), "VALID"
        ),
        "lax_split_of_another_sum": lambda: lax.split(x, [1, 1], axis=1),
    }.items():
        corpus.add(name, function)


def dtypes(corpus, jax, jnp, lax):
    x, n = floats(3), ints(3)
    for name, function in {
        "lax_add_of_dtypes": lambda: lax.add(x, n),
        "lax_mul_of_int8_and_int32": lambda: lax.mul(n.astype(np.int8), n),
        "lax_add_of_an_int_and_a_float": lambda: lax.add(1, 1.0),
        "lax_add_of_a_string": lambda: lax.add(x, "a"),
        "lax_add_of_none": lambda: lax.add(None, x),
        "lax_add_of_a_list": lambda: lax.add([1.0, 2.0, 3.0], x),
        "lax_sin_of_ints": lambda: lax.sin(n),
        "lax_sin_of_a_list": lambda: lax.sin([1.0]),
        "lax_sin_of_a_python_int": lambda: lax.sin(1),
        "lax_bitwise_and_of_floats": lambda: lax.bitwise_and(x, x),
        "lax_shift_of_floats": lambda: lax.shift_left(x, x),
        "lax_neg_of_bools": lambda: lax.neg(n > 0),
        "lax_add_of_bools": lambda: lax.add(n > 0, n > 0),
        "lax_atan2_of_ints": lambda: lax.atan2(n, n),
        "lax_lt_of_complex": lambda: lax.lt(x + 1j, x + 1j),
        "lax_real_of_a_float": lambda: lax.real(x),
        "lax_complex_of_ints": lambda: lax.complex(n, n),
        "lax_select_by_floats": lambda: lax.select(x, x, x),
        "lax_select_of_dtypes": lambda: lax.select(x > 0, x, n),
        "lax_clamp_of_dtypes": lambda: lax.clamp(0, x, 1.0),
        "lax_concatenate_of_dtypes": lambda: lax.concatenate([x, n], 0),
        "lax_pad_of_dtypes": lambda: lax.pad(x, np.int32(0), [(0, 0, 0)]),
        "lax_dynamic_slice_by_floats": lambda: lax.dynamic_slice(x, (1.0,), (1,)),
        "lax_dynamic_update_of_dtypes": lambda: lax.dynamic_update_slice(x, n, (0,)),
        "lax_dot_of_bools_preferring_floats": lambda: lax.dot(n, n, preferred_element_type=np.int8),
        "lax_integer_pow_by_a_float": lambda: lax.integer_pow(x, 1.5),
        "lax_convert_to_an_unknown": lambda: lax.convert_element_type(x, "what"),
        "lax_bitcast_that_does_not_fit": lambda: lax.bitcast_convert_type(
            n[:1].astype(np.int8), np.int32
        ),
        "lax_reduce_and_of_floats": lambda: lax.reduce_and(x, (0,)),
        "lax_cumsum_of_bools": lambda: lax.cumsum(n > 0),
        "lax_iota_of_bools": lambda: lax.iota(np.bool_, 3),
        "lax_argmax_into_floats": lambda: lax.argmax(x, 0, np.float32),
        "lax_argmax_of_complex": lambda: lax.argmax(x + 1j, 0, np.int32),
        "lax_population_count_of_floats": lambda: lax.population_count(x),
        "lax_rng_of_a_wrong_key": lambda: lax.rng_bit_generator(n, (2,)),
        "lax_dot_precision_unknown": lambda: lax.dot(x, x, precision="best"),
        "bitwise_and_of_floats": lambda: jnp.bitwise_and(x, 1),
        "invert_of_floats": lambda: ~jnp.asarray(x),
        "shift_of_floats": lambda: jnp.asarray(x) << 1,
        "add_of_an_array_and_a_string": lambda: jnp.asarray(x) + "a",
        "add_of_an_array_and_none": lambda: jnp.asarray(x) + None,
        "add_of_an_array_and_a_list": lambda: jnp.asarray(x) + [1.0, 2.0, 3.0],
        "compare_with_a_string": lambda: jnp.asarray(x) < "a",
        "floor_of_complex": lambda: jnp.floor(x + 1j),
        "mod_of_complex": lambda: jnp.asarray(x + 1j) % 2,
        "sum_of_a_list": lambda: jnp.sum([1, 2, 3]),
        "sum_of_a_string": lambda: jnp.sum("abc"),
        "reshape_of_a_list": lambda: jnp.reshape([1, 2], (2, 1)),
        "where_of_a_list": lambda: jnp.where([True, False], 1, 2),
        "power_of_ints_to_a_negative": lambda: jnp.asarray(n) ** -1,
        "float8_and_float32": lambda: jnp.add(jnp.ones(2, jnp.float8_e4m3fn), x[:2]),
        "float8_and_another_float8": lambda: jnp.add(
            jnp.ones(2, jnp.float8_e4m3fn), jnp.ones(2, jnp.float8_e5m2)
        ),
        "uint32_and_int32_strict": lambda: strict(jax, jnp),
        "finfo_of_ints": lambda: jnp.finfo(jnp.int32),
        "iinfo_of_floats": lambda: jnp.iinfo(jnp.float32),
    }.items():
        corpus.add(name, function)


def strict(jax, jnp):
    with jax.numpy_dtype_promotion("strict"):
        return jnp.ones(2, jnp.uint32) + jnp.ones(2, jnp.int32)


def tracers(corpus, jax, jnp, lax):
    x, n = floats(3), ints(3)
    for name, function in {
        "if_of_a_tracer": lambda x: 1 if x[0] > 0 else 2,
        "and_of_tracers": lambda x: x[0] > 0 and x[1] > 0,
        "while_of_a_tracer": lambda x: next(iter(x)) or 3,
        "bool_of_an_array_tracer": lambda x: bool(x),
        "int_of_a_tracer": lambda x: int(x[0]),
        "float_of_a_tracer": lambda x: float(x[0]),
        "complex_of_a_tracer": lambda x: complex(x[0]),
        "range_of_a_tracer": lambda x: list(range(x.sum().astype(int))),
        "index_of_a_list_by_a_tracer": lambda x: [1, 2, 3][x.sum().astype(int)],
        "numpy_of_a_tracer": lambda x: np.sin(x),
        "asarray_of_a_tracer": lambda x: np.asarray(x),
        "numpy_array_plus_tracer_in_numpy": lambda x: np.add(np.ones(3), x),
        "item_of_a_tracer": lambda x: x[0].item(),
        "tolist_of_a_tracer": lambda x: x.tolist(),
        "hash_of_a_tracer": lambda x: {x: 1},
        "format_of_a_tracer": lambda x: f"{x:.2f}",
        "mask_by_a_tracer": lambda x: x[x > 0],
        "set_by_a_slice_of_a_tracer": lambda x: x[: x[0].astype(int)],
        "shape_of_a_tracer": lambda x: jnp.zeros(x[0].astype(int)),
        "reshape_to_a_tracer": lambda x: x.reshape(x[0].astype(int), -1),
        "arange_of_a_tracer": lambda x: jnp.arange(x[0]),
        "axis_that_is_a_tracer": lambda x: jnp.sum(x, axis=x[0].astype(int)),
        "nonzero_of_a_tracer": lambda x: jnp.nonzero(x),
        "unique_of_a_tracer": lambda x: jnp.unique(x),
        "assignment_to_a_tracer": lambda x: x.__setitem__(0, 1.0),
        "length_of_a_scalar_tracer": lambda x: len(x[0]),
        "iteration_over_a_scalar_tracer": lambda x: list(x[0]),
        "attribute_a_tracer_lacks": lambda x: x.not_there,
        "block_until_ready_of_a_tracer": lambda x: x.block_until_ready(),
        "assert_of_a_tracer": lambda x: _assert(x),
        "tracer_as_a_dtype": lambda x: jnp.zeros(2, dtype=x),
        "round_to_a_tracer": lambda x: round(x[0], x[1]),
        "tobytes_of_a_tracer": lambda x: x.tobytes(),
        "devices_of_a_tracer": lambda x: x.devices(),
        "shapes_that_do_not_fit_inside": lambda x: x + np.ones(2),
        "dtypes_that_do_not_fit_inside": lambda x: lax.add(x, 1),
    }.items():
        corpus.add(name, lambda x, f=function: jax.jit(f)(x), x)

    @corpus.program(x)
    def leaked_by_a_list(x):
        kept = []
        jax.jit(lambda x: kept.append(x * 2) or x)(x)
        return kept[0] + 1

    @corpus.program(x)
    def leaked_into_another_jit(x):
        kept = []
        jax.jit(lambda x: kept.append(x * 2) or x)(x)
        return jax.jit(lambda y: y + kept[0])(x)

    @corpus.program(x)
    def leaked_and_printed(x):
        kept = []
        jax.jit(lambda x: kept.append(x * 2) or x)(x)
        return kept[0].shape

    @corpus.program(x)
    def leaked_tracer(x):
        kept = []
        with jax.checking_leaks():
            return jax.jit(lambda x: kept.append(x * 2) or x)(x)

    @corpus.program(n)
    def int_of_an_array_of_three(n):
        return int(jnp.asarray(n))

    @corpus.program(n)
    def bool_of_an_array_of_three(n):
        return bool(jnp.asarray(n))

    @corpus.program()
    def bool_of_an_empty_array():
        return bool(jnp.zeros(0))

    @corpus.program()
    def index_of_a_list_by_a_float_array():
        return [1, 2, 3][jnp.float32(1)]

    @corpus.program(n)
    def index_of_a_list_by_a_vector(n):
        return [1, 2, 3][jnp.asarray(n)]


def _assert(x):
    assert x.sum() > 0
    return x


class EqRaises:
    def __hash__(self):
        return 7

    def __eq__(self, other):
        raise RuntimeError("no comparing")


class HashRaises:
    def __hash__(self):
        raise RuntimeError("no hashing")


def calling_jit(corpus, jax, jnp, lax):
    x = floats(3)

    def scaled(x, n):
        return x * 2

    for name, function in {
        "jit_of_no_function": lambda: jax.jit(3),
        "jit_of_an_array": lambda: jax.jit(jnp.ones(2)),
        "jit_of_a_generator": lambda: jax.jit(lambda x: (yield x))(x),
        "static_that_is_unhashable": lambda: jax.jit(scaled, static_argnums=1)(x, [1]),
        "static_dictionary_by_name": lambda: jax.jit(scaled, static_argnames="n")(x, n={}),
        "static_array": lambda: jax.jit(scaled, static_argnums=1)(x, jnp.ones(2)),
        "static_numpy_array": lambda: jax.jit(scaled, static_argnums=1)(x, np.ones(2)),
        "static_whose_hash_raises": lambda: jax.jit(scaled, static_argnums=1)(x, HashRaises()),
        "static_whose_eq_raises": lambda: _twice(jax.jit(scaled, static_argnums=1), x),
        "static_argnums_out_of_range": lambda: jax.jit(scaled, static_argnums=5)(x, 1),
        "static_argnums_of_a_string": lambda: jax.jit(scaled, static_argnums="n"),
        "static_argnums_of_floats": lambda: jax.jit(scaled, static_argnums=1.0),
        "static_argnames_unknown": lambda: jax.jit(scaled, static_argnames="what")(x, 1),
        "static_argnames_of_ints": lambda: jax.jit(scaled, static_argnames=1),
        "donate_argnums_out_of_range": lambda: jax.jit(scaled, donate_argnums=5)(x, 1),
        "donate_what_is_static": lambda: jax.jit(scaled, static_argnums=1, donate_argnums=1)(x, 1),
        "donate_argnames_unknown": lambda: jax.jit(scaled, donate_argnames="what")(x, 1),
        "too_few_arguments": lambda: jax.jit(scaled)(x),
        "too_many_arguments": lambda: jax.jit(scaled)(x, 1, 2),
        "unknown_keyword": lambda: jax.jit(scaled)(x, m=1),
        "argument_that_is_a_string": lambda: jax.jit(scaled)(x, "a"),
        "argument_that_is_an_object": lambda: jax.jit(scaled)(x, object()),
        "argument_that_is_a_function": lambda: jax.jit(scaled)(len, 1),
        "argument_that_is_an_object_array": lambda: jax.jit(scaled)(np.array([None]), 1),
        "argument_that_is_a_string_array": lambda: jax.jit(scaled)(np.array(["a"]), 1),
        "argument_that_is_a_huge_int": lambda: jax.jit(scaled)(2**40, 1),
        "argument_that_is_a_set": lambda: jax.jit(scaled)({1, 2}, 1),
        "argument_that_is_a_type": lambda: jax.jit(scaled)(int, 1),
        "argument_that_is_a_dtype": lambda: jax.jit(scaled)(x, np.dtype("float32")),
        "dictionary_with_mixed_keys": lambda: jax.jit(lambda d: d)({1: x, "a": x}),
        "result_that_is_a_string": lambda: jax.jit(lambda x: "text")(x),
        "result_that_is_an_object": lambda: jax.jit(lambda x: object())(x),
        "result_that_holds_a_function": lambda: jax.jit(lambda x: {"f": len})(x),
        "error_of_the_users_own": lambda: jax.jit(_raises)(x),
        "make_jaxpr_of_a_string": lambda: jax.make_jaxpr(scaled)(x, "a"),
        "make_jaxpr_of_no_function": lambda: jax.make_jaxpr(3),
        "eval_shape_of_a_string": lambda: jax.eval_shape(scaled, x, "a"),
        "lower_then_call_with_another_shape": lambda: (
            jax.jit(scaled).lower(x, 1.0).compile()(x[:2], 1.0)
        ),
        "lower_then_call_with_another_dtype": lambda: (
            jax.jit(scaled).lower(x, 1.0).compile()(x.astype(np.int32), 1.0)
        ),
        "lower_then_call_with_fewer": lambda: jax.jit(scaled).lower(x, 1.0).compile()(x),
        "lower_then_call_with_another_tree": lambda: (
            jax.jit(scaled).lower(x, 1.0).compile()((x,), 1.0)
        ),
        "compiler_option_unknown": lambda: (
            jax.jit(scaled).lower(x, 1.0).compile({"no_such_flag": True})
        ),
        "as_text_of_an_unknown_dialect": lambda: jax.jit(scaled).lower(x, 1.0).as_text("what"),
        "config_flag_unknown": lambda: jax.config.update("jax_no_such_flag", 1),
        "devices_of_an_unknown_platform": lambda: jax.devices("abacus"),
        "device_put_of_a_string": lambda: jax.device_put("text"),
        "device_put_to_no_device": lambda: jax.device_put(x, "cpu:17"),
        "named_scope_of_no_string": lambda: jax.named_scope(3).__enter__(),
    }.items():
        corpus.add(name, function)


class Unhashable:
    """A function that is equal to others and has no hash, as an object of a dataclass has none."""

    __hash__ = None

    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)


def unhashable_functions(corpus, jax, jnp, lax):
    x = floats(3)
    twice, add = Unhashable(lambda x: x * 2), Unhashable(lambda x, y: x + y)
    for name, function in {
        "jit": lambda x: jax.jit(twice)(x),
        "inner_jit": lambda x: jax.jit(lambda x: jax.jit(twice)(x))(x),
        "checkpoint": lambda x: jax.checkpoint(twice)(x),
        "scan": lambda x: lax.scan(Unhashable(lambda c, x: (c, x)), 0, x),
        "while_loop": lambda x: lax.while_loop(lambda x: x[0] < 9, twice, x),
        "while_cond": lambda x: lax.while_loop(Unhashable(lambda x: x[0] < 9), jnp.exp, x),
        "fori_loop": lambda x: lax.fori_loop(0, 2, Unhashable(lambda _, x: x * 2), x),
        "cond": lambda x: lax.cond(x[0] > 0, jnp.sin, twice, x),
        "switch": lambda x: lax.switch(0, [jnp.sin, twice], x),
        "switch_of_one": lambda x: lax.switch(0, [twice], x),
        "map": lambda x: lax.map(twice, x),
        "associative_scan": lambda x: lax.associative_scan(add, x),
        "reduce": lambda x: lax.reduce(x, np.float32(0), add, (0,)),
        "reduce_window": lambda x: lax.reduce_window(x, np.float32(0), add, (1,), (1,), "SAME"),
        "closure_convert": lambda x: jax.closure_convert(twice, x)[1],
        "custom_root": lambda x: lax.custom_root(twice, x, lambda f, x: x, lambda g, y: y),
        "pure_callback": lambda x: jax.pure_callback(Unhashable(np.sin), x, x),
        "debug_callback": lambda x: jax.debug.callback(Unhashable(np.sin), x),
        "vmap": lambda x: jax.vmap(twice)(x),
        "grad": lambda x: jax.grad(Unhashable(jnp.sum))(x),
        "make_jaxpr": lambda x: jax.eval_shape(twice, x),
        "piecewise": lambda x: jnp.piecewise(x, [x > 0], [twice, twice]),
        "apply": lambda x: x.at[0].apply(twice),
        "static_argument_of_checkpoint": lambda x: jax.checkpoint(
            lambda f, x: f(x), static_argnums=0
        )(twice, x),
    }.items():
        corpus.add(f"unhashable_function_of_{name}", function, jnp.asarray(x))


def _twice(f, x):
    f(x, EqRaises())
    return f(x, EqRaises())


def _raises(x):
    raise KeyError("mine")


def arrays(corpus, jax, jnp):
    x = floats(3)
    for name, function in {
        "assignment": lambda a: a.__setitem__(0, 1.0),
        "assignment_by_statement": _assign,
        "deletion": _delete,
        "hash_of_an_array": lambda a: hash(a),
        "array_in_a_set": lambda a: {a},
        "too_many_indices": lambda a: a[0, 0],
        "float_index": lambda a: a[1.0],
        "string_index": lambda a: a["a"],
        "list_index": lambda a: a[[0, 1]],
        "none_in_a_list_index": lambda a: a[[None]],
        "slice_of_floats": lambda a: a[0.0:2.0],
        "slice_with_step_zero": lambda a: a[::0],
        "mask_of_another_length": lambda a: a[np.array([True, False])],
        "two_ellipses": lambda a: a[..., ...],
        "float_array_index": lambda a: a[np.array([0.0, 1.0])],
        "object_index": lambda a: a[object()],
        "at_call": lambda a: a.at(0),
        "at_set_without_an_index": lambda a: a.at.set(1),
        "at_set_of_another_shape": lambda a: a.at[:2].set(np.ones(3)),
        "at_set_of_a_string": lambda a: a.at[0].set("a"),
        "at_set_of_unknown_mode": lambda a: a.at[0].set(1, mode="bounce"),
        "at_too_many_indices": lambda a: a.at[0, 0].set(1),
        "at_float_index": lambda a: a.at[0.5].add(1),
        "length_of_a_scalar": lambda a: len(a[0]),
        "iteration_over_a_scalar": lambda a: list(a[0]),
        "item_of_several": lambda a: a.item(),
        "attribute_it_lacks": lambda a: a.not_there,
        "set_an_attribute": lambda a: setattr(a, "shape", (1, 3)),
        "reshape_to_another_size": lambda a: a.reshape(2, 2),
        "view_that_does_not_fit": lambda a: a[:1].astype(jnp.int8).view(jnp.int32),
        "astype_unknown": lambda a: a.astype("what"),
        "used_after_deletion": _used_after_deletion,
        "used_after_donation": lambda a: _used_after_donation(jax, a),
        "numpy_writes_into_it": lambda a: np.asarray(a).__setitem__(0, 1),
        "dot_of_other_sizes": lambda a: a.dot(np.ones(2)),
        "axis_of_a_method": lambda a: a.sum(axis=1),
        "matmul_by_a_scalar": lambda a: a @ 2,
        "float_of_three": lambda a: float(a),
    }.items():
        corpus.add(f"array_{name}", lambda f=function: f(jnp.asarray(x) + 0))


def _assign(a):
    a[0] = 1.0


def _delete(a):
    del a[0]


def _used_after_deletion(a):
    a.delete()
    return a + 1


def _used_after_donation(jax, a):
    jax.jit(lambda a: a + 1, donate_argnums=0)(a)
    return a + 1


def trees(corpus, jax):
    def register():
        class Node:
            pass

        for _ in range(2):
            jax.tree_util.register_pytree_node(Node, lambda n: ((), None), lambda _, __: Node())

    for name, function in {
        "tree_map_of_other_lengths": lambda: jax.tree.map(lambda a, b: a, [1, 2], [1]),
        "tree_map_of_other_types": lambda: jax.tree.map(lambda a, b: a, [1, 2], (1, 2)),
        "tree_map_of_other_keys": lambda: jax.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}),
        "tree_map_with_none": lambda: jax.tree.map(lambda a, b: a, {"a": 1}, {"a": None}),
        "tree_unflatten_of_too_few": lambda: jax.tree.unflatten(jax.tree.structure([1, 2]), [1]),
        "tree_unflatten_of_too_many": lambda: jax.tree.unflatten(
            jax.tree.structure([1, 2]), [1, 2, 3]
        ),
        "tree_of_mixed_keys": lambda: jax.tree.leaves({1: 1, "a": 2}),
        "tree_transpose_of_another": lambda: jax.tree.transpose(
            jax.tree.structure([0, 0]), jax.tree.structure([0]), [[1], [2, 3]]
        ),
        "tree_reduce_of_nothing": lambda: jax.tree.reduce(lambda a, b: a + b, []),
        "tree_node_registered_twice": register,
        "tree_node_that_is_no_class": lambda: jax.tree_util.register_pytree_node(3, None, None),
    }.items():
        corpus.add(name, function)


def odd_but_right(corpus, jax, jnp):
    """What looks wrong and is not: the reference gives a result, so ours must."""
    nan = np.array([np.nan, np.inf, -np.inf, 1e20], np.float32)
    for name, function in {
        "nan_to_uint8_is_defined": lambda: jnp.asarray(nan[:0]).astype(jnp.uint8),
        "sum_of_zero_size": lambda: jnp.sum(np.zeros((0, 3), np.float32)),
        "matmul_of_zero_size": lambda: jnp.ones((2, 0)) @ jnp.ones((0, 3)),
        "concatenate_of_zero_size": lambda: jnp.concatenate([jnp.ones((0, 2)), jnp.ones((1, 2))]),
        "reshape_of_zero_size": lambda: jnp.zeros((0, 3)).reshape(3, 0, 5),
        "index_far_out_of_range": lambda: jnp.arange(3)[100],
        "index_far_out_of_range_negative": lambda: jnp.arange(3)[-100],
        "update_far_out_of_range": lambda: jnp.arange(3).at[100].set(7),
        "mean_of_nothing": lambda: jnp.mean(np.zeros((0,), np.float32)),
        "largest_int": lambda: jnp.array(2**31 - 1),
        "smallest_int": lambda: jnp.array(-(2**31)),
        "int_that_only_unsigned_holds": lambda: jnp.array(2**32 - 1, dtype=jnp.uint32),
        "overflow_wraps": lambda: jnp.array(2**31 - 1) + 1,
        "numpy_int64_that_does_not_fit": lambda: jnp.asarray(np.array([2**40 + 5])),
        "numpy_doubles_that_do_not_fit": lambda: jnp.asarray(np.array([1e300])),
        "bool_of_one_element": lambda: bool(jnp.ones((1, 1))),
        "float_of_one_element": lambda: float(jnp.asarray(2.5)),
        "int_of_a_float_array": lambda: int(jnp.asarray(2.5)),
        "empty_dictionary": lambda: jax.jit(lambda d: d)({}),
        "none_through_jit": lambda: jax.jit(lambda n: n)(None),
        "zero_size_through_jit": lambda: jax.jit(lambda x: (x + 1, x.sum()))(
            np.zeros((0, 2), np.float32)
        ),
        "thousands_of_arguments": lambda: jax.jit(lambda *xs: sum(xs))(*[np.float32(1)] * 300),
        "slice_with_numpy_ints": lambda: jnp.arange(5)[np.int64(1) : np.int8(3)],
        "negative_axis": lambda: jnp.sum(np.ones((2, 3), np.float32), axis=-2),
        "numpy_bool_static": lambda: jax.jit(lambda x, b: x if b else -x, static_argnums=1)(
            1.0, np.True_
        ),
    }.items():
        corpus.add(name, function)
    corpus.add(
        "nan_to_int",
        lambda: (jnp.asarray(nan).astype(jnp.int32), jnp.array(nan, dtype=jnp.int32)),
    )
    corpus.add("python_nan_to_int", lambda: jnp.array(float("nan"), dtype=jnp.int32))
    corpus.add("python_infinity_to_int", lambda: jnp.int32(float("inf")))
    corpus.add("list_with_nan_to_int", lambda: jnp.array([1.0, float("nan")], dtype=int))
