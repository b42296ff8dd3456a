"""Each name of jax.{core, dtypes, ref, debug} in use; a program has the name of what it calls."""

import contextlib
import importlib
import io

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        core = dtypes = ref = debug = jax
    else:

        def door(name):
            return importlib.import_module(f"{jax.__name__}.{name}")

        core, dtypes, ref, debug = door("core"), door("dtypes"), door("ref"), door("debug")

    def program(name):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function)

    # core

    @program("core.ShapedArray")
    def _():
        aval = core.ShapedArray((2, 3), np.dtype("float32"), weak_type=True)
        flags = aval.shape, str(aval.dtype), aval.weak_type, aval.ndim, aval.size
        same = aval == core.ShapedArray((2, 3), np.dtype("float32")), aval.strip_weak_type() == aval
        more = str(aval.update(shape=(4,))), str(aval.str_short()), str(aval.to_tangent_aval())
        integer = core.ShapedArray((2,), np.dtype("int32")).to_tangent_aval()
        return str(aval), flags, same, more, str(integer), str(aval.strip_weak_type())

    @program("core.AbstractValue")
    def _():
        kinds = core.ShapedArray((), np.dtype("int8")), jax.typeof(1.0), 1.0
        return [isinstance(each, core.AbstractValue) for each in kinds]

    @program("core.Tracer")
    def _():
        seen = []

        def look(x):
            seen.append((isinstance(x, core.Tracer), isinstance(x, jax.Array), str(x.aval)))
            return x

        jax.jit(look)(1.0)
        jax.vmap(look)(jnp.ones(2))
        jax.grad(look)(1.0)
        return seen, isinstance(1.0, core.Tracer), isinstance(jnp.ones(1), core.Tracer)

    @program("core.Trace")
    def _():
        class Counting(core.Trace):
            """Counts operations and runs them as before."""

            count = 0

            def __init__(self, parent):
                super().__init__()
                self.parent = parent

            def process_primitive(self, primitive, tracers, params):
                Counting.count += 1
                return self.parent.process_primitive(primitive, tracers, params)

        extend = door("extend.core")
        one = jnp.float32(1.0)
        with extend.take_current_trace() as outside:
            trace = Counting(outside)
            with extend.set_current_trace(trace):
                result = lax.neg(lax.sin(one))
        return result, Counting.count

    @program("core.Atom")
    def _():
        jaxpr = jax.make_jaxpr(lambda x: x * 2.0)(1.0)
        return [type(atom).__name__ in str(core.Atom) for atom in jaxpr.eqns[0].invars]

    @program("core.Value")
    def _():
        def annotated(x: core.Value) -> core.Value:
            return x

        return annotated(1), len(annotated.__annotations__)

    @program("core.ParamDict")
    def _():
        return core.ParamDict(a=1)

    @program("core.ensure_compile_time_eval")
    def _():
        def f(x):
            with core.ensure_compile_time_eval():
                known = jnp.sin(2.0) > 0
                return x + (1.0 if known else 2.0), bool(known)

        return f(1.0), jax.jit(lambda x: f(x)[0])(1.0), str(jax.make_jaxpr(lambda x: f(x)[0])(1.0))

    @program("core.eval_context")
    def _():
        def f(x):
            with core.eval_context():
                return x + float(jnp.sin(2.0))

        return jax.jit(f)(1.0)

    @program("core.eval_jaxpr")
    def _():
        a = np.arange(3.0, dtype="float32")
        made = jax.make_jaxpr(lambda x: (jnp.sin(x), x + jnp.array(a)))(1.0)
        again = jax.make_jaxpr(lambda x: core.eval_jaxpr(made.jaxpr, made.consts, x))(1.0)
        return core.eval_jaxpr(made.jaxpr, made.consts, 2.0), len(again.eqns)

    @program("core.eval_jaxpr of literals")
    def _():
        made = jax.make_jaxpr(lambda x: (1.5, 2, True, 1j, x))(1.0)
        results = core.eval_jaxpr(made.jaxpr, made.consts, 2.0)
        return [(type(x).__name__, str(getattr(x, "dtype", None))) for x in results]

    @program("core.eval_jaxpr of too few")
    def _():
        made = jax.make_jaxpr(lambda x, y: x + y)(1.0, 2.0)
        return core.eval_jaxpr(made.jaxpr, made.consts, 2.0)

    @program("core.max_dim")
    def _():
        (a,) = jax.export.symbolic_shape("a")
        return core.max_dim(2, 3), str(core.max_dim(a, 1)), str(core.max_dim(a, 5))

    @program("core.min_dim")
    def _():
        (a,) = jax.export.symbolic_shape("a")
        return core.min_dim(2, 3), str(core.min_dim(a, 1)), str(core.min_dim(a, 5))

    # dtypes

    @program("dtypes.issubdtype")
    def _():
        kinds = "float32", "bfloat16", "int8", "bool", "complex64", "float8_e4m3fn", "int4"
        above = np.floating, np.integer, np.inexact, np.number, np.generic, np.complexfloating
        asked = [[dtypes.issubdtype(jnp.dtype(kind), each) for each in above] for kind in kinds]
        key = jax.random.key(0).dtype
        extended = [
            dtypes.issubdtype(key, d) for d in (dtypes.prng_key, dtypes.extended, np.number)
        ]
        return (
            asked,
            extended,
            dtypes.issubdtype("float32", "float32"),
            dtypes.issubdtype(float, int),
        )

    @program("dtypes.finfo")
    def _():
        names = "bits", "eps", "max", "min", "tiny", "smallest_subnormal", "nmant", "nexp", "maxexp"
        kinds = "float16", "bfloat16", "float32", "float8_e5m2", "complex64"
        found = [[float(getattr(dtypes.finfo(k), n)) for n in names] for k in kinds]
        return found, str(dtypes.finfo("bfloat16").dtype)

    @program("dtypes.iinfo")
    def _():
        kinds = "int8", "uint8", "int32", "uint32", "int4", "uint4", "int64"
        return [(dtypes.iinfo(k).min, dtypes.iinfo(k).max, dtypes.iinfo(k).bits) for k in kinds]

    @program("dtypes.iinfo of a float")
    def _():
        return dtypes.iinfo("float32")

    @program("dtypes.bfloat16")
    def _():
        return jnp.ones(1, dtypes.bfloat16), np.dtype(dtypes.bfloat16).itemsize

    @program("dtypes.float0")
    def _():
        zero = jax.grad(lambda x: 1.0, allow_int=True)(3)
        return zero.dtype == dtypes.float0, np.zeros(2, dtypes.float0).shape

    @program("dtypes.canonicalize_dtype")
    def _():
        kinds = "float64", "int64", "uint64", "complex128", "float32", float, int, bool, "bfloat16"
        narrow = [dtypes.canonicalize_dtype(k) for k in kinds]
        with jax.enable_x64(True):
            wide = [dtypes.canonicalize_dtype(k) for k in kinds]
        key = jax.random.key(0).dtype
        return narrow, wide, str(dtypes.canonicalize_dtype(key, allow_extended_dtype=True))

    @program("dtypes.canonicalize_dtype of keys")
    def _():
        return dtypes.canonicalize_dtype(jax.random.key(0).dtype)

    @program("dtypes.result_type")
    def _():
        some = (1, 2.0), ("int8", 1.0), (np.int8(1), 3), (jnp.ones(1, "bfloat16"), "float16")
        plain = [dtypes.result_type(*each) for each in some]
        weak = [dtypes.result_type(*each, return_weak_type_flag=True) for each in some]
        return plain, weak

    @program("dtypes.result_type of nothing")
    def _():
        return dtypes.result_type()

    @program("dtypes.TypePromotionError")
    def _():
        with jax.numpy_dtype_promotion("strict"):
            return dtypes.result_type("int8", "float32")

    @program("dtypes.itemsize_bits")
    def _():
        kinds = "int4", "int8", "bool", "float32", "complex64", "float8_e4m3fn", "bfloat16"
        return [dtypes.itemsize_bits(jnp.dtype(k)) for k in kinds]

    @program("dtypes.scalar_type_of")
    def _():
        values = 1, 2.0, True, 1j, np.int8(1), jnp.ones(1, "bfloat16"), np.ones(1, "complex64")
        return [dtypes.scalar_type_of(v).__name__ for v in values]

    @program("dtypes.scalar_type_of a string")
    def _():
        return dtypes.scalar_type_of("a")

    @program("dtypes.prng_key")
    def _():
        key = jax.random.key(0).dtype
        return dtypes.issubdtype(key, dtypes.prng_key), issubclass(dtypes.prng_key, np.generic)

    @program("dtypes.extended")
    def _():
        key = jax.random.key(0).dtype
        return dtypes.issubdtype(key, dtypes.extended), issubclass(dtypes.prng_key, dtypes.extended)

    # ref

    @program("ref.new_ref")
    def _():
        r = ref.new_ref(jnp.arange(3.0))
        r[1] = 5.0
        return r[...], str(jax.typeof(r)), r.shape, r.dtype, isinstance(r, ref.Ref)

    @program("ref.Ref")
    def _():
        r = ref.new_ref(jnp.arange(6.0).reshape(2, 3))
        r[0, 1:] += 1.0
        return r[...], r.ndim, r.size, type(r).__name__, isinstance(1.0, ref.Ref), len(r)

    @program("ref.AbstractRef")
    def _():
        aval = ref.AbstractRef(core.ShapedArray((2,), np.dtype("float32")))
        made = jax.make_jaxpr(lambda r: r[...])(ref.new_ref(jnp.ones(2)))
        same = made.in_avals[0] == aval, isinstance(made.in_avals[0], ref.AbstractRef)
        return str(aval), aval.shape, str(aval.inner_aval), str(made), same

    @program("ref.empty_ref")
    def _():
        def f(x):
            r = ref.empty_ref(jax.ShapeDtypeStruct((2,), jnp.float32))
            r[...] = x
            return r[...] + 1

        return jax.jit(f)(jnp.ones(2))

    @program("ref.free_ref")
    def _():
        def f(x):
            r = ref.new_ref(x)
            y = r[0]
            ref.free_ref(r)
            return y

        return f(jnp.ones(2)), jax.jit(f)(jnp.ones(2))

    @program("ref.freeze")
    def _():
        def f(x):
            r = ref.new_ref(x)
            r[0] = 9.0
            return ref.freeze(r)

        return f(jnp.ones(2)), jax.jit(f)(jnp.ones(2)), str(jax.make_jaxpr(f)(jnp.ones(2)))

    @program("ref.get")
    def _():
        r = ref.new_ref(jnp.arange(6.0).reshape(2, 3))
        return ref.get(r), ref.get(r, 0), ref.get(r, (1, slice(1, 3))), ref.get(r, (..., 2))

    @program("ref.set")
    def _():
        r = ref.new_ref(jnp.arange(6.0).reshape(2, 3))
        nothing = ref.set(r, (0, 1), 9.0), ref.set(r, 1, jnp.ones(3))
        return nothing, r[...], ref.set(r, None, jnp.zeros((2, 3)))

    @program("ref.swap")
    def _():
        r = ref.new_ref(jnp.arange(3.0))
        return ref.swap(r, 1, 9.0), ref.swap(r, slice(0, 2), jnp.ones(2)), r[...]

    @program("ref.addupdate")
    def _():
        r = ref.new_ref(jnp.arange(3.0))
        nothing = ref.addupdate(r, 1, 9.0), ref.addupdate(r, (), jnp.ones(3))
        jaxpr = jax.make_jaxpr(lambda r: ref.addupdate(r, 0, 1.0))(r)
        return nothing, r[...], str(jaxpr)

    # debug

    def printed(function, *args):
        with contextlib.redirect_stdout(io.StringIO()) as text:
            function(*args)
            jax.effects_barrier()
        return text.getvalue()

    @program("debug.print")
    def _():
        f = jax.jit(lambda x: debug.print("x={x} {}", 5, x=x, ordered=True))
        return printed(f, 1.0), printed(jax.vmap(lambda x: debug.print("{}", x)), jnp.arange(2))

    @program("debug.print of a wrong format")
    def _():
        return debug.print("{} {}", 1)

    @program("debug.callback")
    def _():
        seen = []
        jax.jit(lambda x: debug.callback(lambda *a, **k: seen.append((a, k)), x, y=2 * x))(1.0)
        jax.effects_barrier()
        return seen

    @program("debug.log")
    def _():
        return debug.log("x={}", 1.0), len(
            jax.make_jaxpr(lambda x: debug.log("{}", x))(1.0).effects
        )

    @program("debug.DebugEffect")
    def _():
        effects = jax.make_jaxpr(lambda x: debug.print("{}", x))(1.0).effects
        return [isinstance(e, debug.DebugEffect) for e in effects], str(debug.DebugEffect())

    @program("debug.OrderedDebugEffect")
    def _():
        effects = jax.make_jaxpr(lambda x: debug.print("{}", x, ordered=True))(1.0).effects
        return [isinstance(e, debug.OrderedDebugEffect) for e in effects]

    @program("debug.inspect_array_sharding")
    def _():
        seen = []
        look = lambda s: seen.append(type(s).__name__)
        debug.inspect_array_sharding(jnp.ones(2), callback=look)
        jax.jit(lambda x: (debug.inspect_array_sharding(x, callback=look), x + 1)[1])(jnp.ones(2))
        return seen

    return corpus
