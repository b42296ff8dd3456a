"""Complex numbers of which one part is NaN, infinite or a signed zero, in all that takes them."""

import numpy as np

from tests.against_jax.describe import Corpus

KNOWN = {
    r"^grad_(arccosh|acosh)_": "jax has the other sign where the real part is negative",
    r"^grad_(arctanh|atanh)_": "where a part is NaN and the other infinite jax has 0, ours is NaN",
    r"^partition_": "jax has no partition of complex numbers",
    r"^all_infinite_": "of infinite numbers and NaN jax has False, NumPy True",
}
PARTS = [-np.inf, -2.0, -0.0, 0.0, 1.0, np.inf, np.nan]
GRID = np.array([complex(a, b) for a in PARTS for b in PARTS])
FEW = np.array(
    [1 + 1j, complex(0, np.nan), 0, complex(1, np.nan), complex(np.nan, 1), complex(np.inf, np.nan)]
)
OF_ONE = """abs absolute acos acosh angle arccos arccosh arcsin arcsinh arctan arctanh asin asinh
    atan atanh conj cos cosh exp exp2 expm1 floor imag isfinite isinf isnan isreal iscomplex log
    log10 log1p log2 logical_not nan_to_num negative positive real reciprocal rint round sign sin
    sinh sqrt square tan tanh sinc cbrt ceil trunc deg2rad signbit spacing i0""".split()
OF_TWO = """add subtract multiply divide true_divide power float_power equal not_equal greater less
    greater_equal less_equal maximum minimum fmax fmin logical_and logical_or logical_xor isclose
    logaddexp logaddexp2 allclose array_equal array_equiv arctan2 hypot copysign""".split()
REDUCTIONS = """sum prod max min mean var std any all nansum nanprod nanmax nanmin nanmean nanvar
    nanstd argmax argmin nanargmax nanargmin median nanmedian ptp count_nonzero amax amin average
    cumsum cumprod nancumsum nancumprod sort argsort unique unique_values unique_counts flip diff
    trapezoid sort_complex nonzero flatnonzero argwhere cumulative_sum cumulative_prod""".split()


def programs(jax, jnp, lax):
    corpus = Corpus(("jit",))
    for dtype, wide in (("complex64", False), ("complex128", True)):
        options = {"x64": wide}

        def add(name, function, *args, dtype=dtype, options=options):
            args = [x.astype(dtype) for x in args]
            corpus.add(f"{name}_{dtype}", parts_of(jax, jnp, function), *args, **options)

        for name in OF_ONE:
            add(name, getattr(jnp, name), GRID)
            add(f"grad_{name}", derivative(jax, jnp, getattr(jnp, name)), GRID)
        one, two = (x.ravel() for x in np.meshgrid(GRID[::3], GRID[::2]))
        for name in OF_TWO:
            add(name, getattr(jnp, name), one, two)
        if wide:
            continue
        for name in REDUCTIONS:
            for kind, row in rows().items():
                add(f"{name}_{kind}", getattr(jnp, name), row)
        for name, function in others(jax, jnp, lax).items():
            for kind, row in rows().items():
                add(f"{name}_{kind}", function, row)
    return corpus


def rows():
    nan, inf = np.nan, np.inf
    return {
        "nan_imaginary": np.array([2 + 1j, complex(1, nan), 3 - 1j, complex(0, -0.0)]),
        "nan_real": np.array([complex(nan, 1), 1 + 1j, complex(nan, -1), 2 + 0j]),
        "all_kinds": FEW,
        "only_nan": np.array([complex(nan, 1), complex(1, nan), complex(nan, nan)]),
        "infinite": np.array([complex(inf, 1), complex(1, -inf), complex(-inf, nan), 1j]),
        "zeros": np.array([complex(0, 0), complex(-0.0, 0), complex(0, -0.0), complex(-0.0, -0.0)]),
        "ties": np.array([1 + 1j, 1 + 1j, 1 - 1j, 1 + 0j, complex(1, nan)]),
    }


def parts_of(jax, jnp, function):
    """Return the parts apart, of which one may be NaN and the other not."""

    def run(*args):
        leaves = jax.tree_util.tree_leaves(function(*args))
        return [(jnp.real(x), jnp.imag(x)) if jnp.iscomplexobj(x) else x for x in leaves]

    return run


def derivative(jax, jnp, function):
    def run(x):
        return jax.jvp(function, (x,), (jnp.full_like(x, 1 - 0.5j),))[1]

    return run


def others(jax, jnp, lax):
    import operator

    return {
        "lax_sort": lambda x: lax.sort(x),
        "lax_sort_two_keys": lambda x: lax.sort((x, x[::-1]), num_keys=2),
        "descending": lambda x: jnp.sort(x, descending=True),
        "argsort_descending": lambda x: jnp.argsort(x, descending=True),
        "lexsort": lambda x: jnp.lexsort((x, x[::-1])),
        "partition": lambda x: jnp.partition(x, 2),
        "unique_of_size": lambda x: jnp.unique(x, size=3, return_inverse=True, return_counts=True),
        "unique_unequal": lambda x: jnp.unique(x, size=5, equal_nan=False),
        "searchsorted": lambda x: jnp.searchsorted(jnp.sort(x), x),
        "isin": lambda x: jnp.isin(x, x[:2]),
        "intersect": lambda x: jnp.intersect1d(x, x[:2], size=3, fill_value=0),
        "where": lambda x: jnp.where(x, 1, 0),
        "bool": lambda x: x.astype(bool),
        "real_cast": lambda x: jnp.real(x).astype(int),
        "dot": lambda x: (x @ x, jnp.vdot(x, x), jnp.outer(x, x)),
        "convolve": lambda x: jnp.convolve(x, x),
        "polyval": lambda x: jnp.polyval(x, x),
        "integer_power": lambda x: [x**n for n in (-2, -1, 0, 1, 2, 3)],
        "lax_integer_pow": lambda x: [lax.integer_pow(x, n) for n in (-3, 0, 5)],
        "scalar_power": lambda x: (2.0**x, x**0.5, x**1j),
        "python_operators": lambda x: (x * 2, x / 2, 2 / x, x + 1j, -x, 1j * x),
        "reduce_max": lambda x: lax.reduce_max(x, (0,)) if hasattr(lax, "reduce_max") else 0,
        "cummax": lambda x: (lax.cummax(x), lax.cummin(x)),
        "cumlogsumexp": lambda x: lax.cumlogsumexp(jnp.real(x)),
        "norm": lambda x: [jnp.linalg.norm(x, p) for p in (1, 2, np.inf, -np.inf, 0)],
        "fft": lambda x: (jnp.fft.fft(x), jnp.fft.ifft(x)),
        "complex_constructor": lambda x: lax.complex(jnp.real(x), jnp.imag(x)),
        "logsumexp": lambda x: jax.nn.logsumexp(x),
        "softmax": lambda x: jax.nn.softmax(x),
        "clip": lambda x: jnp.clip(jnp.real(x), -1, 1),
        "interp": lambda x: jnp.interp(jnp.real(x), jnp.arange(4.0), jnp.arange(4.0) * 1j),
        "array_str": lambda x: jnp.array_equal(x, x, equal_nan=True),
        "allclose": lambda x: jnp.allclose(x, x, equal_nan=True),
        "select": lambda x: jnp.select([jnp.isnan(x)], [0], x),
        "max_where": lambda x: jnp.max(x, initial=0, where=jnp.isfinite(x)),
        "scatter_max": lambda x: jnp.zeros_like(x).at[0].max(x[1]),
        "scatter_mul": lambda x: jnp.ones_like(x).at[jnp.array([0, 0])].mul(x[:2]),
        "segment_max": lambda x: jax.ops.segment_sum(x, jnp.zeros(x.shape, int), 2),
        "sign_zero": lambda x: (jnp.sign(x), lax.sign(x)),
        "item": lambda x: operator.truediv(x[0], x[1]),
        "nan_to_num_given": lambda x: jnp.nan_to_num(x, nan=7.0, posinf=8.0, neginf=-8.0),
        "angle_degrees": lambda x: jnp.angle(x, deg=True),
        "grad_abs": lambda x: jax.grad(lambda y: jnp.sum(jnp.abs(y)))(x),
    }
