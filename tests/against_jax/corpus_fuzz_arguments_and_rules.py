"""What drawn programs found (see fuzz/): arguments that are looked at, rules that are asked."""

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import floats


def programs(jax, jnp, lax):
    corpus = Corpus(("value", "jit"))
    unread_rules(corpus, jax, jnp, lax)
    arguments(corpus, jax, jnp, lax)
    paddings(corpus, jnp)
    weak_updates(corpus, jnp, lax)
    whole_updates(corpus, jax, jnp, lax)
    described_float0(corpus, jax)
    return corpus


def whole_updates(corpus, jax, jnp, lax):
    update = lambda x, y: lax.dynamic_update_slice(jnp.broadcast_to(x, (3,)), y, [-1])
    for name, axes in {"mapped": (0, 0), "same": (0, None)}.items():
        corpus.add(
            f"vmap_of_a_whole_{name}_update_of_a_weak_array",
            lambda y, axes=axes: jax.vmap(update, axes)(jnp.broadcast_to(1.5, (3,)), y),
            floats(3, 3) if axes == (0, 0) else floats(3),
        )


def described_float0(corpus, jax):
    """What is said of results of dtype float0 before they are computed."""

    def pushed(flags):
        return jax.jvp(lambda x: x, (flags,), (np.zeros(3, jax.dtypes.float0),))

    def infos(flags):
        jitted = jax.jit(pushed)
        lowered = jitted.lower(flags)
        found = (jitted.eval_shape(flags), lowered.out_info, lowered.compile().out_info)
        return [[(x.shape, str(x.dtype), type(x).__name__) for x in info] for info in found]

    corpus.add("shape_of_a_float0_tangent", pushed, np.ones(3, bool), modes=("shape",))
    corpus.add("infos_of_a_float0_tangent", infos, np.ones(3, bool), modes=("value",))


def unread_rules(corpus, jax, jnp, lax):
    """A custom_vmap function, which has no derivative in reverse mode, in checkpoints."""
    custom = jax.custom_batching.custom_vmap(lambda x: jnp.sin(x) * 2)
    custom.def_vmap(lambda size, batched, x: (jnp.cos(x), batched[0]))

    def unread(x):
        custom(x)
        return x * 2

    def unread_in_loop(x):
        step = lambda c: (unread(x), (c[0] + 1, c[1] * 2))[1]
        return lax.while_loop(lambda c: c[0] < 2, step, (0, 1.0))[1] * x.sum()

    corpus.add(
        "grad_of_while_loop_where_a_custom_vmap_is_unread", jax.grad(unread_in_loop), floats(3)
    )
    bodies = {
        "unread": unread,
        "unread_after_jit": lambda x: jax.jit(lambda x: (custom(x), x * 2))(x)[1],
        "unread_after_scan": lambda x: lax.scan(lambda c, _: (c * c, custom(c)), x, None, 2)[0],
        "unread_after_cond": lambda x: lax.cond(
            x.sum() > 0, lambda x: (custom(x), x * 2), lambda x: (x, x), x
        )[1],
        "of_what_has_no_tangent": lambda x: x * custom(lax.stop_gradient(x)),
        "read": lambda x: custom(x) * 2,
    }
    around = {
        "checkpoint": jax.checkpoint,
        "checkpoint_with_policy": lambda f: jax.checkpoint(f, policy=lambda *_, **__: True),
        "checkpoint_of_jit": lambda f: jax.checkpoint(jax.jit(f)),
        "scan_of_checkpoint": lambda f: (
            lambda x: lax.scan(lambda c, _: (jax.checkpoint(f)(c), None), x, None, length=2)[0]
        ),
    }
    for body_name, body in bodies.items():
        for name, transformation in around.items():
            derived = transformation(body)
            for way, function in {
                "grad": jax.grad(lambda x, f=derived: f(x).sum()),
                "linearize": lambda x, f=derived: jax.linearize(f, x)[1](x),
                "vmap_of_grad": jax.vmap(jax.grad(lambda x, f=derived: f(x).sum())),
            }.items():
                corpus.add(
                    f"{way}_of_{name}_where_a_custom_vmap_is_{body_name}", function, floats(2, 3)
                )

    def unread_over_mapped(x):
        factor = jnp.sin(x)
        scaled = jax.custom_batching.custom_vmap(lambda y: y * factor)
        scaled.def_vmap(lambda size, batched, y: (y * 2, batched[0]))
        scaled(x * 3)
        return x * 2

    checkpointed = jax.checkpoint(unread_over_mapped)
    by_rule = jax.custom_jvp(checkpointed)
    by_rule.defjvp(lambda primals, tangents: (checkpointed(*primals), tangents[0] * 3))
    corpus.add(
        "vjp_under_vmap_of_a_rule_that_calls_a_checkpoint_where_a_custom_vmap_is_unread",
        jax.vmap(lambda x: jax.vjp(by_rule, x)[1](x)),
        floats(3),
    )


def arguments(corpus, jax, jnp, lax):
    x = floats(3)
    corpus.add(
        "associative_scan_of_texts_of_another_size",
        lambda x: lax.associative_scan(jnp.add, (np.array(["a", "b"]), x)),
        x,
    )
    for name, wrap in {"tuple": tuple, "list": list}.items():
        for size in (1, 2, 3):
            nested = lambda x, wrap=wrap, size=size: wrap([x] * size)
            for operation, call in {
                "abs": lambda x, nested=nested: lax.abs(nested(x)),
                "add": lambda x, nested=nested: lax.add(x, nested(x)),
                "cumsum": lambda x, nested=nested: lax.cumsum(nested(x)),
                "pad": lambda x, nested=nested: lax.pad(nested(x), 0.0, ((0, 0, 0),)),
                "clamp": lambda x, nested=nested: lax.clamp(0.0, nested(x), 1.0),
            }.items():
                corpus.add(
                    f"{operation}_of_a_{name}_of_{size}", call, x, modes=("value", "jit", "shape")
                )
    for name, flag in {"array": np.ones((2, 2)), "nothing": np.ones(0), "none": None}.items():
        for dtype in ("float32", "int8"):
            corpus.add(
                f"astype_{dtype}_whose_copy_is_{name}",
                lambda x, dtype=dtype, flag=flag: jnp.asarray(x).astype(dtype, copy=flag),
                x,
            )
    for name, values in {
        "objects": np.array([1, 2.5, None], object),
        "texts": np.array(["1", "2"]),
        "words": np.array(["a", "b"]),
        "bytes": np.array([b"1", b"2"]),
        "a_text": np.array("1"),
        "dates": np.array(["2020-01-01"], "M8[D]"),
        "other_byte_order": np.array([1, 2], ">i4"),
        "long_doubles": np.array([1.5], np.longdouble),
        "texts_of_any_length": np.array(["1"], np.dtypes.StringDType()),
    }.items():
        for dtype in ("int32", "float32", "bool", "bfloat16", None):
            corpus.add(
                f"arrays_of_{name}_as_{dtype}",
                lambda values=values, dtype=dtype: jnp.asarray(values, dtype),
                modes=("value", "jit"),
            )
        corpus.add(
            f"full_of_{name}",
            lambda values=values: jnp.full((2, *values.shape), values, dtype="float32"),
            modes=("value", "jit"),
        )
    for name in ("sum", "max", "mean", "prod", "all"):
        for axis_name, axis in {"names": ("i", "i"), "a_place": ("i", 0, "i")}.items():
            corpus.add(
                f"{name}_of_repeated_{axis_name}",
                lambda x, name=name, axis=axis: jax.vmap(
                    lambda x: getattr(jnp, name)(x, axis=axis), axis_name="i"
                )(x),
                floats(2, 3),
            )
    for order in (None, "fro"):
        corpus.add(
            f"norm_{order}_of_a_repeated_axis",
            lambda x, order=order: jnp.linalg.norm(x, order, axis=(0, -2)),
            floats(2, 3),
        )
    for name, data in {"none": None, "list": [1], "float": 1.0, "bool": True}.items():
        corpus.add(
            f"fold_in_of_{name}",
            lambda data=data: jax.random.key_data(jax.random.fold_in(jax.random.key(0), data)),
        )


def paddings(corpus, jnp):
    """What is padded on one side alone, or on both by one statistic, computes nothing twice."""
    modes = "constant edge linear_ramp maximum mean median minimum reflect symmetric wrap".split()
    for mode in modes:
        for name, widths in {
            "before": ((1, 0), (2, 0)),
            "after": ((0, 1), (0, 5)),
            "both": ((1, 2), (5, 1)),
            "one_axis": ((0, 0), (1, 1)),
        }.items():
            corpus.add(
                f"pad_by_{mode}_{name}",
                lambda x, mode=mode, widths=widths: jnp.pad(x, widths, mode),
                floats(2, 3),
                modes=("value", "equations"),
            )


def weak_updates(corpus, jnp, lax):
    """Weakly typed values written to a weakly typed array are not converted."""
    weak = lambda c: lax.full((3,), 1.0) * c
    at = np.array([2, 0])
    for name, write in {
        "slice": lambda x, c: x.at[:2].set(c),
        "array": lambda x, c: x.at[:].set(x * 2),
        "indices": lambda x, c: x.at[at].add(c, mode="fill"),
        "product": lambda x, c: x.at[1].multiply(c),
        "strong_array": lambda x, c: jnp.ones(3).at[:].set(c),
    }.items():
        corpus.add(
            f"weak_values_written_to_{name}",
            lambda c, write=write: write(weak(c), c),
            1.5,
            modes=("equations", "value"),
        )
