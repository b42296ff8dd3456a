"""Each name of jax.extend in use, but those of linear_util; a program has the name it calls."""

import functools
import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        core = linear_util = backend = source_info_util = api_util = prng = lowering = jax
    else:

        def door(name):
            return importlib.import_module(f"{jax.__name__}.{name}")

        core, linear_util = door("extend.core"), door("extend.linear_util")
        backend, source_info_util = door("extend.backend"), door("extend.source_info_util")
        api_util, prng, lowering = door("api_util"), door("extend.random"), door("extend.lowering")

    def program(name):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function)

    def wrapped(function, *args):
        info = api_util.debug_info("names", function, args, {})
        return linear_util.wrap_init(function, debug_info=info)

    scalar = lambda: jax.typeof(jnp.float32(1.0))
    closed = lambda: jax.make_jaxpr(lambda x: jnp.sin(x) * 2.0)(1.0)

    # extend.core

    @program("core.Primitive")
    def _():
        p = core.Primitive("fresh")
        flags = p.multiple_results, p.call_primitive
        return str(p), p.name, flags, p.get_bind_params({"a": 1})

    @program("core.CallPrimitive")
    def _():
        call = core.CallPrimitive("callers")
        flags = call.multiple_results, call.call_primitive, str(call)
        info = api_util.debug_info("names", jnp.sin, (1.0,), {})
        fun = linear_util.wrap_init(lambda x: [x * 2.0], debug_info=info)
        call.def_impl(core.call_impl)
        return flags, call.bind(jnp.float32(3.0), subfuns=(fun,))

    @program("core.call_impl")
    def _():
        return core.call_impl(wrapped(lambda x: [x + 1.0], 1.0), 2.0)

    @program("core.Jaxpr")
    def _():
        old = closed().jaxpr
        made = core.Jaxpr((), old.invars, old.outvars, old.eqns)
        return str(made), str(made.effects), len(made.constvars), str(made.replace(eqns=[]))

    @program("core.ClosedJaxpr")
    def _():
        made = closed()
        again = core.ClosedJaxpr(made.jaxpr, made.consts)
        avals = [str(a) for a in (*again.in_avals, *again.out_avals)]
        return str(again), avals, again.literals, len(again.eqns), len(again.effects)

    @program("core.JaxprEqn")
    def _():
        eqn = closed().eqns[0]
        new = eqn.replace(params={})
        return isinstance(eqn, core.JaxprEqn), str(eqn.primitive), new.params, len(new.outvars)

    @program("core.new_jaxpr_eqn")
    def _():
        old = closed().jaxpr
        eqn = core.new_jaxpr_eqn(
            old.invars, old.eqns[0].outvars, lax.cos_p, {"accuracy": None}, core.no_effects
        )
        jaxpr = old.replace(eqns=[eqn, *old.eqns[1:]])
        return str(jaxpr), jax.core.eval_jaxpr(jaxpr, (), 1.0)

    @program("core.Var")
    def _():
        var = core.Var(scalar())
        return (
            str(var.aval),
            isinstance(closed().jaxpr.invars[0], core.Var),
            var == core.Var(scalar()),
        )

    @program("core.DropVar")
    def _():
        var = core.DropVar(scalar())
        return str(var), str(var.aval), isinstance(var, core.Var)

    @program("core.Literal")
    def _():
        literal = core.Literal(np.float32(2.0), scalar())
        found = closed().eqns[1].invars[1]
        return str(literal), literal.val, str(literal.aval), isinstance(found, core.Literal)

    @program("core.gensym")
    def _():
        new = core.gensym()
        a, b = new(scalar()), new(scalar())
        return isinstance(a, core.Var), str(a.aval), a is b

    @program("core.DebugInfo")
    def _():
        info = closed().jaxpr.debug_info
        made = core.DebugInfo("names", "f at here.py:1", ("x",), ("result",))
        return isinstance(info, core.DebugInfo), made.traced_for, made.func_src_info, made.arg_names

    @program("core.Effect")
    def _():
        class Mine(core.Effect):
            """An effect of a package."""

        return isinstance(Mine(), core.Effect), str(core.no_effects | {1})

    @program("core.Effects")
    def _():
        return core.Effects.__args__[0] is core.Effect

    @program("core.no_effects")
    def _():
        return str(core.no_effects), closed().effects == core.no_effects

    @program("core.Token")
    def _():
        token = jax.jit(lambda: lax.create_token())()
        jax.block_until_ready(token)
        return isinstance(token, core.Token), type(token).__name__

    @program("core.AbstractToken")
    def _():
        token = core.AbstractToken()
        shapes = jax.eval_shape(lambda: (lax.create_token(), 1))
        return repr(token), str(shapes), repr(jax.jit(lambda: lax.create_token()).eval_shape())

    @program("core.TraceTag")
    def _():
        return type(core.TraceTag()).__name__, core.TraceTag() == core.TraceTag()

    @program("core.JaxprTypeError")
    def _():
        return issubclass(core.JaxprTypeError, TypeError)

    @program("core.InconclusiveDimensionOperation")
    def _():
        return issubclass(core.InconclusiveDimensionOperation, Exception)

    @program("core.array_types")
    def _():
        kinds = np.ndarray, np.float32, np.int8, np.bool_, float, str
        return [kind in core.array_types for kind in kinds], type(jnp.ones(1)) in core.array_types

    @program("core.check_jaxpr")
    def _():
        return core.check_jaxpr(closed().jaxpr)

    @program("core.check_jaxpr of a wrong one")
    def _():
        old = closed().jaxpr
        return core.check_jaxpr(old.replace(eqns=old.eqns[1:]))

    @program("core.concrete_or_error")
    def _():
        found = core.concrete_or_error(int, np.int32(3)), core.concrete_or_error(None, 2.0)
        return found, core.concrete_or_error(bool, jnp.array(True))

    @program("core.concrete_or_error of a tracer")
    def _():
        return jax.jit(lambda x: core.concrete_or_error(int, x, "names of this"))(1)

    @program("core.find_top_trace")
    def _():
        top = jax.jit(lambda x: (types_seen.append(type(core.find_top_trace((x,))).__name__), x)[1])
        types_seen = []
        top(1.0)
        return core.find_top_trace(()) is core.take_trace() if hasattr(core, "take_trace") else True

    @program("core.get_opaque_trace_state")
    def _():
        outside, seen = core.get_opaque_trace_state(), []
        jax.jit(lambda x: (seen.append(core.get_opaque_trace_state()), x)[1])(1.0)
        same = outside == core.get_opaque_trace_state()
        return same, outside == seen[0], core.get_opaque_trace_state(convention="nnx") == outside

    @program("core.jaxpr_as_fun")
    def _():
        return core.jaxpr_as_fun(closed())(1.0), core.jaxpr_as_fun(closed(), 2.0)()

    @program("core.jaxprs_in_params")
    def _():
        eqn = jax.make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0).eqns[-1]
        found = list(core.jaxprs_in_params(eqn.params))
        return [str(jaxpr) for jaxpr in found], list(core.jaxprs_in_params({"a": 1}))

    @program("core.subjaxprs")
    def _():
        jaxpr = jax.make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, jax.jit(jnp.cos), x))(1.0).jaxpr
        return [str(inner) for inner in core.subjaxprs(jaxpr)]

    @program("core.mapped_aval")
    def _():
        aval = jax.typeof(jnp.ones((3, 4)))
        return str(core.mapped_aval(3, 0, aval)), str(core.mapped_aval(4, 1, aval))

    @program("core.unmapped_aval")
    def _():
        aval = jax.typeof(jnp.ones((3, 4)))
        return [str(core.unmapped_aval(5, axis, aval)) for axis in (0, 1, 2, None)]

    @program("core.nonempty_axis_env_DO_NOT_USE")
    def _():
        seen = [core.nonempty_axis_env_DO_NOT_USE()]
        look = lambda x: (seen.append(core.nonempty_axis_env_DO_NOT_USE()), x)[1]
        jax.vmap(look)(jnp.ones(2))
        jax.vmap(look, axis_name="i")(jnp.ones(2))
        jax.jit(look)(1.0)
        return seen

    @program("core.unsafe_am_i_under_a_jit_DO_NOT_USE")
    def _():
        ask, seen = core.unsafe_am_i_under_a_jit_DO_NOT_USE, []
        look = lambda x: (seen.append(ask()), x)[1]
        look(1.0)
        jax.jit(look)(1.0)
        jax.vmap(look)(jnp.ones(2))
        jax.grad(look)(1.0)
        jax.jit(jax.vmap(look))(jnp.ones(2))
        return seen

    @program("core.unsafe_am_i_under_a_vmap_DO_NOT_USE")
    def _():
        ask, seen = core.unsafe_am_i_under_a_vmap_DO_NOT_USE, []
        look = lambda x: (seen.append(ask()), x)[1]
        look(1.0)
        jax.jit(look)(1.0)
        jax.vmap(look)(jnp.ones(2))
        jax.vmap(jax.jit(look))(jnp.ones(2))
        jax.vmap(jax.grad(look))(jnp.ones(2))
        return seen

    @program("core.unsafe_get_axis_names_DO_NOT_USE")
    def _():
        ask, seen = core.unsafe_get_axis_names_DO_NOT_USE, []
        look = lambda x: (seen.append([str(n) for n in ask()]), x)[1]
        look(1.0)
        jax.vmap(jax.vmap(look, axis_name="j"), axis_name="i")(jnp.ones((2, 2)))
        jax.vmap(look, axis_name="i")(jnp.ones(2))
        return seen

    @program("core.primal_dtype_to_tangent_dtype")
    def _():
        kinds = "float32", "bfloat16", "int32", "bool", "complex64"
        return [str(core.primal_dtype_to_tangent_dtype(np.dtype(jnp.dtype(k)))) for k in kinds]

    @program("core.set_current_trace")
    def _():
        with core.take_current_trace() as outside:
            with core.set_current_trace(outside):
                return jnp.sin(jnp.float32(1.0))

    @program("core.take_current_trace")
    def _():
        def look(x):
            with core.take_current_trace() as trace:
                kind = trace is not None
            return kind, x * 2

        seen = []
        jax.jit(lambda x: seen.append(look(x)[0]) or x)(1.0)
        return seen

    @program("core.valid_jaxtype")
    def _():
        values = 1, 2.0, True, 1j, np.ones(2), np.array("a"), "a", None, object(), [1], jnp.ones(1)
        return [core.valid_jaxtype(value) for value in values]

    # extend.backend

    @program("backend.backends")
    def _():
        return "cpu" in backend.backends(), backend.backends()["cpu"] is jax.devices("cpu")[
            0
        ].client

    @program("backend.get_backend")
    def _():
        client = backend.get_backend()
        return (
            client.platform,
            backend.get_backend("cpu") is client,
            backend.get_backend(client) is client,
        )

    @program("backend.get_backend of none")
    def _():
        return backend.get_backend("no_such_platform")

    @program("backend.backend_xla_version")
    def _():
        return backend.backend_xla_version(), backend.backend_xla_version("cpu")

    @program("backend.get_default_device")
    def _():
        plain = str(backend.get_default_device())
        with jax.default_device(jax.devices()[-1]):
            return plain, backend.get_default_device() is jax.devices()[-1]

    @program("backend.get_compile_options")
    def _():
        options = backend.get_compile_options(1, 1)
        assigned = backend.get_compile_options(1, 1, device_assignment=[0])
        build = assigned.executable_build_options
        return (
            options.num_replicas,
            options.num_partitions,
            build.num_replicas,
            build.debug_options is not None,
        )

    @program("backend.clear_in_memory_compilation_cache")
    def _():
        return backend.clear_in_memory_compilation_cache()

    @program("backend.register_backend_cache")
    def _():
        return backend.register_backend_cache(functools.cache(lambda: None), "names")

    @program("backend.register_backend_factory")
    def _():
        backend.register_backend_factory("names_of_tests", lambda: None, priority=-100)
        return "names_of_tests" in backend.backends()

    # source_info_util

    @program("source_info_util.NameStack")
    def _():
        stack = source_info_util.NameStack()
        longer = stack.extend("a").extend("b").transform("jvp")
        return (
            str(stack),
            str(longer),
            str(longer + stack.extend("c")),
            len(longer),
            str(longer[:1]),
        )

    @program("source_info_util.SourceInfo")
    def _():
        info = closed().eqns[0].source_info
        made = source_info_util.SourceInfo(None, source_info_util.new_name_stack("a"))
        same = isinstance(info, source_info_util.SourceInfo)
        return (
            same,
            str(made.name_stack),
            made.traceback,
            str(made.replace(traceback=None).name_stack),
        )

    @program("source_info_util.current")
    def _():
        with source_info_util.extend_name_stack("outer"):
            info = source_info_util.current()
        return (
            str(info.name_stack),
            info.traceback is None,
            str(source_info_util.current().name_stack),
        )

    @program("source_info_util.current_name_stack")
    def _():
        with jax.named_scope("scope"):
            return str(source_info_util.current_name_stack())

    @program("source_info_util.extend_name_stack")
    def _():
        with source_info_util.extend_name_stack("a") as stack, jax.named_scope("b"):
            found = jax.make_jaxpr(jnp.sin)(1.0).eqns[0].source_info.name_stack
            return str(stack), str(found), str(source_info_util.current_name_stack())

    @program("source_info_util.new_name_stack")
    def _():
        return str(source_info_util.new_name_stack()), str(source_info_util.new_name_stack("a"))

    @program("source_info_util.new_source_info")
    def _():
        info = source_info_util.new_source_info()
        return str(info.name_stack), info.traceback

    @program("source_info_util.register_exclusion")
    def _():
        return source_info_util.register_exclusion("/a/path/of/no/file")

    @program("source_info_util.reset_name_stack")
    def _():
        with jax.named_scope("a"), source_info_util.reset_name_stack():
            return str(source_info_util.current_name_stack())

    @program("source_info_util.set_name_stack")
    def _():
        stack = source_info_util.new_name_stack("mine")
        with source_info_util.set_name_stack(stack), jax.named_scope("b"):
            return str(source_info_util.current_name_stack())

    @program("source_info_util.summarize")
    def _():
        info = closed().eqns[0].source_info
        text = source_info_util.summarize(info)
        return text.split("/")[-1].split(":")[0], source_info_util.summarize(
            source_info_util.new_source_info()
        )

    @program("source_info_util.transform_name_stack")
    def _():
        with source_info_util.transform_name_stack("mine"), jax.named_scope("b"):
            return str(source_info_util.current_name_stack())

    @program("source_info_util.user_context")
    def _():
        traceback, stack = closed().eqns[0].source_info.traceback, source_info_util.NameStack()
        with source_info_util.user_context(traceback, name_stack=stack.extend("mine")):
            return str(source_info_util.current().name_stack)

    # extend.random and extend.lowering

    @program("random.threefry_2x32")
    def _():
        keys = jnp.array([1, 2], "uint32")
        return prng.threefry_2x32(keys, jnp.arange(3, dtype="uint32"))

    @program("random.threefry2x32_p")
    def _():
        ones = jnp.ones(2, "uint32")
        return prng.threefry2x32_p.bind(ones, ones, ones, ones), str(prng.threefry2x32_p)

    @program("random.random_seed")
    def _():
        keys = prng.random_seed(jnp.arange(2), prng.threefry_prng_impl)
        return jax.random.key_data(keys), keys.shape, str(keys.dtype)

    @program("random.seed_with_impl")
    def _():
        return jax.random.key_data(prng.seed_with_impl(prng.threefry_prng_impl, 5))

    for name in ("threefry_prng_impl", "rbg_prng_impl", "unsafe_rbg_prng_impl"):

        @program(f"random.{name}")
        def _(name=name):
            impl = getattr(prng, name)
            key = jax.random.wrap_key_data(jnp.arange(impl.key_shape[0], dtype="uint32"), impl=impl)
            return impl.key_shape, impl.name, jax.random.bits(key, (2,)), str(key.dtype)

    @program("random.define_prng_impl")
    def _():
        impl = prng.define_prng_impl(
            key_shape=(1,),
            seed=lambda seed: jnp.asarray(seed, "uint32").reshape(1),
            split=lambda key, shape: jnp.broadcast_to(key, (*shape, 1)) + 1,
            random_bits=lambda key, width, shape: jnp.broadcast_to(key[0], shape),
            fold_in=lambda key, value: key + jnp.asarray(value, "uint32"),
            name="names",
            tag="nm",
        )
        key = jax.random.key(4, impl=impl)
        folded = jax.random.key_data(jax.random.fold_in(key, 3))
        return jax.random.key_data(key), folded, jax.random.bits(key, (2,)), str(key.dtype)

    @program("lowering.JaxIrContext")
    def _():
        with lowering.JaxIrContext() as context:
            return type(context).__name__

    @program("lowering.upstream_dialects")
    def _():
        return type(lowering.upstream_dialects).__name__

    return corpus
