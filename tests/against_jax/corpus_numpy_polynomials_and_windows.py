"""Windows, polynomials, differences and index tricks: many keywords.

Where nothing is said, programs run under jit; those that need values run as they are.
"""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, floats, ints, unit


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    windows(corpus, jax, jnp)
    neighbours(corpus, jnp)
    slopes_and_areas(corpus, jnp)
    lines(corpus, jnp)
    angles(corpus, jnp)
    polynomials(corpus, jax, jnp)
    zeros_and_fits(corpus, jnp)
    index_tricks(corpus, jax, jnp)
    return corpus


def windows(corpus, jax, jnp):
    names = ("bartlett", "blackman", "hamming", "hanning")

    @corpus.program()
    def windows_of_every_size():
        return [[getattr(jnp, name)(size) for size in (0, 1, 2, 3, 8)] for name in names]

    @corpus.program()
    def windows_of_odd_sizes():
        return jnp.bartlett(5.7), jnp.hanning(np.int32(4)), jnp.hamming(True), jnp.bartlett("3")

    @corpus.program(x64=True)
    def windows_with_x64():
        return [getattr(jnp, name)(5) for name in names], jnp.kaiser(5, 3.0)

    @corpus.program(np.float32(2.5), np.int32(3), floats(5), np.float16(2))
    def kaisers(beta, whole, each, half):
        return (
            jnp.kaiser(5, beta),
            jnp.kaiser(4, whole),
            jnp.kaiser(5, each),
            jnp.kaiser(6, 14),
            jnp.kaiser(4, 0.0),
            jnp.kaiser(4, True),
            jnp.kaiser(0, beta),
            jnp.kaiser(1, each),
            jnp.kaiser(3, each[:1]),
        )

    @corpus.program(np.float32(2.5))
    def derivative_of_a_kaiser(beta):
        return jax.jacfwd(lambda b: jnp.kaiser(5, b))(beta)


def neighbours(corpus, jnp):
    @corpus.program(floats(5), ints(2, 3), bools(6), complexes(4), floats(3, dtype=bf16))
    def diff_of_dtypes(x, n, p, z, h):
        return (
            jnp.diff(x),
            jnp.diff(n, axis=0),
            jnp.diff(p),
            jnp.diff(p, 2),
            jnp.diff(z),
            jnp.diff(h),
        )

    @corpus.program(np.array([3, 1, 2], np.uint8), np.array([-100, 100], np.int8))
    def diff_wraps(n, m):
        return jnp.diff(n), jnp.diff(m)

    @corpus.program(floats(3, 5))
    def diff_orders_and_axes(x):
        return (
            jnp.diff(x, 0),
            jnp.diff(x, 2),
            jnp.diff(x, 7),
            jnp.diff(x, n=3, axis=0),
            jnp.diff(x, axis=-2),
            jnp.diff(x[:, :1]),
            jnp.diff(x[:, :0]),
        )

    @corpus.program(floats(2, 3), ints(2, 2))
    def diff_with_ends(x, n):
        return (
            jnp.diff(x, prepend=0),
            jnp.diff(x, append=1.5),
            jnp.diff(x, prepend=n, append=x),
            jnp.diff(x, 2, axis=0, prepend=x[:1], append=2),
            jnp.diff(n, prepend=1.5),
            jnp.diff(n, append=1j),
            jnp.diff(n, 0, prepend=1.5),
            jnp.diff(x[:, :0], prepend=1, append=2),
        )

    @corpus.program(bools(4))
    def diff_of_booleans_with_ends(p):
        return jnp.diff(p, prepend=True), jnp.diff(p, prepend=2), jnp.diff(p, append=p)

    @corpus.program()
    def diff_of_weak():
        weak = 1.0 * jnp.arange(4)
        return jnp.diff(weak), jnp.diff(weak, 2, append=1), jnp.diff(1.0, 0), jnp.diff(weak, 0)

    @corpus.program(floats(2, 3), ints(4), floats(3, dtype=np.float16))
    def ediff1d(x, n, h):
        return (
            jnp.ediff1d(x),
            jnp.ediff1d(n),
            jnp.ediff1d(h, 1.5, x),
            jnp.ediff1d(n, to_begin=x),
            jnp.ediff1d(n, to_end=n, to_begin=2),
            jnp.ediff1d(x[0, 0]),
            jnp.ediff1d(x[:0], 7),
        )

    @corpus.program()
    def ediff1d_of_weak():
        weak = 1.0 * jnp.arange(4)
        return jnp.ediff1d(weak), jnp.ediff1d(2.0), jnp.ediff1d(weak, 1)


def slopes_and_areas(corpus, jnp):
    @corpus.program(floats(3, 4))
    def gradient_of_axes(x):
        return (
            jnp.gradient(x),
            jnp.gradient(x, axis=1),
            jnp.gradient(x, axis=-2),
            jnp.gradient(x, axis=(1,)),
            jnp.gradient(x, axis=(1, 0)),
            jnp.gradient(x, axis=()),
            jnp.gradient(x, axis=(0, 0)),
            jnp.gradient(x[0, 0]),
            jnp.gradient(x[:, :2], axis=1),
        )

    @corpus.program(floats(3, 4), np.float32([0, 1, 3]), np.int32([0, 2, 3, 7]))
    def gradient_with_spacing(x, rows, columns):
        return (
            jnp.gradient(x, 2.0),
            jnp.gradient(x, 2, 3.5),
            jnp.gradient(x, rows, columns),
            jnp.gradient(x, rows, 2, axis=(0, 1)),
            jnp.gradient(x, columns, axis=1),
            jnp.gradient(x, rows[1], axis=0),
            jnp.gradient(x[:2], rows[:2], axis=0),
        )

    @corpus.program(ints(4), bools(4), complexes(3), floats(4, dtype=bf16))
    def gradient_of_dtypes(n, p, z, h):
        return (
            jnp.gradient(n),
            jnp.gradient(n, 2),
            jnp.gradient(p),
            jnp.gradient(z),
            jnp.gradient(h),
            jnp.gradient(h, 2),
            jnp.gradient(n, 1j),
            jnp.gradient(h, np.float32([0, 1, 2, 4])),
            jnp.gradient(1.0 * jnp.arange(4)),
            jnp.gradient(1.0 * jnp.arange(4), 2.0),
        )

    @corpus.program(floats(3, 4), np.float32([0, 1, 3, 4]))
    def trapezoids(y, x):
        return (
            jnp.trapezoid(y),
            jnp.trapezoid(y, axis=0),
            jnp.trapezoid(y, x),
            jnp.trapezoid(y, x[:3], axis=0),
            jnp.trapezoid(y, y * 2, axis=0),
            jnp.trapezoid(y, y * 2),
            jnp.trapezoid(y, dx=2),
            jnp.trapezoid(y, None, 0.5, 0),
            jnp.trapezoid(y, dx=x[:3]),
            jnp.trapezoid(y, dx=x[1]),
            jnp.trapezoid(x, y),
            jnp.trapezoid(y[:, :1]),
            jnp.trapezoid(y, x, dx=100.0),
        )

    @corpus.program(ints(4), bools(4), complexes(4), floats(4, dtype=bf16), floats(4))
    def trapezoids_of_dtypes(n, p, z, h, x):
        return (
            jnp.trapezoid(n),
            jnp.trapezoid(n, n),
            jnp.trapezoid(n, dx=2),
            jnp.trapezoid(p),
            jnp.trapezoid(z),
            jnp.trapezoid(z, x),
            jnp.trapezoid(h),
            jnp.trapezoid(h, dx=2),
            jnp.trapezoid(h, n),
            jnp.trapezoid(x, dx=1j),
            jnp.trapezoid(1.0 * jnp.arange(3)),
        )


def lines(corpus, jnp):
    points = np.float32([-1, 0, 0.5, 2]), np.float32([3, 1, -1, 4])

    @corpus.program(floats(3, 4), *points)
    def interpolation(x, xp, fp):
        return jnp.interp(x, xp, fp), jnp.interp(x[0, 0], xp, fp), jnp.interp(xp, xp, fp)

    for name, options in {
        "left": {"left": -9},
        "right": {"right": 9.5},
        "both_sides": {"left": 1, "right": 2},
        "extrapolate": {"left": "extrapolate", "right": "extrapolate"},
        "extrapolate_left": {"left": "extrapolate"},
        "complex_left": {"left": 1j},
        "array_left": {"left": np.float32([1, 2, 3])},
        "period": {"period": 1.5},
        "negative_period": {"period": -2},
        "period_and_sides": {"period": 3, "left": 7, "right": 8},
    }.items():

        def interpolated(x, xp, fp, options=options):
            return jnp.interp(x, xp, fp, **options)

        corpus.add(f"interpolation_{name}", interpolated, np.float32([-3, 0.7, 4]), *points)

    @corpus.program(ints(4), np.arange(4), np.arange(4) * 2, floats(4), complexes(4))
    def interpolation_of_dtypes(n, xp, fp, x, z):
        half = x.astype(np.float16)
        return (
            jnp.interp(n, xp, fp),
            jnp.interp(x, xp, fp),
            jnp.interp(x, xp, z),
            jnp.interp(True, xp, fp),
            jnp.interp(half, xp.astype(np.float16), half),
            jnp.interp(half, x, half),
            jnp.interp(1.5, 1.0 * jnp.arange(4), 1.0 * jnp.arange(4)),
            jnp.interp(1.5, xp, x),
        )

    @corpus.program(floats(5))
    def interpolation_of_odd_points(x):
        return (
            jnp.interp(x, np.float32([1]), np.float32([5])),
            jnp.interp(x, np.float32([0, 0, 1]), np.float32([5, 6, 7])),
            jnp.interp(np.float32([np.nan, np.inf, -np.inf]), np.float32([0, 1]), x[:2]),
            jnp.interp(x[:0], np.float32([1, 2]), np.float32([5, 6])),
        )


def angles(corpus, jnp):
    jumps = np.float32([[0, 3, 6.5, 1], [-3, 3, -4, 9], [0.5, 7, 20, -20]])

    @corpus.program(jumps)
    def unwrapping(p):
        return (
            jnp.unwrap(p),
            jnp.unwrap(p, axis=0),
            jnp.unwrap(p, 4.0),
            jnp.unwrap(p, discont=1),
            jnp.unwrap(p, period=4),
            jnp.unwrap(p, period=np.float32(2.5), axis=-2),
            jnp.unwrap(p[:, :1]),
            jnp.unwrap(p[:, :0]),
            jnp.unwrap(p, p[0, :3]),
        )

    # The reference leaves odd periods of integers by one off.
    @corpus.program(jumps.astype(np.int32), np.array([0, 5, 1, 3], np.int8))
    def unwrapping_integers(n, small):
        return (
            jnp.unwrap(n, period=4),
            jnp.unwrap(n, period=4, discont=3),
            jnp.unwrap(n, 3.5, period=4),
            jnp.unwrap(n),
            jnp.unwrap(n, period=5.0),
            jnp.unwrap(small, period=4),
        )

    @corpus.program(jumps.astype(np.float16), bools(4))
    def unwrapping_other_dtypes(h, p):
        return (
            jnp.unwrap(h),
            jnp.unwrap(h, period=4),
            jnp.unwrap(p),
            jnp.unwrap(1.0 * jnp.arange(4) * 4),
            jnp.unwrap(np.float32([0, np.pi, 0, -np.pi])),
        )


def polynomials(corpus, jax, jnp):
    @corpus.program(floats(4), ints(2), complexes(3), bools(3))
    def sums_of_polynomials(x, n, z, p):
        return (
            jnp.polyadd(x, n),
            jnp.polyadd(n, x),
            jnp.polysub(x, n),
            jnp.polysub(n, x),
            jnp.polyadd(z, x),
            jnp.polysub(x, p),
            jnp.polysub(p, x),
            jnp.polyadd(x, x),
            jnp.polyadd(n, n),
        )

    @corpus.program(floats(3, 4))
    def sums_of_many_polynomials(x):
        return jnp.polyadd(x, x[:2]), jnp.polyadd(x, x[:2, :1]), jnp.polysub(x[:1], x)

    @corpus.program()
    def weak_polynomials():
        weak = 1.0 * jnp.arange(1, 5)
        return (
            jnp.polyadd(weak, weak[:2]),
            jnp.polysub(weak, weak),
            jnp.polyder(weak),
            jnp.polyder(weak, 0),
            jnp.polyint(weak),
            jnp.polyint(weak, 0),
            jnp.polymul(weak, weak[:2]),
            jnp.polydiv(weak, weak[:2]),
            jnp.polydiv(weak[:2], weak),
            jnp.polyval(weak, weak),
            jnp.polyval(weak, 2),
            jnp.poly(weak),
        )

    @corpus.program(np.array([1, 250], np.uint8), np.array([7], np.uint8))
    def polynomials_wrap(n, m):
        return jnp.polyadd(n, m), jnp.polysub(n, m), jnp.polyval(n, m), jnp.polymul(n, m)

    @corpus.program(floats(5), ints(4), complexes(3), bools(3), np.float16([1, 2, 3]))
    def derivatives_of_polynomials(x, n, z, p, h):
        return (
            jnp.polyder(x),
            jnp.polyder(x, 3),
            jnp.polyder(x, m=0),
            jnp.polyder(x, 5),
            jnp.polyder(x, 9),
            jnp.polyder(n),
            jnp.polyder(n, 0),
            jnp.polyder(z, 2),
            jnp.polyder(p),
            jnp.polyder(h, 1),
            jnp.polyder(x[:0]),
            jnp.polyder(x, True),
            jnp.polyder(x, np.int64(2)),
        )

    @corpus.program(floats(4), ints(4), complexes(3), bools(3), np.float16([1, 2, 3]))
    def integrals_of_polynomials(x, n, z, p, h):
        return (
            jnp.polyint(x),
            jnp.polyint(x, 3),
            jnp.polyint(x, m=0),
            jnp.polyint(x, 0, 5),
            jnp.polyint(x, 2, 5),
            jnp.polyint(x, 2, x[:2]),
            jnp.polyint(x, 3, x[:1]),
            jnp.polyint(x, k=1j),
            jnp.polyint(n),
            jnp.polyint(n, 1, 2),
            jnp.polyint(z, 2, n[0]),
            jnp.polyint(p),
            jnp.polyint(h),
            jnp.polyint(x[:0]),
        )

    @corpus.program(floats(5), ints(3), complexes(2), bools(3), tolerance=1e-5)
    def products_of_polynomials(x, n, z, p):
        return (
            jnp.polymul(x, n),
            jnp.polymul(n, n),
            jnp.polymul(z, x),
            jnp.polymul(p, p),
            jnp.polymul(x[:0], x),
            jnp.polymul(x, x[:0]),
            jnp.polymul(x[:1], n),
        )

    @corpus.program(modes=("value",))
    def products_without_leading_zeros():
        x, y = np.float32([0, 1, 2]), np.float32([0, 0, 3, 1])
        return (
            jnp.polymul(x, y, trim_leading_zeros=True),
            jnp.polymul(x, y),
            jnp.polymul(x * 0, y, trim_leading_zeros=True),
            jnp.polymul(x.astype(int), y, trim_leading_zeros=True),
        )

    @corpus.program(np.float32([2, 3, -1, 5, 4]), np.float32([1, 2, -1]), ints(4), tolerance=1e-5)
    def quotients_of_polynomials(u, v, n):
        return (
            jnp.polydiv(u, v),
            jnp.polydiv(v, u),
            jnp.polydiv(u, v[:1]),
            jnp.polydiv(u, u),
            jnp.polydiv(n, n[:2]),
            jnp.polydiv(u * (1 + 1j), v),
            jnp.polydiv(u[:0], v),
            jnp.polydiv(u, v * np.float32([0, 1, 1])),
            jnp.polydiv(np.uint8([4, 2, 1]), np.uint8([2, 1])),
        )

    @corpus.program(modes=("value",), tolerance=1e-5)
    def quotients_without_leading_zeros():
        u, v = np.float32([1, 3, 2]), np.float32([1, 1])
        return (
            jnp.polydiv(u, v, trim_leading_zeros=True),
            jnp.polydiv(u + v[0], v, trim_leading_zeros=True),
            jnp.polydiv(u * 0, v, trim_leading_zeros=True),
            jnp.polydiv(u, v * np.float32([0, 1]), trim_leading_zeros=True),
            jnp.polydiv(u + np.float32([0, 0, 3e-4]), v, trim_leading_zeros=True),
            jnp.polydiv(u + np.float32([0, 0, 4e-4]), v, trim_leading_zeros=True),
        )

    @corpus.program(floats(4), ints(3), complexes(2), floats(2, 3), tolerance=1e-5)
    def values_of_polynomials(p, n, z, x):
        return (
            jnp.polyval(p, 2.0),
            jnp.polyval(p, 2),
            jnp.polyval(p, x),
            jnp.polyval(n, n),
            jnp.polyval(n, 2),
            jnp.polyval(n, 0.5),
            jnp.polyval(z, x),
            jnp.polyval(p, z),
            jnp.polyval(x, x[0]),
            jnp.polyval(x, 2.0),
            jnp.polyval(x, x),
            jnp.polyval(x, p[:2, None]),
            jnp.polyval(p[:0], x),
            jnp.polyval(p, x[:0]),
            jnp.polyval(p, x, unroll=1),
            jnp.polyval(p, x, unroll=True),
            jnp.polyval(p=p, x=x, unroll=3),
        )

    @corpus.program(bools(3), floats(3, dtype=bf16), np.float16([1, 2, 3]))
    def values_of_other_polynomials(p, h, f):
        return jnp.polyval(p, p), jnp.polyval(p, 2), jnp.polyval(h, h), jnp.polyval(f, 2.0)

    @corpus.program(floats(4), np.float32(0.7), tolerance=1e-5)
    def gradients_of_polynomials(p, x):
        def total(p, x):
            quotient, remainder = jnp.polydiv(p, p[1:3])
            return (
                jnp.polyval(p, x)
                + jnp.poly(p).sum()
                + (jnp.polyder(p) * 2).sum()
                + quotient.sum()
                + remainder.sum()
            )

        return jax.grad(total, (0, 1))(p, x)


def zeros_and_fits(corpus, jnp):
    @corpus.program(floats(4), ints(4), complexes(3), bools(3), tolerance=1e-5)
    def polynomials_of_zeros(x, n, z, p):
        return (
            jnp.poly(x),
            jnp.poly(n),
            jnp.poly(z),
            jnp.poly(p),
            jnp.poly(2.0),
            jnp.poly(3),
            jnp.poly(x[:0]),
            jnp.poly(np.float16([1, 2])),
        )

    @corpus.program(np.float32([[2, 1], [1, 3]]), np.int32([[0, -1], [1, 0]]), tolerance=1e-5)
    def characteristic_polynomials(a, n):
        return jnp.poly(a), jnp.poly(n)

    @corpus.program(modes=("value",), tolerance=1e-4)
    def zeros():
        return (
            jnp.roots(np.float32([1, -6, 11, -6])),
            jnp.roots(np.float32([0, 1, -3, 2, 0])),
            jnp.roots(np.complex64([1, 1j, 2])),
            jnp.roots(np.float32([0, 0, 3])),
            jnp.roots(np.float32([0, 0, 0])),
            jnp.roots(np.float32([])),
            jnp.roots(2.0),
            jnp.roots(np.array([True, False, True])),
        )

    @corpus.program(np.float32([1, -6, 11, -6]), np.float32([0, 0, 1, -3, 2, 0]), tolerance=1e-4)
    def zeros_without_stripping(p, q):
        return (
            jnp.roots(p, strip_zeros=False),
            jnp.roots(q, strip_zeros=False),
            jnp.roots(q * 0, strip_zeros=False),
            jnp.roots(q[:1], strip_zeros=False),
            jnp.roots(q[:0], strip_zeros=False),
            jnp.roots(q[:3], strip_zeros=False),
            jnp.roots(np.array([0, 2, 1]), strip_zeros=False),
        )

    places = np.float32([-1, 0, 0.5, 2, 3])

    @corpus.program(places, floats(5), floats(5, 2), ints(5), tolerance=1e-4)
    def fits(x, y, many, n):
        return (
            jnp.polyfit(x, y, 2),
            jnp.polyfit(x, many, 0),
            jnp.polyfit(x, n, True),
            jnp.polyfit(x, y + 1j, 1.5),
        )

    @corpus.program(places, floats(5), floats(5, 2), unit(5), tolerance=1e-3)
    def fits_with_everything(x, y, many, w):
        return (
            jnp.polyfit(x, y, 2, full=True),
            jnp.polyfit(x, many, 1, full=True, cov=True),
            jnp.polyfit(x, many, 1, cov=True),
            jnp.polyfit(x, many, 2, w=w, cov="unscaled"),
            jnp.polyfit(x, y, 2, rcond=0.6, full=True),
            jnp.polyfit(x, y, 1, -1.0, w=w, cov=True),
            jnp.polyfit(x + 1j * w, y, 1, cov=True),
        )


def index_tricks(corpus, jax, jnp):
    @corpus.program()
    def joined_numbers():
        r_ = jnp.r_
        return (
            (r_[1], r_[1.5], r_[1, 2, 3], r_[True, 2], r_[1, 2.5], r_[1, np.float16(2)]),
            (r_[1:5], r_[:5], r_[1:5:2], r_[5:1:-2], r_[1.5:3], r_[0:0], r_[1:], r_[:]),
            (r_[1:5:3j], r_[1:5:-3j], r_[0:1:3.5j], r_[np.float32(1) : 4 : 3j]),
            (r_[-1:1:6j, [0] * 3, 5, 6], r_[1:3, 1j], r_[[1, 2], (3, 4)]),
        )

    @corpus.program(floats(3), ints(2), floats(2, 3), floats(2, dtype=bf16))
    def joined_arrays(x, n, m, h):
        r_ = jnp.r_
        return r_[x], r_[x, 1, n], r_[n, 1.5], r_[m, m], r_[h, 1.5], r_[x, 1:3, h], r_[x[0], 2]

    @corpus.program(floats(3), floats(2, 3))
    def joined_by_directives(x, m):
        r_ = jnp.r_
        return (
            [r_["0,2", x, m], r_["0,2", x, x], r_["-1", m, m], r_["1", m, m], r_["0 , 2", x]],
            [r_["r", x, x], r_["c", x, x], r_["r", m, m], r_["c", m, m], r_["c", 1:4]],
            [r_["0,2,0", x, x], r_["1,2,0", x, x], r_["0,2,1", x], r_["0,2,-1", x], r_["0,2,5", x]],
            [r_["0,3,0", m], r_["0,3,1", m], r_["0,3,2", m], r_["0,3,3", m], r_["0,3,-2", x, x]],
            [r_["0,2,0", 1:3, 2:4], r_["0,2", 1, 2], r_["0,1,2,3", x], r_["0,5,1", x]],
        )

    @corpus.program(floats(3), floats(3, 2))
    def joined_columns(x, m):
        c_ = jnp.c_
        return (
            [c_[x], c_[x, x], c_[m, m], c_[x, m], c_[1, 2], c_[1:4, 2:3:3j], c_[[1, 2], [3, 4]]],
            [c_["0", x, x], c_["r", x, x], c_["c", x, x], c_["0,3", x, x], c_["1,2,0", x, x]],
            [c_["0,2,1", x, x], c_[m[:, :, None], m[:, :, None]]],
        )

    @corpus.program(modes=("value",))
    def index_expressions():
        return (
            str(jnp.s_[1:2, ..., None]),
            str(jnp.index_exp[1:2]),
            jnp.s_[3],
            jnp.index_exp[3],
            len(jnp.r_),
            len(jnp.c_),
            (jnp.r_.axis, jnp.r_.ndmin, jnp.r_.trans1d),
            (jnp.c_.axis, jnp.c_.ndmin, jnp.c_.trans1d),
        )
