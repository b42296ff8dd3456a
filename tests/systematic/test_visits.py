"""No pass over programs takes time that doubles with each level of programs that call one another.

Each program here calls the one below it twice, at 60 levels: that is some 60 programs and 2**60
calls. A pass must visit each program a few times, however often it is called.
"""

import numpy as np
import pytest

import hlofront as jax
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.core.programs.check import check_jaxpr
from hlofront.core.programs.digest import program_digest
from hlofront.experimental import checkify, jet
from tests.support.visits import counting_visits

DEPTH = 60
# Per level. A pass that visits every call would need 2**60.
MAX_VISITS = 400


def nested(level, depth=DEPTH):
    """Return a function of `depth` levels, each traced once the one below it is."""
    f = jax.jit(lambda x: x * 2.0)
    for _ in range(depth):
        f = level(f)
        jax.make_jaxpr(f)(1.0)
    return f


def with_rule(f):
    function = jax.custom_jvp(lambda x: f(f(x)))
    function.defjvp(lambda primals, tangents: (f(f(*primals)), tangents[0] * 2.0))
    return jax.jit(lambda x: function(function(x)))


def with_backward(f):
    function = jax.custom_vjp(lambda x: f(f(x)))
    function.defvjp(lambda x: (f(f(x)), None), lambda _, ct: (f(f(ct)),))
    return jax.jit(lambda x: function(function(x)))


def with_batched(f):
    function = jax.custom_batching.custom_vmap(lambda x: f(f(x)))
    function.def_vmap(lambda size, batched, x: (jax.vmap(f)(x), True))
    return jax.jit(lambda x: function(function(x)))


def with_reference(f):
    def function(x):
        ref = jax.new_ref(x)
        ref[...] = f(ref[...])
        return f(ref[...])

    return jax.jit(function)


def with_print(f):
    def function(x):
        jax.debug.print("{}", x)
        return f(f(x))

    return jax.jit(function)


CONSTANT = np.arange(1000.0, dtype=np.float32)
saving = jax.checkpoint_policies.everything_saveable

LEVELS = {
    "jit": lambda f: jax.jit(lambda x: f(f(x))),
    "cond": lambda f: jax.jit(lambda x: lax.cond(x > 0, f, f, x)),
    "branches": lambda f: jax.jit(lambda x: lax.switch(0, [f, lambda y: f(f(y))], x)),
    "scan": lambda f: jax.jit(lambda x: lax.scan(lambda c, _: (f(f(c)), f(c)), x, None, 2)[0]),
    "while": lambda f: jax.jit(
        lambda x: lax.while_loop(lambda c: f(c) < 0.5, lambda c: f(f(c)), x)
    ),
    "fori_loop": lambda f: jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: f(f(c)), x)),
    "map": lambda f: jax.jit(lambda x: lax.map(lambda y: f(f(y)), jnp.stack([x, x]))[0]),
    "reduce": lambda f: jax.jit(
        lambda x: lax.reduce(jnp.stack([x, x]), 0.0, lambda a, b: f(f(a)) + b, (0,))
    ),
    "custom_jvp": with_rule,
    "custom_vjp": with_backward,
    "custom_vmap": with_batched,
    "checkpoint": lambda f: jax.jit(jax.checkpoint(lambda x: f(f(x)))),
    "unjitted_checkpoint": lambda f: jax.checkpoint(lambda x: f(f(x))),
    "policy": lambda f: jax.jit(jax.checkpoint(lambda x: f(f(x)), policy=saving)),
    "constants": lambda f: jax.jit(lambda x: f(f(x)) + CONSTANT[3] * jnp.asarray(CONSTANT).sum()),
    "solve": lambda f: jax.jit(
        lambda x: lax.custom_linear_solve(
            lambda y: 2.0 * y, f(f(x)), lambda _, b: f(b) * 0.5, lambda _, b: b * 0.5
        )
    ),
    "platforms": lambda f: jax.jit(
        lambda x: lax.platform_dependent(x, cpu=f, default=lambda y: f(f(y)))
    ),
    "reference": with_reference,
    "print": with_print,
    "named": lambda f: jax.jit(lambda x: jax.named_call(f, name="inner")(f(x))),
    "unjitted_cond": lambda f: lambda x: lax.cond(x > 0, f, f, x),
    "unjitted_scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0],
}


def jaxpr_of(function, x=1.0):
    return jax.make_jaxpr(function)(x)


MANY = np.ones(3, np.float32)
PASSES = {
    "make_jaxpr": jaxpr_of,
    "eval_shape": lambda f: jax.eval_shape(f, 1.0),
    "print": lambda f: str(jaxpr_of(f)),
    "check": lambda f: check_jaxpr(jaxpr_of(f)),
    "digest": lambda f: program_digest(jaxpr_of(f)),
    "jvp": lambda f: jaxpr_of(lambda x: jax.jvp(f, (x,), (x,))),
    "linearize": lambda f: jaxpr_of(lambda x: jax.linearize(f, x)[1](x)),
    "grad": lambda f: jaxpr_of(jax.grad(f)),
    "checkpoint": lambda f: jaxpr_of(jax.grad(jax.checkpoint(f))),
    "vmap": lambda f: jaxpr_of(jax.vmap(f), MANY),
    "jet": lambda f: jaxpr_of(lambda x: jet.jet(f, (x,), ((x, x),))),
    "checkify": lambda f: jaxpr_of(checkify.checkify(f, checkify.all_checks)),
    "lower": lambda f: jax.jit(f).lower(1.0),
}


DERIVATIVES = frozenset({"jvp", "linearize", "grad", "checkpoint"})

# Passes whose result itself has 2**60 parts, or that raise errors.
LEFT_OUT = {
    # Each call of a function that decides by its argument leaves a residual of its own.
    "branches": DERIVATIVES,
    "platforms": DERIVATIVES,
    # A while loop has no transpose, a custom_vmap function no linearization.
    "while": {"grad", "checkpoint"},
    "custom_vmap": {"linearize", "grad", "checkpoint"},
    # Both branches run where the predicate is batched. With jit around each level they are calls.
    "unjitted_cond": {"vmap"},
    # The tangents of a reduction are written down anew at each level.
    "reduce": {"jvp"},
    # Checks are not added to mutable references.
    "reference": {"checkify"},
}
# The residuals of all levels below pass through each level: 60 levels have 60**2 / 2.
SQUARED = {"cond", "while", "unjitted_cond"}
FEW = 20


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_each_pass_visits_each_program_a_few_times(level):
    deep, shallow = nested(LEVELS[level]), nested(LEVELS[level], FEW)
    for name, run in PASSES.items():
        if name in LEFT_OUT.get(level, ()):
            continue
        few = level in SQUARED and name in DERIVATIVES
        with counting_visits(MAX_VISITS * (FEW**2 if few else DEPTH)):
            run(shallow if few else deep)
