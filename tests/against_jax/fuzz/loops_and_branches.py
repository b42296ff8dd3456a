"""Operations that are drawn and are given functions: loops, branches, jit, custom rules, axes."""

import functools
import math

import numpy as np

from tests.against_jax.fuzz.choices import Draw
from tests.against_jax.fuzz.machine import kind_of, operation


def chosen(m, d, values, least=1, most=3, kinds="biufc"):
    """Some of the values; a Python scalar at times."""
    found = [m.pick(d, values, kinds) for _ in range(d.between(least, most))]
    return [m.literal(d, kinds) if d.chance(0.08) else x for x in found]


def captured(d, values, most=2):
    return d.some(values[-5:], 0, most)


def mapped(m, d, values, size, kinds="biufc"):
    """A value whose first axis has this size."""
    x = m.pick_array(d, values, kinds)
    if np.shape(x)[0] == size:
        return x
    x = m.jnp.ravel(x)[:3]
    return m.jnp.stack([x if step % 2 else x[::-1] for step in range(size)]) if size else x[:0]


def results_like(m, results, templates):
    """For each template something of its type, made of the last results."""
    results = [x for x in results if kind_of(x) not in "k0"] or [1]
    count = len(results)
    return [m.fit(results[count - 1 - i % count], like) for i, like in enumerate(templates)]


@operation(5, bodies=1)
def scan(m, d, values, bodies):
    length = d.of((0, 1, 2, 3, 3, 4))
    carry = m.tree(d, chosen(m, d, values, 0, 3))
    xs = m.tree(d, [mapped(m, d, values, length) for _ in range(d.between(0, 2))])
    run = m.body(bodies[0], captured(d, values))
    seed = d.seed()

    def step(carry, x):
        results = run(carry, x)
        inner = Draw(seed)
        new = results_like(m, results, m.leaves(carry))
        if new and inner.chance(0.2):
            new[0] = m.leaves(carry)[0]  # comes back as it is
        out = m.outputs(inner, results) if results and inner.chance(0.8) else None
        return m.like_tree(carry, new), out

    options = {}
    if not m.leaves(xs) or d.chance(0.3):
        options["length"] = length
    if d.chance(0.3):
        options["reverse"] = True
    if d.chance(0.3):
        options["unroll"] = d.of((1, 2, 3, True, False))
    return m.call("lax.scan", step, carry, xs, **options)


@operation(2, bodies=1)
def while_loop(m, d, values, bodies):
    state = m.tree(d, chosen(m, d, values, 0, 2))
    limit = d.of((0, 2, 3))
    if d.chance(0.3):
        limit = m.jnp.asarray(m.scalar(m.pick(d, values, "iu"))).astype("int32") % 4
    run = m.body(bodies[0], captured(d, values))
    seen = m.scalar(m.pick(d, values, "biuf")) if d.chance(0.3) else None

    def condition(carry):
        return carry[0] < limit if seen is None else (carry[0] < limit) & (seen == seen)

    def step(carry):
        results = run(carry[1], carry[0])
        new = results_like(m, results, m.leaves(carry[1]))
        return carry[0] + 1, m.like_tree(carry[1], new)

    first = d.of((0, np.int32(0), m.jnp.int32(0)))
    return m.call("lax.while_loop", condition, step, (first, state))


@operation(2, bodies=1)
def fori_loop(m, d, values, bodies):
    state = m.tree(d, chosen(m, d, values, 1, 2))
    low, high = d.of(((0, 3), (1, 1), (-1, 2), (np.int32(0), 2), (3, 0)))
    if d.chance(0.2):
        high = m.jnp.asarray(m.scalar(m.pick(d, values, "iu"))).astype("int32") % 4
        low = m.jnp.int32(0)
    run = m.body(bodies[0], captured(d, values))

    def step(i, state):
        return m.like_tree(state, results_like(m, run(state, i), m.leaves(state)))

    options = {"unroll": d.of((1, 2, True))} if d.chance(0.2) else {}
    return m.call("lax.fori_loop", low, high, step, state, **options)


@operation(4, bodies=3)
def branches(m, d, values, bodies):
    operands = chosen(m, d, values, 0, 3)
    templates = operands or [m.pick(d, values)]
    tree = m.tree(d, operands)
    seed = d.seed()

    def branch(steps):
        run = m.body(steps, captured(d, values))

        def function(*operands):
            results = run(operands)
            inner = Draw(seed)
            new = results_like(m, results, [m.jnp.asarray(x) for x in templates])
            return m.tree(inner, new)

        return function

    index = m.scalar(m.pick(d, values, "iu"))
    if d.chance(0.3):
        functions = [branch(steps) for steps in bodies[: d.between(1, 3)]]
        return m.call("lax.switch", d.of((index, 1, -1, 5)), functions, tree)
    predicate = m.scalar(m.pick(d, values, "b"))
    predicate = d.of((predicate, predicate, True, index))
    return m.call("lax.cond", predicate, branch(bodies[0]), branch(bodies[1]), tree)


@operation(2, bodies=1)
def mapping(m, d, values, bodies):
    size = d.of((0, 1, 2, 3))
    xs = m.tree(d, [mapped(m, d, values, size) for _ in range(d.between(1, 2))])
    run = m.body(bodies[0], captured(d, values))
    seed = d.seed()
    options = {"batch_size": d.of((1, 2))} if d.chance(0.3) else {}
    return m.call("lax.map", lambda x: m.outputs(Draw(seed), run(x)), xs, **options)


@operation(1.5)
def combining(m, d, values):
    """associative_scan, reduce, reduce_window, with functions of two values."""
    x = m.pick_array(d, values, "if")
    axis = d.between(0, np.ndim(x) - 1)
    function = d.of((m.lax.add, m.lax.max, m.lax.mul, lambda x, y: x + y))
    form = d.below(4)
    if form == 0:
        return m.call("lax.associative_scan", function, x, reverse=d.chance(0.3), axis=axis)
    if form == 1:
        y = m.fit(m.pick(d, values, "f"), m.jnp.asarray(x))
        pairs = lambda x, y: (x[0] * y[0], x[1] * y[0] + y[1])
        return m.call("lax.associative_scan", pairs, (x, y), axis=axis)
    x = m.jnp.asarray(x)
    if form == 2:
        return m.call("lax.reduce", x, m.jnp.zeros((), x.dtype), function, (axis,))
    window = [1] * x.ndim
    window[axis] = 2
    function, first = d.of(((m.lax.add, 0), (m.lax.max, None)))
    if first is None:
        info = m.jnp.finfo if kind_of(x) == "f" else m.jnp.iinfo
        first = info(x.dtype).min
    first = np.array(first, x.dtype)
    strides = [d.between(1, 2)] * x.ndim
    return m.call("lax.reduce_window", x, first, function, window, strides, "SAME")


def function_of_floats(m, d, steps, values):
    """A differentiable function `(*trees) -> list`: of something of the type of what is first."""
    run = m.body(steps, captured(d, values))
    return lambda *trees: results_like(m, run(trees), m.leaves(trees)[:1])


@operation(3, bodies=1)
def custom_jvp(m, d, values, bodies):
    # Never weak: which tangents are weak depends on how many functions jax jits.
    x = m.jnp.asarray(m.pick(d, values, "f"))
    x, y = x.astype(x.dtype), m.pick(d, values, "iuf")
    function = function_of_floats(m, d, bodies[0], ())
    symbolic, static = d.chance(0.3), d.chance(0.3)
    jnp = m.jnp

    def made(factor, x, y):
        return function(x, y)[0] * factor

    def rule(factor, primals, tangents):
        tangent, other = (no_symbols(m, t) for t in tangents)
        other = 0 if kind_of(other) == "0" else jnp.sum(other)
        out = made(factor, *primals)
        tangent = tangent * jnp.cos(primals[0]) * factor
        if not isinstance(other, int):
            tangent = tangent + other.astype(out.dtype)
        return out, tangent.astype(out.dtype)

    if static:
        custom = m.call("jax.custom_jvp", made, nondiff_argnums=(0,))
        custom.defjvp(rule, symbolic_zeros=symbolic)
        return m.applied("custom", custom, 2, x, y)
    custom = m.call("jax.custom_jvp", functools.partial(made, 2))
    if d.chance(0.3):
        m.applied("custom.defjvps", custom.defjvps, lambda t, ans, x, y: t * ans, None)
    else:
        m.applied("custom.defjvp", custom.defjvp, functools.partial(rule, 2), symbolic)
    return m.applied("custom", custom, x, y)


def no_symbols(m, tangent):
    if isinstance(tangent, m.jax.custom_derivatives.SymbolicZero):
        if kind_of(tangent) == "f":
            return m.jnp.zeros(tangent.shape, tangent.dtype)
        return np.zeros(tangent.shape, m.jax.dtypes.float0)
    return tangent


@operation(3, bodies=1)
def custom_vjp(m, d, values, bodies):
    # Never weak: which tangents are weak depends on how many functions jax jits.
    x = m.jnp.asarray(m.pick(d, values, "f"))
    x, y = x.astype(x.dtype), m.pick(d, values, "iuf")
    function = function_of_floats(m, d, bodies[0], ())
    symbolic, static = d.chance(0.25), d.chance(0.3)
    jnp = m.jnp

    def made(factor, x, y):
        return {"out": function(x, y)[0] * factor, "more": x}

    def forward(factor, x, y):
        if symbolic:
            x, y = x.value, y.value
        return made(factor, x, y), {"x": x, "y": y, "none": None}

    def backward(factor, kept, cotangent):
        first, second = (no_symbols(m, cotangent[key]) for key in ("out", "more"))
        of_x = first * factor + jnp.sin(kept["x"]) * second
        y = kept["y"]
        of_y = (jnp.sum(first) * jnp.ones_like(y)).astype(y.dtype) if kind_of(y) == "f" else None
        return of_x, of_y

    options = {"optimize_remat": True} if d.chance(0.15) and not symbolic else {}
    if static:
        custom = m.call("jax.custom_vjp", made, nondiff_argnums=(0,))
        custom.defvjp(forward, backward, symbolic_zeros=symbolic, **options)
        return m.applied("custom", custom, 2, x, y)
    custom = m.call("jax.custom_vjp", functools.partial(made, 2))
    rules = functools.partial(forward, 2), functools.partial(backward, 2)
    m.applied("custom.defvjp", custom.defvjp, *rules, symbolic, **options)
    return m.applied("custom", custom, x, y)


POLICIES = (
    "everything_saveable nothing_saveable dots_saveable checkpoint_dots_with_no_batch_dims names"
).split()


def policy(m, d):
    name = d.of(POLICIES)
    if name == "names":
        made = m.jax.checkpoint_policies.save_only_these_names
        return d.of((made, m.jax.checkpoint_policies.save_anything_except_these_names))("a")
    return getattr(m.jax.checkpoint_policies, name)


@operation(1)
def named(m, d, values):
    return m.call("ad_checkpoint.checkpoint_name", m.jnp.asarray(m.pick(d, values)), d.of("ab"))


@operation(2.5, bodies=1)
def checkpoint(m, d, values, bodies):
    operands = chosen(m, d, values, 0, 3)
    run = m.body(bodies[0], captured(d, values))
    seed = d.seed()
    options = {"policy": policy(m, d)} if d.chance(0.5) else {}
    if d.chance(0.3):
        options["prevent_cse"] = False
    made = m.call("jax.checkpoint", lambda *xs: m.outputs(Draw(seed), run(xs)), **options)
    return m.applied("made", made, *operands)


@operation(4, bodies=1)
def jit(m, d, values, bodies):
    operands = chosen(m, d, values, 0, 3)
    tree = m.tree(d, operands)
    run = m.body(bodies[0], captured(d, values))
    seed = d.seed()

    def function(tree, factor=1, *, other=None):
        results = run(tree)
        results.append(m.jnp.asarray(m.scalar(m.pick(Draw(seed), results or [1]))) * factor)
        return m.outputs(Draw(seed), results)

    options, more, keywords = {}, (), {}
    form = d.below(6)
    if form == 0:
        options, more = {"static_argnums": d.of((1, (1,), -1))}, (2,)
    if form == 1:
        options, keywords = {"static_argnames": ("factor", "other")}, {"factor": 3, "other": "x"}
    if form == 2:
        options = {"inline": True}
    if form == 3:
        options = {"keep_unused": True}
    if form == 4:
        more = (m.scalar(m.pick(d, values)),)
    jitted = m.call("jax.jit", function, **options)
    results = m.applied("jitted", jitted, tree, *more, **keywords)
    if d.chance(0.3):
        return results, m.applied("jitted", jitted, tree, *more, **keywords)
    return results


@operation(4, bodies=1)
def vmap(m, d, values, bodies):
    size = d.of((1, 2, 3, 3))
    operands = [mapped(m, d, values, size) for _ in range(d.between(1, 2))]
    axes = [0] * len(operands)
    for place, x in enumerate(operands):
        if d.chance(0.25):
            axes[place] = -1
            operands[place] = m.jnp.moveaxis(x, 0, -1)
    if d.chance(0.3):
        operands.append(m.pick(d, values))
        axes.append(None)
    run = m.body(bodies[0], captured(d, values))
    seed = d.seed()
    name = f"i{len(m.axes)}"
    options = {"axis_name": name} if d.chance(0.6) else {}
    if d.chance(0.2):
        options["axis_size"] = size
    if d.chance(0.2):
        options["out_axes"] = d.of((0, -1))

    def function(*xs):
        if "axis_name" not in options:
            return m.outputs(Draw(seed), run(xs))
        m.axes.append((name, size))
        try:
            return m.outputs(Draw(seed), run(xs))
        finally:
            m.axes.pop()

    made = m.call("jax.vmap", function, tuple(axes) if set(axes) != {0} else 0, **options)
    return m.applied("made", made, *operands)


@operation(3)
def collective(m, d, values):
    """What needs a named axis; without one a product."""
    x = m.jnp.asarray(m.pick(d, values))
    if not m.axes:
        return m.call("jnp.multiply", x, x)
    name, size = d.recent(m.axes)
    form = d.below(9)
    if form == 0:
        return m.call("lax.axis_index", name)
    if form == 1:
        return m.call("lax.axis_size", name)
    if form < 5:
        x = m.jnp.asarray(m.pick(d, values, "iuf"))
        names = d.of((name, name, tuple(one for one, _ in m.axes)))
        return m.call(f"lax.{d.of(('psum', 'pmean', 'pmax', 'pmin', 'psum'))}", x, names)
    if form == 5:
        return m.call("lax.all_gather", x, name, tiled=bool(x.ndim) and d.chance(0.5))
    if form == 6:
        shift = d.below(size)
        return m.call("lax.ppermute", x, name, [(i, (i + shift) % size) for i in range(size)])
    # One that differs along the axis: of others jax's all_to_all gives the outer product.
    x = m.jnp.where(m.lax.axis_index(name) > 0, x, m.jnp.stack([x] * size))
    if form == 7:
        return m.call("lax.psum_scatter", x, name, tiled=d.chance(0.3))
    return m.call("lax.all_to_all", x, name, 0, d.between(0, x.ndim - 1))


@operation(4, bodies=1)
def derivative(m, d, values, bodies):
    """A derivative inside of the program, of a function that sees the rest of it."""
    x = m.pick(d, values, "f")
    if math.prod(np.shape(x)) > 12:
        x = m.scalar(x)
    x = m.jnp.asarray(x)
    other = m.pick(d, values)
    function = function_of_floats(m, d, bodies[0], values)
    scalar = lambda x, other: m.jnp.sum(function(x, other)[0])
    form = d.below(9)
    if form == 0:
        return m.applied("grad", m.call("jax.grad", scalar), x, other)
    if form == 1:
        made = m.call("jax.value_and_grad", lambda *xs: (scalar(*xs), xs), has_aux=True)
        return m.applied("grad", made, x, other)
    if form == 2:
        return m.call("jax.jvp", lambda x: function(x, other), (x,), (m.jnp.ones_like(x),))
    if form == 3:
        out, pull = m.call("jax.vjp", function, x, other)
        return out, m.applied("pull", pull, out)[0]
    if form == 4:
        out, push = m.call("jax.linearize", lambda x: function(x, other), x)
        return out, m.applied("push", push, x)
    if form == 5:
        made = m.call(d.of(("jax.jacfwd", "jax.jacrev")), function)
        return m.applied("jacobian", made, x, other)
    if form == 6:
        return m.applied("hessian", m.call("jax.hessian", scalar), m.scalar(x), other)
    if form == 7:
        weights = m.jnp.cos(x)
        linear = lambda t: [t * weights, m.jnp.sum(t)]
        transposed = m.call("jax.linear_transpose", linear, x)
        return m.applied("transposed", transposed, [x, m.jnp.ones((), x.dtype)])
    _, push = m.jax.linearize(lambda x: function(x, other), x)
    return m.applied("transposed", m.call("jax.linear_transpose", push, x), [x])


@operation(0.7, bodies=1)
def written_down(m, d, values, bodies):
    """make_jaxpr, eval_shape and closure_convert of a function, and what they give."""
    x = m.pick(d, values)
    run = m.body(bodies[0], captured(d, values) if d.chance(0.5) else ())
    seed = d.seed()
    function = lambda x: m.outputs(Draw(seed), run(x))
    form = d.below(3)
    if form == 0:
        made = m.call("jax.make_jaxpr", function)(x)
        return m.jax.core.eval_jaxpr(made.jaxpr, made.consts, x)
    if form == 1:
        shapes = m.call("jax.eval_shape", function, x)
        return [
            m.jnp.zeros(s.shape, s.dtype)
            for s in m.jax.tree_util.tree_leaves(shapes)
            if isinstance(s.dtype, np.dtype)
        ]
    converted, more = m.call("jax.closure_convert", function, x)
    return m.applied("converted", converted, x, *more)


@operation(0.7)
def solved(m, d, values):
    x = m.jnp.asarray(m.pick_array(d, values, "f")).ravel()[:3].astype("float32")
    if d.chance(0.5):
        function = lambda y: y * (m.jnp.abs(x) + 1)
        solve = lambda _, b: b / (m.jnp.abs(x) + 1)
        return m.call("lax.custom_linear_solve", function, x, solve, symmetric=d.chance(0.5))
    return m.call(
        "lax.custom_root",
        lambda y: y * y * y - x,
        x,
        lambda f, y: m.jnp.cbrt(x),
        lambda g, y: y / (g(m.jnp.ones_like(y)) + 1e-3),
    )


@operation(0.5)
def from_the_host(m, d, values):
    x = m.jnp.asarray(m.pick(d, values, "iu"))
    shape = m.jax.ShapeDtypeStruct(x.shape, x.dtype)
    method = d.of(("sequential", "broadcast_all", "expand_dims"))
    host = lambda x: np.asarray(x) + np.asarray(1, x.dtype)
    return m.call("jax.pure_callback", host, shape, x, vmap_method=method)
