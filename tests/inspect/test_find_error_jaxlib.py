"""find_error against another jaxlib, which runs each operation in a process of its own."""

import importlib.metadata

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.inspect import find_error
from hlofront.inspect.comparison.columns import Artifact
from hlofront.inspect.comparison.environments import NoEnvironment
from hlofront.inspect.comparison.sessions import JaxlibSession, ProcessEnded

HERE = importlib.metadata.version("jaxlib")
x = np.linspace(0.1, 1, 12, dtype=np.float32).reshape(3, 4)


def many_kinds(x, key):
    def step(carry, _):
        value, key = carry
        key, sub = jax.random.split(key)
        return (jnp.sin(value) + jax.random.uniform(sub, value.shape), key), value.sum()

    (value, key), rows = lax.scan(step, (x, key), None, length=5)
    half = jnp.tanh(x @ x.T).astype(jnp.bfloat16)
    factor = jnp.linalg.cholesky(jnp.eye(3) * 5 + x @ x.T)
    branch = lax.cond(x.sum() > 0, jnp.cos, jnp.sin, x)
    return value, key, rows, half, factor, branch, x.astype(jnp.int4), x[:0], x > 0.5


@pytest.mark.long
def test_this_jaxlib_in_another_process_computes_equal_numbers():
    report = find_error(many_kinds, against="jaxlib current")(x, jax.random.key(0))
    assert not report, report
    assert report.against == f"jaxlib {HERE}"
    assert report.own_dtypes == ()


@pytest.mark.long
def test_long_loops_run_compiled_there():
    def long(x):
        return lax.fori_loop(0, 1500, lambda i, x: jnp.sin(x) + 0.5 * x, x)

    report = find_error(long, against="jaxlib current")(x)
    assert not report and report.results[0].error == 0


def test_an_operation_that_is_computed_otherwise_there(monkeypatch):
    run = JaxlibSession.run

    def differently(session, key, program, arguments):
        results = run(session, key, program, arguments)
        is_sine = b"sine" in program.as_bytes(None)
        return [y * np.float32(1.01) for y in results] if is_sine else results

    monkeypatch.setattr(JaxlibSession, "run", differently)

    def f(x):
        moved = jnp.exp(x)
        turned = jnp.sin(moved)
        return jnp.sqrt(jnp.abs(turned))

    report = find_error(f, against="jaxlib current")(x)
    assert report, report
    assert report.operation.primitive == "sin"
    assert "turned = jnp.sin(moved)" in report.operation.source_line.text


def test_what_runs_code_of_this_process_runs_here_alone():
    def calling(x):
        return jax.pure_callback(np.sin, x, x) * 2

    report = find_error(calling, against="jaxlib current")(x)
    assert not report and report.own_dtypes == ("pure_callback",)


def test_a_jaxlib_that_is_none():
    with pytest.raises(NoEnvironment, match="'newest' is not a version of jaxlib"):
        find_error(jnp.sin, against="jaxlib newest")(x)
    with pytest.raises(ValueError, match="or under another jaxlib, such as 'jaxlib 0"):
        find_error(jnp.sin, against="jaxlib")


@pytest.mark.slow
def test_a_program_in_another_process_has_a_time_limit():
    def endless(x):
        return jax.lax.while_loop(lambda x: x > 0, lambda x: x + 1 - 1, x)

    artifact = Artifact(jax.jit(endless).lower(np.float32(1)))
    with JaxlibSession("current") as session, pytest.raises(ProcessEnded, match="2 seconds") as e:
        session.run(0, artifact, [np.array(1, np.float32)], seconds=2)
    assert e.value.is_late
