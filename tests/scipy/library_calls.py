"""Calls of functions beyond NumPy, by name: tests run them under options and in transformations."""

import numpy as np

import hlofront as jax
import hlofront.image
import hlofront.nn
import hlofront.numpy as jnp
import hlofront.scipy as jsp
import hlofront.scipy.integrate
import hlofront.scipy.interpolate
import hlofront.scipy.ndimage
import hlofront.scipy.optimize
import hlofront.scipy.signal
import hlofront.scipy.sparse.linalg
import hlofront.scipy.spatial.transform
import hlofront.scipy.special
import hlofront.scipy.stats

X = np.linspace(0.1, 0.9, 12, dtype=np.float32)
M = X.reshape(3, 4)
SQUARE = (M @ M.T + np.eye(3)).astype(np.float32)
V = X[:3]
SIGNAL = np.sin(np.arange(64, dtype=np.float32))
C = (X + 1j * X[::-1]).astype(np.complex64)
COMPLEX_SQUARE = (SQUARE + 0j).astype(np.complex64)
HALF = X.astype(np.float16)
INTEGERS = np.arange(6, dtype=np.int8)
LENGTHS = np.array([2, 3], np.int32)
HEADS = np.ones((2, 4, 2, 3), np.float32)
QUATERNIONS = np.eye(4, dtype=np.float32)[:2]
KEY = jax.random.key(0)
LIMITED = "l-bfgs-experimental-do-not-rely-on-this"

special, stats, signal = jsp.special, jsp.stats, jsp.signal
solvers, random = jsp.sparse.linalg, jax.random
Rotation = jsp.spatial.transform.Rotation


def attention(**keywords):
    return lambda q: jax.nn.dot_product_attention(q, q, q, **keywords)


def sampled(name, *args, **keywords):
    return lambda *values: getattr(random, name)(KEY, *values, *args, **keywords)


def minimum(method):
    def least(x):
        return jsp.optimize.minimize(lambda v: jnp.sum(jnp.abs(v) ** 2), x, method=method).x

    return least


CASES = {
    # numpy
    **{
        f"{name}_{dtype}": (
            lambda name=name, dtype=dtype: getattr(jnp, name)(1, 8, 5, dtype=dtype),
        )
        for name in ("linspace", "logspace", "geomspace")
        for dtype in ("int8", "int16", "float16", "float32", "complex64")
    },
    "histogram2d": (lambda x: jnp.histogram2d(x, x, bins=3, density=True), INTEGERS),
    "histogramdd": (lambda x: jnp.histogramdd(x.T, bins=2, density=True), M.astype(np.int32)),
    "quantile": (lambda x: jnp.quantile(x, np.float32(0.3)), HALF),
    "percentile": (lambda x: jnp.percentile(x, np.array([30.0, 50.0], np.float32)), HALF),
    "polyfit": (lambda x: jnp.polyfit(x, jnp.stack([x, x], 1), 2, cov=True), X),
    "polyfit_of_one": (lambda x: jnp.polyfit(x, x**2, 2, cov=True), X),
    "interp": (lambda x: jnp.interp(x, x, x, period=3), X),
    "trapezoid": (lambda m: jnp.trapezoid(m, axis=0), M),
    "solve": (lambda a, b: jnp.linalg.solve(a, b), SQUARE, V),
    "pinv": (lambda a: jnp.linalg.pinv(a), M),
    "slogdet": (lambda a: jnp.linalg.slogdet(a), COMPLEX_SQUARE),
    # signal
    "stft": (lambda x: signal.stft(x, nperseg=16), SIGNAL),
    "stft_of_complex": (lambda x: signal.stft(x, nperseg=16, return_onesided=False), SIGNAL + 0j),
    "stft_of_rows": (lambda x: signal.stft(x, nperseg=16, boundary="odd"), SIGNAL.reshape(2, 32)),
    "istft": (lambda x: signal.istft(signal.stft(x, nperseg=16)[2], nperseg=16), SIGNAL),
    "welch": (lambda x: signal.welch(x, nperseg=16, detrend="linear"), SIGNAL),
    "csd": (lambda x, y: signal.csd(x, y, nperseg=16), SIGNAL, SIGNAL),
    "csd_median": (lambda x, y: signal.csd(x, y, nperseg=16, average="median"), SIGNAL, SIGNAL),
    "detrend": (lambda x: signal.detrend(x, axis=0, bp=[1]), M),
    "convolve": (lambda x, y: signal.convolve(x, y), M, M),
    "fftconvolve": (lambda x, y: signal.fftconvolve(x, y), M, M),
    # spatial
    "rotation_inv": (lambda q: Rotation.from_quat(q).inv().as_quat(), QUATERNIONS),
    "rotation_mean": (lambda q: Rotation.from_quat(q).mean().as_quat(), QUATERNIONS),
    "rotation_euler": (lambda x: Rotation.from_euler("xyz", x).as_quat(), V),
    "slerp": (
        lambda q, t: jsp.spatial.transform.Slerp.init(V[:2], Rotation.from_quat(q))(t).as_quat(),
        QUATERNIONS,
        V[:2],
    ),
    # special
    "bessel_jn": (lambda x: special.bessel_jn(x, v=2), X),
    "multigammaln": (lambda x: special.multigammaln(x, 2), X + 5),
    "hyp1f1": (lambda x: special.hyp1f1(x, x, x), X),
    "hyp2f1": (lambda x: special.hyp2f1(x, x, x, x), X),
    "gamma_of_complex": (lambda x: special.gamma(x), C),
    "wofz": (lambda x: special.wofz(x), C),
    "erfcx_of_complex": (lambda x: special.erfcx(x), C),
    "sph_harm_y": (
        lambda x: special.sph_harm_y(np.array([2]), np.array([1]), x, x, n_max=3),
        X[:1],
    ),
    "logsumexp": (lambda x: special.logsumexp(x, b=x), X),
    "logsumexp_of_complex": (lambda x: special.logsumexp(x), C),
    "logsumexp_sign": (lambda x: special.logsumexp(x, return_sign=True), C),
    **{
        name: (getattr(special, name), X)
        for name in (
            "digamma entr erf erfinv exp1 expi fresnel gammaln i0e i1 log_ndtr ndtri sici spence "
            "logit log_softmax softmax"
        ).split()
    },
    **{
        name: (getattr(special, name), X, X)
        for name in "beta betaln gammainc gammaincc kl_div poch rel_entr xlog1py xlogy".split()
    },
    "betainc": (special.betainc, X, X, X),
    # stats
    "mode": (lambda m: stats.mode(m), M),
    "rankdata": (lambda m: stats.rankdata(m, axis=1), M),
    "poisson_entropy": (lambda m: stats.poisson.entropy(m), X),
    "multivariate_normal_pdf": (
        lambda x, cov: stats.multivariate_normal.logpdf(x, x, cov),
        V,
        SQUARE,
    ),
    "kde": (lambda m: stats.gaussian_kde(m).logpdf(m), M),
    "kde_weighted": (lambda x: stats.gaussian_kde(x, weights=x)(x), X),
    # nn
    "attention_lengths": (
        attention(is_causal=True, query_seq_lengths=LENGTHS, key_value_seq_lengths=LENGTHS),
        HEADS,
    ),
    "attention_mask": (attention(is_causal=True, mask=np.ones((2, 2, 4, 4), np.bool_)), HEADS),
    "attention_window": (attention(local_window_size=2), HEADS),
    "attention_of_halves": (
        lambda q, bias: jax.nn.dot_product_attention(q, q, q, bias=bias),
        HEADS.astype(np.float16),
        np.ones((2, 2, 4, 4), np.float16),
    ),
    **{
        name: (getattr(jax.nn, name), X)
        for name in (
            "celu elu gelu glu hard_silu hard_tanh leaky_relu log_sigmoid mish relu relu6 selu "
            "silu soft_sign softplus squareplus sparse_plus standardize"
        ).split()
    },
    # random
    **{
        f"multivariate_normal_{method}": (
            sampled("multivariate_normal", (5,), method=method),
            V,
            SQUARE,
        )
        for method in ("cholesky", "eigh", "svd")
    },
    "dirichlet": (sampled("dirichlet", (4,)), V),
    "categorical": (sampled("categorical", axis=0), M),
    "choice": (lambda x: random.choice(KEY, x, (3,), p=x), X),
    "poisson": (sampled("poisson"), X),
    "gamma": (sampled("gamma"), X),
    "t": (sampled("t"), X),
    "beta_numbers": (sampled("beta"), X, X),
    "binomial": (lambda: random.binomial(KEY, 5, 0.3, (3,)),),
    "ball": (lambda: random.ball(KEY, 3),),
    "orthogonal": (lambda: random.orthogonal(KEY, 3),),
    # iterative methods
    **{name: (getattr(solvers, name), SQUARE, V) for name in ("cg", "bicgstab", "gmres")},
    **{
        f"{name}_of_complex": (getattr(solvers, name), COMPLEX_SQUARE, C[:3])
        for name in ("cg", "bicgstab", "gmres")
    },
    "bfgs": (minimum("BFGS"), V),
    "lbfgs": (minimum(LIMITED), V),
    "lbfgs_of_complex": (minimum(LIMITED), C[:3]),
    # others
    "map_coordinates": (lambda m, x: jsp.ndimage.map_coordinates(m, [x, x], 1), M, X),
    "grid": (
        lambda m: jsp.interpolate.RegularGridInterpolator((V, X[:4]), m)(M[:, :2]),
        M,
    ),
    **{
        f"resize_{method}": (lambda m, method=method: jax.image.resize(m, (6, 8), method), M)
        for method in ("nearest", "linear", "cubic", "lanczos3")
    },
    "expm": (jsp.linalg.expm, SQUARE),
    "sqrtm": (jsp.linalg.sqrtm, SQUARE),
    "associative_scan": (lambda x: jax.lax.associative_scan(jnp.add, x), X),
}
