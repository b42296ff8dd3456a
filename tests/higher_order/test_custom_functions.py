"""Derivatives of functions with custom rules, where the rules have no place for them."""

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.custom_batching import custom_vmap


def scaled(y):
    """Twice `y`, by a function with a custom derivative that closes over `y`."""
    f = jax.custom_vjp(lambda x: x * y)
    f.defvjp(lambda x: (x * y, x), lambda x, cotangent: (cotangent * x,))
    return f(2.0)


@pytest.mark.parametrize(
    "derivative",
    [
        jax.grad(jax.jit(scaled)),
        jax.grad(jax.checkpoint(scaled)),
        jax.grad(lambda y: lax.scan(lambda c, _: (scaled(c), None), y, None, length=2)[0]),
    ],
    ids=("jit", "checkpoint", "scan"),
)
def test_derivatives_by_closed_over_values_are_refused(derivative):
    # JAX's class is a private one, CustomVJPException; the text gives the same advice.
    with pytest.raises(jax.errors.UnexpectedTracerError, match="respect to a closed-over value"):
        derivative(3.0)


@pytest.mark.parametrize("derivative", [jax.grad(scaled), jax.jit(jax.grad(scaled))])
def test_closed_over_values_that_are_differentiated_have_leaked(derivative):
    with pytest.raises(jax.errors.UnexpectedTracerError, match="unexpected tracer"):
        derivative(3.0)


@pytest.mark.parametrize("derivative", [jax.grad, lambda f: lambda x: jax.linearize(f, x)])
def test_reverse_mode_of_a_custom_vmap_function_says_what_to_do(derivative):
    sine = custom_vmap(jnp.sin)
    sine.def_vmap(lambda size, in_batched, x: (jnp.sin(x), in_batched[0]))
    for f in (sine, jax.jit(sine)):
        with pytest.raises(ValueError, match=r"custom_vmap function.*custom_vjp"):
            derivative(f)(0.5)
    np.testing.assert_allclose(jax.jacfwd(sine)(0.5), np.cos(np.float32(0.5)), rtol=1e-6)


def own_by_factor(factor):
    """`2 * x`, whose vmap rule computes `x * factor`: weakly typed, or as the factor is."""
    double = custom_vmap(lambda x: 2 * x)
    double.def_vmap(lambda size, in_batched, x: (x * factor, in_batched[0]))
    return double


def same_number():
    same = custom_vmap(lambda x: x)
    same.def_vmap(lambda size, in_batched, x: (x, in_batched[0]))
    return same


# Where the primal is weakly typed and the tangent is mapped, and the reverse: whether results are.
@pytest.mark.parametrize(
    ("function", "tangent_mapped", "primal_mapped"),
    [
        (own_by_factor(2), [True, True], [False, False]),
        (own_by_factor(np.float32(2)), [False, False], [False, False]),
        (same_number(), [True, False], [False, True]),
    ],
    ids=("weak", "strong", "unchanged"),
)
def test_tangents_of_a_vmap_rule_are_weakly_typed_as_its_results(
    function, tangent_mapped, primal_mapped
):
    """jax 0.10.2 gives these types."""
    xs = jnp.arange(3.0)
    by_tangent = jax.vmap(lambda t: jax.jvp(function, (1.0,), (t,)))(xs)
    by_primal = jax.vmap(lambda x: jax.jvp(function, (x,), (1.0,)))(xs)
    assert [one.weak_type for one in by_tangent] == tangent_mapped
    assert [one.weak_type for one in by_primal] == primal_mapped


# ---- rules that close over mapped values and run after vmap --------------------------------------


def forward(c):
    """The function c * x, whose rule says that its derivative is 10 * c."""
    f = jax.custom_jvp(lambda x: c * x)
    f.defjvp(lambda primals, tangents: (c * primals[0], c * 10 * tangents[0]))
    return f


def backward(c):
    """The same in reverse mode."""
    f = jax.custom_vjp(lambda x: c * x)
    f.defvjp(lambda x: (c * x, None), lambda _, cotangent: (c * 10 * cotangent,))
    return f


def in_scan(f):
    return lambda x: lax.scan(lambda _, x: (None, f(x)), None, x[None])[1][0]


def in_branch(f):
    return lambda x: lax.cond(x > 0, f, lambda x: x, x)


IN_PROGRAM = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "scan": in_scan,
    "cond": in_branch,
    "jit of jit": lambda f: jax.jit(jax.jit(f)),
}
C, X = jnp.array([1.0, 2.0, 3.0]), jnp.array([4.0, 5.0, 6.0])


@pytest.mark.parametrize("outside", [lambda f: f, jax.jit], ids=("eager", "compiled"))
@pytest.mark.parametrize("make", [forward, backward])
@pytest.mark.parametrize("around", IN_PROGRAM.values(), ids=IN_PROGRAM)
def test_a_rule_over_a_mapped_value_of_a_program_is_derived_outside_of_vmap(around, make, outside):
    mapped = jax.vmap(lambda c, x: around(make(c))(x))
    gradient = outside(jax.grad(lambda x: mapped(C, x).sum()))
    np.testing.assert_array_equal(gradient(X), 10 * C)
    if make is forward:
        tangents = outside(lambda x: jax.jvp(lambda x: mapped(C, x), (x,), (2 * x,))[1])
        np.testing.assert_array_equal(tangents(X), 20 * C * X)


@pytest.mark.parametrize("make", [forward, backward])
@pytest.mark.parametrize("around", IN_PROGRAM.values(), ids=IN_PROGRAM)
def test_rules_know_which_of_two_axes_of_one_size_a_value_is_mapped_by(around, make):
    """One call of the program has an argument of the outer axis alone, the other of the inner."""

    def element(d, x, c, y):
        f = around(make(c + 10 * d))
        return f(x) + f(y)

    def total(x, y):
        inner = jax.vmap(element, (None, None, 0, 0))
        return jax.vmap(inner, (0, 0, None, None))(C, x, C, y).sum()

    slopes = 10 * (C + 10 * C[:, None])
    for_x, for_y = jax.grad(total, (0, 1))(X, X)
    np.testing.assert_allclose(for_x, slopes.sum(1))
    np.testing.assert_allclose(for_y, slopes.sum(0))


@jax.custom_vjp
def with_statistics(x, statistics):
    """The double of `x`; the backward rule gives new statistics as the cotangent of old ones."""
    return 2 * x


with_statistics.defvjp(lambda x, statistics: (2 * x, statistics), lambda old, g: (2 * g, old + 7))


@jax.custom_vjp
def without_derivative(x):
    return x


without_derivative.defvjp(lambda x: (x, None), lambda _, g: (None,))


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.checkpoint])
@pytest.mark.parametrize(
    "after, is_called",
    [
        (without_derivative, True),
        (lambda y: jnp.sin(without_derivative(jnp.sin(y))), True),
        (lambda y: without_derivative(y) * 0 + y, True),
        (lax.stop_gradient, False),
        (jnp.zeros_like, False),
    ],
    ids=["at once", "between sines", "other paths", "stopped", "unused"],
)
def test_backward_rules_are_called_for_cotangents_that_a_later_rule_made_zero(
    after, is_called, around
):
    def loss(x, statistics):
        return around(lambda x, s: after(with_statistics(x, s)))(x, statistics) + 3 * x

    derived = jax.grad(loss, (0, 1))
    for gradient in (derived, jax.jit(derived)):
        assert gradient(1.0, 2.0)[1] == (9 if is_called else 0)
    mapped = jax.vmap(derived)(jnp.ones(2), jnp.arange(2.0))[1]
    assert mapped.tolist() == ([7, 8] if is_called else [0, 0])


def test_vmap_calls_share_a_program_that_closes_over_its_own_values(compilations):
    @jax.jit
    def function(x):
        return forward(x.sum())(x)

    for scale in (1.0, 2.0):
        values = jax.vmap(function)(scale * jnp.ones((3, 2)))
        np.testing.assert_array_equal(values, 2 * scale**2 * jnp.ones((3, 2)))
    assert compilations.count("function") == 1


# ---- scalars that programs hold ------------------------------------------------------------------


def with_rule(kind, seen):
    """A function of two arguments whose rule notes the shape and dtype of the second."""

    def noted(scale):
        seen.append((scale.shape, scale.dtype))

    if kind is jax.custom_jvp:
        f = jax.custom_jvp(lambda x, scale: x * scale)

        def rule(primals, tangents):
            noted(primals[1])
            return primals[0] * primals[1], tangents[0] * primals[1]

        f.defjvp(rule)
        return f
    f = jax.custom_vjp(lambda x, scale: x * scale)

    def forward(x, scale):
        noted(scale)
        return x * scale, scale

    f.defvjp(forward, lambda scale, cotangent: (cotangent * scale, None))
    return f


@pytest.mark.parametrize("kind", [jax.custom_jvp, jax.custom_vjp])
@pytest.mark.parametrize("scale", [2, 2.0, True, np.int32(2)], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize(
    "around",
    [
        jax.jit,
        jax.checkpoint,
        lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0],
        lambda f: lambda x: jax.vmap(jax.jit(f))(x[None])[0],
        lambda f: jax.core.jaxpr_as_fun(jax.make_jaxpr(f)(1.0)),
    ],
    ids=("jit", "checkpoint", "scan", "vmap of jit", "jaxpr_as_fun"),
)
def test_rules_are_given_the_scalars_of_a_program_as_arrays(kind, scale, around):
    seen = []
    f = with_rule(kind, seen)
    around_f = around(lambda x: f(x, scale))

    def total(x):
        return jnp.sum(jnp.asarray(around_f(x)))

    assert jax.grad(total)(jnp.float32(3.0)) == scale
    assert seen
    assert set(seen) == {((), jnp.asarray(scale).dtype)}


@pytest.mark.parametrize("rules", [(None,), ("no function", None, None)])
def test_another_number_of_rules_than_of_arguments_is_refused(rules):
    product = jax.custom_jvp(lambda a, b: a * b)
    product.defjvps(*rules)
    assert product(2.0, 3.0) == 6
    message = rf"defjvps has rules for {len(rules)} arguments, and the function was called with 2:"
    with pytest.raises(ValueError, match=message):
        jax.grad(product)(2.0, 3.0)
