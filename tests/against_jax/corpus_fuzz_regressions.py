"""What drawn programs found (see fuzz/): each was unlike jax once."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus
from tests.against_jax.inputs import floats, ints, unit


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))
    nothing_known(corpus, jax, jnp, lax)
    second_derivatives(corpus, jax, jnp, lax)
    weak_types(corpus, jax, jnp, lax)
    weak_results(corpus, jax, jnp)
    counted(corpus, jax, jnp, lax)
    results_and_errors(corpus, jax, jnp, lax)
    others(corpus, jax, jnp, lax)
    closures_and_axes(corpus, jax, jnp, lax)
    choices_of_none(corpus, jax, jnp)
    powers_and_policies(corpus, jax, jnp, lax)
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


def checkpoint_name(jax):
    if isinstance(jax, Anything):
        return jax
    return importlib.import_module(f"{jax.__name__}.ad_checkpoint").checkpoint_name


def counted(corpus, jax, jnp, lax):
    """Programs that had more equations than jax's."""
    x = floats(3)

    def partly_used(x, y):
        lax.reduce_max(y, (0,))
        return jnp.sin(x) * 2, lax.stop_gradient(jnp.cos(y)), y

    inlined = jax.jit(partly_used, inline=True)
    named = checkpoint_name(jax)
    indexed = jax.jit(
        lambda x: lax.scan(
            lambda c, n: (jnp.sin(c) * 0.5, lax.dynamic_slice(x, [c[0].astype("int32")], [0])),
            x,
            x,
        )[0]
    )
    branch = lambda c: lax.cond(c > 0, lambda c: c * 2, lambda c: jnp.sin(jnp.sin(c) * c) + c, c)
    loop = jax.checkpoint(lambda x: lax.fori_loop(0, 2, lambda _, c: branch(c), x))
    for name, function in {
        "linearize_of_checkpointed_loop_of_branches_under_vmap": jax.vmap(
            lambda x: jax.linearize(loop, x)[1](x)
        ),
        "linearize_of_inlined_jit": lambda x: jax.linearize(lambda x: inlined(x, x[:2]), x)[1](x),
        "vjp_of_inlined_jit": lambda x: jax.vjp(inlined, x, x)[1](inlined(x, x)),
        "grad_of_inlined_jit": jax.grad(lambda x: inlined(x, x)[0].sum()),
        "jvp_of_inlined_jit": lambda x: jax.jvp(inlined, (x, x), (x, x)),
        "vmap_of_inlined_jit": lambda x: jax.vmap(inlined)(x, x * 2),
        "jit_of_inlined_jit": jax.jit(lambda x: inlined(x, x)),
        "scan_of_inlined_jit": lambda x: lax.scan(lambda c, _: (inlined(c, c)[0], None), x, x)[0],
        "vjp_of_name": lambda x: jax.vjp(lambda x: named(jnp.sin(x), "a"), x)[1](x),
        "vjp_of_scan_with_unread_residuals": lambda x: jax.vjp(indexed, x)[1](x),
        "tile_of_more_axes": lambda x: jnp.tile(x, (2, 1, 2)),
        "tile_of_fewer_axes": lambda x: jnp.tile(x[None], 2),
        "grad_of_tile": jax.grad(lambda x: (jnp.tile(x, (2, 2)) ** 2).sum()),
        "vmap_of_tile": lambda x: jax.vmap(lambda x: jnp.tile(x, 2), 1, 1)(x[None]),
        "resize_to_more": lambda x: jnp.resize(x, (3, 3)),
        "resize_to_less": lambda x: jnp.resize(x, 2),
        "where_of_nothing": lambda x: jnp.where(x[:0] > 0, x[:0], x[:0] * 2),
        "det_of_three_rows": lambda x: jnp.linalg.det(jnp.resize(jnp.sin(x), (3, 3))),
        "det_of_two_rows": lambda x: jnp.linalg.det(jnp.resize(jnp.sin(x), (2, 2, 2))),
    }.items():
        corpus.add(name, function, x, modes=("equations", "value"))


def results_and_errors(corpus, jax, jnp, lax):
    x = floats(3)
    weak = lambda *shape: jnp.broadcast_to(jnp.asarray(1.5), shape)
    weak_integers, booleans = jnp.broadcast_to(jnp.asarray(2), (3,)), np.ones(3, bool)
    for name, product in {
        "matmul": jnp.matmul,
        "dot": jnp.dot,
        "vecdot": jnp.vecdot,
        "inner": jnp.inner,
        "tensordot": lambda x, y, **options: jnp.tensordot(x, y, 1, **options),
        "einsum": lambda x, y, **options: jnp.einsum("i,i", x, y, **options),
        "einsum_of_three": lambda x, y, **options: jnp.einsum("i,i,i", x, y, y, **options),
    }.items():
        corpus.add(f"weak_{name}_with_booleans", lambda f=product: f(weak_integers, booleans))
        corpus.add(f"weak_{name}_with_integers", lambda f=product: f(np.arange(3), weak(3)))
        for preferred in (None, "float32", "float16"):
            corpus.add(
                f"weak_{name}_preferring_{preferred}",
                lambda f=product, p=preferred: f(weak(3), weak(3), preferred_element_type=p),
            )
    weak_reads = lambda x: (x[np.arange(2)] * 2).sum()
    corpus.add("weak_gradient_of_gather", lambda: jax.grad(weak_reads)(weak(3)))
    corpus.add("weak_cross", lambda: jnp.cross(weak(3), weak(3)))
    corpus.add("weak_cross_of_pairs", lambda: jnp.cross(weak(2), weak(2)))

    number = jnp.asarray(1.5)
    unread = jax.checkpoint(lambda x, y: x * 0 + jnp.sin(y[0] > 0))
    corpus.add("literal_cotangent_of_checkpoint", jax.grad(unread), number, x)
    ignored = jax.checkpoint(lambda x, i: jnp.sin(jnp.asarray(i, "float32")))
    corpus.add("unread_argument_of_checkpoint", jax.grad(ignored), number, 2, modes=("value",))
    named = checkpoint_name(jax)
    corpus.add("checkpoint_name_of_none", jax.grad(lambda x: named(x, None).sum()), x)
    for name, value in {"text": "text", "a_list": [1.0], "a_set": {1.0}}.items():
        corpus.add(
            f"apply_that_returns_{name}",
            lambda x, value=value: x.at[0].apply(lambda _: value),
            jnp.asarray(x),
            modes=("value",),
        )

    def fails(*_):
        raise ValueError

    for name, wanted in {"nothing": jax.ShapeDtypeStruct((0,), "float32"), "none": ()}.items():
        corpus.add(
            f"failing_callback_of_{name}", lambda x, w=wanted: jax.pure_callback(fails, w, x), x
        )
    named = lambda f: jax.vmap(lambda _: f(x), axis_name="i", out_axes=None)
    for name, function in {
        "solve": lambda x: jnp.linalg.solve(jnp.eye(3), x),
        "custom_linear_solve": lambda x: lax.custom_linear_solve(
            lambda y: y * 2, x, lambda _, b: b / 2, symmetric=True
        ),
        "composite": lax.composite(jnp.sin, "a"),
    }.items():
        corpus.add(f"{name}_of_what_a_named_axis_does_not_map", named(function), x)
    reads_index = lambda y: y * (1 + lax.axis_index("i"))
    corpus.add(
        "custom_linear_solve_that_reads_its_index",
        jax.vmap(
            lambda _: lax.custom_linear_solve(
                reads_index, x, lambda _, b: b / reads_index(1.0), symmetric=True
            ),
            axis_name="i",
        ),
        x,
    )
    collectives = (lax.psum, lax.pmax, lax.pmin, lax.pmean)
    corpus.add(
        "weak_collectives",
        jax.vmap(
            lambda x, y: [f(z, "i") for f in collectives for z in (x, y)],
            (0, None),
            0,
            axis_name="i",
        ),
        weak(3),
        jnp.asarray(2),
        modes=("jit",),
    )
    nothing = np.zeros((2, 0), int)
    unread = jax.custom_vjp(lambda x: x * 2)
    unread.defvjp(lambda x: (x * 2, None), lambda _, cotangent: (cotangent,))
    corpus.add(
        "tangent_of_nothing_taken",
        lambda x: jax.jvp(lambda x: unread(jnp.take(x, nothing)), (x,), (x,)),
        x,
    )
    for name, width in {"nothing": (), "empty_row": [[]], "a_float": 1.5}.items():
        corpus.add(f"pad_by_{name}", lambda x, width=width: jnp.pad(x, width), x, modes=("value",))
    for name in ("psum_scatter", "all_gather"):
        for option in ([], np.array(1)):
            collective = lambda x, f=getattr(lax, name), o=option: f(x, "i", tiled=o)
            corpus.add(
                f"{name}_tiled_by_{type(option).__name__}",
                jax.vmap(jax.checkpoint(collective), axis_name="i"),
                floats(3, 3),
                modes=("value",),
            )
    for name, reads in {"reads": True, "ignores": False}.items():

        def mapped(x, reads=reads):
            closed = jax.custom_batching.custom_vmap(lambda y: y * x)
            closed.def_vmap(lambda n, b, y: (jnp.cos(y) * (x if reads else 1), b[0]))
            return jax.jvp(closed, (jnp.sin(x),), (x,))

        corpus.add(
            f"jvp_of_custom_vmap_whose_rule_{name}_what_it_closes_over",
            jax.vmap(mapped),
            x,
            modes=("value",),
        )
    rule = jax.custom_vjp(lambda x: x * 2)
    rule.defvjp(lambda x: (x * 2, x), lambda _, cotangent: (cotangent,))
    corpus.add(
        "tangent_of_custom_vjp_that_nothing_reads",
        lambda x: jax.jvp(lambda x: jnp.round(rule(x), 2), (x,), (x,)),
        x,
        modes=("jit",),
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


def weak_results(corpus, jax, jnp):
    """Which results of weakly typed matrices are weakly typed; and programs of linear functions."""
    linalg = jax.scipy.linalg
    weak = lambda number, *shape: jnp.broadcast_to(jnp.asarray(number), shape)
    for size in range(3):
        for kind, number in {"real": 1.5, "complex": 1.5 + 0j}.items():
            for name, function in {
                "diagonal": jnp.linalg.diagonal,
                "slogdet": lambda m: tuple(jnp.linalg.slogdet(m)),
                "det": jnp.linalg.det,
                "expm": linalg.expm,
                "polar": linalg.polar,
            }.items():
                corpus.add(
                    f"{name}_of_weak_{kind}_{size}",
                    lambda n=size, c=number, f=function: f(weak(c, n, n)),
                    modes=("value",),
                )
    for name in ("unique", "union1d", "intersect1d", "setxor1d", "setdiff1d"):
        arguments = 1 if name == "unique" else 2
        corpus.add(
            f"{name}_of_weak_complex_numbers",
            lambda n=name, k=arguments: getattr(jnp, n)(*[weak(1j, 2)] * k),
            modes=("value",),
        )
    corpus.add(
        "jit_of_a_linear_function", lambda x: jax.jit(jax.linearize(jnp.sin, x)[1])(x), np.ones(3)
    )
    for name, body in {"nothing": lambda x: x, "a_sine": jnp.sin}.items():
        corpus.add(
            f"grad_of_jit_of_checkpoint_of_{name}",
            lambda x, body=body: jax.grad(jax.jit(jax.checkpoint(body)))(x),
            1.0,
            modes=("equations",),
        )
    for fill in (1, True, 1.0):
        corpus.add(
            f"filled_like_weak_bools_by_{fill}",
            lambda x, fill=fill: jnp.full_like(jnp.not_equal(0.5, x), fill),
            np.ones((3, 3), bool),
            modes=("value", "equations"),
        )
    for dtype in ("int8", "uint32"):
        corpus.add(
            f"jacfwd_of_a_result_in_{dtype}",
            lambda x, dtype=dtype: jax.jacfwd(lambda x: (x > 0).astype(dtype))(x),
            np.ones(2, np.float32),
        )
    corpus.add("hessian_of_argmax", lambda x: jax.hessian(jnp.argmax)(x), np.ones(2, np.float32))
    for size in (1, 2):
        corpus.add(
            f"rsf2csf_of_weak_matrices_of_size_{size}",
            lambda x, size=size: jax.scipy.linalg.rsf2csf(
                jnp.full((size, size), x), jnp.full((size, size), x)
            ),
            2.0,
        )
    for answer in (None, 1, 0, "save", 2.5, np.True_):
        corpus.add(
            f"policy_of_checkpoint_that_answers_{answer!r}",
            lambda x, answer=answer: jax.grad(
                jax.checkpoint(lambda x: jnp.sin(jnp.cos(x)), policy=lambda *_, **__: answer)
            )(x),
            1.0,
        )
    corpus.add(
        "vmap_of_a_value_that_is_two_results",
        lambda x: jax.vmap(lambda row: [row - np.uint8([3])] * 2, in_axes=1)(x),
        np.ones((1, 2), np.float32),
        modes=("equations",),
    )


def closures_and_axes(corpus, jax, jnp, lax):
    """Values that functions close over, and named axes while constants are evaluated."""
    x = jnp.arange(3.0)
    for name, out_axes in {"first": 0, "last": -1}.items():
        corpus.add(
            f"vmap_of_what_is_mapped_and_closed_over_{name}",
            lambda x, out_axes=out_axes: jax.vmap(lambda y: (y, x, x), 0, out_axes)(x),
            x,
        )
    corpus.add(
        "vmap_of_one_value_along_two_axes",
        lambda x: jax.vmap(lambda y, z: (y, z), (0, 1))(x, x),
        jnp.ones((3, 3)),
    )

    def by_index(x):
        with jax.ensure_compile_time_eval():
            index, size = lax.axis_index("i"), lax.axis_size("i")
            positive = index > 0
        return x * index, positive, size

    def by_sums(x):
        with jax.ensure_compile_time_eval():
            return x, lax.psum(2, "i"), lax.psum(jnp.ones(2), "i"), lax.pmean(jnp.ones(2), "i")

    def by_concrete_numbers(x):
        with jax.ensure_compile_time_eval():
            size = int(jnp.sin(1.0) + jnp.arange(3)[2])
        return jnp.full(size, x)

    for name, function in {
        "indices": by_index,
        "sums": by_sums,
        "concrete_numbers": by_concrete_numbers,
    }.items():
        mapped = jax.vmap(function, axis_name="i")
        scalar = lambda x, f=function: f(x)[0].sum()
        for around, program in {
            "vmap": mapped,
            "two_vmaps": lambda x, mapped=mapped: jax.vmap(mapped, axis_name="j")(x[None]),
            "vmap_of_grad": jax.vmap(jax.grad(scalar), axis_name="i"),
            "grad_of_vmap": jax.grad(lambda x, mapped=mapped: mapped(x)[0].sum()),
            "jvp_of_vmap": lambda x, mapped=mapped: jax.jvp(lambda x: mapped(x)[0], (x,), (x,)),
        }.items():
            corpus.add(
                f"{name}_at_compile_time_in_{around}",
                program,
                x,
                modes=("value", "jit", "equations"),
            )
    for name, constant in {
        "number": 3,
        "numpy_number": np.int8(3),
        "array": jnp.arange(3),
        "weak_array": jnp.asarray(2.5),
        "numbers": (1, 2.5),
    }.items():
        for groups in (None, [[0, 1], [2, 3]]):
            corpus.add(
                f"sum_of_constant_{name}_over_{'all' if groups is None else 'groups'}",
                jax.vmap(
                    lambda x, c=constant, g=groups: [
                        f(c, "i", axis_index_groups=g) for f in (lax.psum, lax.pmean)
                    ],
                    axis_name="i",
                ),
                np.ones(4),
                modes=("equations", "jit"),
            )
    for kind in ("custom_jvp", "custom_vjp"):
        for name, options in {
            "no_positions": {"nondiff_argnums": None},
            "no_names": {"nondiff_argnames": None},
            "a_position_before_the_first": {"nondiff_argnums": (-3,)},
        }.items():

            def called(x, kind=kind, options=options):
                rule = getattr(jax, kind)(lambda x, y: x * y, **options)
                if kind == "custom_jvp":
                    rule.defjvp(lambda primals, tangents: (primals[0], tangents[0] * 5))
                else:
                    rule.defvjp(lambda x, y: (x, None), lambda _, c: (c * 5, None))
                return jax.grad(rule)(x, 2.0)

            corpus.add(f"{kind}_with_{name}", called, 3.0, modes=("value",))


def choices_of_none(corpus, jax, jnp):
    key = jax.random.key(0)
    for name, population in {
        "matrix": np.ones((2, 3), np.float32),
        "weak_matrix": jnp.full((2, 3), jnp.asarray(1.5)),
        "nothing": np.zeros((0, 3), int),
        "number": 5,
        "int8": np.int8(5),
        "float": 1.5,
    }.items():
        for shape in ((0,), (2, 0)):
            for axis in (0, -1):
                corpus.add(
                    f"choice_of_{'x'.join(map(str, shape))}_among_{name}_along_{axis}",
                    lambda a=population, s=shape, i=axis: jax.random.choice(key, a, s, axis=i),
                    modes=("value",),
                )
    corpus.add(
        "choice_of_none_by_weights_that_nothing_reads",
        lambda: jax.random.choice(key, 5, (0,), replace=False, p=jnp.ones(3)),
        modes=("value",),
    )


def powers_and_policies(corpus, jax, jnp, lax):
    weak = jnp.asarray(2)
    for name, other in {"weak": weak, "strong": np.int32(3), "bool": True}.items():
        corpus.add(
            f"integer_power_of_weak_and_{name}",
            lambda x, y: (jnp.power(x, y), jnp.power(y, x)),
            weak,
            other,
            modes=("equations", "value"),
        )
    for name, base in {"int": 2, "float": 1.5, "uint8": np.uint8(2), "bool": True}.items():
        for dtype in ("int8", "int32"):
            corpus.add(
                f"{name}_to_the_power_of_an_array_of_{dtype}",
                lambda base=base, dtype=dtype: (
                    base ** jnp.asarray(2, dtype),
                    base ** jnp.asarray([2, 3], dtype),
                ),
                modes=("value", "jit"),
            )
    bodies = {
        "linear": lambda x: x * 2,
        "jitted_linear": jax.jit(lambda x: x + x),
        "sine": jnp.sin,
        "unread": lambda x: lax.stop_gradient(jnp.cos(x)),
        "cond": lambda x: lax.cond(x > 0, lambda x: x * 3, lambda x: x * 2, x),
        "while": lambda x: lax.while_loop(lambda x: x < 0, jnp.sin, x),
    }
    for name, body in bodies.items():
        for way, around in {
            "linearize": lambda f, x: jax.linearize(f, x)[0],
            "grad": lambda f, x: jax.grad(f)(x),
            "call": lambda f, x: f(x),
        }.items():
            corpus.add(
                f"policy_that_answers_text_in_{way}_of_{name}",
                lambda x, body=body, around=around: around(
                    jax.checkpoint(body, policy=lambda *_, **__: "text"), x
                ),
                1.5,
                modes=("value",),
            )
