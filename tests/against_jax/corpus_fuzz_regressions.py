"""What drawn programs found (see fuzz/): each was unlike jax once."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats, ints, unit


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))
    nothing_known(corpus, jax, jnp, lax)
    second_derivatives(corpus, jax, jnp, lax)
    weak_types(corpus, jax, jnp, lax)
    others(corpus, jax, jnp, lax)
    return corpus


def nothing_known(corpus, jax, jnp, lax):
    """Tangents of dtype float0 in loops and branches, which are compiled."""

    def pushed(x):
        return jax.jvp(lambda x: (x * 2, x > 0), (x,), (x,))

    def said(tree):
        """Neither side always gives a float0 array of one class: its type as text."""
        is_float0 = lambda x: getattr(x, "dtype", None) == jax.dtypes.float0
        return jax.tree_util.tree_map(lambda x: f"float0{x.shape}" if is_float0(x) else x, tree)

    x, xs = floats(3), floats(2, 3)
    branch = lambda x: lax.cond(x[0, 0] > 0, pushed, pushed, x)
    for name, function in {
        "scan_of_ys": lambda xs: lax.scan(lambda c, x: (c, pushed(x)), jnp.int32(0), xs)[1],
        "scan_of_carry": lambda xs: lax.scan(lambda c, x: (pushed(x), None), pushed(xs[0]), xs),
        "scan_of_xs": lambda xs: lax.scan(lambda c, x: (c + 1, x), jnp.int32(0), pushed(xs))[1],
        "scan_of_constants": lambda xs: lax.scan(
            lambda c, x: (c, (x, pushed(xs[0]))), jnp.int32(0), xs
        )[1],
        "map": lambda xs: lax.map(pushed, xs),
        "cond": branch,
        "cond_of_operands": lambda xs: lax.cond(xs[0, 0] > 0, lambda t: t, lambda t: t, pushed(xs)),
        "switch": lambda xs: lax.switch(1, [pushed, pushed], xs),
        "fori_loop": lambda xs: lax.fori_loop(0, 2, lambda i, t: pushed(xs), pushed(xs)),
        "while_loop": lambda xs: lax.while_loop(
            lambda t: t[0] < 2, lambda t: (t[0] + 1, pushed(xs)), (jnp.int32(0), pushed(xs))
        ),
        "vmap_of_cond": lambda xs: jax.vmap(branch)(xs[None]),
        "jvp_of_cond": lambda xs: jax.jvp(branch, (xs,), (xs,)),
        "checkpoint": lambda xs: jax.checkpoint(pushed)(xs),
        "grad_of_scan": lambda xs: jax.grad(
            lambda xs: lax.scan(lambda c, x: (c, pushed(x)), 0, xs)[1][1][0].sum()
        )(xs),
        "grad_by_integers_in_map": lambda xs: lax.map(
            jax.grad(lambda i: (i * 1.5).sum(), allow_int=True), jnp.asarray(xs, "int32")
        ),
        "zeros_like": lambda xs: jnp.zeros_like(pushed(xs)[1][1]),
        "broadcast": lambda xs: jnp.broadcast_to(pushed(xs)[1][1], (2, 2, 3)),
        "stack": lambda xs: jnp.stack([pushed(xs)[1][1]] * 2),
        "element": lambda xs: jnp.asarray(pushed(xs)[1][1])[0],
        "equal": lambda xs: jnp.equal(pushed(xs)[1][1], pushed(xs)[1][1]),
    }.items():
        if name != "scan_of_xs":  # jax cannot
            corpus.add(
                f"float0_in_{name}", lambda xs, f=function: said(f(xs)), xs, modes=("value",)
            )
        # Under jit float0 results are given back as they are; here what else there is.
        of_floats = lambda xs, f=function: [
            y for y in jax.tree_util.tree_leaves(f(xs)) if y.dtype != jax.dtypes.float0
        ]
        corpus.add(f"float0_in_jitted_{name}", of_floats, xs, modes=("jit",))
    corpus.add(
        "float0_argument_of_jit",
        lambda x: said(jax.jit(lambda x, z: (x * 2, z[0]))(x, np.zeros((2, 3), jax.dtypes.float0))),
        x,
        modes=("value",),
    )


def second_derivatives(corpus, jax, jnp, lax):
    rule = jax.custom_vjp(lambda x: jnp.sin(x))
    rule.defvjp(
        lambda x: (jnp.sin(x), x),
        lambda kept, cotangent: (cotangent * jnp.cos(kept),),
        optimize_remat=True,
    )
    total = lambda x: rule(x).sum()
    loop = lambda x: lax.scan(lambda c, _: (rule(c), None), x, None, length=2)[0].sum()
    for name, function in {
        "hessian": jax.hessian(total),
        "jvp_of_grad": lambda x: jax.jvp(jax.grad(total), (x,), (x,)),
        "hessian_of_checkpoint": jax.hessian(jax.checkpoint(total)),
        "hessian_of_jit": jax.hessian(jax.jit(total)),
        "hessian_of_scan": jax.hessian(loop),
        "vmap_of_hessian": lambda x: jax.vmap(jax.hessian(total))(x[None]),
    }.items():
        corpus.add(f"optimized_for_remat_{name}", function, unit(3))


def weak_types(corpus, jax, jnp, lax):
    weak = lambda value: jnp.full((3,), value)
    for name, function in {
        "top_k": lambda: lax.top_k(weak(1.5), 2),
        "heaviside": lambda: jnp.heaviside(weak(1.5), 0.5),
        "heaviside_of_scalars": lambda: jnp.heaviside(1.5, 0.5),
        "hypot": lambda: jnp.hypot(weak(3.0), 4.0),
        "hypot_of_scalars": lambda: jnp.hypot(3.0, 4.0),
        "choice_of_none": lambda: jax.random.choice(jax.random.key(0), weak(1.5), (0, 2)),
    }.items():
        corpus.add(f"weak_{name}", function)
    base, exponent = jnp.asarray(1.5), jnp.asarray(2.5)
    for name, power in {"floats": exponent, "an_integer": jnp.asarray(2)}.items():
        to_the_power = lambda x, power=power: lax.pow(x, power)
        corpus.add(
            f"weak_tangent_of_pow_of_{name}",
            lambda f=to_the_power: jax.jvp(f, (base,), (base,)),
        )
        corpus.add(
            f"weak_second_tangent_of_pow_of_{name}",
            lambda f=to_the_power: jax.jvp(
                lambda x: jax.jvp(f, (x,), (base,))[1], (base,), (base,)
            ),
        )


def others(corpus, jax, jnp, lax):
    x = floats(3, 3)
    for mode in ("fill", "drop", "clip", "promise_in_bounds"):
        for name, index in {"nothing": (), "slice": slice(None), "axis": (None, ...)}.items():
            corpus.add(
                f"all_of_it_{mode}_by_{name}",
                lambda x, index=index, mode=mode: x.at[index].get(mode=mode),
                jnp.asarray(x),
                modes=("jaxpr", "value"),
            )
    corpus.add("sparse_plus_of_unsigned", jax.nn.sparse_plus, ints(6, dtype=np.uint8))
    corpus.add("dot_general_of_matrices", lambda x: lax.dot_general(x, x, None), x)
    for name, numbers in {"a_number": 1, "a_pair": ((1,), (0,)), "text": "ab"}.items():
        corpus.add(
            f"dot_general_by_{name}",
            lambda x, numbers=numbers: lax.dot_general(x, x, numbers),
            x,
            modes=("value",),
        )
    for name, size in {"a_float": 1.5, "text": "3"}.items():
        corpus.add(
            f"vmap_of_size_{name}",
            lambda x, size=size: jax.vmap(lambda x: x * 2, axis_size=size)(x),
            x,
            modes=("value",),
        )
    corpus.add(
        "vmap_of_float_size_alone",
        lambda x: jax.vmap(lambda x: x * 2, in_axes=None, axis_size=1.5)(x),
        x,
        modes=("value",),
    )
    for name, policy in {"text": "dots_saveable", "a_number": 1}.items():
        corpus.add(
            f"checkpoint_policy_that_is_{name}",
            lambda x, policy=policy: jax.grad(
                lambda x: jnp.sum(jax.checkpoint(lambda x: x * 2, policy=policy)(x))
            )(x),
            x,
            modes=("value",),
        )
    weak = lambda size: jnp.broadcast_to(jnp.asarray(1.5), (size,))
    nothing = np.zeros(0, int)
    for name, function in {
        "an_index": lambda x: x[nothing],
        "a_slice": lambda x: x.at[2:2].get(mode="fill"),
        "take": lambda x: jnp.take(x, nothing),
        "take_along_axis": lambda x: jnp.take_along_axis(x, nothing, 0),
        "compress": lambda x: jnp.compress(np.zeros(x.shape, bool), x),
    }.items():
        for size in (0, 3):
            corpus.add(
                f"weak_nothing_of_{size}_by_{name}",
                lambda f=function, n=size: f(weak(n)),
                modes=("value",),  # jax cannot compress under jit.
            )
