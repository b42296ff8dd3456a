"""An exception of a host function that a program calls: its class and message reach the caller."""

import logging

import numpy as np
import pytest

import hlofront
from hlofront import debug, lax
from hlofront import numpy as jnp
from hlofront.errors import JaxRuntimeError
from hlofront.experimental import io_callback

F32 = hlofront.ShapeDtypeStruct((), np.float32)


class NegativeError(RuntimeError):
    pass


def positive(x):
    if x < 0:
        raise NegativeError("boom")
    return np.asarray(x)


CALLS = {
    "pure": lambda x: hlofront.pure_callback(positive, F32, x, vmap_method="sequential"),
    "io": lambda x: io_callback(positive, F32, x),
    "ordered": lambda x: io_callback(positive, F32, x, ordered=True),
    "debug": lambda x: (debug.callback(positive, x), x)[1],
    "partitioned": lambda x: (debug.callback(positive, x, partitioned=True), x)[1],
}


def with_derivative(call):
    function = hlofront.custom_jvp(call)
    function.defjvp(lambda primals, tangents: (call(*primals), tangents[0]))
    return function


def cleared(call):
    jitted = hlofront.jit(call)
    jitted(1.0)
    hlofront.clear_caches()
    return jitted


INSIDE = {
    "jit": hlofront.jit,
    "lower": lambda call: hlofront.jit(call).lower(1.0).compile(),
    "nested": lambda call: hlofront.jit(lambda x: hlofront.jit(call)(x) + 1),
    "grad": lambda call: hlofront.jit(hlofront.value_and_grad(with_derivative(call))),
    "vmap": lambda call: hlofront.jit(lambda x: hlofront.vmap(call)(jnp.stack([x, x]))),
    "scan": lambda call: hlofront.jit(
        lambda x: lax.scan(lambda y, _: (call(y), None), x, None, length=2)
    ),
    "while": lambda call: hlofront.jit(lambda x: lax.fori_loop(0, 2, lambda _, y: call(y), x)),
    "cond": lambda call: hlofront.jit(lambda x: lax.cond(x < 5, call, lambda y: y, x)),
    "clear_caches": cleared,
}


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("name", CALLS)
def test_a_warm_function_tells_the_exception(name, inside):
    if (name, inside) == ("ordered", "vmap"):
        pytest.skip("ordered callbacks are not mapped")
    program = INSIDE[inside](CALLS[name])
    program(1.0)
    for _ in range(2):
        # jaxlib's fast path, which runs no Python of ours, raises ValueError, as in JAX.
        with pytest.raises((ValueError, JaxRuntimeError), match="NegativeError: boom") as caught:
            hlofront.block_until_ready(program(-1.0))
            hlofront.effects_barrier()
        assert f"It was raised at {__file__}:" in str(caught.value)
        if isinstance(caught.value, JaxRuntimeError):
            assert type(caught.value.__cause__) is NegativeError
            assert "host failure" not in str(caught.value)
    hlofront.block_until_ready(program(1.0))
    hlofront.effects_barrier()


def test_an_exception_without_a_text():
    class SilentError(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    def silent(x):
        raise SilentError

    f = hlofront.jit(
        lambda x: lax.cond(x < 0, lambda x: hlofront.pure_callback(silent, F32, x), lambda x: x, x)
    )
    f(1.0)
    with pytest.raises(ValueError, match=r"SilentError: <exception str\(\) failed>"):
        f(-1.0)


LOGGED = {
    "pure": "jax.pure_callback failed",
    "io": "jax.io_callback failed",
    "debug": "jax.debug.callback failed",
}


@pytest.mark.parametrize("mode", [lambda f: f, hlofront.jit])
@pytest.mark.parametrize("name", LOGGED)
def test_the_exception_is_logged(name, mode, caplog):
    # A function of its own: a warm one of another test's would be called by jaxlib's fast path.
    function = mode(lambda x: CALLS[name](x))
    with pytest.raises((NegativeError, JaxRuntimeError)):
        function(-1.0)
        hlofront.effects_barrier()
    (record,) = [record for record in caplog.records if "failed" in record.message]
    assert (record.message, record.levelno) == (LOGGED[name], logging.ERROR)
    assert "in positive\n" in caplog.text and "NegativeError: boom" in caplog.text


def test_debug_log_asks_no_logger_for_its_level(caplog):
    # As in JAX: handlers alone say what they show.
    assert not logging.getLogger("hlofront.runtime.debugging.printing").isEnabledFor(logging.INFO)
    hlofront.jit(lambda x: debug.log("loss {}", x))(3)
    hlofront.effects_barrier()
    assert "loss 3" in caplog.messages
