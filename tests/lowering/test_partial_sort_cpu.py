"""Elements at a few positions of sorted lines, which programs for CPUs select without a sort."""

import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.lowering.cpu import partial_sort as partial_sort_cpu
from hlofront.lowering.min_sizes import MIN_SIZES

DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16]
METHODS = ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf"]


@pytest.fixture(autouse=True)
def lines_of_any_length_are_selected_from(monkeypatch):
    monkeypatch.setitem(MIN_SIZES["sort"], "selection", 0)
    monkeypatch.setattr(partial_sort_cpu, "_SHORTEST", 0)
    monkeypatch.setattr(partial_sort_cpu, "_most_positions", lambda length: 100)
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


def text(function, *args, platforms=("cpu",)):
    return hlofront.jit(function).trace(*args).lower(lowering_platforms=platforms).as_text()


def is_selected(function, *args, **options):
    program = text(function, *args, **options)
    assert ("stablehlo.while" in program) != ("stablehlo.sort" in program)
    return "stablehlo.sort" not in program


def at(ordered, ranks):
    """The elements of each row of a matrix at its ranks, as quantiles gather them."""
    numbers = lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,))
    return lax.gather(ordered, ranks[..., None], numbers, (1, 1), mode="promise_in_bounds")


def special(dtype, shape):
    """Numbers with ties: signed zeros, NaNs of both signs, infinities, denormals, extremes."""
    limits = ml_dtypes.finfo(dtype)
    tiny = float(limits.smallest_subnormal)
    numbers = [0.0, -0.0, 1, -1, 1.5, tiny, -tiny, limits.max, limits.min, limits.tiny]
    numbers = np.array([*map(float, numbers), np.inf, -np.inf, np.nan, -np.nan]).astype(dtype)
    return np.random.default_rng(0).choice(numbers, shape)


def in_order(x):
    """Rows in the order of the numbers, negative zeros before others and NaNs last."""
    wide = x.astype(np.float64)
    order = np.lexsort((~np.signbit(wide), np.where(np.isnan(wide), np.inf, wide), np.isnan(wide)))
    return np.take_along_axis(wide, order, -1)


def check_equal(result, wanted):
    result = np.asarray(result, np.float64)
    np.testing.assert_array_equal(result, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(result)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 2), (3, 15), (4, 50)])
def test_every_element_is_selected_to_the_bit(dtype, shape):
    with hlofront.enable_x64(True):
        x = special(dtype, shape)
        ranks = np.broadcast_to(np.arange(shape[1], dtype=np.int32), shape)

        def function(x, ranks):
            ordered = lax.sort(x)
            return at(ordered, ranks), ordered[:, -1:]

        assert is_selected(function, x, ranks)
        elements, last = hlofront.jit(function)(x, ranks)
        assert (elements.dtype, last.dtype) == (x.dtype, x.dtype)
        check_equal(elements, in_order(x))
        np.testing.assert_array_equal(np.asarray(last, np.float64), in_order(x)[:, -1:])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neighbors_in_the_last_bit_are_told_apart(dtype):
    x = np.array([1.0, -1.0, 0.0], dtype)
    x = np.concatenate([x, np.nextafter(x, np.array(2, dtype))])
    x = np.concatenate([x, -x])[None]
    ranks = np.arange(12, dtype=np.int32)[None]
    with hlofront.enable_x64(True):
        check_equal(hlofront.jit(lambda x, r: at(lax.sort(x), r))(x, ranks), in_order(x))


CASES = [(name, method) for name in ("quantile", "nanquantile") for method in METHODS]


@pytest.mark.parametrize(
    ("name", "method"),
    [*CASES, *((name, None) for name in ("median", "nanmedian", "nanpercentile"))],
)
def test_quantiles_have_numpy_values(name, method):
    q = {} if "median" in name else {"q": np.float32(37 if "percentile" in name else 0.37)}
    options = {"method": method} if method else {}
    for axis in (1, (0, 2)):

        def function(x, axis=axis):
            return getattr(jnp, name)(x, **q, axis=axis, **options)

        x = np.random.default_rng(0).normal(size=(5, 21, 7)).astype(np.float32)
        assert is_selected(function, x)
        for _ in range(2):
            with warnings.catch_warnings(action="ignore"):
                wanted = getattr(np, name)(x, **q, axis=axis, **options)
            np.testing.assert_allclose(function(x), wanted, rtol=1e-5, atol=1e-6)
            x[1, ::3] = np.nan
            x[:, :, 2] = np.nan


def test_several_quantiles_of_infinities_and_out_of_range():
    x = np.float32([np.inf, 1, -np.inf, 2, np.inf])
    q = np.float32([0, 0.25, 0.5, 0.6, 1])
    assert is_selected(jnp.quantile, x, q)
    np.testing.assert_array_equal(jnp.quantile(x, q), [-np.inf, 1, 2, np.inf, np.inf])
    np.testing.assert_array_equal(jnp.quantile(x, np.float32(2), method="lower"), np.inf)
    np.testing.assert_array_equal(jnp.quantile(x, np.float32(-1), method="lower"), -np.inf)


def test_batches_and_derivatives():
    x = np.random.default_rng(0).normal(size=(6, 9)).astype(np.float32)
    x[:, 3] = x[:, 4]
    medians = hlofront.vmap(jnp.median, in_axes=1)
    assert is_selected(medians, x)
    np.testing.assert_allclose(hlofront.jit(medians)(x), np.median(x, 0), rtol=1e-6)
    inner = hlofront.vmap(hlofront.vmap(lambda x, q: jnp.quantile(x, q), (None, 0)), (0, None))
    q = np.float32([0.1, 0.5])
    np.testing.assert_allclose(
        hlofront.jit(inner)(x, q), np.quantile(x, q, axis=1).T, rtol=1e-5, atol=1e-6
    )
    # The tangent of a median is that of its element, also among equal ones.
    value, back = hlofront.jit(hlofront.value_and_grad(lambda x: jnp.median(x).sum()))(x[0])
    assert value == np.median(x[0])
    wanted = np.zeros(9, np.float32)
    wanted[np.argsort(x[0], kind="stable")[4]] = 1
    np.testing.assert_array_equal(back, wanted)


# ---- what is chosen where ------------------------------------------------------------------------

X = np.zeros((2, 40), np.float32)
RANKS = np.zeros((2, 1), np.int32)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, r: lax.sort(x),
        lambda x, r: (at(lax.sort(x), r), lax.sort(x).sum()),
        lambda x, r: at(lax.sort(x, 0), r),
        lambda x, r: lax.sort(x)[:, -1:],
        lambda x, r: (lambda ordered: (at(ordered, r), ordered[:, :1]))(lax.sort(x)),
        lambda x, r: (lambda ordered: at(ordered, at(ordered, r).astype(int)))(lax.sort(x)),
        lambda x, r: at(lax.sort((x, x), num_keys=1)[1], r),
        lambda x, r: at(lax.sort(x.astype(int)), r),
        lambda x, r: (at(lax.sort(x), r), hlofront.debug.print("{}", r)),
    ],
)
def test_sorts_that_are_read_otherwise_stay(function):
    assert "stablehlo.sort" in text(function, X, RANKS)


def test_values_around_a_selection_are_computed_in_any_order():
    def function(x, r):
        ordered = lax.sort(x)
        first = at(ordered, r)
        double = 2 * first
        second = at(ordered, r + 3)
        return double + second, first

    x = np.arange(80, dtype=np.float32)[::-1].reshape(2, 40)
    assert is_selected(function, x, RANKS)
    total, first = hlofront.jit(function)(x, RANKS)
    np.testing.assert_array_equal(total, 3 * x[:, -1:] + 3)
    np.testing.assert_array_equal(first, x[:, -1:])


def test_effects_before_a_selection_keep_their_order():
    def function(x, r):
        hlofront.debug.print("{}", r)
        return at(lax.sort(x), r)

    assert is_selected(function, X, RANKS)


def test_only_cpus_select_a_few_elements_of_many(monkeypatch):
    for platforms in (("tpu",), ("cuda",), ("cpu", "tpu")):
        assert "stablehlo.sort" in text(jnp.median, X, platforms=platforms)
    monkeypatch.undo()
    large = np.zeros(2**17, np.float32)
    assert is_selected(jnp.median, large)
    assert not is_selected(jnp.median, large[1:])
    assert not is_selected(lambda x: jnp.median(x, 1), large.reshape(-1, 256))
    assert is_selected(jnp.quantile, large, np.float32([0.1, 0.5]))
    assert not is_selected(jnp.quantile, large, np.linspace(0, 1, 20, dtype=np.float32))
    assert "sort[" in str(hlofront.make_jaxpr(jnp.median)(large))


def test_sizes_that_are_unknown_are_sorted():
    (size,) = hlofront.export.symbolic_shape("n")
    exported = hlofront.export.export(
        hlofront.jit(lambda x: at(lax.sort(x), RANKS)), platforms=("cpu",)
    )(hlofront.ShapeDtypeStruct((2, size), np.float32))
    assert "stablehlo.sort" in str(exported.mlir_module())


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.floats(width=32, allow_subnormal=False), min_size=1, max_size=9),
    st.sampled_from([0.0, 0.25, 0.5, 1.0]),
    st.sampled_from(["lower", "higher"]),
)
def test_quantiles_of_any_numbers(numbers, q, method):
    x = np.array(numbers, np.float32)
    result = jnp.quantile(x, q, method=method)
    np.testing.assert_array_equal(result, np.quantile(x, q, method=method))
