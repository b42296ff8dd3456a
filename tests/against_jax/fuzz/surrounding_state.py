"""Operations on functions that depend on what surrounds them: closures, options, policies."""

import contextlib
import functools

from tests.against_jax.fuzz.choices import Draw
from tests.against_jax.fuzz.loops_and_branches import (
    captured,
    chosen,
    function_of_floats,
    mapped,
    policy,
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
    dtype = m.jnp.result_type(x, factor)
    custom = m.call("jax.custom_batching.custom_vmap", lambda x: m.jnp.sin(x) * factor)

    def rule(axis_size, in_batched, x):
        return (m.jnp.cos(x) * 2).astype(dtype), in_batched[0]

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
        return m.jax.grad(lambda a: m.jnp.sum(custom(a)))(one)

    return m.applied("vmapped", m.call("jax.vmap", scaled), xs)


@operation(3, bodies=2)
def custom_over_mapped(m, d, values, bodies):
    """A function of mapped values makes a custom function over one of them, and derives it.

    It is derived where it is made, so that its rules may close over the value as well.
    """
    size = d.of((1, 2, 3))
    xs = m.jnp.asarray(mapped(m, d, values, size, "f"))
    xs = xs.astype(xs.dtype)
    ys = m.lax.stop_gradient(m.jnp.asarray(mapped(m, d, values, size, "f")).astype("float32"))
    captures = captured(d, values)
    first = m.body(bodies[0], captures)
    second = m.body(bodies[1], captures)
    kind, way, symbolic = d.below(4), d.below(5), d.chance(0.2)
    loop, inner = d.below(4), d.chance(0.3)

    def mapped_function(x, y):
        factor = m.jnp.sum(results_like(m, second([y]), [y])[0]).astype(x.dtype)

        def function(a):
            return results_like(m, first([a, factor]), [a])[0] * factor

        derived = derivative_of(m, way, custom_function(m, kind, function, factor, symbolic))
        if inner:
            derived = m.call("jax.jit", derived)
        if loop == 0:
            return m.lax.scan(lambda c, _: (c, derived(c)), x, None, length=2)
        if loop == 1:
            return m.lax.cond(factor > 0, derived, derived, x)
        return derived(x)

    return m.applied("vmapped", m.call("jax.vmap", mapped_function), xs, ys)


def custom_function(m, kind, function, factor, symbolic):
    """A custom_jvp or custom_vjp function, whose rule closes over the factor."""
    if kind == 0:
        custom = m.call("jax.custom_jvp", function)

        def rule(primals, tangents):
            (tangent,) = tangents
            if isinstance(tangent, m.jax.custom_derivatives.SymbolicZero):
                tangent = m.jnp.zeros(tangent.shape, tangent.dtype)
            return function(*primals), tangent * factor

        m.applied("custom.defjvp", custom.defjvp, rule, symbolic)
        return custom
    if kind == 1:
        custom = m.call("jax.custom_jvp", function)
        m.applied("custom.defjvps", custom.defjvps, lambda t, ans, a: t * factor + ans * 0)
        return custom
    if kind == 2:
        custom = m.call("jax.custom_vjp", function)
        forward = lambda a: (function(a), m.jnp.cos(a))
        m.applied("custom.defvjp", custom.defvjp, forward, lambda kept, c: (c * kept * factor,))
        return custom
    # One inside of the other, and a function of the outer one's arguments that is fixed.
    within = custom_function(m, 0, function, factor, symbolic)
    custom = m.call("jax.custom_vjp", lambda f, a: f(a) + within(a), nondiff_argnums=(0,))
    scaled = lambda a: a * factor
    m.applied(
        "custom.defvjp",
        custom.defvjp,
        lambda f, a: (f(a) + within(a), a),
        lambda f, kept, c: (c * f(kept),),
    )
    return lambda a: custom(scaled, a)


def derivative_of(m, way, custom):
    """What is asked of a function of one array where it is made."""
    total = lambda a: m.jnp.sum(custom(a))
    return (
        lambda a: m.jax.grad(total)(a),
        lambda a: m.jax.jvp(custom, (a,), (m.jnp.cos(a),)),
        lambda a: m.jax.vjp(custom, a)[1](m.jnp.sin(a)),
        lambda a: m.jax.linearize(custom, a)[1](m.jnp.cos(a)),
        lambda a: m.jax.jvp(m.jax.grad(total), (a,), (m.jnp.cos(a),)),
    )[way]


@operation(1.5)
def custom_vmap_of_vmap(m, d, values):
    """A custom_vmap function over a value that another vmap maps, and its rule over another one.

    Where the rule reads the value it is applied at once: in a program it would keep the value.
    """
    size = d.of((1, 2, 3))
    xs = m.jnp.asarray(mapped(m, d, values, size, "f"))
    xs = m.lax.stop_gradient(xs.astype(xs.dtype))
    row = m.jnp.arange(2.0)
    dtype = m.jnp.result_type(row, xs)
    reads, sums = d.chance(0.5), d.chance(0.3)

    def scaled(a, scale):
        return ((m.jnp.sum(a) if sums else m.jnp.cos(a)) * scale).astype(dtype)

    def outer(x):
        custom = m.call("jax.custom_batching.custom_vmap", lambda a: m.jnp.sin(a) * m.jnp.sum(x))
        if reads:
            rule = lambda axis_size, in_batched, a: (
                scaled(a, m.jnp.mean(x)),
                in_batched[0] and not sums,
            )
        else:
            rule = lambda axis_size, in_batched, a: (scaled(a, 2.0), in_batched[0] and not sums)
        m.applied("custom.def_vmap", custom.def_vmap, rule)
        mapped_row = m.jax.vmap(custom)(row)
        return mapped_row if reads else (mapped_row, custom(row[0]))

    return m.lax.map(outer, xs)


OPTIONS = (
    ("threefry_partitionable", (True, False)),
    ("default_matmul_precision", ("highest", "bfloat16", "float32")),
    ("numpy_rank_promotion", ("raise", "allow")),
    ("numpy_dtype_promotion", ("strict", "standard")),
    ("default_prng_impl", ("rbg", "threefry2x32")),
    ("enable_x64", (True, True, False)),
    ("debug_nans", (True, False)),
    ("debug_infs", (True, False)),
    ("enable_custom_prng", (True, False)),
    ("debug_key_reuse", (False,)),
    ("transfer_guard", ("allow", "log")),
    ("checking_leaks", ()),
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
    with entered(m, name, given):
        results = m.outputs(Draw(seed), run(operands))
        if name == "enable_x64":
            results = m.jax.tree_util.tree_map(lambda x: in_32_bits(m, x), results)
        return results


@operation(2, bodies=1)
def jit_under_options(m, d, values, bodies):
    """A jitted function, called under one option, under another, and under none."""
    operands = chosen(m, d, values, 0, 2)
    run = m.body(bodies[0], captured(d, values))
    seed = d.seed()
    inner = [d.of(OPTIONS) for _ in range(d.below(2))]

    def function(*operands):
        with contextlib.ExitStack() as options:
            for name, choices in inner:
                options.enter_context(entered(m, name, choices[:1]))
            results = m.outputs(Draw(seed), run(operands))
            return m.jax.tree_util.tree_map(lambda x: in_32_bits(m, x), results)

    jitted = m.call("jax.jit", function)
    found = []
    for _ in range(d.between(1, 2)):
        name, choices = d.of(OPTIONS)
        with entered(m, name, (d.of(choices),) if choices else ()):
            results = m.applied("jitted", jitted, *operands)
            found.append(m.jax.tree_util.tree_map(lambda x: in_32_bits(m, x), results))
    return found, m.applied("jitted", jitted, *operands)


def entered(m, name, given):
    """A block under an option; not by m.call, as what an option refuses is no question here."""
    return getattr(m.jax, name)(*given)


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
    form = d.below(7)
    saved = m.roots["ad_checkpoint"].checkpoint_name

    def step(x):
        inside = saved(m.jnp.sin(x), "a") * saved(m.jnp.cos(x), "b")
        return results_like(m, run([inside]), [x])[0]

    def looped(x):
        if form == 0:
            return m.lax.scan(lambda carry, _: (step(carry), m.jnp.sum(carry)), x, length=3)
        if form == 1:
            return m.lax.cond(m.jnp.sum(x) > 0, step, lambda x: x * 2, x)
        if form == 2:
            return m.lax.fori_loop(0, 2, lambda _, x: step(x), x)
        if form == 3:  # Only derivatives that run forward exist.
            return m.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, step(c[1])), (0, x))
        if form == 4:
            branch = lambda x: m.lax.cond(m.jnp.sum(x) > 0, step, lambda x: x * 2, x)
            return m.lax.scan(lambda c, _: (branch(c), None), x, length=2)
        if form == 5:
            rows = m.jnp.stack([x, m.jnp.sin(x)])
            return m.jax.vmap(lambda x: m.lax.scan(lambda c, _: (step(c), c), x, length=2))(rows)
        return m.jax.jit(step)(x)

    def by_primitives(primitive, *_, **params):
        return str(primitive) in names

    chosen_policy = by_primitives if d.chance(0.5) else policy(m, d)
    if d.chance(0.2):
        looped = m.call("jax.checkpoint", looped, policy=policy(m, d))
    made = m.call("jax.checkpoint", looped, policy=chosen_policy)
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
