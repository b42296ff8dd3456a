"""The fault "exponentials of NaN": numbers where XLA finds a NaN while it compiles."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.config import options
from hlofront.bridge import state
from hlofront.bridge.xla_faults import FAULTS

FAULT = next(each for each in FAULTS if each.name == "exponentials of NaN")
DTYPES = [jnp.float32, jnp.float16, jnp.bfloat16]
HIGHEST = lax.AccuracyMode.HIGHEST


def loop_of(f):
    return lambda x: lax.fori_loop(0, 3, lambda _, c: f(c), x)


# Of a NaN that XLA finds.
OF_NAN = {
    "exp": jnp.exp,
    "exp2": jnp.exp2,
    "exp2 as exp": lambda x: lax.exp2(x, accuracy=HIGHEST),
    "expm1": jnp.expm1,
    "sinh": jnp.sinh,
    "cosh": jnp.cosh,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "softplus": jax.nn.softplus,
    "erf": lax.erf,
    "erfc": lax.erfc,
    "log": jnp.log,
    "log1p": jnp.log1p,
    "power": lambda x: x**2.5,
    "power of 2.5": lambda x: 2.5**x,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "logaddexp": lambda x: jnp.logaddexp(x, x),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x[None], 0),
    "logsumexp": lambda x: jax.nn.logsumexp(jnp.stack([x, x]), 0),
    "softmax": lambda x: jax.nn.softmax(jnp.stack([x, x]), 0),
}
NANS = {
    "a factor": lambda x: x * jnp.asarray(np.nan, x.dtype),
    "a divisor": lambda x: -0.5 * (x / jnp.asarray(np.nan, x.dtype)) ** 2,
    "infinities": lambda x: x + (jnp.asarray(np.inf, x.dtype) - jnp.asarray(np.inf, x.dtype)),
    "a product of zero": lambda x: x + jnp.asarray(np.inf, x.dtype) * jnp.zeros_like(x),
}


def of_nans(x):
    return {
        f"{name} of {nan}": f(find(x)) for name, f in OF_NAN.items() for nan, find in NANS.items()
    }


def in_loops(x):
    """Return exponentials in loops, which XLA compiles by another path."""
    nan = jnp.asarray(np.nan, x.dtype)
    functions = (jnp.exp, jnp.sinh, jnp.cosh, jax.nn.sigmoid, jnp.expm1)
    return [loop_of(lambda c, f=f: f(c * nan))(x) for f in functions]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("program", [of_nans, in_loops])
@pytest.mark.parametrize("shape", [(), (37,)], ids=str)
def test_functions_of_nans_are_nan(program, dtype, shape):
    results = jax.jit(program)(jnp.full(shape, 0.1, dtype))
    paths = jax.tree_util.tree_leaves_with_path(results)
    assert [path for path, x in paths if not jnp.isnan(x).all()] == []


def test_the_fault_is_there_without_the_guard():
    # What the conversion of a NaN gives is chance. Without optimizations by LLVM it is a number for
    # several of these functions, in each jaxlib that has the fault.
    quickly = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    with options["hlofront_xla_guards"](False):
        found = jax.jit(of_nans, compiler_options=quickly)(jnp.full(37, 0.1))
    is_right = all(jnp.isnan(x).all() for x in found.values())
    assert is_right == (not FAULT.is_in(state.jaxlib_version))


def test_only_modules_for_cpus_are_guarded():
    traced = jax.jit(lambda x: jnp.exp(x * np.nan)).trace(np.ones(3, np.float32))
    guarded = {
        platforms: "select" in traced.lower(lowering_platforms=platforms).as_text()
        for platforms in (("cpu",), ("tpu",), ("cpu", "tpu"))
    }
    assert guarded == {("cpu",): True, ("tpu",): False, ("cpu", "tpu"): True}


def masked_attention(q, k):
    scores = jnp.where(jnp.tri(3, dtype=bool), q @ k.T, -jnp.inf)
    return jax.nn.softmax(scores) * (1 / 10000 ** (jnp.arange(3.0) / 3))


# By whether XLA may find a NaN in them.
PROGRAMS = {
    True: [
        lambda x: jnp.exp(x + jnp.log(jnp.full(3, -1.0))),
        lambda x: jnp.exp(x * (jnp.zeros(3) / jnp.zeros(3))),
        lambda x: jnp.exp(x + jax.jit(lambda a: jnp.sqrt(a))(jnp.float32(-2))),
        lambda x: jnp.exp((x + jnp.inf) - jnp.inf),
        lambda x: lax.fori_loop(0, 3, lambda _, c: jnp.exp(c) * np.float32(np.nan), x),
        lambda x: jnp.exp(x[:, 0] @ np.full((3, 3), np.nan, np.float32)),
    ],
    False: [
        jnp.exp,
        jax.nn.softmax,
        lambda x: masked_attention(x, x),
        lambda x: lax.scan(lambda c, y: (c + jnp.exp(y), c), x[0], x)[1],
    ],
}


@pytest.mark.parametrize("is_guarded", PROGRAMS)
def test_programs_without_constant_nans_are_as_they_were_written(is_guarded):
    for program in PROGRAMS[is_guarded]:
        text = jax.jit(program).lower(jnp.ones((3, 3))).as_text()
        assert ("compare NE" in text or "compare  NE" in text) is is_guarded, text


def test_values_are_those_of_the_operation():
    x = np.array([-np.inf, -200, -1, -0.0, 0, 1, 88, 89, np.inf, np.nan], np.float32)
    with np.errstate(over="ignore", under="ignore"):
        expected = np.exp(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(jnp.exp(x), expected, rtol=1e-6, atol=1.2e-38)


def test_compiled_programs_with_exponentials_say_the_guard():
    x = np.ones(3, np.float32)
    guards = [
        [guard.fault.name for guard in jax.jit(f).lower(x).compile().xla_guards]
        for f in (jnp.exp, jnp.sin)
    ]
    assert [FAULT.name in names for names in guards] == [True, False]
