"""jit(f, buckets=...): calls of many lengths share a few programs, with results as without."""

import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.errors import InconclusiveDimensionOperation, PaddingError, RecompilationError
from hlofront.runtime.dispatch import bucketed

BUCKETS = {"x": (4, 8, 16)}
LENGTHS = 3, 4, 7, 16
WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def rows(length):
    return np.sin(np.arange(3 * length, dtype=np.float32)).reshape(length, 3)


def softmax_over_rows(x):
    return jax.nn.softmax(x, axis=0)


def normalized(x):
    return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)


def attention(x):
    scores = jnp.where(jnp.tri(x.shape[0], dtype=bool), x @ x.T, -jnp.inf)
    return jax.nn.softmax(scores, axis=1) @ x


def gradient_of_loss(x):
    return jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(WEIGHTS)


def gradient_of_rows(x):
    return jax.grad(lambda x: jnp.log(jnp.sum(jnp.exp(x))))(x)


def recurrence(x):
    return lax.scan(lambda h, row: (jnp.tanh(h + row), h), jnp.zeros(3), x)


def last_row(x):
    return x[-1], x[::-1], jnp.argmax(x, axis=0), x.shape[0] * 2


def sorted_rows(x):
    return jnp.sort(x, axis=0), jnp.quantile(x[:, 0], 0.3)


def dropout(x):
    return jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, x.shape), x / 0.5, 0)


def each_row(x):
    return jax.vmap(lambda row: row / jnp.linalg.norm(row))(x), {"sum": x.sum()}


SEALED = [
    softmax_over_rows,
    normalized,
    attention,
    gradient_of_loss,
    gradient_of_rows,
    recurrence,
    last_row,
    sorted_rows,
    dropout,
    each_row,
]


def spectrum(x):
    return jnp.fft.fft(x, axis=0)


def flat(x):
    return x.T.reshape(-1)


def factor(x):
    return jnp.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0]))


def noise(x):
    return x.T + jax.random.normal(jax.random.key(0), x.T.shape)


def on_host(x):
    return jax.pure_callback(np.sort, x, x)


LEAKING = {
    spectrum: "fft .*depends on all along the padded axis.* Use it along other axes",
    flat: "reshape .*padding would come between.* Move that axis to the front",
    factor: "cholesky .*depends on all along the padded axis",
    noise: "random_bits .*depend on the whole shape.* a key per element",
    on_host: "pure_callback .*not known .* Call it outside of this function",
}


@pytest.mark.parametrize("fun", SEALED)
def test_results_are_those_of_the_shapes_as_they_are(fun):
    bucketed = jax.jit(fun, buckets=BUCKETS)
    with jax.max_compiles(3):
        results = [bucketed(rows(length)) for length in LENGTHS]
    for length, result in zip(LENGTHS, results, strict=True):
        expected = fun(jnp.asarray(rows(length)))
        assert jax.tree.structure(result) == jax.tree.structure(expected)
        for one, other in zip(*map(jax.tree.leaves, (result, expected)), strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)
            assert one.dtype == jnp.asarray(other).dtype
    report = bucketed.cache_report()
    assert len(report.entries) == report.executables == 3


@pytest.mark.parametrize("fun", LEAKING)
def test_functions_whose_results_would_depend_on_the_padding_are_refused(fun):
    with pytest.raises(PaddingError) as caught:
        jax.jit(fun, buckets=BUCKETS)(rows(3))
    message = str(caught.value).replace("\n", " ")
    assert re.search(LEAKING[fun], message), message
    assert f"test_buckets.py:{fun.__code__.co_firstlineno + 1}" in message
    assert "x up to 4" in message


def test_python_code_that_needs_a_length_is_told_that_it_has_none():
    for fun in (lambda x: [x[i] for i in range(x.shape[0])], lambda x: x if len(x) > 2 else -x):
        with pytest.raises((InconclusiveDimensionOperation, TypeError)) as caught:
            jax.jit(fun, buckets={"x": (4,)})(rows(3))
        text = "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
        assert "x" in text
    with pytest.raises(InconclusiveDimensionOperation) as caught:
        jax.jit(lambda x: x if x.shape[0] > 2 else -x, buckets={"x": (4,)})(rows(3))
    assert "1 <= x <= 4" in "".join(caught.value.__notes__)


def test_a_branch_on_lengths_of_different_buckets_is_decided():
    fun = jax.jit(lambda x: x * 2 if x.shape[0] > 4 else x, buckets=BUCKETS)
    assert fun(np.ones(4)).sum() == 4
    assert fun(np.ones(5)).sum() == 10


# ---- which axes ----------------------------------------------------------------------------------


def test_keys_are_names_positions_axes_and_places_of_one_length():
    def fun(x, mask, *, y=None):
        return (x * mask).sum() + (0 if y is None else y["a"].sum())

    x, y = rows(3), {"a": rows(5).T}
    for buckets in (
        {("x", "mask"): (4,)},
        {(0, "mask"): "auto"},
        {((0, 0), ("mask", 0)): 1.5},
        {("x", "mask"): (4,), ("y", 1): (8,)},
        {("x", "mask"): (4,), ("y", -1): (8,)},
    ):
        bucketed = jax.jit(fun, buckets=buckets)
        given = {"y": y} if len(buckets) > 1 else {}
        np.testing.assert_allclose(
            bucketed(x, np.ones((3, 1)), **given), fun(x, np.ones((3, 1)), **given), rtol=1e-5
        )
        np.testing.assert_allclose(bucketed(x, mask=np.ones((3, 1)), y=y), x.sum() + y["a"].sum())


def test_auto_grows_by_powers_of_two_and_a_factor_by_itself():
    for growth, sizes in (("auto", [8, 16, 32, 64]), (3, [8, 24, 72]), (1.01, list(range(8, 51)))):
        seen = []
        fun = jax.jit(lambda x, seen=seen: seen.append(1) or x.sum(), buckets={"x": growth})
        for length in range(1, 51):
            assert fun(np.ones(length)) == length
        assert len(seen) == len(sizes)


@pytest.mark.parametrize(
    ("buckets", "error", "words"),
    [
        ({"z": (4,)}, ValueError, "'z', which is not a parameter .* it has x, n"),
        ({2: (4,)}, ValueError, "2, which is not a parameter"),
        ({"n": (4,)}, ValueError, "'n', which is a static argument"),
        ({"x": (8, 4)}, ValueError, "ascending sizes .* got \\(8, 4\\)"),
        ({"x": ()}, ValueError, "ascending sizes"),
        ({"x": "big"}, ValueError, '"auto" for powers of two'),
        ({"x": 1}, ValueError, "a factor above 1"),
        ({1.5: (4,)}, TypeError, "a key of `buckets`"),
        ({"x": (4,), 0: (8,)}, ValueError, "two entries"),
        ((4, 8), TypeError, "`buckets` is a dictionary"),
    ],
)
def test_wrong_buckets_are_refused(buckets, error, words):
    with pytest.raises(error, match=words):
        jax.jit(lambda x, n: x, static_argnames="n", buckets=buckets)


def test_lengths_that_fit_no_bucket_are_refused_with_the_argument():
    fun = jax.jit(lambda x, y: x + y, buckets={("x", "y"): (4, 8)})
    with pytest.raises(ValueError, match=r"'x' along axis 0 .* length 9, .* largest bucket is 8"):
        fun(np.ones(9), np.ones(9))
    with pytest.raises(ValueError, match=r"'y' along axis 0 .* length 4, and 'x' .* has 3"):
        fun(np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="length 0"):
        fun(np.ones(0), np.ones(0))
    with pytest.raises(TypeError, match="was given an array of shape \\(\\)"):
        fun(np.float32(1), np.ones(3))
    with pytest.raises(ValueError, match="no array was given"):
        jax.jit(lambda x: 1, buckets={"x": (4,)})([])
    with pytest.raises(TypeError, match="array of random keys"):
        jax.jit(lambda x: x, buckets={"x": (4,)})(jax.random.split(jax.random.key(0), 3))


# ---- programs ------------------------------------------------------------------------------------


def test_recompilations_are_reported_with_the_bucket(capsys):
    fun = jax.jit(lambda x: x.sum(), buckets={"x": (4, 8)})
    fun(np.ones(3))
    with jax.no_recompile():
        fun(np.ones(2))
        with pytest.raises(RecompilationError, match=r"f32\[4\] -> f32\[8\] \(buckets of x: 4, 8"):
            fun(np.ones(5))
    fun(np.ones(5))
    first, second = fun.cache_report().entries
    assert first.arguments == "x: f32[4], bucket_lengths['x']: i32[]"
    assert re.search("the first, for 1 <= x <= 4, with masks of reduce_sum at .*:", first.why)
    assert "for 5 <= x <= 8" in second.why
    fun.clear_cache()
    assert not fun.cache_report().entries
    assert fun(np.ones(3)) == 3


def test_stages_show_the_padded_program_and_shapes_of_results_are_those_without_padding():
    fun = jax.jit(lambda x, n: (x * n, x.sum()), static_argnums=1, buckets={"x": (4, 8)})
    lowered = fun.lower(np.ones(5, np.float32), 2)
    assert "tensor<8xf32>" in lowered.as_text()
    (args, kwargs) = lowered.in_avals
    assert args[0].shape == (8,)
    assert list(kwargs["bucket_lengths"]) == ["x"]
    assert "shapes=((x,), None)" in repr(lowered.out_info)
    for shapes in (
        fun.eval_shape(jax.ShapeDtypeStruct((5,), "float32"), 2),
        jax.eval_shape(lambda x: fun(x, 2), np.ones(5, np.float32)),
    ):
        assert [shape.shape for shape in shapes] == [(5,), ()]
    result = lowered.compile()(np.arange(8, dtype=np.float32), bucket_lengths={"x": np.int32(3)})
    assert result.value[1] == 3


def test_inside_of_traced_functions_shapes_are_as_they_are():
    fun = jax.jit(lambda x: (x**2).mean(), buckets={"x": (4, 8)})
    np.testing.assert_allclose(jax.grad(fun)(jnp.ones(3)), np.full(3, 2 / 3), rtol=1e-6)
    assert jax.jit(lambda x: fun(x))(np.ones(3)) == 1
    assert jax.vmap(fun)(np.ones((2, 3))).shape == (2,)
    with jax.disable_jit():
        assert fun(jnp.ones(3)) == 1


def test_other_options_of_jit_work_or_are_refused():
    fun = jax.jit(lambda x, y: x + y, donate_argnums=0, buckets={("x", "y"): (4,)})
    whole, part = jnp.ones(4), jnp.ones(3)
    fun(whole, np.ones(4, np.float32))
    assert whole.is_deleted()
    np.testing.assert_array_equal(fun(part, np.ones(3, np.float32)), [2, 2, 2])
    assert not part.is_deleted()  # A padded copy of it was donated.
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    with pytest.raises(ValueError, match="both `buckets` and shardings"):
        jax.jit(lambda x: x, in_shardings=sharding, buckets={"x": (4,)})
    committed = jax.device_put(jnp.ones(3), jax.devices()[0])
    assert fun(committed, committed).committed


def test_arrays_that_are_not_in_the_memory_of_the_host_are_padded_on_their_device(monkeypatch):
    fun = jax.jit(lambda x: (x * 2, x.mean()), buckets={"x": (4,)})
    expected = fun(jnp.arange(3.0))
    monkeypatch.setattr(bucketed, "_is_on_host", lambda x: False)
    for one, other in zip(fun(jnp.arange(3.0)), expected, strict=True):
        np.testing.assert_array_equal(one, other)
    x = jax.device_put(jnp.arange(3.0), jax.devices()[0])
    monkeypatch.setattr(type(x), "devices", lambda x: {1, 2})
    with pytest.raises(ValueError, match=r"on 2 devices .* pad it to the bucket before"):
        fun(x)


def test_dtypes_and_weak_types_stay():
    fun = jax.jit(lambda x: x + 1, buckets={"x": (4,)})
    for x in (jnp.full(3, 1.0), jnp.ones(3, "bfloat16"), jnp.arange(3), np.ones(3, bool)):
        result, expected = fun(x), jnp.asarray(x) + 1
        assert (result.dtype, result.weak_type) == (expected.dtype, expected.weak_type)
        assert result.shape == (3,)
    with jax.enable_x64(True):
        assert fun(np.ones(3)).dtype == np.float64


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x[-3:], x[:5], x[2:-1]),
        lambda x: (x[x.shape[0] // 2 :], x[: x.shape[0] // 2].sum(0)),
        lambda x: jnp.concatenate([x[-3:], x[:2]]).mean(0),
    ],
)
def test_parts_that_are_shorter_for_short_arrays(function):
    """Their sizes are maxima and quotients of the length."""
    bucketed = jax.jit(function, buckets={"x": (8, 16)})
    for length in (1, 2, 3, 5, 8, 9, 16):
        x = np.arange(4.0 * length, dtype=np.float32).reshape(length, 4)
        pairs = zip(jax.tree.leaves(bucketed(x)), jax.tree.leaves(function(x)), strict=True)
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=1e-6)
