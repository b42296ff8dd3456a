"""find_miscompile gives no alarm for programs that XLA compiles right, however they round."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.experimental import io_callback
from hlofront.inspect import find_miscompile
from tests.inspect.miscompile.corpora import drawn, verdict

x = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)


def logistic_map(x):
    return lax.fori_loop(0, 1_000, lambda _, c: 3.9 * c * (1 - c), abs(x) % 1)


ROUNDING = {
    "a cancellation": lambda x: ((x + 1e5) ** 2).mean() - (x + 1e5).mean() ** 2,
    "decisions": lambda x: (jnp.floor(x * 3.3 / 1.1), jnp.argmax(x * 0.1 + (3 - x) * 0.1)),
    "chaos": logistic_map,
    "few digits": lambda x: jnp.tanh(x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16)) * 3 + 1,
    "differences of few digits": lambda x: 1 - (x / 7).astype(jnp.bfloat16),
    "nans and infinities": lambda x: (jnp.log(x), 1 / (x - x), jnp.exp(x * 100), x % 0),
    "an overflow on the way": lambda x: jnp.exp(x + 90) / jnp.exp(x + 91),
    "small numbers": lambda x: (x * 1e-38 * 0.1 + 1e-39, jnp.sqrt(abs(x) * 1e-45)),
    "random numbers": lambda x: jax.random.normal(jax.random.key(0), x.shape) * x,
    "complex numbers": lambda x: jnp.fft.fft(x * 1j).imag * x,
    "linear algebra": lambda x: jnp.linalg.svd(x @ x.T + 1e-6 * jnp.eye(4), compute_uv=False),
    "integers that wrap": lambda x: (x * 1e6).astype(np.int32) * 123_456_789 // 7,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ROUNDING)
def test_rounding_is_no_fault(name):
    report = find_miscompile(ROUNDING[name], isolated=False)(x)
    assert not report, report
    assert "right" in str(report)


@pytest.mark.slow
def test_what_rounding_decides_is_said_to_be_unknown():
    report = find_miscompile(lambda x: {"a": logistic_map(x), "b": x}, isolated=False)(x)
    assert report.undetermined == ("result['a']",)
    assert "nothing is known" in str(report)


@pytest.mark.long
@pytest.mark.parametrize("number", range(0, 40, 4))
def test_a_few_programs_of_the_corpora_are_right(number):
    name, program = list(drawn())[number]
    assert not verdict(program).startswith("wrong"), name


def test_effects_are_refused():
    def logged(x):
        io_callback(print, None, x)
        return x + 1

    with pytest.raises(TypeError, match="runs the program many times, and it has effects"):
        find_miscompile(logged)(x)
    with pytest.raises(TypeError, match="while a function is traced"):
        jax.jit(find_miscompile(jnp.sin))(x)
