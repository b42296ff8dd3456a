"""Operations of kernels for TPUs: libtpu compiles them, and formulas have the known values."""

import numpy as np
import pytest
from scipy import special

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.lowering.core.formulas import Formula
from hlofront.pallas.mosaic import kernel_module  # noqa: F401 (registers the rules)
from hlofront.pallas.mosaic.formulas import FORMULAS
from tests.pallas.mosaic_modules import (
    BF16,
    BOOL,
    F32,
    I8,
    I32,
    SCALARS,
    X,
    array,
    call,
    map_elements,
    on_tpu,
)

U32, F8, I16, I4 = jnp.uint32, jnp.float8_e4m3fn, jnp.int16, jnp.int4


def is_compiled(kernel, *avals, out=X, **options):
    """Return whether a kernel of whole arrays is compiled for an absent v5e."""
    lowered = on_tpu(lambda *args: pl.pallas_call(kernel, out, **options)(*args), *avals)
    return "tpu_custom_call" in lowered.compile().as_text()


def compiles(function, *avals):
    """Return whether a kernel that computes a function of its inputs is compiled."""

    def kernel(*refs):
        refs[-1][...] = function(*[ref[...] for ref in refs[:-1]])

    out = jax.eval_shape(function, *avals)
    return is_compiled(kernel, *avals, out=array(out.shape, out.dtype))


# ---- formulas ------------------------------------------------------------------------------------

_SIZES = np.geomspace(1e-30, 1e30, 2001)
POINTS = np.concatenate(
    [np.linspace(-3, 3, 4001), _SIZES, -_SIZES, [0, -0.0, 1, -1, 89.3, -89.3, np.inf, np.nan]]
).astype(np.float32)
# By primitive, the function in float64, and how many units in the last place it may be off.
KNOWN = {
    "acos": (np.arccos, 2),
    "acosh": (np.arccosh, 4),
    "asin": (np.arcsin, 3),
    "asinh": (np.arcsinh, 3),
    "atan": (np.arctan, 2),
    "atanh": (np.arctanh, 3),
    "cbrt": (np.cbrt, 2),
    "cosh": (np.cosh, 3),
    "erf_inv": (special.erfinv, 8),
    "erfc": (special.erfc, 4),
    "expm1": (np.expm1, 6),
    "integer_pow": (lambda x: x**3, 2),
    "log2": (np.log2, 3),
    "neg": (np.negative, 0),
    "one_minus_square": (lambda x: (1 - x) * (1 + x), 2),
    "sign": (np.sign, 0),
    "sinh": (np.sinh, 6),
    "square": (np.square, 0.5),
}


def formula_of(name):
    ((function, _),) = [row for primitive, row in FORMULAS.items() if primitive.name == name]
    return lambda *xs, **params: function(*map(Formula, xs), **params).value


@pytest.mark.parametrize("name", KNOWN)
def test_a_formula_has_the_known_values(name):
    known, units = KNOWN[name]
    params = {"y": 3} if name == "integer_pow" else {}
    result = np.asarray(jax.jit(lambda x: formula_of(name)(x, **params))(POINTS), np.float64)
    with np.errstate(all="ignore"):
        expected = known(POINTS.astype(np.float64)).astype(np.float32).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(result), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(result), np.isinf(expected))
    # Subnormal numbers are 0 on a TPU.
    normal = np.isfinite(expected) & (abs(expected) > 1e-36)
    result, expected = result[normal], expected[normal]
    assert (abs(result - expected) <= units * np.spacing(abs(expected).astype(np.float32))).all()


def test_formulas_of_bits_are_exact():
    generator = np.random.default_rng(0)
    others = generator.permutation(POINTS)
    following = np.asarray(jax.jit(formula_of("nextafter"))(POINTS, others))
    np.testing.assert_array_equal(following, np.nextafter(POINTS, others))
    for dtype in (np.int32, np.uint32):
        limits = np.iinfo(dtype)
        x, y = generator.integers(limits.min, limits.max, (2, 1000), dtype, endpoint=True)
        upper = np.asarray(jax.jit(formula_of("mulhi"))(x, y))
        np.testing.assert_array_equal(upper, (x.astype(object) * y >> 32).astype(dtype))
    for format_ in ((8, 7), (5, 10), (5, 2), (4, 3), (8, 23), (2, 1)):
        bits = dict(zip(("exponent_bits", "mantissa_bits"), format_, strict=True))
        rounded = jax.jit(lambda x, bits=bits: formula_of("reduce_precision")(x, **bits))(POINTS)
        np.testing.assert_array_equal(rounded, lax.reduce_precision(POINTS, *format_))


_UNARY = (
    "acos asin asinh atan atanh cbrt cosh erf_inv erfc expm1 log2 logistic neg sign sinh square"
)


def all_formulas(x):
    total = lax.reduce_precision(x, 5, 10) + x**-3 + lax.integer_pow(-x, 0)
    for name in _UNARY.split():
        total += getattr(lax, name)(x)
    return jnp.where(lax.is_finite(total), total, x)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "avals"),
    [
        (all_formulas, [X]),
        (all_formulas, [array((16, 128), BF16)]),
        (lambda x, y: lax.nextafter(x, lax.acosh(y)), [X, X]),
        (lambda x, y: lax.mulhi(x, y), [array((16, 128), I32)] * 2),
        (lambda x, y: lax.mulhi(x, y), [array((16, 128), U32)] * 2),
    ],
)
def test_libtpu_compiles_formulas(function, avals):
    assert compiles(function, *avals)


# ---- elements of few bits, masks and unsigned integers -------------------------------------------


def arithmetic(x, y):
    least = lax.max(lax.min(x, y), x) + x * y - lax.clamp(x, y, x)
    return jnp.where(least > y, least, jnp.zeros_like(x)) // jnp.full_like(x, 3)


def of_bits(x, y):
    return lax.population_count(x) + lax.clz(y) + (x & ~y ^ x | y)


def rounded(x, y):
    return lax.round(x) + lax.round(y, lax.RoundingMethod.TO_NEAREST_EVEN) + jnp.abs(x) ** y


def extrema(x, y):
    rows = jnp.max(x, 1, keepdims=True) + jnp.min(y, 1, keepdims=True)
    return rows + jnp.min(x, 0, keepdims=True) + jnp.max(y, 0, keepdims=True)


def moved(x, y):
    whole = jnp.concatenate([x, pltpu.roll(y, 3, 0)], 1).reshape(32, 256)
    parts = jnp.swapaxes(whole.reshape(4, 8, 256), 0, 1)[0, :, :128]
    return jnp.where(parts, y.T[:4, :1].astype(F32), jnp.stack([x, y])[1, :4].astype(F32))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "dtypes"),
    [
        (arithmetic, [I32, U32, I16, I8, jnp.uint8, I4, BF16, F8]),
        (of_bits, [I32, U32, I16, I8, jnp.uint8]),
        (rounded, [F32, BF16, F8]),
        (extrema, [F32, U32, jnp.uint8, I8, BF16]),
        (moved, [BOOL]),
    ],
)
def test_libtpu_compiles_operations_on_elements_of_any_size(function, dtypes):
    for dtype in dtypes:
        assert compiles(function, *[array((32, 128), dtype)] * 2)


@pytest.mark.slow
def test_libtpu_compiles_rolls():
    def rolls(x):
        return pltpu.roll(x, 3, 0) + pltpu.roll(x, 5, 1, stride=2, stride_axis=0)

    assert compiles(rolls, X)
    assert "dim 1 {stride = 2 : si32, stride_dimension = 0 : si32}" in map_elements(rolls, X)


def on_scalars(function):
    """Return a kernel that writes a function of two scalars to a scalar."""

    def kernel(x, o):
        result = function(x[0], x[1])
        o[0] = result.astype(F32 if jnp.issubdtype(result.dtype, jnp.floating) else I32)

    return kernel


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "dtypes"),
    [
        (lambda x, y: jnp.where(x < y, x + y * x, lax.max(x, y)), [F32, BF16, I32, U32, I16, I8]),
        (lambda x, y: jnp.exp(x) + lax.pow(jnp.abs(x), y) + lax.round(y), [F32, BF16]),
        (lambda x, y: lax.population_count(x) + lax.clz(y) + ~x, [I32, U32, I16, jnp.uint8]),
    ],
)
def test_libtpu_compiles_operations_on_scalars(function, dtypes):
    for dtype in dtypes:
        floating = jnp.issubdtype(dtype, jnp.floating)
        out = array((1,), F32 if floating else I32)
        assert is_compiled(
            on_scalars(function),
            array((2,), dtype),
            out=out,
            in_specs=[SCALARS],
            out_specs=SCALARS,
        )


# ---- other operations ----------------------------------------------------------------------------


def test_a_product_may_have_a_wider_dtype_than_its_factors():
    text = map_elements(lambda x: lax.mul(x, x, out_dtype=F32), array((16, 128), BF16))
    assert "arith.mulf %1, %2 : vector<16x128xf32>" in text


def print_all(x, o):
    pl.debug_print("step")
    pl.debug_print("step {} of {}", pl.program_id(0), 2.5 * pl.num_programs(0))
    pl.debug_print("x: {}", x[...])
    o[...] = x[...]


@pytest.mark.slow
def test_kernels_print_scalars_and_vectors():
    text = call(print_all, X, grid=(2,))
    assert 'tpu.log "step $s0 of $f1" {formatted = true}' in text
    assert 'tpu.log_buffer "x: " {shape = array<i64: 16, 128>}' in text
    assert is_compiled(print_all, X, grid=(2,))


@pytest.mark.slow
def test_kernels_make_references():
    def kernel(x, o):
        total = jax.new_ref(x[...])
        total[...] += 1.0
        o[...] = jax.freeze(total)

    assert "memref.alloca" in call(kernel, X)
    assert is_compiled(kernel, X)


def test_kernels_have_the_branch_of_tpus():
    def chosen(x):
        return lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.exp, default=jnp.cos)

    text = map_elements(chosen, X)
    assert "math.exp" in text
    assert "math.cos" not in text


def test_what_says_where_arrays_are_changes_nothing():
    assert "arith.mulf" in map_elements(lambda x: lax.optimization_barrier(x) * 2, X)


@pytest.mark.slow
def test_views_of_references_are_those_of_mosaic():
    def kernel(x, o):
        words = x.at[0:32].reshape(64, 128).bitcast(U32)
        o[...] = words[::2, :]

    avals, out = array((64, 256), BF16), array((16, 128), U32)
    text = call(kernel, avals, out=out)
    assert "tpu.memref_reshape" in text
    assert "tpu.memref_bitcast" in text
    assert "tpu.strided_load" in text

    def rows(x, o):
        o[...] = x.reshape(2, 64, 128).at[1].bitcast(U32)[...]

    assert is_compiled(rows, array((128, 128), BF16), out=array((32, 128), U32))
