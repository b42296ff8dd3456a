"""Programs with extreme parameters of products, convolutions, matrices, transforms and numbers."""

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from tests.xla_faults.extremes.families import (
    DTYPES,
    SIGNED,
    SIZES,
    Program,
    family,
    of,
)

PRECISIONS = (
    "default",
    "highest",
    "BF16_BF16_F32_X9",
    "F8_F8_F32",
    "TF32_TF32_F32_X3",
    "F64_F64_F64",
)


@family(
    n=SIZES,
    k=SIZES,
    m=SIZES,
    batch=SIZES,
    dtype=DTYPES,
    other=DTYPES,
    result=DTYPES,
    precision=PRECISIONS,
)
def dot_general(
    n=4, k=3, m=5, batch=2, dtype="float32", other=None, result=None, precision=None
) -> Program:
    numbers = (((2,), (1,)), ((0,), (0,)))
    return (
        lambda a, b: lax.dot_general(
            a, b, numbers, preferred_element_type=result, precision=precision
        ),
        [of(batch, n, k, dtype=dtype), of(batch, k, m, dtype=other or dtype)],
    )


AXES = ((), (0,), (1,), (0, 0), (0, 1), (-1,), (2**31,), (2**62,))


@family(a=AXES, b=AXES, batch_a=AXES, batch_b=AXES)
def contraction(a=(1,), b=(0,), batch_a=(), batch_b=()) -> Program:
    return (
        lambda x, y: lax.dot_general(x, y, ((a, b), (batch_a, batch_b))),
        [of(3, 3), of(3, 3)],
    )


@family(n=SIZES, k=SIZES, m=SIZES, dtype=DTYPES)
def dot(n=4, k=3, m=5, dtype="float32") -> Program:
    return lambda a, b, v: (a @ b, v @ b), [
        of(n, k, dtype=dtype),
        of(k, m, dtype=dtype),
        of(k, dtype=dtype),
    ]


@family(rows=SIZES, groups=SIZES, k=SIZES, n=SIZES, dtype=DTYPES, sizes=("uint8", "int64"))
def ragged_dot(rows=6, groups=3, k=4, n=5, dtype="float32", sizes="int32") -> Program:
    return lax.ragged_dot, [
        of(rows, k, dtype=dtype),
        of(groups, k, n, dtype=dtype),
        of(groups, dtype=sizes),
    ]


@family(
    size=SIZES,
    kernel=SIZES,
    stride=SIGNED,
    low=SIGNED,
    high=SIGNED,
    base=SIGNED,
    dilation=SIGNED,
    groups=SIGNED,
    batch_groups=SIGNED,
    batch=SIZES,
    features=SIZES,
    outputs=SIZES,
    dtype=DTYPES,
    other=DTYPES,
    result=DTYPES,
)
def convolution(
    size=8,
    kernel=2,
    stride=1,
    low=0,
    high=0,
    base=1,
    dilation=1,
    groups=1,
    batch_groups=1,
    batch=4,
    features=6,
    outputs=12,
    dtype="float32",
    other=None,
    result=None,
) -> Program:
    per_group = features // groups if groups > 0 and groups in (1, 2, 3) else features
    return (
        lambda x, k: lax.conv_general_dilated(
            x,
            k,
            (stride,),
            ((low, high),),
            (base,),
            (dilation,),
            feature_group_count=groups,
            batch_group_count=batch_groups,
            preferred_element_type=result,
        ),
        [
            of(batch, features, size, dtype=dtype),
            of(outputs, per_group, kernel, dtype=other or dtype),
        ],
    )


@family(groups=(1, 2, 4), size=(0, 1, 9), stride=(1, 2, 9), padding=("SAME", "VALID", "SAME_LOWER"))
def convolution_gradient(groups=2, size=6, stride=1, padding="SAME") -> Program:
    def total(x, k):
        return lax.conv_general_dilated(
            x, k, (stride, 1), padding, feature_group_count=groups
        ).sum()

    return jax.grad(total, (0, 1)), [of(2, 4, size, 5), of(8, 4 // groups, 3, 2)]


@family(size=SIZES, kernel=SIZES, stride=SIGNED, padding=("SAME", "VALID"), dtype=DTYPES)
def conv_transpose(size=6, kernel=3, stride=2, padding="SAME", dtype="float32") -> Program:
    return (
        lambda x, k: lax.conv_transpose(x, k, (stride,), padding),
        [of(2, size, 3, dtype=dtype), of(kernel, 3, 4, dtype=dtype)],
    )


@family(size=SIZES, kernel=SIZES, mode=("full", "valid"), dtype=DTYPES)
def convolve(size=8, kernel=3, mode="same", dtype="float32") -> Program:
    return lambda x, k: jnp.convolve(x, k, mode), [of(size, dtype=dtype), of(kernel, dtype=dtype)]


# ---- Fourier -------------------------------------------------------------------------------------

FFTS = ("fft", "ifft", "rfft", "irfft")


@family(kind=FFTS, size=SIZES, rows=(0, 1, 2**31, 2**60), length=SIGNED, dtype=DTYPES)
def fft(kind="fft", size=8, rows=2, length=8, dtype="complex64") -> Program:
    if kind == "rfft" and dtype == "complex64":
        dtype = "float32"
    return lambda x: lax.fft(x, kind, (length,)), [of(rows, size, dtype=dtype)]


@family(
    kind=FFTS,
    lengths=(
        (),
        (0,),
        (8, 8),
        (0, 0),
        (1, 1, 1),
        (2, 2, 8, 8),
        (2,) * 6,
        (2**31, 2**31),
        (2**62, 4),
    ),
)
def fft_of_axes(kind="fft", lengths=(8,)) -> Program:
    dtype = "float32" if kind == "rfft" else "complex64"
    return lambda x: lax.fft(x, kind, lengths), [of(2, 8, 8, dtype=dtype)]


@family(kind=("ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "rfft2"), n=SIGNED, size=SIZES)
def numpy_fft(kind="fft", n=8, size=8) -> Program:
    if kind in ("fftn", "rfft2"):
        return lambda x: getattr(jnp.fft, kind)(x, (n, n)), [of(size, size)]
    return lambda x: getattr(jnp.fft, kind)(x, n), [of(size)]


# ---- matrices ------------------------------------------------------------------------------------

LINALG = {
    "cholesky": lax.linalg.cholesky,
    "lu": lax.linalg.lu,
    "qr": lax.linalg.qr,
    "qr_full": lambda x: lax.linalg.qr(x, full_matrices=True),
    "qr_pivoting": lambda x: lax.linalg.qr(x, pivoting=True),
    "svd": lax.linalg.svd,
    "svd_values": lambda x: lax.linalg.svd(x, compute_uv=False),
    "svd_qr": lambda x: lax.linalg.svd(x, algorithm=lax.linalg.SvdAlgorithm.QR),
    "eigh": lax.linalg.eigh,
    "eig": lax.linalg.eig,
    "schur": lax.linalg.schur,
    "hessenberg": lax.linalg.hessenberg,
    "tridiagonal": lax.linalg.tridiagonal,
    "inv": jnp.linalg.inv,
    "det": jnp.linalg.slogdet,
    "pinv": jnp.linalg.pinv,
    "expm": jax.scipy.linalg.expm,
    "norm": lambda x: jnp.linalg.norm(x, 2),
    "polar": lambda x: jax.scipy.linalg.polar(x),
    "sqrtm": jax.scipy.linalg.sqrtm,
}


@family(
    "name",
    name=tuple(LINALG),
    n=SIZES,
    batch=(0, 1, 2**31, 2**60),
    dtype=("float16", "float8_e4m3fn", "int4", "float64", "complex64", "complex128"),
)
def matrices(name="cholesky", n=3, batch=2, dtype="float32") -> Program:
    return LINALG[name], [of(batch, n, n, dtype=dtype)]


@family("name", name=tuple(LINALG), n=SIZES, m=SIZES, fill=("0", "1e38", "nan", "inf", "1e-45"))
def matrix_of(name="svd", n=4, m=4, fill="1") -> Program:
    if n * m > 100:
        return LINALG[name], [of(n, m)]
    return LINALG[name], [np.full((n, m), float(fill), np.float32)]


@family(n=SIZES, m=SIZES, batch=(0, 2**31, 2**60), left=(True,), dtype=DTYPES)
def triangular_solve(n=3, m=2, batch=2, left=False, dtype="float32") -> Program:
    return (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=left),
        [of(batch, n, n, dtype=dtype), of(batch, *((n, m) if left else (m, n)), dtype=dtype)],
    )


@family(n=SIZES, m=SIZES, batch=(0, 2**31), dtype=("float64", "complex64", "int32"))
def tridiagonal_solve(n=4, m=2, batch=2, dtype="float32") -> Program:
    return lax.linalg.tridiagonal_solve, [
        *[of(batch, n, dtype=dtype)] * 3,
        of(batch, n, m, dtype=dtype),
    ]


@family(n=SIZES, m=SIZES, k=SIZES, dtype=("float64", "complex64", "int32"))
def householder_product(n=4, m=3, k=3, dtype="float32") -> Program:
    return lax.linalg.householder_product, [of(n, m, dtype=dtype), of(k, dtype=dtype)]


@family(n=SIGNED)
def matrix_power(n=3) -> Program:
    return lambda x: jnp.linalg.matrix_power(x, n), [of(3, 3)]


@family(n=SIZES, degree=SIGNED)
def vander(n=3, degree=4) -> Program:
    return lambda x: jnp.vander(x, degree), [of(n)]


# ---- random numbers ------------------------------------------------------------------------------

SAMPLERS = {
    "bits": lambda k, s: jax.random.bits(k, s),
    "bits8": lambda k, s: jax.random.bits(k, s, "uint8"),
    "uniform": jax.random.uniform,
    "normal": jax.random.normal,
    "randint": lambda k, s: jax.random.randint(k, s, -(2**31), 2**31 - 1),
    "permutation": lambda k, s: jax.random.permutation(k, s[0] if s else 3),
    "choice": lambda k, s: jax.random.choice(k, s[0] if s else 3, s, replace=False),
    "categorical": lambda k, s: jax.random.categorical(k, jnp.zeros(3), shape=(*s, 1)[:-1]),
    "gamma": lambda k, s: jax.random.gamma(k, 2.0, s),
    "poisson": lambda k, s: jax.random.poisson(k, 2.0, s),
    "dirichlet": lambda k, s: jax.random.dirichlet(k, jnp.ones(3), s),
    "orthogonal": lambda k, s: jax.random.orthogonal(k, s[0] if s else 3),
    "ball": lambda k, s: jax.random.ball(k, s[0] if s else 3),
    "split": lambda k, s: jax.random.split(k, s),
    "rademacher": jax.random.rademacher,
    "truncated_normal": lambda k, s: jax.random.truncated_normal(k, -1, 1, s),
    "binomial": lambda k, s: jax.random.binomial(k, 5, 0.5, s),
}
RANDOM_SHAPES = (
    (),
    (0,),
    (2**31,),
    (2**32,),
    (2**33 + 1,),
    (2**40,),
    (2**62,),
    (2**31, 2**31),
    (2**62, 0),
    (0, 2**62),
    (7, 3, 0, 5),
)


@family("name", name=tuple(SAMPLERS), shape=RANDOM_SHAPES, generator=("rbg", "unsafe_rbg"))
def random(name="bits", shape=(5,), generator="threefry2x32") -> Program:
    key = jax.random.key(0, impl=generator)
    return lambda: SAMPLERS[name](key, shape), ()


PARAMETERS = ("0.0", "-1.0", "1e-45", "1e38", "inf", "-inf", "nan")
DISTRIBUTIONS = {
    "gamma": lambda k, a: jax.random.gamma(k, a, (4,)),
    "loggamma": lambda k, a: jax.random.loggamma(k, a, (4,)),
    "beta": lambda k, a: jax.random.beta(k, a, a, (4,)),
    "poisson": lambda k, a: jax.random.poisson(k, a, (4,)),
    "binomial": lambda k, a: jax.random.binomial(k, a, 0.5, (4,)),
    "binomial_p": lambda k, a: jax.random.binomial(k, 10.0, a, (4,)),
    "geometric": lambda k, a: jax.random.geometric(k, a, (4,)),
    "dirichlet": lambda k, a: jax.random.dirichlet(k, jnp.full(3, a), (4,)),
    "chisquare": lambda k, a: jax.random.chisquare(k, a, (4,)),
    "t": lambda k, a: jax.random.t(k, a, (4,)),
    "wald": lambda k, a: jax.random.wald(k, a, (4,)),
    "pareto": lambda k, a: jax.random.pareto(k, a, (4,)),
    "rayleigh": lambda k, a: jax.random.rayleigh(k, a, (4,)),
    "weibull": lambda k, a: jax.random.weibull_min(k, a, a, (4,)),
    "generalized_normal": lambda k, a: jax.random.generalized_normal(k, a, (4,)),
    "truncated": lambda k, a: jax.random.truncated_normal(k, a, a, (4,)),
    "multinomial": lambda k, a: jax.random.multinomial(k, a, jnp.full(3, 1 / 3)),
    "f": lambda k, a: jax.random.f(k, a, a, (4,)),
}


@family("name", name=tuple(DISTRIBUTIONS), parameter=PARAMETERS, dtype=("float64", "bfloat16"))
def distribution(name="gamma", parameter="1", dtype="float32") -> Program:
    key = jax.random.key(0)
    return (
        lambda a: DISTRIBUTIONS[name](key, a),
        [np.array(float(parameter)).astype(jnp.dtype(dtype))],
    )


@family(shape=RANDOM_SHAPES, algorithm=("three_fry", "default"), dtype=DTYPES)
def rng_bit_generator(shape=(5,), algorithm="philox", dtype="uint32") -> Program:
    kind = getattr(lax.RandomAlgorithm, f"RNG_{algorithm.upper()}")
    return (
        lambda k: lax.rng_bit_generator(k, shape, dtype, kind),
        [of(4, dtype="uint32")],
    )


# ---- functions of several operations -------------------------------------------------------------


@family(size=SIZES, target=SIGNED, method=("nearest", "cubic", "lanczos5"))
def resize(size=4, target=7, method="linear") -> Program:
    return lambda x: jax.image.resize(x, (target, 3), method), [of(size, 2)]


@family(count=SIZES, classes=SIGNED, axis=SIGNED)
def one_hot(count=4, classes=3, axis=-1) -> Program:
    return lambda x: jax.nn.one_hot(x, classes, axis=axis), [of(count, dtype="int32")]


@family(size=SIZES, segments=SIGNED, mode=("clip", "promise_in_bounds"))
def segment_sum(size=6, segments=3, mode="fill") -> Program:
    from hlofront import ops

    return (
        lambda x, i: ops.segment_sum(x, i, segments, mode=mode),
        [of(size), of(size, dtype="int32")],
    )


@family(batch=(0, 2**31), queries=SIZES, keys=SIZES, heads=SIZES, depth=SIZES, dtype=DTYPES)
def attention(batch=2, queries=4, keys=5, heads=2, depth=3, dtype="float32") -> Program:
    return jax.nn.dot_product_attention, [
        of(batch, queries, heads, depth, dtype=dtype),
        *[of(batch, keys, heads, depth, dtype=dtype)] * 2,
    ]


@family(a=SIZES, b=SIZES, kind=("outer", "kron", "cross", "inner", "vdot", "tensordot", "meshgrid"))
def products(a=3, b=3, kind="outer") -> Program:
    return getattr(jnp, kind), [of(a), of(b)]


@family(
    name=("var", "std", "median", "nanmedian", "sort", "cumsum", "diff", "gradient", "trapezoid"),
    size=SIZES,
    dtype=DTYPES,
)
def statistics(name="mean", size=6, dtype="float32") -> Program:
    return getattr(jnp, name), [of(size, dtype=dtype)]


@family(size=SIZES, count=SIZES, method=("lower", "nearest"))
def quantile(size=6, count=3, method="linear") -> Program:
    return lambda x, q: jnp.quantile(x, q, method=method), [of(size), of(count)]


@family(size=SIZES, window=SIGNED, n=SIGNED)
def stft(size=64, window=16, n=16) -> Program:
    return lambda x: jax.scipy.signal.stft(x, nperseg=window, nfft=n), [of(size)]
