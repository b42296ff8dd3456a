"""Each name of jax.interpreters in use, but those of mlir; a program has the name it calls."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        ad = batching = partial_eval = pxla = xla = core = linear_util = api_util = jax
    else:

        def door(name):
            return importlib.import_module(f"{jax.__name__}.{name}")

        ad, batching = door("interpreters.ad"), door("interpreters.batching")
        partial_eval, pxla = door("interpreters.partial_eval"), door("interpreters.pxla")
        xla, core = door("interpreters.xla"), door("extend.core")
        linear_util, api_util = door("extend.linear_util"), door("api_util")

    def program(name):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function)

    def wrapped(function, *args):
        info = api_util.debug_info("names", function, args, {})
        return linear_util.wrap_init(function, debug_info=info)

    def doubling():
        """Return a new primitive that doubles, and has no rules of derivatives or batches yet."""
        twice_p = core.Primitive("twice")
        twice_p.def_impl(lambda x: 2 * x)
        twice_p.def_abstract_eval(lambda aval: aval)
        return twice_p

    def product():
        times_p = core.Primitive("times")
        times_p.def_impl(lambda x, y: x * y)
        times_p.def_abstract_eval(lambda x, y: x)
        return times_p

    scalar = lambda: jax.typeof(jnp.float32(1.0))

    # Derivatives

    @program("ad.Zero")
    def _():
        zero = ad.Zero(scalar())
        leaves, structure = jax.tree.flatten(zero)
        return str(zero), str(zero.aval), len(leaves), str(structure)

    @program("ad.UndefinedPrimal")
    def _():
        unknown = ad.UndefinedPrimal(scalar())
        return str(unknown), str(unknown.aval), len(jax.tree.leaves(unknown))

    @program("ad.is_undefined_primal")
    def _():
        values = (ad.UndefinedPrimal(scalar()), ad.Zero(scalar()), 1.0)
        return [ad.is_undefined_primal(value) for value in values]

    @program("ad.instantiate_zeros")
    def _():
        return ad.instantiate_zeros(ad.Zero(scalar())), ad.instantiate_zeros(jnp.ones(2))

    @program("ad.zeros_like_aval")
    def _():
        return ad.zeros_like_aval(jax.core.ShapedArray((2,), np.dtype("int8"))), str(
            jax.make_jaxpr(lambda: ad.zeros_like_aval(scalar()))()
        )

    @program("ad.add_jaxvals")
    def _():
        jaxpr = jax.make_jaxpr(ad.add_jaxvals)(1.0, 2.0)
        return ad.add_jaxvals(jnp.ones(2), jnp.ones(2)), str(jaxpr)

    @program("ad.add_jaxvals_p")
    def _():
        return str(ad.add_jaxvals_p), ad.add_jaxvals_p.bind(jnp.float32(1), jnp.float32(2))

    @program("ad.add_tangents")
    def _():
        zero = ad.Zero(scalar())
        both = ad.add_tangents(zero, zero)
        return (
            ad.add_tangents(zero, 2.0),
            ad.add_tangents(2.0, zero),
            both,
            ad.add_tangents(1.0, 2.0),
        )

    @program("ad.defjvp")
    def _():
        times_p = product()
        ad.defjvp(times_p, lambda t, x, y: 5 * t * y, None)
        mapped = jax.jvp(times_p.bind, (2.0, 3.0), (1.0, 1.0))
        return mapped, jax.jvp(lambda y: times_p.bind(2.0, y), (3.0,), (1.0,))

    @program("ad.defjvp2")
    def _():
        times_p = product()
        ad.defjvp2(times_p, lambda t, out, x, y: t * out, lambda t, out, x, y: t * out * 10)
        return jax.jvp(times_p.bind, (2.0, 3.0), (1.0, 1.0))

    @program("ad.deflinear")
    def _():
        twice_p = doubling()
        ad.deflinear(twice_p, lambda ct: [3 * ct])
        return jax.jvp(twice_p.bind, (2.0,), (1.0,)), jax.grad(twice_p.bind)(2.0)

    @program("ad.deflinear2")
    def _():
        twice_p, seen = doubling(), []

        def transposed(ct, x):
            seen.append(type(x).__name__)
            return [3 * ct]

        ad.deflinear2(twice_p, transposed)
        return jax.jvp(twice_p.bind, (2.0,), (1.0,)), jax.grad(twice_p.bind)(2.0), seen

    @program("ad.defbilinear")
    def _():
        times_p = product()
        ad.defbilinear(times_p, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)
        both = jax.jvp(times_p.bind, (2.0, 3.0), (1.0, 1.0))
        return both, jax.grad(times_p.bind)(2.0, 3.0), jax.grad(times_p.bind, 1)(2.0, 3.0)

    @program("ad.get_primitive_transpose")
    def _():
        twice_p = doubling()
        ad.deflinear(twice_p, lambda ct: [3 * ct])
        rule = ad.get_primitive_transpose(twice_p)
        return rule(2.0, ad.UndefinedPrimal(scalar()))

    @program("ad.get_primitive_transpose of none")
    def _():
        return ad.get_primitive_transpose(doubling())

    @program("ad.primitive_jvps")
    def _():
        twice_p = doubling()
        ad.primitive_jvps[twice_p] = lambda p, t: (twice_p.bind(*p), 7 * t[0])
        known = lax.sin_p in ad.primitive_jvps, doubling() in ad.primitive_jvps
        return (
            known,
            jax.jvp(twice_p.bind, (1.0,), (1.0,)),
            ad.primitive_jvps[lax.neg_p] is not None,
        )

    @program("ad.primitive_transposes")
    def _():
        twice_p = doubling()
        ad.primitive_jvps[twice_p] = lambda p, t: (twice_p.bind(*p), twice_p.bind(*t))
        ad.primitive_transposes[twice_p] = lambda ct, x: [9 * ct]
        known = lax.neg_p in ad.primitive_transposes, lax.sin_p in ad.primitive_transposes
        return known, jax.grad(twice_p.bind)(1.0), jax.vjp(twice_p.bind, 1.0)[1](2.0)

    @program("ad.JVPTracer")
    def _():
        seen = []

        def look(x):
            seen.append((type(x).__name__, isinstance(x, ad.JVPTracer), str(x.aval)))
            seen.append((x.primal, x.tangent))
            return x

        jax.jvp(look, (1.0,), (2.0,))
        return seen

    @program("ad.JVPTrace")
    def _():
        seen = []

        def look(x):
            trace = x._trace
            seen.append((type(trace).__name__, isinstance(trace, ad.JVPTrace)))
            seen.append(trace.to_primal_tangent_pair(x))
            primal, tangent = trace.to_primal_tangent_pair(5.0)
            seen.append((primal, str(type(tangent).__name__)))
            return x

        jax.jvp(look, (1.0,), (2.0,))
        return seen

    # Batches

    @program("batching.primitive_batchers")
    def _():
        twice_p = doubling()
        batching.primitive_batchers[twice_p] = lambda values, axes: (3 * values[0], axes[0])
        return jax.vmap(twice_p.bind)(jnp.arange(2.0))

    @program("batching.fancy_primitive_batchers")
    def _():
        twice_p, seen = doubling(), []

        def rule(axis, values, axes):
            seen.append((axis.size, str(axis.name), type(values).__name__, axes))
            return 3 * values[0], axes[0]

        batching.fancy_primitive_batchers[twice_p] = rule
        mapped = jax.vmap(twice_p.bind, axis_name="i")(jnp.arange(2.0))
        return mapped, seen

    @program("batching.axis_primitive_batchers")
    def _():
        twice_p, seen = doubling(), []

        def rule(size, name, trace_type, values, axes):
            seen.append((size, str(name), str(trace_type), type(values).__name__, axes))
            return 3 * values[0], axes[0]

        batching.axis_primitive_batchers[twice_p] = rule
        return jax.vmap(twice_p.bind, axis_name="i")(jnp.arange(2.0)), seen

    @program("batching.bdim_at_front")
    def _():
        x = jnp.arange(6).reshape(2, 3)
        return batching.bdim_at_front(x, 1, 3), batching.bdim_at_front(x, None, 4)

    @program("batching.broadcast")
    def _():
        x = jnp.arange(3)
        return batching.broadcast(x, 2, 0, None), batching.broadcast(x, 2, 1, None)

    @program("batching.defvectorized")
    def _():
        twice_p = doubling()
        batching.defvectorized(twice_p)
        x = jnp.arange(6.0).reshape(2, 3)
        return jax.vmap(twice_p.bind)(x), jax.vmap(twice_p.bind, in_axes=1, out_axes=1)(x)

    @program("batching.defbroadcasting")
    def _():
        times_p = product()
        batching.defbroadcasting(times_p)
        x = jnp.arange(3.0)
        both = jax.vmap(times_p.bind)(x, x)
        outer = jax.vmap(jax.vmap(times_p.bind, (None, 0)), (0, None))(x, x)
        return both, outer, jax.vmap(times_p.bind, (0, None))(x, 2.0)

    @program("batching.defreducer")
    def _():
        total_p = core.Primitive("total")
        total_p.def_impl(lambda x, *, axes: jnp.sum(x, axes))
        batching.defreducer(total_p)
        x = jnp.arange(24.0).reshape(2, 3, 4)
        summed = jax.vmap(lambda v: total_p.bind(v, axes=(0,)))(x)
        return summed, jax.vmap(lambda v: total_p.bind(v, axes=(1,)), in_axes=1)(x)

    class Column:
        """A column of values: what vmap is taught to map."""

        def __init__(self, values):
            self.values = values

    class Rows:
        """Where a column is mapped: at its rows."""

    def register():
        batching.register_vmappable(
            Column,
            Rows,
            int,
            lambda cont, index, column, spec: Column(cont(column.values, 0)),
            lambda cont, size, column, spec: Column(cont(size, column.values, 0)),
            None,
        )

    @program("batching.register_vmappable")
    def _():
        register()
        try:
            mapped = jax.vmap(
                lambda x: Column(2 * x.values), in_axes=Rows(), out_axes=Rows(), axis_size=3
            )(Column(jnp.arange(3.0)))
            return type(mapped).__name__, mapped.values
        finally:
            batching.unregister_vmappable(Column)

    @program("batching.unregister_vmappable")
    def _():
        register()
        batching.unregister_vmappable(Column)
        return jax.vmap(lambda x: 2 * x, axis_size=3)(Column(jnp.arange(3.0)))

    # Programs of values known in part

    closed = lambda: jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y) * y, y))(1.0, 2.0)

    @program("partial_eval.PartialVal")
    def _():
        known = partial_eval.PartialVal.known(3.0)
        unknown = partial_eval.PartialVal.unknown(scalar())
        shown = [(p.is_known(), p.get_known(), str(p.get_aval())) for p in (known, unknown)]
        merged = partial_eval.PartialVal((None, 2.0))
        return shown, merged.get_known(), known[1], isinstance(known, tuple), str(unknown[0])

    @program("partial_eval.PartialVal of two")
    def _():
        return partial_eval.PartialVal((1.0, 2.0))

    @program("partial_eval.trace_to_jaxpr_dynamic")
    def _():
        fun = wrapped(lambda x, y: [x + y, jnp.ones(2)], 1.0, 2.0)
        jaxpr, types, consts = partial_eval.trace_to_jaxpr_dynamic(fun, [scalar(), scalar()])[:3]
        return str(jaxpr), [str(t) for t in types], [np.asarray(c) for c in consts]

    @program("partial_eval.trace_to_jaxpr_nounits")
    def _():
        known = partial_eval.PartialVal.known(jnp.float32(3.0))
        unknown = partial_eval.PartialVal.unknown(scalar())
        fun = wrapped(lambda x, y: [lax.sin(x), lax.mul(x, y)], 1.0, 2.0)
        results = partial_eval.trace_to_jaxpr_nounits(fun, [known, unknown])
        jaxpr, values, consts = results
        shown = [(v.is_known(), v.get_known(), str(v.get_aval())) for v in values]
        both = partial_eval.trace_to_jaxpr_nounits(fun, [known, unknown], instantiate=True)
        return str(jaxpr), shown, consts, len(both[0].outvars), len(both[2])

    @program("partial_eval.dce_jaxpr")
    def _():
        jaxpr = closed().jaxpr
        chosen = ([True, False, False], [False, True, False], [False, False, False])
        kept = [partial_eval.dce_jaxpr(jaxpr, outs) for outs in chosen]
        all_inputs = partial_eval.dce_jaxpr(jaxpr, [False, True, False], instantiate=True)
        some = partial_eval.dce_jaxpr(jaxpr, [False, False, True], [True, False])
        return [(str(new), used) for new, used in [*kept, all_inputs, some]]

    @program("partial_eval.dce_jaxpr_consts")
    def _():
        a, b = np.arange(3.0, dtype="float32"), np.ones(3, "float32")
        made = jax.make_jaxpr(lambda x: (x * jnp.array(a), x + jnp.array(b)))(1.0)
        jaxpr, used_consts, used = partial_eval.dce_jaxpr_consts(made.jaxpr, [True, False])
        return str(jaxpr), used_consts, used

    @program("partial_eval.dce_rules")
    def _():
        twice_p, seen = doubling(), []

        def rule(used, eqn):
            seen.append((used, str(eqn)))
            return [True], eqn

        partial_eval.dce_rules[twice_p] = rule
        jaxpr = jax.make_jaxpr(lambda x: (twice_p.bind(x), x))(1.0).jaxpr
        kept = partial_eval.dce_jaxpr(jaxpr, [False, True])
        return str(kept[0]), kept[1], seen, lax.scan_p in partial_eval.dce_rules

    @program("partial_eval.dce_jaxpr_call_rule")
    def _():
        call_p = core.CallPrimitive("call of names")
        inner = jax.make_jaxpr(lambda x, y: (x + 1.0, y * 2.0))(1.0, 2.0).jaxpr
        outer = jax.make_jaxpr(lambda x, y: (x, y))(1.0, 2.0).jaxpr
        eqn = core.new_jaxpr_eqn(
            outer.invars, inner.outvars, call_p, {"call_jaxpr": inner}, frozenset()
        )
        used, new = partial_eval.dce_jaxpr_call_rule([True, False], eqn)
        none = partial_eval.dce_jaxpr_call_rule([False, False], eqn)
        return used, str(new.params["call_jaxpr"]), len(new.invars), len(new.outvars), none

    @program("partial_eval.dce_jaxpr_closed_call_rule")
    def _():
        call_p = core.CallPrimitive("closed call of names")
        inner = jax.make_jaxpr(lambda x, y: (x + 1.0, y * 2.0))(1.0, 2.0)
        outer = jax.make_jaxpr(lambda x, y: (x, y))(1.0, 2.0).jaxpr
        eqn = core.new_jaxpr_eqn(
            outer.invars, inner.jaxpr.outvars, call_p, {"call_jaxpr": inner}, frozenset()
        )
        used, new = partial_eval.dce_jaxpr_closed_call_rule([False, True], eqn)
        return used, str(new.params["call_jaxpr"]), len(new.invars), len(new.outvars)

    @program("partial_eval.custom_partial_eval_rules")
    def _():
        twice_p, seen = doubling(), []

        def rule(trace, x):
            seen.append((x.is_known(), str(x.aval)))
            return trace.default_process_primitive(twice_p, [x], {})

        partial_eval.custom_partial_eval_rules[twice_p] = rule
        unknown = partial_eval.PartialVal.unknown(scalar())
        fun = wrapped(lambda x: [twice_p.bind(x)], 1.0)
        jaxpr = partial_eval.trace_to_jaxpr_nounits(fun, [unknown])[0]
        return str(jaxpr), seen

    @program("partial_eval.partial_eval_jaxpr_custom_rules")
    def _():
        times_p, seen = product(), []
        ad.defbilinear(times_p, lambda ct, x, y: ct * y, lambda ct, x, y: ct * x)

        def rule(saveable, unknown, instantiated, eqn):
            seen.append((callable(saveable), unknown, len(instantiated), str(eqn.primitive)))
            residuals = [x for x, there in zip(eqn.invars, instantiated, strict=True) if not there]
            if any(unknown):
                return None, eqn, [True], [True], residuals
            return eqn, None, [False], [False], []

        table = partial_eval.partial_eval_jaxpr_custom_rules
        table[times_p] = rule
        f = jax.checkpoint(lambda x: times_p.bind(jnp.sin(x), x), policy=lambda *_, **__: True)
        derivative = jax.grad(f)(1.0)
        mixed = [call[0] for call in seen if any(call[1]) and not all(call[1])]
        return table[times_p] is rule, lax.scan_p in table, derivative, mixed[:1]

    @program("partial_eval.JaxprTracer")
    def _():
        twice_p, seen = doubling(), []

        def rule(trace, x):
            seen.append((isinstance(x, partial_eval.JaxprTracer), str(x.aval), x.is_known()))
            known = trace.new_const(5.0)
            seen.append((known.is_known(), known.pval.get_known(), len(known.parents)))
            return trace.instantiate_const(known)

        partial_eval.custom_partial_eval_rules[twice_p] = rule
        unknown = partial_eval.PartialVal.unknown(scalar())
        fun = wrapped(lambda x: [twice_p.bind(x)], 1.0)
        partial_eval.trace_to_jaxpr_nounits(fun, [unknown])
        return seen

    @program("partial_eval.DynamicJaxprTracer")
    def _():
        seen = []

        def look(x):
            seen.append((isinstance(x, partial_eval.DynamicJaxprTracer), str(x.aval)))
            return x

        jax.make_jaxpr(look)(1.0)
        return seen

    @program("partial_eval.Val")
    def _():
        return str(partial_eval.Val)

    # What compiles and runs

    @program("pxla.create_compile_options")
    def _():
        backend, lowered = jax.devices()[0].client, jax.jit(jnp.sin).lower(1.0)
        devices = np.array([[jax.devices()[0]]])
        options = pxla.create_compile_options(
            lowered.compiler_ir(), False, (False,), (False,), backend, devices, {}
        )
        build = options.executable_build_options
        return options.num_replicas, options.num_partitions, build.use_spmd_partitioning

    @program("xla.apply_primitive")
    def _():
        return xla.apply_primitive(lax.sin_p, jnp.float32(1.0), accuracy=None)

    @program("xla.canonicalize_dtype_handlers")
    def _():
        handler = xla.canonicalize_dtype_handlers[np.ndarray]
        return np.dtype(handler(np.arange(2)).dtype)

    @program("xla.Backend")
    def _():
        return xla.Backend.__name__, isinstance(jax.devices()[0].client, xla.Backend)

    return corpus
