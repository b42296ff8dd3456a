"""Reductions on CPUs by lanes: NumPy's results for any shape, and no maximum without its NaN."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import enable_x64, options
from hlofront.lowering.cpu import reduce as reduce_cpu
from hlofront.lowering.min_sizes import MIN_SIZES

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FUNCTIONS = {
    "max": np.maximum,
    "min": np.minimum,
    "sum": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.fixture
def arrays_of_any_size_are_cut(monkeypatch):
    for kind in MIN_SIZES["reduce"]:
        monkeypatch.setitem(MIN_SIZES["reduce"], kind, 0)
    # Floats are cut where XLA has a kernel that ignores NaNs.
    monkeypatch.setattr(reduce_cpu, "is_fault_lowered", lambda: True)
    for name in ("_MIN_LANES", "_MIN_LENGTH_OF_SUM"):
        monkeypatch.setattr(reduce_cpu, name, 0)
    hlofront.clear_caches()
    yield
    hlofront.clear_caches()


def lowered(function, *operands, platform="cpu"):
    traced = hlofront.jit(function).trace(*operands)
    return traced.lower(lowering_platforms=(platform,)).as_text()


def reduced(name, x, axes):
    return hlofront.jit(lambda x: getattr(lax, f"reduce_{name}")(x, axes))(x)


@st.composite
def an_operand_and_axes(draw, dtypes):
    length = st.integers(1, 140)
    shape = draw(st.lists(length, min_size=1, max_size=3).filter(lambda s: np.prod(s) < 20_000))
    axes = draw(st.sets(st.sampled_from(range(len(shape))), min_size=1))
    seed = draw(st.integers(0, 2**32 - 1))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    random = np.random.default_rng(seed)
    if dtype.kind == "f":
        x = random.normal(size=shape).astype(dtype)
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).tiny, np.finfo(dtype).max]
        for value in draw(st.lists(st.sampled_from(special), max_size=4)):
            x.reshape(-1)[random.integers(x.size)] = value
    else:
        limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        x = random.integers(*limits, shape, dtype, endpoint=True)
    return x, tuple(sorted(axes))


@pytest.mark.cpu
@pytest.mark.usefixtures("arrays_of_any_size_are_cut")
@pytest.mark.parametrize("name", FUNCTIONS)
@given(st.data())
@settings(max_examples=8, deadline=None)
def test_integers_of_any_shape(name, data):
    logical = name in ("and", "or", "xor")
    x, axes = data.draw(an_operand_and_axes([*INTEGERS, "bool"] if logical else INTEGERS))
    with enable_x64(True):
        result = reduced(name, x, axes)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, FUNCTIONS[name].reduce(x, axes, x.dtype))


@pytest.mark.cpu
@pytest.mark.usefixtures("arrays_of_any_size_are_cut")
@pytest.mark.parametrize("name", ["max", "min"])
@given(an_operand_and_axes(["float32", "float64"]))
@settings(max_examples=15, deadline=None)
def test_floats_of_any_shape(name, operand):
    x, axes = operand
    with enable_x64(True):
        result = reduced(name, x, axes)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, FUNCTIONS[name].reduce(x, axes, x.dtype))


@pytest.mark.cpu
@pytest.mark.parametrize("shape", [(4096,), (5003,), (64, 64), (3, 2000), (2000, 3), (4096, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_nan_anywhere_is_the_maximum(shape, dtype):
    with enable_x64(True):
        for axis in (*range(len(shape)), None):
            maximum = hlofront.jit(lambda x: (jnp.max(x, axis), jnp.min(x, axis)))
            for position in (0, 1, 31, 1000, 2048, 4000, np.prod(shape) - 1):
                x = np.arange(np.prod(shape), dtype=dtype)
                x[position] = np.nan
                x = x.reshape(shape)
                most, least = maximum(x)
                np.testing.assert_array_equal(most, np.max(x, axis))
                np.testing.assert_array_equal(least, np.min(x, axis))


@pytest.mark.cpu
def test_an_error_of_nan_is_greater_than_none():
    x = jnp.ones(10_000)
    y = x.at[7].set(jnp.nan)
    assert not jnp.max(jnp.abs(x - y)) < 1e-3
    assert not jnp.abs(x - y).max() < 1e-3


@pytest.mark.cpu
def test_derivatives_and_batches():
    x = jnp.asarray(np.random.default_rng(0).permutation(6000).astype(np.float32).reshape(3, 2000))
    gradient = hlofront.grad(lambda x: (x.max(1) * jnp.arange(3.0)).sum())(x)
    expected = np.zeros_like(x)
    expected[np.arange(3), np.argmax(x, 1)] = np.arange(3)
    np.testing.assert_array_equal(gradient, expected)
    np.testing.assert_array_equal(hlofront.vmap(jnp.max)(x), np.max(x, 1))
    counts = hlofront.vmap(lambda row: (row > 3000).sum(), 1)(x)
    np.testing.assert_array_equal(counts, (np.asarray(x) > 3000).sum(0))


TAKEN = {
    "the maximum of integers": (jnp.max, np.zeros(5000, np.int32)),
    "any": (jnp.any, np.zeros((50, 100), bool)),
    "any in a range": (lambda x: ((x > 1) & (x < 2)).any(1), np.zeros((50, 100), np.float32)),
    "a count of hits": (lambda x, y: (x @ y > 1).sum(), *(np.zeros((80, 80), np.float32),) * 2),
    "a count": (jnp.count_nonzero, np.zeros(5000, np.float32)),
    "all pairs": (lambda x: (x[:, None] == x).any(1), np.zeros(100, np.float32)),
    "rounded floats": (lambda x: x.astype(np.int32).max(), np.zeros(5000, np.float32)),
}
LEFT = {
    "few integers": (jnp.max, np.zeros(4000, np.int32)),
    "bytes": (jnp.max, np.zeros(5000, np.int8)),
    "columns of integers": (lambda x: x.max(0), np.zeros((50, 100), np.int32)),
    "the sum of floats": (jnp.sum, np.zeros(5000, np.float32)),
    "few floats": (jnp.max, np.zeros(4000, np.float32)),
    "half floats": (jnp.max, np.zeros(5000, np.float16)),
}


@pytest.mark.cpu
@pytest.mark.parametrize("name", TAKEN)
def test_the_rule_is_for_cpus(name):
    function, *operands = TAKEN[name]
    assert "optimization_barrier" in lowered(function, *operands)
    for platform in ("tpu", "cuda"):
        assert "optimization_barrier" not in lowered(function, *operands, platform=platform)
    with options["hlofront_cpu_formulas"](False):
        assert "optimization_barrier" not in lowered(function, *operands)


@pytest.mark.cpu
@pytest.mark.parametrize("name", LEFT)
def test_other_reductions_are_one_operation(name):
    function, x = LEFT[name]
    assert "optimization_barrier" not in lowered(function, x)


def own_softmax(x):
    numerators = jnp.exp(x - jnp.max(x, -1, keepdims=True))
    return numerators / numerators.sum(-1, keepdims=True)


SHIFTED = {
    "softmax": hlofront.nn.softmax,
    "log_softmax": hlofront.nn.log_softmax,
    "a softmax of one's own": own_softmax,
    "logsumexp": lambda x: hlofront.nn.logsumexp(x, -1),
    "logsumexp with factors": lambda x: hlofront.nn.logsumexp(x, -1, b=jnp.abs(x) + 2),
    "the derivative of logsumexp": hlofront.grad(lambda x: hlofront.nn.logsumexp(x, -1).sum()),
    "logmeanexp": lambda x: hlofront.nn.logmeanexp(x, -1),
    "its derivative": hlofront.grad(lambda x: (own_softmax(x) ** 2).sum()),
}


@pytest.mark.cpu
@pytest.mark.parametrize("name", SHIFTED)
def test_a_nan_makes_its_row_nan_where_the_maximum_is_subtracted(name):
    x = np.random.default_rng(0).normal(size=(64, 100)).astype(np.float32)
    x[3, 50] = np.nan
    result = hlofront.jit(SHIFTED[name])(x)
    assert np.isnan(result[3]).all()
    assert np.isfinite(np.delete(np.asarray(result), 3, 0)).all()


@pytest.mark.cpu
def test_regions_of_reductions_and_scatters_keep_operations():
    large = np.arange(5000, dtype=np.int32)

    def bounded(a, b):
        return a + lax.min(b, lax.reduce_max(large, (0,)))

    x = np.arange(6, dtype=np.int32)
    reduce = hlofront.jit(lambda x: lax.reduce(x, np.int32(0), bounded, (0,)))
    assert reduce(x) == 15
