"""Reported differences that belong to no other corpus: names, parts of results, and refusals."""

import functools
import importlib
import pickle

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))

    def door(name):
        return importlib.import_module(f"{jax.__name__}.{name}")

    sharding = jax if isinstance(jax, Anything) else door("sharding")
    P = sharding.PartitionSpec
    mesh = lambda: jax.make_mesh((1,), ("x",), axis_types=(sharding.AxisType.Auto,))
    named = lambda *entries: sharding.NamedSharding(mesh(), P(*entries))

    # Names

    @corpus.program()
    def options_that_are_read():
        before = jax.config.x64_enabled, jax.config.jax_enable_x64
        globals_ = jax.numpy_rank_promotion.get_global(), jax.enable_x64.get_global()
        with jax.enable_x64(not before[0]):
            return before, globals_, jax.config.x64_enabled, jax.enable_x64.get_global()

    @corpus.program()
    def source_info_of_equations():
        def f(x):
            with jax.named_scope("outer"):
                return jnp.sin(x)

        info = jax.make_jaxpr(f)(1.0).eqns[0].source_info
        return str(info.name_stack), type(info.traceback).__name__

    @corpus.program()
    def primitives_of_lax_by_name():
        names = "device_put_p", "linear_solve_p", "sharding_constraint_p"
        return [str(getattr(lax, name)) for name in names]

    @corpus.program()
    def dtype_of_values():
        values = 1, 2.0, True, jnp.ones(2, "bfloat16"), np.int8(1)
        return [lax.dtype(value) for value in values]

    @corpus.program(np.arange(4, dtype="float32"))
    def casts_over_a_mesh(x):
        def over(f):
            return jax.jit(jax.shard_map(f, mesh=mesh(), in_specs=P("x"), out_specs=P("x")))(x)

        cast = over(lambda v: lax.pcast(lax.psum(v, "x"), "x", to="varying"))
        return cast, str(
            jax.make_jaxpr(lambda: over(lambda v: lax.pcast(v + 1, (), to="varying")))()
        )

    @corpus.program()
    def communication_by_name():
        names = "pbroadcast", "pcast", "psend", "precv", "ragged_all_to_all"
        return [callable(getattr(lax, name)) for name in names]

    @corpus.program()
    def devices_and_slices():
        part = jax.ds(1, 2)
        return isinstance(jax.devices()[0], jax.Device), (part.start, part.size, part.stride)

    @corpus.program(2.0, 3.0)
    def parts_of_a_pullback(x, y):
        _, pullback = jax.vjp(lambda x, y, z: jnp.sin(x) * y, x, y, 4.0)
        return [type(r).__name__ for r in pullback.args_res], pullback.opaque_residuals

    @corpus.program(2.0, 3.0)
    def cotangents_that_are_not_wanted(x, y):
        ad = jax.ad
        _, pullback = jax.vjp(lambda x, y: jnp.sin(x) * y, x, y)
        ref = jax.new_ref(jnp.float32(1.0))
        first = pullback.with_refs(ref, ad.DontWant())(jnp.float32(1.0))
        second = pullback.with_refs(ad.DontWant(), ad.GradValue())(jnp.float32(1.0))
        return [type(c).__name__ for c in first], ref[...], type(second[0]).__name__, second[1]

    # jit, vjp, tracing

    @corpus.program(1.0)
    def linear_transpose_out_of_jit(x):
        transposed = jax.jit(lambda x: jax.linear_transpose(lambda y: 3 * y, x))(x)
        inside = jax.jit(lambda f, ct: f(ct))(transposed, 5.0)
        return callable(transposed), transposed(2.0), inside

    @corpus.program()
    def constants_of_jaxprs():
        a = np.arange(3, dtype="float32")
        once = jax.make_jaxpr(lambda x: x + jnp.array(a) + a)(jnp.ones(3))
        none = jax.make_jaxpr(lambda: lax.broadcast(np.float32(3), ()))()
        return len(once.consts), len(none.eqns)

    @corpus.program()
    def results_of_pullbacks_are_used():
        def all_used(f):
            jaxpr = jax.make_jaxpr(lambda x: jax.vjp(f, x))(1.0).jaxpr
            used = {id(v) for e in jaxpr.eqns for v in e.invars} | {id(v) for v in jaxpr.outvars}
            return all(any(id(v) in used for v in e.outvars) for e in jaxpr.eqns)

        functions = lambda x: jnp.sin(x) * x, lambda x: (jnp.exp(x), x * 2), lambda x: x**2
        return [all_used(f) for f in functions]

    lengths = {
        "arange": lambda n: jnp.arange(n),
        "split": lambda n: jnp.split(jnp.ones(4), n),
        "array_split": lambda n: jnp.array_split(jnp.ones(4), n),
        "eye": lambda n: jnp.eye(n),
        "tri": lambda n: jnp.tri(n),
        "linspace": lambda n: jnp.linspace(0, 1, n),
        "logspace": lambda n: jnp.logspace(0, 1, n),
        "repeat": lambda n: jnp.repeat(jnp.ones(2), n),
        "tile": lambda n: jnp.tile(jnp.ones(2), n),
        "bincount": lambda n: jnp.bincount(jnp.ones(2, int), length=n),
        "unique": lambda n: jnp.unique(jnp.ones(2), size=n),
        "nonzero": lambda n: jnp.nonzero(jnp.ones(2), size=n),
        "union": lambda n: jnp.union1d(jnp.ones(2), jnp.ones(2), size=n),
        "argwhere": lambda n: jnp.argwhere(jnp.ones(2), size=n),
        "flatnonzero": lambda n: jnp.flatnonzero(jnp.ones(2), size=n),
        "histogram_bin_edges": lambda n: jnp.histogram_bin_edges(jnp.ones(3), n),
        "transpose": lambda n: jnp.transpose(jnp.ones((2, 2)), (0, n)),
        "squeeze": lambda n: jnp.squeeze(jnp.ones((2, 1)), n),
        "flip": lambda n: jnp.flip(jnp.ones((2, 2)), n),
        "sum": lambda n: jnp.sum(jnp.ones((2, 2, 2)), axis=n),
        "one_hot": lambda n: jax.nn.one_hot(jnp.ones(2, int), n),
        "hamming": lambda n: jnp.hamming(n),
        "permutation": lambda n: jax.random.permutation(jax.random.key(0), n),
        "choice": lambda n: jax.random.choice(jax.random.key(0), n),
        "zeros": lambda n: jnp.zeros(n),
        "reshape": lambda n: jnp.reshape(jnp.ones(2), n),
        "indices": lambda n: jnp.indices((n,)),
        "diag": lambda n: jnp.diag(jnp.ones(2), n),
        "fft": lambda n: jnp.fft.fft(jnp.ones(2), n),
        "segment_sum": lambda n: jax.ops.segment_sum(jnp.ones(2), jnp.zeros(2, int), n),
        "iota": lambda n: lax.iota("int32", n),
        "histogram": lambda n: jnp.histogram(jnp.ones(3), n),
        "fori_loop_unrolled": lambda n: lax.fori_loop(0, 3, lambda i, x: x, 1.0, unroll=n),
        "moveaxis": lambda n: jnp.moveaxis(jnp.ones((2, 2)), 0, n),
        "expand_dims": lambda n: jnp.expand_dims(jnp.ones(2), n),
        "split_keys": lambda n: jax.random.split(jax.random.key(0), n),
    }
    for name, call in lengths.items():
        corpus.add(f"length_of_{name}_traced", jax.jit(call), 1)

    @corpus.program(1.0)
    def inlined_constants_are_arrays(x):
        inlined = jax.jit(lambda: 3, inline=True)
        return type(inlined()).__name__, jax.jit(lambda x: inlined().shape and x)(x), inlined() + x

    @corpus.program(1.0)
    def checked_checkpoints_leak_nothing(x):
        f = jax.checkpoint(lambda y: jax.nn.relu(1.0 * y))
        with jax.check_tracer_leaks():
            return jax.jit(lambda x: jax.vjp(f, x))(x)[0]

    # lax and scipy

    @corpus.program(1.0)
    def attributes_of_composites_that_are_none(x):
        f = lambda x: lax.composite(lambda x, **_: x + 1, "named")(x, omit=None, kept=2)
        text = jax.jit(f).lower(x).as_text()
        return f(x), "omit" in text, "kept" in text

    @corpus.program()
    def entropy_of_poisson_has_the_shape_of_both():
        return door("scipy.stats").poisson.entropy(jnp.full(2, 3.0), jnp.ones((3, 1)))

    @corpus.program()
    def full_of_a_sharding_with_trailing_none():
        return lax.full((8,), 1.0, sharding=named("x", None))

    # Shardings

    @corpus.program()
    def descriptions_of_too_low_rank():
        return jax.ShapeDtypeStruct((), "float32", sharding=named("x"))

    @corpus.program()
    def zeros_like_descriptions_with_shardings():
        struct = jax.ShapeDtypeStruct((8,), "float32", sharding=named("x"))
        made = jnp.zeros_like(struct), jnp.ones_like(struct), jnp.full_like(struct, 2.0)
        return [str(each.sharding.spec) for each in made]

    for name in ("make_array_from_callback", "make_array_from_process_local_data"):

        def in_jit(name=name):
            x = np.arange(8.0)
            operand = (lambda i: x[i]) if name.endswith("callback") else x
            args = ((8,), named("x"), operand) if callable(operand) else (named("x"), operand)
            return jax.jit(lambda: getattr(jax, name)(*args))()

        corpus.add(f"{name}_in_jit", in_jit)

    @corpus.program()
    def gradients_of_device_put_are_committed():
        device = jax.devices()[0]
        gradient = jax.grad(lambda x: jax.device_put(x, device) * 2.0)
        return gradient(1.0).committed, gradient(jax.device_put(1.0, device)).committed

    @corpus.program()
    def constraints_of_nothing():
        return lax.with_sharding_constraint(jnp.arange(8.0), None)

    @corpus.program()
    def constraints_that_are_no_named_shardings_under_vmap():
        one = sharding.SingleDeviceSharding(jax.devices()[0])
        constrain = functools.partial(lax.with_sharding_constraint, shardings=one)
        return jax.vmap(constrain, spmd_axis_name="x")(jnp.ones((8, 2)))

    @corpus.program()
    def parameters_of_constraints():
        jaxpr = jax.make_jaxpr(lambda x: lax.with_sharding_constraint(x, named("x")))(jnp.ones(8))
        return sorted(jaxpr.eqns[0].params)

    @corpus.program()
    def specifications_are_pickled():
        return pickle.loads(pickle.dumps(P("x"))) is P("x")

    specs = {
        "nested": lambda: P((("x", "y"),)),
        "subclass": lambda: type("Mine", (P,), {})("x"),
        "unreduced_and_more": lambda: P("x", unreduced={"y"}) + ("z",),
        "tuple_and_more": lambda: str(("z",) + P("x")),
        "more": lambda: str(P("x") + ("z",)),
        "equal": lambda: (P(None, "x") == P((), "x"), P("x") is P("x"), P("x") == ("x",)),
        "unreduced_text": lambda: P("x", unreduced="y"),
        "unreduced_of_its_own": lambda: P("x", unreduced={"x"}),
    }
    for name, make in specs.items():
        corpus.add(f"spec_{name}", make)

    sizes = {
        "floats": (1.0, 1),
        "booleans": (True, 1),
        "numpy": (np.int64(1),),
        "text": ("1",),
        "of_tuples": ((2,), 4),
        "text_of_no_number": ("a",),
        "none": (None,),
        "of_no_axis": (),
        "too_many": (1, 1, 1),
        "too_large": (10_000,),
    }
    for name, shape in sizes.items():
        axes = ("x", "y")[: min(len(shape), 2)]
        corpus.add(
            f"mesh_of_{name}", lambda shape=shape, axes=axes: str(jax.make_mesh(shape, axes))
        )
    return corpus
