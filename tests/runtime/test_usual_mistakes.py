"""What errors advise for the mistakes that newcomers make most."""

import functools

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import random
from hlofront.runtime.array import array

x = jnp.ones(3)
matrix = jnp.ones((2, 2))


class Model:
    """A class that is not a pytree."""

    def __init__(self):
        self.weights = jnp.ones(3)

    @jax.jit
    def predict(self, x):
        return self.weights @ x


def mistake(error, advice):
    """Register a function that raises an error with an advice."""

    def register(function):
        MISTAKES.append(pytest.param(function, error, advice, id=function.__name__))
        return function

    return register


MISTAKES = []


def named(name, function):
    function.__name__ = name
    return function


for name, kind in {
    "concatenate": ValueError,
    "stack": TypeError,
    "hstack": ValueError,
    "vstack": ValueError,
    "dstack": ValueError,
}.items():
    join = functools.partial(lambda join, *arrays: join(*arrays), getattr(jnp, name))
    advice = rf"write jnp\.{name}\(\[a, b\]\) instead of jnp\.{name}\(a, b\)"
    mistake(kind, advice)(named(f"{name} of two", functools.partial(join, x, x)))
    mistake(kind, advice)(named(f"{name} of two in jit", functools.partial(jax.jit(join), x, x)))
mistake(TypeError, r"jnp\.concatenate\(\[a, b\]\)")(
    named("concatenate of two matrices", functools.partial(jnp.concatenate, matrix, matrix))
)


@mistake(TypeError, r"Register the class Model as a pytree, .*register_dataclass.*static_argnums")
def an_object_given_to_jit():
    jax.jit(lambda model: model.weights)(Model())


@mistake(TypeError, r"register its class Model as a pytree, .*register_dataclass.*static_argnums")
def jit_of_a_method():
    Model().predict(x)


@mistake(TypeError, "If a function needs it, mark the argument as static")
def a_string_given_to_jit():
    jax.jit(lambda mode: 1)("sum")


@mistake(TypeError, "Close over it, .*Register the class Model as a pytree")
def an_object_given_to_vmap():
    jax.vmap(lambda model: model.weights)(Model())


@mistake(TypeError, "Register the class Model as a pytree")
def an_object_given_to_grad():
    jax.grad(lambda model: model.weights.sum())(Model())


@mistake(TypeError, "by its sum or mean, or compute the Jacobian, by jacrev or jacfwd")
def grad_of_a_vector():
    jax.grad(lambda x: x * 2)(x)


@mistake(TypeError, r"return a pair \(scalar, values\) and give has_aux=True")
def grad_of_a_tuple():
    jax.grad(lambda x: (x.sum(), x))(x)


@mistake(TypeError, r"Write 3\.0 instead of 3\.")
def grad_of_an_integer():
    jax.grad(lambda x: x * 2)(3)


@mistake(TypeError, r"Convert it, as by x\.astype\(jnp\.float32\)")
def grad_of_an_array_of_integers():
    jax.grad(lambda x: x.sum())(jnp.arange(3))


for key in ((3,), 0, None, np.zeros(3), "key", jnp.uint32(3)):
    for draw in (random.normal, random.uniform, random.split, random.permutation):
        arguments = (3,) if draw is random.permutation else ()
        mistake(TypeError, r"key as their first argument: key = random\.key\(0\)")(
            named(f"{draw.__name__} by {key!r}", functools.partial(draw, key, *arguments))
        )


@mistake(TypeError, r'unsupported format string .* use jax\.debug\.print\("\{x:\.2f\}", x=x\)')
def a_traced_array_in_an_f_string():
    jax.jit(lambda x: f"{x:.2f}")(1.0)


@mistake(ValueError, "argument 'sizes' is .*such as a tuple instead of a list")
def a_list_as_static_argument_that_is_lowered():
    jax.jit(lambda x, sizes: x, static_argnums=1).lower(x, [1, 2])


@mistake(TypeError, r"^JAX arrays are immutable .* x = x\.at\[idx\]\.set\(y\)")
def an_item_that_is_assigned():
    x[0] = 1


@mistake(TypeError, r"^JAX arrays are immutable .* x = x\.at\[idx\]\.set\(y\)")
def an_item_that_is_assigned_before_operators_are_loaded():
    array.__setitem__(x, 0, 1)


@mistake(TypeError, r"^JAX arrays are immutable .* x = x\.at\[idx\]\.set\(y\)")
def an_item_that_is_assigned_in_jit():
    def assign(x):
        x[0] = 1

    jax.jit(assign)(x)


@pytest.mark.parametrize(("function", "error", "advice"), MISTAKES)
def test_the_error_says_what_to_do(function, error, advice):
    with pytest.raises(error, match=f"(?s){advice}"):
        function()


def test_a_traced_array_in_an_f_string_without_a_format_shows_its_type():
    seen = []
    jax.jit(lambda x: seen.append(f"{x}") or x)(1.0)
    assert seen == ["JitTracer(~float32[])"]
