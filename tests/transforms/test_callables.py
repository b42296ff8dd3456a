"""What may be passed as a function: objects without a name, methods, partials; and what may not."""

import functools

import numpy as np
import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp


class Square:
    """An object that is called, as layers of neural networks are."""

    def __call__(self, x):
        return x * x

    def method(self, x):
        return self(x)

    @staticmethod
    def static(x):
        return x * x

    @classmethod
    def of_class(cls, x):
        return cls()(x)


class NoName(Square):
    def __init__(self):
        self.__name__ = None
        self.__qualname__ = []
        self.__doc__ = 5
        self.__annotations__ = 3


class NumberAsName(Square):
    __name__ = 3


class Hidden(Square):
    def __getattr__(self, name):
        raise AttributeError(name)


def square(x):
    return x * x


FUNCTIONS = {
    "object": Square(),
    "no_name": NoName(),
    "number_as_name": NumberAsName(),
    "hidden": Hidden(),
    "method": Square().method,
    "static": Square.static,
    "of_class": Square.of_class,
    "partial": functools.partial(square),
    "partial_of_partial": functools.partial(functools.partial(NoName().method)),
    "jitted": hlofront.jit(NoName()),
}


def with_batching_rule(f):
    custom = hlofront.custom_batching.custom_vmap(f)
    custom.def_vmap(lambda axis_size, in_batched, x: (f(x), in_batched[0]))
    return custom


TRANSFORMED = {
    "jit": lambda f: hlofront.jit(f)(3.0),
    "vmap": lambda f: hlofront.vmap(f)(jnp.full(1, 3.0))[0],
    "jvp": lambda f: hlofront.jvp(f, (3.0,), (1.0,))[0],
    "vjp": lambda f: hlofront.vjp(f, 3.0)[0],
    "linearize": lambda f: hlofront.linearize(f, 3.0)[0],
    "value_and_grad": lambda f: hlofront.value_and_grad(f)(3.0)[0],
    "grad": lambda f: hlofront.grad(f)(3.0) * 1.5,
    "jacfwd": lambda f: hlofront.jacfwd(f)(3.0) * 1.5,
    "jacrev": lambda f: hlofront.jacrev(f)(3.0) * 1.5,
    "hessian": lambda f: hlofront.hessian(f)(3.0) * 4.5,
    "checkpoint": lambda f: hlofront.checkpoint(f)(3.0),
    "make_jaxpr": lambda f: hlofront.core.eval_jaxpr(hlofront.make_jaxpr(f)(3.0).jaxpr, [], 3.0)[0],
    "eval_shape": lambda f: 9.0 + 0 * len(hlofront.eval_shape(f, 3.0).shape),
    "named_call": lambda f: hlofront.named_call(f)(3.0),
    "vectorize": lambda f: jnp.vectorize(f)(3.0),
    "custom_vmap": lambda f: with_batching_rule(f)(3.0),
    "cond": lambda f: lax.cond(True, f, f, 3.0),
    "map": lambda f: lax.map(f, jnp.full(1, 3.0))[0],
    "fori_loop": lambda f: lax.fori_loop(0, 1, functools.partial(lambda f, i, x: f(x), f), 3.0),
}


@pytest.mark.parametrize("transformed", TRANSFORMED)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_callable_is_transformed(function, transformed):
    np.testing.assert_allclose(TRANSFORMED[transformed](FUNCTIONS[function]), 9.0)


def test_a_partial_is_named_as_its_function():
    f = hlofront.jit(functools.partial(functools.partial(square)))
    assert f.__name__ == "square"
    assert f.lower(1.0).as_text().startswith("module @jit_square")
    assert f.__getstate__()["function_name"] == "square"
    assert hlofront.make_jaxpr(f)(1.0).eqns[0].params["name"] == "square"
    assert hlofront.vmap(functools.partial(square)).__name__ == "square"


def test_make_jaxpr_is_named_by_the_qualified_name():
    assert hlofront.make_jaxpr(Square().method).__name__ == "make_jaxpr(method)"
    assert hlofront.make_jaxpr(Square().method).__qualname__ == "make_jaxpr(Square.method)"


def test_what_wraps_a_jitted_function_is_not_jitted():
    f = hlofront.jit(square)
    wrapper = functools.wraps(f)(lambda x: f(x))
    assert wrapper.__wrapped__ is f
    for name in ("lower", "trace", "eval_shape", "clear_cache"):
        assert hasattr(f, name)
        assert not hasattr(wrapper, name)
        assert not hasattr(hlofront.vmap(f), name)
    assert isinstance(f, hlofront.stages.Wrapped)
    assert not isinstance(wrapper, hlofront.stages.Wrapped)
    assert jnp.sin.lower(1.0).as_text().startswith("module @jit_sin")


def generator(x):
    yield x


@pytest.mark.parametrize(
    "transformation",
    [hlofront.jit, hlofront.vmap, hlofront.grad, hlofront.value_and_grad, hlofront.jacfwd],
)
@pytest.mark.parametrize(
    "function",
    [
        generator,
        functools.partial(generator),
        staticmethod(square),
        classmethod(square),
        3,
    ],
)
def test_what_is_no_function_is_refused(transformation, function):
    with pytest.raises(TypeError, match="function"):
        transformation(function)


@pytest.mark.parametrize(
    "transformation",
    [hlofront.vmap, hlofront.grad, hlofront.value_and_grad, hlofront.jacfwd],
)
def test_none_is_refused(transformation):
    with pytest.raises(TypeError, match="function"):
        transformation(None)


def test_jit_of_none_is_a_decorator():
    assert float(hlofront.jit(None)(square)(3.0)) == 9.0


def test_generators_have_no_jaxpr():
    with pytest.raises(TypeError, match="generator"):
        hlofront.make_jaxpr(generator)(1.0)


def of_many_kinds(first, /, second, *rest, only_named=1, **others):
    return second


@pytest.mark.parametrize("kind", ["static", "donate"])
@pytest.mark.parametrize("name", ["first", "rest"])
def test_names_that_no_keyword_can_name_are_refused(kind, name):
    with pytest.raises(ValueError, match="positional-only"):
        hlofront.jit(of_many_kinds, **{f"{kind}_argnames": name})
    for named in ("second", "only_named", "others", "another"):
        assert hlofront.jit(of_many_kinds, **{f"{kind}_argnames": named})(1, 2) == 2


def test_donated_names_need_a_signature():
    with pytest.raises(ValueError, match="donate_argnums instead of donate_argnames"):
        hlofront.jit(max, donate_argnames="x")
    hlofront.jit(max, static_argnames="x")


def test_static_positions_beyond_the_arguments_of_a_call():
    def first(a, *rest):
        return a

    assert hlofront.jit(first, static_argnums=(0, 999))(1, 2) == 1
