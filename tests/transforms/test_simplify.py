"""Programs that differentiation splits hold no operation whose result nobody uses."""

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.transforms.simplify import dead_code_program


def primitives_in(program):
    """Return the names of the primitives of a jaxpr and of the programs in its parameters."""
    names = []
    for equation in program.eqns:
        names.append(equation.primitive.name)
        for value in equation.params.values():
            if isinstance(value, ClosedJaxpr):
                names += primitives_in(value.jaxpr)
    return names


def dead_in_custom_vjp(x):
    @jax.custom_vjp
    def doubled(x):
        jnp.tan(x)
        return x * 2

    doubled.defvjp(lambda x: (doubled(x), None), lambda _, cotangent: (cotangent * 2,))
    return doubled(x)


def dead_in_custom_jvp(x):
    @jax.custom_jvp
    def doubled(x):
        jnp.tan(x)
        return x * 2

    doubled.defjvp(lambda primals, tangents: (doubled(*primals), tangents[0] * 2))
    return doubled(x)


def dead_in_jit(x):
    @jax.jit
    def doubled(x):
        jnp.tan(x)
        return x * 2

    return doubled(x)


def dead_in_cond(x):
    return jax.lax.cond(True, lambda: (jnp.tan(x), x * 2)[1], lambda: x * 3)


def test_calls_whose_results_are_all_used_lose_dead_code_when_differentiated():
    x = jnp.ones(2)
    for function in (dead_in_custom_vjp, dead_in_custom_jvp, dead_in_jit, dead_in_cond):

        @jax.jit
        def scaled(y, x, function=function):
            return jnp.sum(jnp.sin(y) * function(x))

        program = jax.make_jaxpr(jax.grad(scaled))(x, x)
        assert "mul" in primitives_in(program.jaxpr)
        assert "tan" not in primitives_in(program.jaxpr), function.__name__


def test_a_program_without_dead_code_is_shared_as_it_was():
    inner = jax.jit(jnp.sin)
    program = jax.make_jaxpr(jax.grad(lambda y, x: jax.jit(lambda y, x: y * inner(x))(y, x)))
    text = str(program(1.0, 2.0))
    assert text.count("name=sin") == 1


def test_a_program_without_dead_code_is_not_analyzed_again():
    program = jax.make_jaxpr(lambda x: (jnp.tan(x), jnp.sin(x)))(1.0)
    smaller, _ = dead_code_program(program, (False, True))
    assert smaller is not program and smaller.jaxpr.live is smaller.jaxpr.eqns
    same, _ = dead_code_program(program, (True, True))
    assert same is program and program.jaxpr.live is program.jaxpr.eqns
