"""What does not run, and says so: no_execution, forked processes, options set too late."""

import os
import warnings

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.base.config import options


def test_no_execution():
    f = hlofront.jit(lambda x: x + 1)
    for _ in range(3):  # C++ has it by now.
        f(1.0)
    compiled = f.lower(1.0).compile()
    compiled(1.0)
    with hlofront.no_execution():
        for function in (
            lambda: f(1.0),
            lambda: compiled(1.0),
            lambda: hlofront.jit(lambda x: x * 3)(2.0),
            lambda: jnp.ones(2) + 1,
            lambda: jnp.sin(2.0),
            lambda: lax.scan(lambda c, x: (c, x), 1.0, np.ones(3)),
            lambda: hlofront.grad(f)(1.0),
        ):
            with pytest.raises(RuntimeError, match="no_execution config option is set"):
                function()
        assert f.lower(1.0).compile() is not None
        assert hlofront.eval_shape(f, 1.0).shape == ()
        assert len(hlofront.make_jaxpr(f)(1.0).eqns) == 1
        assert hlofront.device_put(1.0).shape == ()
    assert f(1.0) == 2.0


class WithoutWeakReferences:
    __slots__ = ()

    def __call__(self, x):
        return x + 1


@pytest.mark.parametrize(
    "use",
    [
        lambda f: f(1.0),
        lambda f: f.lower(1.0),
        lambda f: hlofront.jit(f)(1.0),
        lambda f: hlofront.vmap(f)(jnp.ones(2)),
    ],
)
def test_jit_refuses_calls_of_what_cannot_be_referred_to_weakly(use):
    # Where the object goes after the call, jaxlib would end the process.
    with pytest.raises(TypeError, match="cannot create weak reference to 'WithoutWeakReferences'"):
        use(hlofront.jit(WithoutWeakReferences()))


def test_the_number_of_cpu_devices_cannot_change_once_they_are_made():
    jnp.ones(2)
    before = hlofront.config.jax_num_cpu_devices
    with pytest.raises(RuntimeError, match="before the first operation"):
        hlofront.config.update("jax_num_cpu_devices", 3)
    assert hlofront.config.jax_num_cpu_devices == before
    hlofront.config.update("jax_num_cpu_devices", before)


HOST, DEVICE = np.arange(1000, dtype=np.float32), jnp.arange(1000.0)


@pytest.mark.parametrize(
    ("function", "nbytes"),
    [
        (lambda x: x + HOST, 4000),
        (lambda x: x + HOST + DEVICE, 8000),
        (lambda x: hlofront.jit(lambda y: y + DEVICE)(x), 4000),
        (lambda x: lax.cond(x > 0, lambda y: y + DEVICE, lambda y: y - DEVICE, x), 4000),
    ],
)
def test_large_constants_are_warned_of(function, nbytes):
    option = options["jax_captured_constants_warn_bytes"]
    with option(nbytes), pytest.warns(UserWarning, match=f"captured.*{nbytes:,} bytes"):
        hlofront.jit(function).lower(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for limit in (nbytes + 1, -1):
            with option(limit):
                hlofront.jit(function).lower(1.0)


def test_the_warning_says_where_constants_are_used():
    with (
        options["jax_captured_constants_warn_bytes"](100),
        options["jax_captured_constants_report_frames"](-1),
        pytest.warns(UserWarning, match=r"float32\[1000\].*\n.*test_refusals"),
    ):
        hlofront.jit(lambda x: x + DEVICE)(1.0)


IN_THE_CHILD = {
    "compiled": lambda f, x: f(x),
    "new": lambda f, x: hlofront.jit(lambda y: y * 3)(x),
    "eager": lambda f, x: x + 1,
    "transfer": lambda f, x: jnp.asarray(np.ones(3)),
    "copy": lambda f, x: x.copy(),
    "numpy": lambda f, x: np.asarray(x),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no os.fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("name", IN_THE_CHILD)
def test_what_the_child_of_a_fork_does(name):
    f, x = hlofront.jit(lambda x: x * 2), jnp.arange(4.0)
    for _ in range(3):
        f(x).block_until_ready()
    reading, writing = os.pipe()
    with pytest.warns(RuntimeWarning, match=r"os\.fork\(\) was called"):
        child = os.fork()
    if not child:
        try:
            said = str(IN_THE_CHILD[name](f, x))
        except RuntimeError as error:
            said = str(error)
        finally:
            os.write(writing, said.encode()[:1000])
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 1000).decode()
    os.close(reading)
    os.waitpid(child, 0)
    if name == "numpy":
        assert said == "[0. 1. 2. 3.]"
    else:
        assert "forked" in said
        assert "spawn" in said
    np.testing.assert_array_equal(f(x), [0, 2, 4, 6])
