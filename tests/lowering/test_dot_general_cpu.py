"""Products on CPUs in forms that their kernels have, against NumPy's."""

import contextlib
import re
from unittest.mock import patch

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.lowering.min_sizes import MIN_SIZES

with_formulas = options["hlofront_cpu_formulas"]
random = np.random.default_rng(0)
bfloat16 = ml_dtypes.bfloat16
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool", "float16"]
DTYPES += ["float32", "float64", "complex64", "complex128", bfloat16]
OF_MATRICES = (((1,), (0,)), ((), ()))


@pytest.fixture(autouse=True)
def forms_are_for_products_of_these_sizes(monkeypatch):
    sizes = {"small": 1 << 14, "vectors": 1 << 16, "bytes": 1 << 18, "shifted": 1 << 20}
    for form, size in sizes.items():
        monkeypatch.setitem(MIN_SIZES["dot_general"], form, size)


def whole_numbers(shape, dtype, wraps=True):
    """Numbers of which all sums in the tests are exact, or wrap."""
    dtype = np.dtype(dtype)
    if dtype.kind == "u" and not wraps:
        return random.integers(0, 4, shape, dtype)
    if dtype.kind in "iu" and wraps:
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, True)
    values = random.integers(-2, 3, shape).astype(dtype)
    return (
        values + (1j * random.integers(-2, 3, shape)).astype(dtype) if dtype.kind == "c" else values
    )


def product(numbers, result=None, precision=None):
    return lambda x, y: lax.dot_general(x, y, numbers, precision, result)


def text_of(function, *operands, platform="cpu"):
    return hlofront.jit(function).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


def form_of(x, y, dtype, numbers=OF_MATRICES, **options):
    """The types of the dots that the module has for a product of arrays of these shapes."""
    platform = options.pop("platform", "cpu")
    operands = (hlofront.ShapeDtypeStruct(shape, dtype) for shape in (x, y))
    lines = text_of(product(numbers, **options), *operands, platform=platform).splitlines()
    dots = [line.partition(" : ")[2] for line in lines if "stablehlo.dot_general" in line]
    return [re.sub("tensor<([^>]*)>", r"\1", dot) for dot in dots]


@contextlib.contextmanager
def every_size():
    """Let products of all sizes be in the forms of large ones."""
    with contextlib.ExitStack() as stack:
        sizes = MIN_SIZES["dot_general"]
        stack.enter_context(patch.dict(sizes, dict.fromkeys(sizes, 1)))
        stack.enter_context(hlofront.enable_x64(True))
        yield


def shuffled(letters, keys):
    return "".join(sorted(letters, key=lambda letter: keys["abcdefgh".index(letter)]))


keys = st.lists(st.integers(0, 9), min_size=8, max_size=8)
counts = st.tuples(*(st.integers(least, 2) for least in (0, 0, 1, 0)))
sizes = st.lists(st.integers(1, 6), min_size=8, max_size=8)


@settings(max_examples=40, deadline=None)
@given(counts, sizes, keys, keys, st.sampled_from(DTYPES), st.sampled_from([None, *DTYPES]))
def test_any_product(counts, sizes, keys, other_keys, dtype, other):
    groups = [letters[:count] for letters, count in zip(("ab", "cd", "ef", "gh"), counts)]
    batch, rows, summed, columns = groups
    x = shuffled(batch + rows + summed, keys)
    y = shuffled(batch + summed + columns, other_keys)
    rows, columns = (
        "".join(sorted(axes, key=each.index)) for axes, each in ((rows, x), (columns, y))
    )
    other = dtype if other is None else other
    with hlofront.enable_x64(True):
        result = jnp.promote_types(dtype, other)
    numbers = tuple(
        tuple(tuple(map(axes.index, letters)) for axes in (x, y)) for letters in (summed, batch)
    )
    # Sums of floats are exact for small numbers; those of integers wrap.
    arrays = [
        whole_numbers(
            [sizes["abcdefgh".index(letter)] for letter in letters], each, result.kind in "iu"
        )
        for letters, each in ((x, dtype), (y, other))
    ]
    with every_size():
        returned = np.asarray(hlofront.jit(product(numbers, result))(*arrays))
    exact = {"i": np.int64, "u": np.int64, "b": np.bool_}.get(result.kind, np.complex128)
    wanted = np.einsum(f"{x},{y}->{batch}{rows}{columns}", *(each.astype(exact) for each in arrays))
    assert returned.dtype == result and returned.shape == wanted.shape
    if exact is np.complex128 and result.kind != "c":
        wanted = wanted.real
    np.testing.assert_array_equal(returned, wanted.astype(result))


SMALL = (((2,), (1,)), ((0,), (0,)))


def test_many_small_matrices_are_sums_on_cpus_alone():
    shapes = (4096, 4, 4), (4096, 4, 4)
    assert not form_of(*shapes, np.float32, SMALL)
    assert len(form_of(*shapes, np.float32, SMALL, platform="tpu")) == 1
    assert len(form_of(*shapes, np.float32, SMALL, platform="cuda")) == 1
    with with_formulas(False):
        assert len(form_of(*shapes, np.float32, SMALL)) == 1
    assert not form_of((9000, 4), (4, 2), np.float32)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((100, 4, 4), (100, 4, 4)),
        ((4096, 3, 3), (4096, 3, 3)),
        ((1000, 9, 9), (1000, 9, 9)),
        ((4096, 4, 4), (4096, 4, 1)),
        ((4096, 4, 1), (4096, 1, 4)),
        ((4096, 4, 0), (4096, 0, 4)),
    ],
)
def test_other_batches_are_dots(x, y):
    assert len(form_of(x, y, np.float32, SMALL)) == 1


def test_integers_are_multiplied_as_int32():
    def types(dtype, result=None, size=64, **options):
        return form_of((size, size), (size, size), dtype, result=result, **options)

    bytes_, wide = (
        ["(1x64x64xi8, 1x64x64xi8) -> 1x64x64xi32"],
        ["(1x64x64xi32, 1x64x64xi32) -> 1x64x64xi32"],
    )
    assert types("int8") == types("uint8") == types("bool") == types("int8", "int16") == bytes_
    assert types("int16") == types("uint16") == types("uint32") == wide
    assert types("int8", platform="tpu") == ["(64x64xi8, 64x64xi8) -> 64x64xi8"]
    assert types("int8", size=8) == ["(8x8xi8, 8x8xi8) -> 8x8xi8"]
    assert types("int8", "int32") == ["(64x64xi8, 64x64xi8) -> 64x64xi32"]
    assert types("int32") == ["(64x64xi32, 64x64xi32) -> 64x64xi32"]


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(*[st.integers(1, 6)] * 4),
    st.sampled_from(["uint8", "int8"]),
    st.sampled_from(["uint8", "int8"]),
    st.sampled_from(["int16", "uint16", "int32", "uint32"]),
)
def test_bytes_with_wider_results(sizes, dtype, other, result):
    batch, rows, summed, columns = sizes
    x = whole_numbers((batch, rows, summed), dtype)
    y = whole_numbers((batch, summed, columns), other)
    with every_size():
        returned = hlofront.jit(product(SMALL, result))(x, y)
    assert returned.dtype == result
    wanted = np.matmul(x.astype(np.int64), y.astype(np.int64)).astype(result)
    np.testing.assert_array_equal(np.asarray(returned), wanted)


def test_unsigned_bytes_are_multiplied_as_signed_ones():
    (dot,) = form_of((128, 128), (128, 128), "uint8", result="int32")
    assert dot == "(1x128x128xi8, 1x128x128xi8) -> 1x128x128xi32"
    (vector,) = form_of((1, 1024), (1024, 1024), "uint8", result="int32")
    assert vector.startswith("(1x2x1024xi8")
    for others in ({"platform": "tpu"}, {"result": "float32"}):
        types = form_of((128, 128), (128, 128), "uint8", **{"result": "int32", **others})
        assert "ui8" in types[0]
    assert "ui8" in form_of((64, 64), (64, 64), "uint8", result="int32")[0]


def test_bfloat16_is_summed_in_float32():
    shape = (6, 6)
    assert form_of(shape, shape, bfloat16) == ["(1x6x6xbf16, 1x6x6xbf16) -> 1x6x6xf32"]
    assert form_of((900, 4, 4), (900, 4, 4), bfloat16, SMALL) == []
    for platform in ("tpu", "cuda"):
        plain = ["(6x6xbf16, 6x6xbf16) -> 6x6xbf16"]
        assert form_of(shape, shape, bfloat16, platform=platform) == plain
    algorithm = form_of(shape, shape, bfloat16, precision="BF16_BF16_F32")
    assert algorithm == ["(6x6xbf16, 6x6xbf16) -> 6x6xbf16"]


@pytest.mark.parametrize(
    ("dtype", "result"), [(bfloat16, bfloat16), (bfloat16, "float32"), ("int8", "int32")]
)
def test_vectors_are_two_equal_rows(dtype, result):
    for shapes in (((1, 300), (300, 300)), ((300, 300), (300, 1))):
        (dot,) = form_of(*shapes, dtype, result=result)
        assert dot.startswith("(1x2x300x") and "1x300x300x" in dot
        assert form_of(*shapes, dtype, result=result, platform="tpu")[0].count("x300x") < 4
    (dot,) = form_of((1, 30), (30, 30), dtype, result="float32" if dtype is bfloat16 else result)
    assert "(1x30x" in dot


def test_numbers_of_bfloat16_are_rounded_once():
    x, y = (random.normal(size=(40, 40)).astype(bfloat16) for _ in range(2))
    exact = x.astype(float) @ y.astype(float)
    result = np.asarray(jnp.matmul(x, y)).astype(float)
    assert (abs(result - exact) <= abs(exact) * 2.0**-8 + 1e-4).all()


def test_transposes_on_both_sides():
    """XLA cannot multiply bfloat16 if it moves a transpose into a product."""
    x, y = (random.integers(-2, 3, (64, 64)).astype(bfloat16) for _ in range(2))
    numbers = ((2,), (2,)), ((0,), (0,))
    result = hlofront.jit(lambda x, y: lax.dot_general(x.T[None], y.T[None], numbers))(x, y)
    np.testing.assert_array_equal(np.asarray(result)[0], (x.astype(float).T @ y).astype(bfloat16))


@every_size()
@pytest.mark.parametrize("dtype", ["float32", bfloat16, "complex64"])
def test_derivatives_and_batches(dtype):
    x, y, weights = (whole_numbers((5, 4, 4), dtype) for _ in range(3))

    def of_sums(x, y):
        return ((x @ y) * weights).sum().real.astype(np.float32)

    by_x, by_y = hlofront.grad(of_sums, (0, 1))(x, y)
    wide = np.complex128 if dtype == "complex64" else np.float64
    x, y, weights = (each.astype(wide) for each in (x, y, weights))
    for returned, wanted in (
        (by_x, weights @ y.swapaxes(1, 2)),
        (by_y, x.swapaxes(1, 2) @ weights),
    ):
        np.testing.assert_array_equal(np.asarray(returned).astype(wide), wanted)
    batched = hlofront.vmap(lambda row: row @ y[0].astype(dtype))(x.astype(dtype))
    np.testing.assert_array_equal(np.asarray(batched).astype(wide), x @ y[0])


@every_size()
def test_numbers_that_are_not_finite_stay_in_their_rows():
    x, y = (whole_numbers((3, 5, 5), np.float32) for _ in range(2))
    x[1, 2, 3] = np.nan
    result = np.asarray(jnp.matmul(x, y))
    assert np.isnan(result[1, 2]).all() and np.isnan(result).sum() == 5
