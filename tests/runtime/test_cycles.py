"""Nothing that is traced or compiled refers to itself: it goes with the last that uses it."""

import gc
import weakref

import pytest

import hlofront
from hlofront import lax
from hlofront import numpy as jnp
from hlofront.experimental import checkify


def with_jvp():
    f = hlofront.custom_jvp(lambda x: jnp.sin(x))
    f.defjvp(lambda primals, tangents: (jnp.sin(*primals), tangents[0]))
    return f


def with_vjp():
    f = hlofront.custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * x,))
    return f


def with_vmap():
    f = hlofront.custom_batching.custom_vmap(lambda x: jnp.sin(x))
    f.def_vmap(lambda size, batched, x: (jnp.sin(x), True))
    return f


# Each makes its functions anew.
CASES = {
    "jit": lambda x: hlofront.jit(lambda x: jnp.sin(x) * 2)(x),
    "nested_jit": lambda x: hlofront.jit(lambda x: hlofront.jit(lambda y: jnp.tanh(y))(x) * 2)(x),
    "stages": lambda x: hlofront.jit(lambda x: jnp.sin(x) * 4).lower(x).compile()(x),
    "linearize": lambda x: hlofront.linearize(lambda x: jnp.sin(x) * 2, x)[1](x),
    "vjp": lambda x: hlofront.vjp(lambda x: jnp.sum(jnp.cos(x) * x), x)[1](1.0),
    "jvp": lambda x: hlofront.jvp(lambda x: jnp.cos(x) * x, (x,), (x,)),
    "grad": lambda x: hlofront.grad(lambda x: jnp.sum(jnp.cos(x) * x))(x),
    "hessian": lambda x: hlofront.hessian(lambda x: jnp.sum(jnp.sin(x) * x))(x),
    "vmap": lambda x: hlofront.vmap(lambda x: jnp.cos(x) * x)(x),
    "make_jaxpr": lambda x: hlofront.make_jaxpr(lambda x: jnp.sin(x))(x),
    "eval_shape": lambda x: hlofront.eval_shape(lambda x: jnp.sin(x), x),
    "linear_transpose": lambda x: hlofront.linear_transpose(lambda x: 2 * x, x)(x),
    "checkpoint": lambda x: hlofront.grad(lambda x: hlofront.checkpoint(jnp.sin)(x).sum())(x),
    "scan": lambda x: lax.scan(lambda c, x: (c + x, c * x), 0.0, x),
    "scan_grad": lambda x: hlofront.grad(lambda c: lax.scan(lambda c, x: (c * x, c), c, x)[0])(1.0),
    "scan_vmap": lambda x: hlofront.vmap(lambda c: lax.scan(lambda c, x: (c * x, c), c, x))(x),
    "while_loop": lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: c + 1, x),
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x),
    "cond": lambda x: lax.cond(x[0] > 1, lambda x: x * 3, lambda x: x * 2, x),
    "one_branch_twice": lambda x: [lax.cond(x[0] > 1, f, f, x) for f in [lambda x: x * 3]],
    "switch": lambda x: lax.switch(1, [lambda x: x * 3, lambda x: x * 2], x),
    "map": lambda x: lax.map(lambda x: x * 5, x),
    "associative_scan": lambda x: lax.associative_scan(jnp.multiply, x),
    "reduce": lambda x: lax.reduce(x, 0.0, lambda a, b: a + b, (0,)),
    "custom_jvp": lambda x: with_jvp()(x),
    "custom_jvp_grad": lambda x: hlofront.grad(lambda x: with_jvp()(x).sum())(x),
    "custom_vjp": lambda x: with_vjp()(x),
    "custom_vjp_grad": lambda x: hlofront.grad(lambda x: with_vjp()(x).sum())(x),
    "custom_vmap": lambda x: hlofront.vmap(with_vmap())(x),
    "checkify": lambda x: checkify.checkify(lambda x: jnp.sin(x))(x),
    "pure_callback": lambda x: hlofront.pure_callback(lambda x: x, x, x),
    "sort": jnp.sort,
    "unique": jnp.unique,
    "median": jnp.median,
    "interp": lambda x: jnp.interp(x, x, x),
    "histogram": jnp.histogram,
    "pad": lambda x: jnp.pad(x, 1),
    "update": lambda x: x.at[1].set(3.0),
    "solve": lambda x: jnp.linalg.solve(jnp.eye(x.size), x),
    "normal": lambda x: hlofront.random.normal(hlofront.random.key(0), x.shape),
    "gamma": lambda x: hlofront.random.gamma(hlofront.random.key(0), x),
    "softmax": hlofront.nn.softmax,
    "operators": lambda x: (x + 1) @ x,
}


@pytest.fixture(scope="module")
def older_objects_frozen():
    """Leave what is older than these tests out of collections, which are ten times as fast then."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def no_collection(older_objects_frozen):
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", CASES)
def test_tracing_and_compiling_leave_no_cycles(name, no_collection):
    case = CASES[name]
    short, long = jnp.arange(1.0, 4.0), jnp.arange(1.0, 6.0)
    case(short)  # What is imported on first use leaves cycles of its own.
    gc.collect()
    case(long)
    assert gc.collect() == 0


@pytest.mark.parametrize(
    ("close", "use"),
    [
        (lambda x: hlofront.jit(lambda: x), lambda f: f()),
        (lambda x: hlofront.jit(lambda y: x * y), lambda f: f(2.0)),
        (lambda x: hlofront.jit(lambda y: x * y), lambda f: hlofront.vmap(f)(jnp.ones(3))),
        (lambda x: hlofront.jit(lambda y: jnp.sum(x * y)), lambda f: hlofront.grad(f)(2.0)),
        (lambda x: lambda y: jnp.sum(x * y), lambda f: hlofront.grad(hlofront.checkpoint(f))(1.0)),
        (lambda x: lambda c, y: (c, jnp.sum(x * y)), lambda f: lax.scan(f, 0.0, jnp.ones(3))),
        (lambda x: lambda y: x * y, lambda f: lax.cond(True, f, f, 1.0)),
    ],
)
def test_a_function_that_is_dropped_frees_what_it_closes_over(close, use, no_collection):
    x = jnp.ones(10)
    function = close(x)
    freed = weakref.ref(x)
    del x
    use(function)
    use(function)
    del function
    assert freed() is None


def test_programs_keep_no_arguments(no_collection):
    functions = [
        hlofront.jit(lambda x: x * 2),
        lambda x: hlofront.vjp(jnp.sin, x),
        hlofront.vmap(with_vmap()),
        hlofront.make_jaxpr(jnp.sin),
        hlofront.grad(lambda x: with_jvp()(x).sum()),
    ]
    for function in functions:
        x = jnp.ones(10)
        freed = weakref.ref(x)
        function(x)
        del x
        assert freed() is None


def test_an_executable_runs_while_its_compiled_stage_is_forgotten():
    call = hlofront.jit(lambda x: x + 1).lower(1.0).compile().__call__
    assert call(2.0) == 3.0
    with hlofront.debug_nans(True):
        assert call(2.0) == 3.0
        assert lax.scan(lambda c, _: (c + 1.0, None), 0.0, None, length=3)[0] == 3.0
