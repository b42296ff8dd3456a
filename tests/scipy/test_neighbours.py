"""No element of a result depends on the other elements of the operands.

A loop that runs until all elements have converged can change those that have, and a number of steps
that is the greatest of all elements changes what the others are computed with. Each element is
computed among elements of very different sizes, and among copies of itself by the same program:
both must be the same to the last bit.
"""

import inspect
import zlib

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax, nn
from hlofront.scipy import special, stats

# The functions of a number of operands are compiled together.
SPECIAL = {
    1: "dawsn digamma entr erf erfc erfcinv erfcx erfinv exp1 expi expit factorial fresnel gamma "
    "gammaln gammasgn i0 i0e i1 i1e log_ndtr loggamma logit ndtr ndtri sici spence wofz",
    2: "beta betaln boxcox boxcox1p comb expn gammainc gammaincc kl_div owens_t poch "
    "rel_entr xlog1py xlogy zeta",
    3: "betainc hyp1f1",
    4: "hyp2f1",
}
NUMPY = {
    1: "abs acos acosh angle asin asinh atan atanh cbrt ceil cos cosh deg2rad exp exp2 expm1 fabs "
    "floor i0 log log10 log1p log2 nan_to_num negative rad2deg reciprocal rint round sign sin "
    "sinc sinh sqrt square tan tanh trunc spacing modf frexp",
    2: "add arctan2 copysign divide divmod float_power floor_divide fmax fmin fmod heaviside hypot "
    "logaddexp logaddexp2 maximum minimum mod multiply nextafter power remainder subtract",
}
NN = "celu elu gelu hard_tanh log_sigmoid mish sigmoid silu softplus selu squareplus"
VALUES = (0.0, -0.0, 1e-30, 1e-4, 0.3, 0.5, 0.97, 0.999, 1.0, 1.5, 2.0, 3.0, 7.7, 20.0, 50.0)
VALUES += (300.0, 1e5, 1e30, np.inf, np.nan, -1e-3, -0.6, -1.0, -4.0, -10.25, -50.5, -300.0)
# Of several operands few elements of those are in all domains: half are of these.
MODERATE = (0.02, 0.3, 0.97, 1.3, 2.5, 7.7, 20.0, 50.3)
COUNT = 48


def _of_distributions():
    """All elementwise functions of distributions, with the number of their arguments."""
    found = {}
    for name in sorted(dir(stats)):
        distribution = getattr(stats, name)
        if name in ("dirichlet", "multinomial", "multivariate_normal", "gaussian_kde"):
            continue
        if not getattr(distribution, "__name__", "").startswith(stats.__name__ + "."):
            continue  # What a module of distributions imports, such as `builtins`.
        for method in sorted(dir(distribution)):
            f = getattr(distribution, method)
            is_function = callable(f) and not isinstance(f, type)
            if method.startswith("_") or not is_function or not inspect.ismodule(distribution):
                continue
            parameters = inspect.signature(f).parameters.values()
            count = sum(p.default is inspect.Parameter.empty for p in parameters)
            found[f"{name}.{method}"] = (f, count)
    return found


def _functions():
    """Names and functions, by the number of their operands."""
    found = {n: {} for n in range(1, 5)}
    for module, names in ((special, SPECIAL), (jnp, NUMPY), (nn, {1: NN})):
        for count, some in names.items():
            for name in some.split():
                found[count][f"{module.__name__}.{name}"] = getattr(module, name)
    for name, (f, count) in _of_distributions().items():
        found[count][name] = f
    found[1]["bessel_jn"] = lambda x: special.bessel_jn(x, v=3)
    found[1]["multigammaln"] = lambda x: special.multigammaln(x, 3)
    found[2]["sph_harm_y"] = lambda x, y: special.sph_harm_y(
        jnp.clip(jnp.nan_to_num(x), 0, 5).astype(int), jnp.full(x.shape, 1), y, x, n_max=5
    )
    found[2]["polygamma"] = lambda x, y: special.polygamma(
        jnp.clip(jnp.nan_to_num(x), 0, 50).astype(int), y
    )
    for name in ("igamma_grad_a", "random_gamma_grad"):
        found[2][name] = getattr(lax, name)
    return found


def _operands(count, dtype, size, seed):
    random = np.random.default_rng(zlib.crc32(f"{count} {seed}".encode()))
    chosen = random.choice(np.array(VALUES), (count, size))
    chosen[:, ::2] = random.choice(np.array(MODERATE), (count, (size + 1) // 2))
    # The last operand of most functions of several is a probability or an argument in (-1, 1).
    chosen[-1, ::4] = random.uniform(-1, 1, (size + 3) // 4)
    return chosen.astype(dtype)


def _bits(x):
    x = np.asarray(x)
    parts = [x.real, x.imag] if x.dtype.kind == "c" else [x]
    parts = [np.where(p != p, np.nan, p) if p.dtype.kind == "f" else p for p in parts]
    return np.stack(parts).view(f"u{parts[0].itemsize}")


def dependent(functions, operands):
    """What depends on neighbours: names of functions, with elements' operands and both values."""
    program = jax.jit(lambda *xs: {name: f(*xs) for name, f in functions.items()})
    among = program(*operands)
    found = {}
    for i in range(operands.shape[1]):
        alone = program(*np.repeat(operands[:, i : i + 1], operands.shape[1], 1))
        for name in functions:
            pairs = zip(*map(jax.tree.leaves, (among[name], alone[name])), strict=True)
            for x, y in pairs:
                x, y = x[..., i], y[..., i]
                if (_bits(x) != _bits(y)).any():
                    found.setdefault(name, []).append((operands[:, i].tolist(), x, y))
    return found


# Those with loops are tried in both dtypes, of the others, for the time they take to compile, every
# second one in either.
LOOPS = "bessel_jn betainc gammainc igamma_grad_a random_gamma_grad hyp1f1 hyp2f1"


@pytest.mark.long
@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_elements_are_independent(count, dtype):
    functions = {
        name: f
        for place, (name, f) in enumerate(_functions()[count].items())
        if place % 2 == (dtype is np.float64) or name.split(".")[-1] in LOOPS.split()
    }
    with jax.enable_x64(dtype is np.float64):
        assert not dependent(functions, _operands(count, dtype, COUNT, 0))
