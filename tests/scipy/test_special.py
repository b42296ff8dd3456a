"""Special functions against SciPy's, over their range, with edges, infinities and NaN."""

import numpy as np
import pytest
import scipy.special

import hlofront as jax
import hlofront.numpy as jnp
import hlofront.scipy.special as special

INF, NAN = np.inf, np.nan
EDGES = [0, -0.0, INF, -INF, NAN, 1, -1, 2, -2, 0.5, -0.5, 1e-10, -1e-10, 1e10, -1e10, 3, 4, 6, 12]
REAL = np.concatenate(
    [
        EDGES,
        np.linspace(-12, 12, 97),
        np.logspace(-6, 2.5, 50),
        -np.logspace(-6, 2.5, 40),
    ]
)
UNIT = np.concatenate(
    [[0, 1, 0.5, NAN, -0.1, 1.1], np.linspace(0.001, 0.999, 100), np.logspace(-30, -1, 100)]
)
_random = np.random.default_rng(0)
A, B = 10 ** _random.uniform(-3, 2, (2, 200))
SIGN, X = _random.choice([-1, 1], 200), _random.uniform(0, 1, 200)

# Near it the incomplete gamma function of 9e5 needs many steps.
F32_SLOW = np.float32(1.4e6)

# Name -> the arguments, and the relative tolerance in float64.
UNARY = {
    **dict.fromkeys("erf erfc erfcx dawsn exp1 expit i0 i0e i1 i1e ndtr entr wofz".split(), 4e-14),
    **dict.fromkeys("expi sici fresnel gammasgn".split(), 4e-14),
    **dict.fromkeys("loggamma log_ndtr gamma gammaln".split(), 4e-13),
}
BINARY = {
    "beta": (A, B, 4e-13),
    "betaln": (A, B, 1e-13),
    "boxcox": (A, B * SIGN, 4e-14),
    "boxcox1p": (A, B * SIGN, 4e-14),
    "comb": (np.floor(3 * A), np.floor(B), 1e-12),
    "gammainc": (A, B, 1e-12),
    "gammaincc": (A, B, 1e-12),
    "kl_div": (A, B, 1e-13),
    "rel_entr": (A, B, 4e-14),
    "xlogy": (A, B, 1e-14),
    "xlog1py": (A, B, 1e-14),
    "poch": (A * SIGN, np.minimum(B, 8), 1e-12),
    "owens_t": (0.2 * A * SIGN, B, 1e-12),
    "zeta": (A + 1.1, B, 1e-13),
    "expn": (np.floor(A), B, 1e-13),
}


def compare(name, args, tolerance, narrow):
    """Ours and SciPy's, of the same numbers, in float64 and in float32."""
    ours, theirs = jax.jit(getattr(special, name)), getattr(scipy.special, name)
    with np.errstate(all="ignore"):
        with jax.enable_x64(True):
            assert_accurate(ours(*args), theirs(*args), tolerance)
        args = [np.asarray(x, np.float32) for x in args]
        wanted = theirs(*[x.astype(np.float64) for x in args])
        assert_accurate(ours(*args), wanted, narrow)


def assert_accurate(found, wanted, tolerance):
    many = found if isinstance(found, tuple) else (found,)
    for x, y in zip(many, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        x = np.asarray(x)
        limits = np.finfo(x.dtype)
        # What the dtype cannot hold, or near a zero of the function.
        y = np.where(np.abs(y) > limits.max, np.sign(y) * INF, y) if x.dtype.kind == "f" else y
        near_zero = 30 * limits.eps if tolerance > 1e-14 else 0
        np.testing.assert_allclose(x, y, tolerance, near_zero, equal_nan=True)


@pytest.mark.parametrize("name", UNARY)
def test_of_one_array(name):
    x = REAL
    if name == "gammaln":
        # SciPy's of minus infinity is minus infinity.
        x = REAL[REAL != -INF]
    compare(name, (x,), UNARY[name], 2e-5 if "gamma" in name else 1e-5)


def test_of_probabilities():
    compare("ndtri", (UNIT,), 2e-15, 1e-6)
    compare("logit", (UNIT,), 2e-14, 1e-5)
    compare("erfinv", (2 * UNIT[6:106] - 1,), 1e-9, 1e-5)


def test_erfcinv_is_accurate_next_to_zero_and_infinite_at_the_ends():
    ends = np.array([0, 1, 2, NAN, -0.1, 2.1])
    near_two = 2 - np.logspace(-6, -1, 30)
    compare("erfcinv", (np.concatenate([ends, 2 * UNIT[6:], near_two]),), 4e-15, 2e-6)
    assert not np.signbit(special.erfcinv(1.0))
    # Half of it is a subnormal number.
    np.testing.assert_allclose(special.erfcinv(np.float32(1.5e-38)), 9.1813606, 1e-5)


def test_erfcinv_of_16_bits_and_its_derivative():
    for dtype in (jnp.float16, jnp.bfloat16):
        found = special.erfcinv(jnp.asarray(0.5, dtype))
        assert found.dtype == dtype
        assert found == jnp.asarray(scipy.special.erfcinv(0.5), dtype)
    with jax.enable_x64(True):
        y = np.array([1e-30, 0.5, 1.0, 1.999])
        slope = jax.vmap(jax.grad(special.erfcinv))(y)
        wanted = -np.sqrt(np.pi) / 2 * np.exp(scipy.special.erfcinv(y) ** 2)
        np.testing.assert_allclose(slope, wanted, 1e-12)
    with pytest.raises(ValueError, match="erfcinv does not support complex-valued inputs"):
        special.erfcinv(1j)


def test_factorial_and_spence():
    with np.errstate(all="ignore"), jax.enable_x64(True):
        x = np.linspace(-3, 150, 200)
        assert_accurate(special.factorial(x), scipy.special.factorial(x), 1e-12)
        x = np.concatenate([[0, 1, NAN, -1], np.logspace(-10, 10, 200), np.linspace(0, 3, 61)])
        assert_accurate(special.spence(x), scipy.special.spence(x), 1e-13)
        assert special.spence(INF) == -INF
        x = np.linspace(0.1, 30, 100)
        for n in range(4):
            assert_accurate(special.polygamma(n, x), scipy.special.polygamma(n, x), 1e-12)
        assert_accurate(special.digamma(x), scipy.special.digamma(x), 1e-13)


@pytest.mark.parametrize("name", BINARY)
def test_of_two_arrays(name):
    first, second, tolerance = BINARY[name]
    if name == "zeta":
        second = np.maximum(second, 0.1)
    narrow = 2e-4 if name in ("poch", "beta", "owens_t") else 6e-5
    compare(name, (first, second), tolerance, narrow)


def check_slopes(functions, args):
    """Forward derivatives against differences, and reverse ones against forward ones."""

    def along(*args):
        return jax.jvp(functions, args, args)[1]

    def total(*args):
        return sum(y.sum() for y in functions(*args))

    step = 1e-5
    forward, values = jax.jit(along)(*args), jax.jit(functions)
    above, below = (values(*[x * (1 + h) for x in args]) for h in (step, -step))
    for slope, high, low in zip(forward, above, below, strict=True):
        np.testing.assert_allclose(slope, (high - low) / (2 * step), 1e-7, 1e-8)
    reverse = jax.jit(jax.grad(total, tuple(range(len(args)))))(*args)
    found = sum(float(np.sum(x * y)) for x, y in zip(reverse, args, strict=True))
    np.testing.assert_allclose(found, sum(float(y.sum()) for y in forward), 1e-10)


def _together(f, *groups):
    """The values of `f` at several groups of arguments, by one program: each takes XLA seconds."""
    sizes = np.cumsum([len(group[0]) for group in groups])[:-1]
    columns = zip(*groups, strict=True)
    return np.split(np.asarray(f(*(np.concatenate(column) for column in columns))), sizes)


@pytest.mark.long
def test_hypergeometric():
    with jax.enable_x64(True):
        b = np.minimum(B, 10) + 0.1
        a = np.minimum(A, 5)
        x = np.concatenate([60 * X[:160] - 20, 600 * X[160:] - 300])
        # Where the terms have one sign, or nearly so.
        kept = (x > 0) | (a < b)
        arguments = a[kept], b[kept], x[kept]
        edges = np.array([[0, 1, 1], [1, 2, 0], [-2, 3, 2], [3, 2, -30], [-1, -2, 1], [2, 2, 5.0]])
        found, at_edges = _together(special.hyp1f1, arguments, edges.T)
        assert_accurate(found, scipy.special.hyp1f1(*arguments), 1e-11)
        # One of them is a zero.
        np.testing.assert_allclose(at_edges, scipy.special.hyp1f1(*edges.T), 1e-10, 1e-15)

        arguments = np.minimum(A, 4), np.minimum(B, 4), 0.5 + 9 * X, 4 * X[::-1] - 3.001
        edges = np.array([[1, 2, 4, 1], [1, 1, 2, -5], [-2, 1, 3, 2], [0.5, 0.5, 1.5, 0.99]])
        beyond = np.array([[1.0, 1.0, 2.0, 2.0]])
        found = _together(special.hyp2f1, arguments, edges.T, beyond.T)
        assert_accurate(found[0], scipy.special.hyp2f1(*arguments), 1e-9)
        np.testing.assert_allclose(found[1], scipy.special.hyp2f1(*edges.T), 1e-11)
        assert found[2] == INF


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "arguments"), [("hyp1f1", (1.3, 2.1, 0.7)), ("hyp2f1", (1.3, 2.1, 3.3, 0.4))]
)
def test_derivatives_of_hypergeometric_functions(name, arguments):
    """In all arguments; scipy's functions give the differences."""
    with jax.enable_x64(True):
        positions = tuple(range(len(arguments)))
        slopes = jax.jit(jax.grad(getattr(special, name), positions))(*arguments)
        steps = 1e-5 * np.eye(len(arguments))
        wanted = getattr(scipy.special, name)
        above, below = (wanted(*(np.array(arguments) + h).T) for h in (steps, -steps))
        np.testing.assert_allclose(slopes, (above - below) / 2e-5, 1e-7)


@pytest.mark.long
def test_second_derivative_of_kummers_function():
    last = jax.grad(special.hyp1f1, 2)
    found = jax.jit(jax.grad(last, 2))(1.3, 2.1, 0.7)
    wanted = 1.3 * 2.3 / (2.1 * 3.1) * scipy.special.hyp1f1(3.3, 4.1, 0.7)
    np.testing.assert_allclose(found, wanted, 1e-5)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_combinations_of_few_and_many(dtype):
    """On both sides of the n from which Stirling's series alone gives the quotient of gammas."""
    n, k = (x.ravel().astype(dtype) for x in np.mgrid[0:40, 0:42])
    n, k = np.append(n, [7.5, 18.25, 0.5]), np.append(k, [2.5, 9.0, 0.25])
    n, k = n.astype(dtype), k.astype(dtype)
    wanted = scipy.special.comb(n.astype(float), k.astype(float))
    with jax.enable_x64(True), np.errstate(over="ignore"):
        found = np.asarray(special.comb(n, k))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted.astype(dtype), 100 * float(np.finfo(dtype).eps))


def _hypergeometric_arguments(count):
    """Some in each region: few near 1, few where all series cancel, some beyond the series."""
    random = np.random.default_rng(7)
    a, b, c = (random.uniform(0.1, 8, count) for _ in range(3))
    x = random.normal(size=count) * 2
    x[::50] = random.uniform(-300, 300, len(x[::50]))
    y = random.uniform(-1, 0.9, count)
    y[::50], y[1::50] = (
        random.uniform(0.97, 1, len(y[::50])),
        random.uniform(-80, -1, len(y[1::50])),
    )
    y[2::300], c[3::70] = 1, (a + b + 2)[3::70]
    return a, b, c, x, y


@pytest.mark.long
def test_hypergeometric_of_many():
    """Where blocks of some elements are computed apart: as of each of them, at all shapes."""
    count = 6007
    a, b, c, x, y = _hypergeometric_arguments(count)
    with jax.enable_x64(True):
        for f, args in ((special.hyp1f1, (a, b, x)), (special.hyp2f1, (a, b, c, y))):
            found = np.asarray(f(*args))
            parts = [f(*(v[k : k + 1001] for v in args)) for k in range(0, count, 1001)]
            # Where the value is near zero, rounding differs as loops end.
            np.testing.assert_allclose(found, np.concatenate(parts), 1e-8)
            rows = [v[:6000].reshape(3, 2000) for v in args]
            np.testing.assert_allclose(jax.vmap(f)(*rows).ravel(), found[:6000], 1e-8)
            wanted = getattr(scipy.special, f.__name__)(*args)
            kept = (args[-1] < 1) & (args[-1] > -20) & (args[0] < args[1])
            np.testing.assert_allclose(found[kept], wanted[kept], 1e-7)


@pytest.mark.long
@pytest.mark.parametrize("x", [0.5, 3.0, 8.5, 20.0, 29.9])
def test_oscillating_kummer_functions(x):
    """By the recurrence downwards from where the series is exact, for all below 30."""
    mpmath = pytest.importorskip("mpmath")
    a = np.array([-0.3, -1.5, -4.2, -9.7, -33.3, -80.5, -400.2])
    b = np.array([0.1, 0.5, 1.5, 4.0, 7.7, 30.0])[:, None]
    a, b = np.broadcast_arrays(a, b)
    wanted = np.vectorize(lambda a, b: float(mpmath.hyp1f1(a, b, x)))(a, b)
    size = np.abs(np.vectorize(lambda a, b: float(mpmath.hyp1f1(a - 0.5, b, x)))(a, b))
    size = size + np.abs(wanted)
    with jax.enable_x64(True):
        assert np.max(np.abs(special.hyp1f1(a, b, x) - wanted) / size) < 3e-13 * (1 + x)
        # By Kummer's transformation, and the same in float32.
        turned = special.hyp1f1(b - a, b, -x) * np.exp(x)
        assert np.max(np.abs(turned - wanted) / size) < 3e-12 * (1 + x)
    a, b = a[:, :-1].astype(np.float32), b[:, :-1].astype(np.float32)
    wanted = np.vectorize(lambda a, b: float(mpmath.hyp1f1(float(a), float(b), x)))(a, b)
    found = special.hyp1f1(a, b, np.float32(x))
    assert np.max(np.abs(found - wanted) / size[:, :-1]) < 2e-4 * (1 + x)


@pytest.mark.long
@pytest.mark.parametrize("a", [-400.0, -17.0, -3.0, -1.0])
def test_kummer_polynomials(a):
    mpmath = pytest.importorskip("mpmath")
    x = np.array([0.0, 0.3, 2.0, 25.0, 31.0, 200.0])
    wanted = [float(mpmath.hyp1f1(a, 1.7, y)) for y in x]
    with jax.enable_x64(True):
        np.testing.assert_allclose(special.hyp1f1(a, 1.7, x), wanted, 1e-11)
        # Its zero is exact.
        assert special.hyp1f1(-1.0, 0.1, 0.1) == special.hyp2f1(-1.0, 1.0, 0.5, 0.5) == 0


# Euler's transformation of the first ones is a polynomial whose terms cancel near 1; terms of the
# last one grow again after they have become negligible.
GAUSS = [(50.0, 2.0, 3.0, 0.999), (20.0, 2.0, 3.0, 0.9999), (50.0, 20.0, 30.0, 0.99)]
GAUSS += [(200.0, 2.0, 3.0, 0.95), (23.5, 14.5, 10.5, 0.999), (1.5, 2.5, -50.5, 0.5)]


@pytest.mark.long
def test_gauss_functions_of_large_parameters():
    mpmath = pytest.importorskip("mpmath")
    wanted = [float(mpmath.hyp2f1(*values)) for values in GAUSS]
    with jax.enable_x64(True):
        np.testing.assert_allclose(special.hyp2f1(*np.transpose(GAUSS)), wanted, 1e-11)
        wanted = float(mpmath.hyp1f1(1.5, -20.5, 30.0))
        np.testing.assert_allclose(special.hyp1f1(1.5, -20.5, 30.0), wanted, 1e-12)


@pytest.mark.long
def test_hypergeometric_functions_of_mapped_devices():
    """In shard_map the loops' values vary over the mesh from their start on."""
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    a, b, c, x, y = (v[:64] for v in _hypergeometric_arguments(64))
    for f, args in ((special.hyp1f1, (a, b, x)), (special.hyp2f1, (a, b, c, y))):
        args = [v.astype(np.float32) for v in args]
        spec = jax.P("i")
        mapped = jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)
        wanted = getattr(scipy.special, f.__name__)(*args)
        np.testing.assert_allclose(jax.jit(mapped)(*args), wanted, 2e-3)


def test_elements_do_not_disturb_each_other():
    """Where one needs many steps of a continued fraction, the others stay as they are."""
    with jax.enable_x64(False):
        a, x = np.float32([0.5, 3, 20, 0.5]), np.float32([2, 5, 30, 3e38])
        alone = special.gammaincc(a[:3], x[:3])
        np.testing.assert_array_equal(special.gammaincc(a, x), [*alone, 0])
        slow = special.gammaincc(np.append(a[:3], np.float32(9e5)), np.append(x[:3], F32_SLOW))
        np.testing.assert_array_equal(slow[:3], alone)
        # What is so small that it is not seen beside 1.
        np.testing.assert_allclose(
            special.betainc(np.float32(0.5), np.float32(1e-8), np.float32(0.7)),
            scipy.special.betainc(0.5, 1e-8, 0.7),
            1e-5,
        )


def test_complex():
    z = 10 ** _random.uniform(-2, 1.2, 200) * np.exp(2j * np.pi * X)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        for name, tolerance in (("wofz", 2e-13), ("loggamma", 2e-13), ("gamma", 4e-12)):
            found = np.asarray(getattr(special, name)(z))
            wanted = getattr(scipy.special, name)(z)
            kept = np.isfinite(wanted)
            assert np.max(np.abs(found - wanted)[kept] / np.abs(wanted)[kept]) < tolerance
        slope = jax.vmap(jax.grad(special.loggamma, holomorphic=True))(z)
        np.testing.assert_allclose(slope, scipy.special.digamma(z), 1e-11)
        at = 0.7 + 0.2j
        slope = 2j / np.sqrt(np.pi) - 2 * at * scipy.special.wofz(at)
        np.testing.assert_allclose(jax.grad(special.wofz, holomorphic=True)(at), slope, 1e-12)


def test_bessel_functions():
    z = np.concatenate([[0, 1e-12, 1e-3], np.linspace(-20, 20, 101)])
    wanted = scipy.special.jv(np.arange(5)[:, None], z)
    with jax.enable_x64(True):
        np.testing.assert_allclose(special.bessel_jn(z, v=4), wanted, 1e-10, 1e-14)
    np.testing.assert_allclose(special.bessel_jn(z.astype(np.float32), v=4), wanted, 1e-4, 1e-6)


@pytest.mark.parametrize("v", [0, 1, 3, 12, 40])
def test_bessel_functions_of_many_orders(v):
    """Elements of all sizes beside each other, where the recurrence would over- or underflow."""
    size = 10.0 ** np.array([-300, -30, -12, -3, -1, 0.3, 1, 1.7, 2, 2.4])
    z = np.concatenate([size, -size, [0.0, np.inf, -np.inf]])
    wanted = scipy.special.jv(np.arange(v + 1)[:, None], z)
    # SciPy's jn has the limits at infinity, jv has none.
    wanted[:, np.isinf(z)] = 0
    with jax.enable_x64(True):
        found = np.asarray(special.bessel_jn(z, v=v, n_iter=400))
        np.testing.assert_allclose(found, wanted, 1e-9, 2e-14)
        mapped = jax.vmap(lambda z: special.bessel_jn(z, v=v, n_iter=400))(z)
        np.testing.assert_allclose(mapped, found.T, 1e-11, 1e-15)
        assert np.isnan(special.bessel_jn(np.nan, v=v)).all()
        zeros = special.bessel_jn(np.array([0.0, -0.0]), v=v)
        assert (np.signbit(zeros[1::2]) == [False, True]).all()
    z = z[np.abs(z) > 1e-30].astype(np.float32)
    wanted = scipy.special.jv(np.arange(v + 1)[:, None], z.astype(float))
    wanted[:, np.isinf(z)] = 0
    np.testing.assert_allclose(special.bessel_jn(z, v=v, n_iter=400), wanted, 1e-3, 3e-6)
    assert special.bessel_jn(np.zeros(0, np.float32), v=v).shape == (v + 1, 0)


def test_spherical_harmonics():
    n = _random.integers(0, 8, 100)
    m = _random.integers(-8, 9, 100)
    theta, phi = np.pi * X[:100], 6 * X[100:]
    with jax.enable_x64(True):
        found = special.sph_harm_y(n, m, theta, phi)
        np.testing.assert_allclose(found, scipy.special.sph_harm_y(n, m, theta, phi), 1e-11, 1e-14)
        # Scalars and any shapes broadcast.
        found = special.sph_harm_y(2, np.array([[1], [0]]), 0.3, np.array([0.1, 0.2]))
        wanted = scipy.special.sph_harm_y(2, np.array([[1], [0]]), 0.3, np.array([0.1, 0.2]))
        np.testing.assert_allclose(found, wanted, 1e-12)


def test_spherical_harmonics_beyond_the_sphere():
    """Polar angles outside [0, pi]: the sine counts without its sign, as in SciPy and JAX."""
    n, m, theta = (x.ravel() for x in np.mgrid[0:4, -3:4, -4:5:2])
    inside = abs(m) <= n
    n, m, theta = n[inside], m[inside], theta[inside].astype(float)
    with jax.enable_x64(True):
        found = special.sph_harm_y(n, m, theta, -4.0)
        np.testing.assert_allclose(found, scipy.special.sph_harm_y(n, m, theta, -4.0), 1e-13)
        slope = jax.grad(lambda theta: special.sph_harm_y(1, 1, theta, 0.0, n_max=1).real)
        np.testing.assert_allclose(slope(0.0), -np.sqrt(3 / (8 * np.pi)))


def test_pochhammer_at_infinity():
    z, m = np.float64([-INF, -30.5, 0.3, 2, -3, 0, 100, -INF]), [INF, -INF, -INF, -INF] + [INF] * 4
    with jax.enable_x64(True):
        found = special.poch(z, np.float64(m))
        np.testing.assert_array_equal(found, scipy.special.poch(z, m))


def test_pochhammer_of_nan():
    # SciPy has zeros at the poles of gamma.
    assert np.isnan(special.poch(np.float32([-3, 0, 0.5, 2]), np.nan)).all()
    assert np.isnan(special.poch(np.nan, np.float32([-3, 0.5, 2]))).all()


def test_bernoulli_and_multigammaln():
    with jax.enable_x64(True):
        found = np.asarray(special.bernoulli(60))
        np.testing.assert_allclose(found, scipy.special.bernoulli(60), 1e-11)
        assert np.isinf(np.asarray(special.bernoulli(262))[[260, 262]]).all()
        found = special.multigammaln(np.array([3.0, 7.5]), 4)
        wanted = [scipy.special.multigammaln(x, 4) for x in (3.0, 7.5)]
        np.testing.assert_allclose(found, wanted, 1e-13)


@pytest.mark.long
def test_derivatives():
    x = np.array([0.3, 0.7, 1.6, 4.5])
    functions = ("dawsn erfcx exp1 expi log_ndtr ndtr spence i0 i1 gamma entr").split()

    def several(x):
        found = [getattr(special, name)(x) for name in functions]
        return [*found, *special.sici(x), *special.fresnel(x / 2)]

    def of_two(x, y):
        names = "betaln beta kl_div rel_entr xlogy xlog1py owens_t poch boxcox comb".split()
        return [getattr(special, name)(x, y) for name in names]

    with jax.enable_x64(True):
        check_slopes(several, (x,))
        check_slopes(of_two, (x + 2, x))
        p = np.array([1e-8, 0.1, 0.6, 0.99])
        slope = jax.vmap(jax.grad(special.ndtri))(p)
        y = scipy.special.ndtri(p)
        np.testing.assert_allclose(slope, np.sqrt(2 * np.pi) * np.exp(y**2 / 2), 1e-12)
        found = jax.vmap(jax.grad(special.expn, 1), (None, 0))(3, x)
        np.testing.assert_allclose(found, -scipy.special.expn(2, x), 1e-12)
        # The second derivative of order 1 is the function of order -1.
        second = jax.vmap(jax.grad(jax.grad(lambda x: special.expn(1, x))))(x)
        np.testing.assert_allclose(second, np.exp(-x) * (1 + x) / x**2, 1e-12)
        assert jax.grad(special.spence)(1.0) == -1
        slope = jax.vmap(jax.grad(special.log_ndtr))(np.array([-1e3, -30.0, 30.0]))
        np.testing.assert_allclose(slope, [1000.001, 30.033259667, 1.47364613e-196], 1e-5)


def test_narrow_dtypes():
    x = np.array([0.3, 1.5, 2.5])
    for dtype, tolerance in ((jnp.bfloat16, 1e-2), (jnp.float16, 2e-3)):
        narrow = jnp.asarray(x, dtype)
        wide = np.asarray(narrow, np.float64)
        for name in ("erfcx", "dawsn", "exp1", "expi", "gammaln", "i0"):
            found = getattr(special, name)(narrow)
            assert found.dtype == dtype
            wanted = getattr(scipy.special, name)(wide)
            np.testing.assert_allclose(np.asarray(found, np.float64), wanted, tolerance, 1e-2)


def test_relative_entropies_whose_ratios_overflow():
    for dtype, narrow in ((np.float32, 3e-6), (np.float64, 1e-14)):
        limits = np.finfo(dtype)
        exponents = np.array([limits.minexp, -40, 0, 40, limits.maxexp - 12])
        p, q = (1.25 * 2.0 ** x.ravel() for x in np.meshgrid(exponents, exponents))
        exponents = np.log2(p / 1.25) - np.log2(q / 1.25)
        with jax.enable_x64(True):
            found = special.rel_entr(p.astype(dtype), q.astype(dtype))
        np.testing.assert_allclose(found, p * (exponents * np.log(2)), narrow)
    # Subnormal ones are zeros in the arithmetic of some devices.
    p = np.array([2.0, 0.5, 600], np.float16)
    q = np.array([6.2e-5, 60000, 6.2e-5], np.float16)
    wide = p.astype(np.float64)
    np.testing.assert_allclose(special.rel_entr(p, q), wide * np.log(wide / q), 1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_relative_entropy_beside_infinity(dtype):
    numbers = np.array([1e-30, 1, 5, 1e20], dtype)
    with jax.enable_x64(True):
        infinite = np.full_like(numbers, np.inf)
        np.testing.assert_array_equal(special.rel_entr(numbers, infinite), -np.inf)
        np.testing.assert_array_equal(special.rel_entr(infinite, numbers), np.inf)


@pytest.mark.parametrize("narrow", [False, True])
def test_slopes_of_box_cox_transformations_along_the_exponent(narrow):
    x = np.array([0.2, 0.9, 1.5, 30.0])
    for exponent in (-2.0, -0.3, -1e-9, 0.0, 1e-5, 0.4, 3.0):
        logarithm = np.log(x).astype(np.longdouble)
        z = exponent * logarithm
        if abs(exponent) < 1e-3:
            wanted = logarithm**2 * (1 / 2 + z / 3 + z**2 / 8)
        else:
            wanted = (logarithm * np.exp(z) - np.expm1(z) / exponent) / exponent
        dtype = np.float32 if narrow else np.float64
        with jax.enable_x64(True):
            slope = jax.grad(lambda e: special.boxcox(x.astype(dtype), e).sum())
            found = slope(np.array(exponent, dtype))
            second = jax.grad(slope)(np.array(0.0, dtype))
        np.testing.assert_allclose(found, float(wanted.sum()), 3e-5 if narrow else 1e-12)
        np.testing.assert_allclose(second, (np.log(x) ** 3 / 3).sum(), 1e-5 if narrow else 1e-13)
