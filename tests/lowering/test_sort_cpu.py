"""Sorts on CPUs, by packed integers: the order of NumPy's stable sorts, bit by bit."""

from functools import partial

import hypothesis.extra.numpy as arrays
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering.cpu import sort as sort_cpu
from hlofront.lowering.min_sizes import MIN_SIZES

DTYPES = [
    *(f"float{bits}" for bits in (16, 32, 64)),
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "bool",
    "complex64",
    "complex128",
]
NARROW = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2fnuz, ml_dtypes.int4]


@pytest.fixture(autouse=True)
def arrays_of_any_size_are_packed(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["sort"], "packed", 0)
    monkeypatch.setattr(sort_cpu, "_SMALL", 0)
    with hlofront.enable_x64(True):
        yield


def pairs(real, imaginary):
    """Complex numbers of these parts, which NaNs and infinities leave as they are."""
    return np.stack([real, imaginary], -1).view(f"complex{16 * real.itemsize}")[..., 0]


def special(dtype, size):
    """Numbers with ties: signed zeros, NaNs of both signs, infinities, denormals, extremes."""
    random = np.random.default_rng(0)
    dtype = np.dtype(dtype)
    if dtype == np.bool_ or dtype.name == "int4":
        return random.integers(0, 2, size).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = np.array([0, 1, 2, limits.min, limits.max, limits.max - 1, limits.max // 2], dtype)
    elif dtype.kind == "c":
        real = dtype.type(0).real.dtype
        return pairs(special(real, size), special(real, 2 * size)[size:])
    else:
        limits = ml_dtypes.finfo(dtype)
        tiny = float(limits.smallest_subnormal)
        values = [0.0, -0.0, 1, -1, 1.5, tiny, -tiny, limits.max, limits.min, limits.tiny]
        values = np.array([*map(float, values), np.inf, -np.inf, np.nan, -np.nan]).astype(dtype)
    return random.choice(values, size)


def compared(key):
    """Return a real key as XLA's CPU code compares it, which takes denormal numbers for zeros."""
    flushed = key.dtype.name in ("bfloat16", "float32", "float64")
    least = float(ml_dtypes.finfo(key.dtype).tiny) if flushed else 0.0
    key = key.astype(np.float64) if key.dtype.kind in "fV" else key
    return np.where(abs(key) < least, 0.0, key) if flushed else key


def order_of(*keys, axis=-1):
    """Return the indices that sort by the keys, the first one first, stably."""
    keys = [
        part for key in keys for part in ((key.real, key.imag) if key.dtype.kind == "c" else (key,))
    ]
    order = np.argsort(compared(keys[-1]), axis, kind="stable")
    for key in reversed(keys[:-1]):
        key = np.take_along_axis(compared(key), order, axis)
        order = np.take_along_axis(order, np.argsort(key, axis, kind="stable"), axis)
    return order


@partial(hlofront.jit, static_argnames=("dimension", "num_keys", "is_stable"))
def sort(*operands, **options):
    return lax.sort(operands, **options)


def check(keys, others=(), axis=-1, **options):
    operands = (*keys, *others)
    results = sort(*operands, dimension=axis % keys[0].ndim, num_keys=len(keys), **options)
    order = order_of(*keys, axis=axis)
    for result, operand in zip(results, operands, strict=True):
        wanted = np.take_along_axis(operand, order, axis)
        assert result.dtype == wanted.dtype
        assert np.asarray(result).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", [*DTYPES, *NARROW])
def test_every_dtype_is_sorted_to_the_bit(dtype):
    x = special(dtype, 97)
    check([x], [np.arange(97), x])


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_few_elements_are_sorted(size):
    check([special(np.float32, size)])
    check([special(np.float64, size)], [np.arange(size)], is_stable=False)


@pytest.mark.parametrize("min_size", [1, 1000])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_is_sorted(monkeypatch, axis, min_size):
    monkeypatch.setattr(sort_cpu, "_MIN_SIZE_TRANSPOSED", min_size)
    hlofront.clear_caches()
    x = special(np.float32, 4 * 5 * 6).reshape(4, 5, 6)
    check([x], [special(np.int16, 120).reshape(4, 5, 6)], axis)
    index = np.broadcast_to(np.arange(4)[:, None, None], (4, 5, 6))
    check([x], [index], axis)


@pytest.mark.parametrize(
    "dtypes", [("int8", "float32"), ("float64", "bool"), ("complex64", "uint64")]
)
def test_several_keys_are_sorted_by_in_turn(dtypes):
    keys = [
        special(dtype, 200)[np.random.default_rng(i).permutation(200)]
        for i, dtype in enumerate(dtypes)
    ]
    check(keys, [np.arange(200)])


@settings(max_examples=100, deadline=None, database=None, derandomize=True)
@given(
    st.sampled_from(("float16", "float32", "float64", "int64", "complex64")).flatmap(
        lambda dtype: arrays.arrays(dtype, 12)
    )
)
def test_arrays_by_chance_are_sorted_to_the_bit(x):
    with hlofront.enable_x64(True):
        check([x], [np.arange(x.size)])


def test_functions_of_sort_have_numpy_values():
    x = special(np.float32, 300)
    x = x[np.isfinite(x) & ((x == 0) | (abs(x) > 1e-30))][:120].reshape(2, -1)
    for name in ("sort", "argsort", "median", "unique"):
        options = {"kind": "stable"} if name == "argsort" else {}
        np.testing.assert_array_equal(getattr(jnp, name)(x), getattr(np, name)(x, **options))
    keys = x[0], x[1]
    np.testing.assert_array_equal(jnp.lexsort(keys), np.lexsort(keys))


def test_tangents_follow_the_order():
    x = np.array([[3.0, 1.0, 2.0], [0.0, -0.0, -1.0]], np.float32)
    t = np.arange(6, dtype=np.float32).reshape(2, 3)
    for axis in (0, 1):
        order = np.argsort(x, axis, kind="stable")
        _, tangent = hlofront.jvp(lambda x: lax.sort(x, axis), (x,), (t,))
        np.testing.assert_array_equal(tangent, np.take_along_axis(t, order, axis))
        back = hlofront.grad(lambda x: (lax.sort(x, axis) * t).sum())(x)
        wanted = np.empty_like(t)
        np.put_along_axis(wanted, order, t, axis)
        np.testing.assert_array_equal(back, wanted)
    batched = hlofront.vmap(lax.sort)(x)
    np.testing.assert_array_equal(batched, np.sort(x, 1))


# ---- top_k ---------------------------------------------------------------------------------------


def bits_in_order(x):
    """Integers in the total order of numbers: also of zeros, NaNs and denormal numbers."""
    if x.dtype == np.bool_ or x.dtype.kind in "iu":
        return x.astype(object)
    bits = x.view(f"int{8 * x.itemsize}").astype(object)
    return np.where(bits < 0, -(2 ** (8 * x.itemsize - 1)) - 1 - bits, bits)


@pytest.mark.parametrize("dtype", [*DTYPES[:-2], ml_dtypes.bfloat16])
@pytest.mark.parametrize("k", [1, 40, 97])
def test_the_greatest_elements_come_in_total_order(dtype, k):
    x = special(dtype, 97)
    values, indices = lax.top_k(x, k)
    wanted = np.argsort(-bits_in_order(x), kind="stable")[:k]
    np.testing.assert_array_equal(indices, wanted)
    assert np.asarray(values).tobytes() == x[wanted].tobytes()
    assert (values.dtype, indices.dtype) == (x.dtype, np.int32)


def test_the_greatest_elements_of_any_axis_and_their_derivatives():
    x = special(np.int32, 60).reshape(3, 4, 5)
    for axis in range(3):
        values, indices = lax.top_k(x, 3, axis=axis)
        wanted = np.argsort(-x.astype(object), axis, kind="stable").take(range(3), axis)
        np.testing.assert_array_equal(indices, wanted)
        np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, axis))
    y = np.random.default_rng(0).normal(size=(2, 5))
    back = hlofront.grad(lambda y: (lax.top_k(y, 3)[0] * np.arange(3)).sum())(y)
    wanted = np.zeros_like(y)
    np.put_along_axis(wanted, np.argsort(-y, 1)[:, :3], np.arange(3.0), 1)
    np.testing.assert_array_equal(back, wanted)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("select", [lax.approx_max_k, lax.approx_min_k])
def test_approximate_selection_is_exact_here(dtype, select):
    x = special(dtype, 194).reshape(2, 97)
    # top_k, which XLA may take, tells zeros and NaNs by their signs.
    x = np.where(np.isnan(x), np.array(np.nan, dtype), x) + np.array(0, dtype)
    for axis, k in ((0, 1), (1, 8), (1, 40), (1, 97)):
        values, indices = select(x, k, reduction_dimension=axis)
        rank = np.unique(compared(x), return_inverse=True)[1].reshape(x.shape)
        order = np.argsort(-rank if select is lax.approx_max_k else rank, axis, kind="stable")
        wanted = order.take(range(k), axis)
        np.testing.assert_array_equal(indices, wanted)
        assert np.asarray(values).tobytes() == np.take_along_axis(x, wanted, axis).tobytes()


def test_xla_selects_few_of_float32(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setitem(MIN_SIZES["sort"], "packed", 1000)

    def sorts(k, size, dtype=np.float32, **options):
        return "ui64" in text(lambda x: lax.top_k(x, k), np.ones(size, dtype), **options)

    with hlofront.enable_x64(False):
        assert not sorts(10, 100_000)
        assert sorts(20_000, 100_000)
        assert not sorts(500, 1000)
        assert sorts(1000, 1000)
        assert sorts(10, 1000, np.int32)
        for select in (lax.approx_max_k, lax.approx_min_k):
            few, many = (
                text(lambda x: select(x, k), np.ones(10_000, np.float32)) for k in (9, 9999)
            )
            assert "chlo.top_k" in few and "ui64" not in few
            assert "chlo.top_k" not in many and "ui64" in many
            assert "ui64" in text(lambda x: select(x, 10), np.ones(1000, np.float16))
        assert not sorts(10, 999, np.int32)
        for platform in ("tpu", "cuda", "rocm"):
            assert not sorts(20_000, 100_000, platforms=(platform,))


# ---- what is chosen where ------------------------------------------------------------------------


def text(function, *args, platforms=("cpu",), **options):
    return (
        hlofront.jit(function).trace(*args).lower(lowering_platforms=platforms, **options).as_text()
    )


def is_packed(*args, **options):
    return "ui64" in text(lambda *xs: lax.sort(xs), *args, **options)


def test_only_cpus_sort_packed_integers(monkeypatch):
    monkeypatch.undo()
    monkeypatch.setitem(MIN_SIZES["sort"], "packed", 1000)
    with hlofront.enable_x64(False):
        large, small = np.ones(1000, np.float32), np.ones(999, np.float32)
        assert is_packed(large)
        assert not is_packed(small)
        for platform in ("tpu", "cuda", "rocm"):
            assert not is_packed(large, platforms=(platform,))
        both = text(lax.sort, large, platforms=("tpu", "cpu"))
        assert both.count("stablehlo.sort") == 2
        assert "stablehlo.case" in both


def test_integers_alone_and_keys_of_many_words_are_not_packed():
    assert not is_packed(np.ones(1000, np.int32))
    assert is_packed(np.ones(1000, np.int32), np.ones(1000, np.int32))
    keys = [np.ones(1000, np.float64)] * 3
    assert "ui64" in text(lambda *xs: lax.sort(xs, num_keys=2), *keys)
    assert "ui64" not in text(lambda *xs: lax.sort(xs, num_keys=3), *keys)


def test_the_index_is_not_gathered():
    x = np.ones(1000, np.float32)
    assert text(jnp.argsort, x).count('"stablehlo.gather"(') == 1
    assert " gather" not in str(hlofront.jit(jnp.argsort).lower(x).compile().as_text())


def test_sizes_that_are_unknown_are_sorted_by_comparators():
    (size,) = hlofront.export.symbolic_shape("n")
    exported = hlofront.export.export(hlofront.jit(lax.sort), platforms=("cpu",))(
        hlofront.ShapeDtypeStruct((size,), np.float32)
    )
    assert "ui64" not in str(exported.mlir_module())
    np.testing.assert_array_equal(exported.call(np.float32([2, 1, 3])), [1, 2, 3])


def test_large_arrays_are_transposed_to_be_sorted_along_their_last_axis():
    def is_transposed(shape, axis):
        lowered = hlofront.jit(lambda x: lax.sort(x, axis)).lower(np.zeros(shape, np.float32))
        return "stablehlo.transpose" in lowered.as_text()

    assert is_transposed((256, 256), 0)
    assert is_transposed((2, 256, 128), 1)
    assert not is_transposed((256, 256), 1)
    assert not is_transposed((255, 256), 0)
