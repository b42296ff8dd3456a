"""Operations on functions that depend on what surrounds them: closures, options, policies."""

import functools

from tests.against_jax.fuzz.choices import Draw
from tests.against_jax.fuzz.loops_and_branches import (
    captured,
    chosen,
    function_of_floats,
    mapped,
    results_like,
)
from tests.against_jax.fuzz.machine import kind_of, operation


def enclosed(m, d, values):
    """A number of the program around, which the functions of a custom rule close over.

    It has no tangent: a custom rule says nothing of the derivative in what it closes over.
    """
    x = m.pick(d, values, "iuf")
    return m.lax.stop_gradient(m.jnp.asarray(m.scalar(x)).astype("float32"))


def strong_float(m, d, values):
    """A float that is never weakly typed: jax's rules differ in which tangents are weak."""
    x = m.jnp.asarray(m.pick(d, values, "f"))
    return x.astype(x.dtype)


# Rules close over no value: where they are applied after the function was staged (under jit, in
# a loop), such a value is one that has escaped, for jax too.


@operation(3, bodies=1)
def custom_jvp_closure(m, d, values, bodies):
    """custom_jvp made inside of the program, of a function that closes over a value of it."""
    x, factor = strong_float(m, d, values), enclosed(m, d, values)
    function = function_of_floats(m, d, bodies[0], ())
    symbolic = d.chance(0.3)

    def rule(primals, tangents):
        (x,), (tangent,) = primals, tangents
        if isinstance(tangent, m.jax.custom_derivatives.SymbolicZero):
            tangent = m.jnp.zeros(tangent.shape, tangent.dtype)
        return function(x)[0], tangent * m.jnp.cos(x)

    made = lambda x: (function(x)[0] * factor).astype(x.dtype)
    custom = m.call("jax.custom_jvp", made)
    m.applied("custom.defjvp", custom.defjvp, rule, symbolic)
    return m.applied("custom", jitted_at_times(m, d, custom), x)


@operation(3, bodies=1)
def custom_vjp_closure(m, d, values, bodies):
    """custom_vjp made inside of the program, of a function that closes over a value of it."""
    x, factor = strong_float(m, d, values), enclosed(m, d, values)
    function = function_of_floats(m, d, bodies[0], ())

    def backward(x, cotangent):
        return (cotangent * m.jnp.cos(x),)

    def forward(x):
        return function(x)[0], x

    if d.chance(0.2):

        def with_gradient(x):
            out, residual = forward(x)
            return out, functools.partial(backward, residual)

        return m.applied("custom", m.call("jax.custom_gradient", with_gradient), x)
    made = lambda x: (function(x)[0] * factor).astype(x.dtype)
    custom = m.call("jax.custom_vjp", made)
    m.applied("custom.defvjp", custom.defvjp, forward, backward)
    return m.applied("custom", jitted_at_times(m, d, custom), x)


def jitted_at_times(m, d, function):
    return m.call("jax.jit", lambda x: function(x)) if d.chance(0.3) else function


@operation(1.5)
def custom_vmap_closure(m, d, values):
    """custom_vmap whose function closes over a value of the program."""
    x, factor = strong_float(m, d, values), enclosed(m, d, values)
    custom = m.call("jax.custom_batching.custom_vmap", lambda x: m.jnp.sin(x) * factor)

    def rule(axis_size, in_batched, x):
        return m.jnp.cos(x) * 2, in_batched[0]

    m.applied("custom.def_vmap", custom.def_vmap, rule)
    return m.applied("custom", custom, x)


@operation(1.5)
def closed_by_vmap(m, d, values):
    """A function of one mapped value makes a custom function over it, and calls it."""
    size = d.of((1, 2, 3))
    xs = m.jnp.asarray(mapped(m, d, values, size, "f"))
    xs = m.lax.stop_gradient(xs.astype(xs.dtype))
    form = d.below(3)

    def rule(primals, tangents):
        return m.jnp.sin(primals[0]), tangents[0]

    def scaled(factor):
        one = m.jnp.ones((), xs.dtype)
        if form == 0:
            custom = m.jax.custom_jvp(lambda a: a * factor)
            custom.defjvp(rule)
            return custom(one)
        custom = m.jax.custom_vjp(lambda a: a * factor)
        if form == 1:
            custom.defvjp(lambda a: (m.jnp.sin(a), a), lambda a, cotangent: (cotangent * a,))
            return custom(one)
        # Differentiated where it is made, so that its rules may close over the value as well.
        custom.defvjp(lambda a: (a * factor, None), lambda _, cotangent: (cotangent * factor,))
        return m.jax.grad(custom)(one)

    return m.applied("vmapped", m.call("jax.vmap", scaled), xs)


OPTIONS = (
    ("threefry_partitionable", (True, False)),
    ("default_matmul_precision", ("highest", "bfloat16", "float32")),
    ("numpy_rank_promotion", ("raise", "allow")),
    ("numpy_dtype_promotion", ("strict", "standard")),
    ("default_prng_impl", ("rbg", "threefry2x32")),
    ("enable_x64", (True,)),
    ("debug_nans", (False,)),
    ("softmax_custom_jvp", (True, False)),
    ("named_scope", ("a", "b c")),
    ("ensure_compile_time_eval", ()),
)


@operation(3, bodies=1)
def under_option(m, d, values, bodies):
    """Steps under an option that is set for them alone."""
    name, choices = d.of(OPTIONS)
    given = (d.of(choices),) if choices else ()
    run = m.body(bodies[0], captured(d, values))
    operands = chosen(m, d, values, 0, 2)
    seed = d.seed()
    # Not by m.call: which values an option refuses is no question of these programs.
    with getattr(m.jax, name)(*given):
        results = m.outputs(Draw(seed), run(operands))
        if name == "enable_x64":
            results = m.jax.tree_util.tree_map(lambda x: in_32_bits(m, x), results)
        return results


def in_32_bits(m, x):
    """Outside of the block no values may have 64 bits."""
    narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
    dtype = getattr(x, "dtype", None)
    return (
        m.jnp.asarray(x).astype(narrow[dtype.name]) if getattr(dtype, "name", "") in narrow else x
    )


@operation(1.5)
def bits_under_option(m, d, values):
    """Random numbers under options of the generator, set where they are drawn."""
    seed = m.jnp.asarray(m.scalar(m.pick(d, values, "iu"))).astype("uint32")
    shape = d.of(((), (3,), (2, 3), (5,)))
    with m.jax.threefry_partitionable(d.chance(0.5)):
        key = m.jax.random.key(seed)
        sampler = d.of(("bits", "uniform", "split", "fold_in"))
        if sampler == "split":
            return m.jax.random.key_data(m.call("jax.random.split", key, 3))
        if sampler == "fold_in":
            return m.jax.random.key_data(m.call("jax.random.fold_in", key, 7))
        return m.call(f"jax.random.{sampler}", key, shape)


KEPT = ("sin", "cos", "dot_general", "mul", "exp", "tanh", "add", "jit", "neg")


@operation(3, bodies=1)
def checkpointed_loop(m, d, values, bodies):
    """A loop or a branch whose residuals a policy chooses, one primitive by another."""
    names = frozenset(d.some(KEPT, 1, 4))
    x = strong_float(m, d, values)
    run = m.body(bodies[0], captured(d, values))
    form = d.below(4)

    def step(x):
        return results_like(m, run([m.jnp.sin(x) * m.jnp.cos(x)]), [x])[0]

    def looped(x):
        if form == 0:
            return m.lax.scan(lambda carry, _: (step(carry), m.jnp.sum(carry)), x, length=3)
        if form == 1:
            return m.lax.cond(m.jnp.sum(x) > 0, step, lambda x: x * 2, x)
        if form == 2:
            return m.lax.fori_loop(0, 2, lambda _, x: step(x), x)
        return m.jax.jit(step)(x)

    def policy(primitive, *_, **params):
        return str(primitive) in names

    made = m.call("jax.checkpoint", looped, policy=policy)
    if d.chance(0.3):
        return m.applied("made", made, x)
    if d.chance(0.5):
        out, push = m.call("jax.linearize", made, x)
        return out, m.applied("push", push, m.jnp.cos(x))
    if kind_of(x) == "f" and d.chance(0.5):
        total = lambda x: sum(m.jnp.sum(y) for y in m.jax.tree_util.tree_leaves(made(x)))
        return m.call("jax.jvp", total, (x,), (m.jnp.cos(x),))
    total = lambda x: sum(m.jnp.sum(y) for y in m.jax.tree_util.tree_leaves(made(x)))
    return m.applied("grad", m.call("jax.grad", total), x)
