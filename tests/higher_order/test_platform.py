"""platform_dependent and composite."""

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp

X = np.array([0.3, -0.7, 1.2], np.float32)


def by_platform(x):
    return lax.platform_dependent(
        x, cpu=jnp.sin, cuda=jnp.cos, tpu=jnp.sin, default=lambda x: x * 2
    )


# ---- platform_dependent --------------------------------------------------------------------------


def test_the_branch_of_the_platform_is_taken():
    for f in (by_platform, hlofront.jit(by_platform)):
        np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-6)
    f = hlofront.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin, default=lambda x: x * 2))
    np.testing.assert_allclose(f(X), X * 2)


def test_only_that_branch_is_lowered():
    text = hlofront.jit(by_platform).lower(X).as_text()
    assert "stablehlo.sine" in text
    assert "stablehlo.cosine" not in text
    assert "stablehlo.case" not in text


def test_a_function_for_two_platforms_is_one_branch():
    jaxpr = hlofront.make_jaxpr(by_platform)(X)
    assert jaxpr.eqns[0].params["platforms"] == (("cpu", "tpu"), ("cuda",), None)
    assert len(jaxpr.eqns[1].params["branches"]) == 3


def test_derivatives_and_batching():
    gradient = hlofront.jit(hlofront.grad(lambda x: by_platform(x).sum()))
    np.testing.assert_allclose(gradient(X), np.cos(X), rtol=1e-6)
    np.testing.assert_allclose(hlofront.jit(hlofront.vmap(by_platform))(X), np.sin(X), rtol=1e-6)
    hessian = hlofront.jit(hlofront.hessian(lambda x: by_platform(x).sum()))(X)
    np.testing.assert_allclose(hessian, np.diag(-np.sin(X)), rtol=1e-6)
    jaxpr = hlofront.make_jaxpr(hlofront.vmap(hlofront.grad(lambda x: by_platform(x))))(X)
    assert "branches_platforms" in jaxpr.eqns[-1].params


def test_without_a_branch_for_the_platform():
    f = lambda x: lax.platform_dependent(x, tpu=jnp.sin, cuda=jnp.cos)
    for call in (f, hlofront.jit(f)):
        with pytest.raises(NotImplementedError, match=r"'cpu'.*tpu, cuda.*default"):
            call(X)
    assert hlofront.make_jaxpr(f)(X).eqns


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.platform_dependent(X, gpu=jnp.sin), ValueError, "'cuda' or 'rocm'"),
        (lambda: lax.platform_dependent(X), TypeError, "at least one function"),
        (lambda: lax.platform_dependent(X, cpu=1), TypeError, "callable, got 1"),
        (
            lambda: hlofront.jit(
                lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=lambda x: x[0])
            )(X),
            TypeError,
            "(?s)the function for cpu.*the default.*shapes differ",
        ),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


# ---- composite -----------------------------------------------------------------------------------


def scaled(x, *, factor, add=0.0):
    return {"scaled": x * factor, "sum": x + add}


def test_a_composite_is_one_operation():
    f = lax.composite(scaled, name="test.scaled", version=3)
    jaxpr = hlofront.make_jaxpr(lambda x: f(x, factor=2, add=np.ones(3)))(X)
    (equation,) = jaxpr.eqns
    assert equation.params["name"] == "test.scaled"
    assert equation.params["version"] == 3
    assert len(equation.invars) == 2  # the ones, and x
    for call in (f, hlofront.jit(f, static_argnames="factor")):
        result = call(X, factor=2)
        np.testing.assert_allclose(result["scaled"], X * 2)
        np.testing.assert_allclose(result["sum"], X)


def test_lowering():
    f = lax.composite(scaled, name="test.scaled", version=3)
    text = hlofront.jit(lambda x: f(x, factor=2, add=np.ones(3, np.float32))).lower(X).as_text()
    (line,) = [line for line in text.splitlines() if "stablehlo.composite" in line]
    assert '"test.scaled"' in line
    assert "add = dense<1.000000e+00> : tensor<3xf32>, factor = 2 : i64" in line
    assert "decomposition = @test.scaled, version = 3 : i32" in line


def test_equal_composites_share_their_meaning():
    f = lax.composite(lambda x: jnp.sin(x) / jnp.cos(x), name="test.tangent")
    text = hlofront.jit(lambda x: f(f(x))).lower(X).as_text()
    assert text.count("func.func private") == 1
    np.testing.assert_allclose(hlofront.jit(f)(X), np.tan(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "n = true"),
        (np.bool_(False), "n = false"),
        (2, "n = 2 : i64"),
        (np.int8(2), "n = 2 : i8"),
        (1.5, "n = 1.500000e+00 : f64"),
        (np.float32(1.5), "n = 1.500000e+00 : f32"),
        ("word", 'n = "word"'),
        ((1, ["a", 2.0]), 'n = [1, ["a", 2.000000e+00]]'),
        ({"a": 1, "b": ()}, "n = {a = 1 : i64, b = []}"),
        (np.arange(3), "n = dense<[0, 1, 2]> : tensor<3xi64>"),
        (np.dtype(np.float16), "n = f16"),
    ],
)
def test_attributes(value, text):
    f = lax.composite(lambda x, *, n: x * 2, name="test.attributes")
    assert text in hlofront.jit(lambda x: f(x, n=value)).lower(X).as_text()


def test_equal_arrays_are_equal_attributes():
    f = lax.composite(lambda x, *, n: x * n, name="test.arrays")
    jaxpr = hlofront.make_jaxpr(lambda x: (f(x, n=np.ones(3)), f(x, n=np.ones(3))))(X)
    first, second = jaxpr.eqns
    assert first.params == second.params
    assert hash(first.params["attributes"]) == hash(second.params["attributes"])


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda f: lax.composite(3, name="a.b"), TypeError, "callable.*3"),
        (lambda f: hlofront.grad(f)(1.0), ValueError, "JVP rule.*'test.f'.*custom_jvp"),
        (lambda f: hlofront.vmap(f)(X), NotImplementedError, "Batching.*'test.f'.*custom_vmap"),
        (lambda f: f("x"), TypeError, "'x'"),
        (lambda f: hlofront.jit(lax.composite(jnp.sin, name="a"))(X), ValueError, "namespace"),
        (
            lambda f: hlofront.jit(lambda x: lax.composite(scaled, name="a.b")(x, factor=x))(X),
            hlofront.errors.UnexpectedTracerError,
            "factor",
        ),
        (
            lambda f: hlofront.jit(lambda x: lax.composite(lambda: x, name="a.b")())(X),
            hlofront.errors.UnexpectedTracerError,
            "closes over",
        ),
        (
            lambda f: hlofront.jit(
                lambda x: lax.composite(scaled, name="a.b")(x, factor=1, add=None)
            )(X),
            TypeError,
            "None",
        ),
    ],
)
def test_composites_refuse(call, class_, says):
    f = lax.composite(jnp.sin, name="test.f")
    with pytest.raises(class_, match=says):
        call(f)
