"""Each name of jax.{stages, sharding, profiler, ffi} in use; a program has the name it calls."""

import importlib
import pathlib
import tempfile

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        stages = sharding = profiler = ffi = jax
    else:

        def door(name):
            return importlib.import_module(f"{jax.__name__}.{name}")

        stages, sharding = door("stages"), door("sharding")
        profiler, ffi = door("profiler"), door("ffi")

    def program(name):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function)

    # stages

    lowered = lambda: jax.jit(lambda x, y: x + y, donate_argnums=0).lower(1.0, jnp.ones(2))

    @program("stages.ArgInfo")
    def _():
        info = jax.tree.leaves(lowered().args_info, is_leaf=lambda x: isinstance(x, stages.ArgInfo))
        return [(str(i.shape), i.dtype, i.donated, type(i).__name__) for i in info]

    @program("stages.Wrapped")
    def _():
        f = jax.jit(jnp.sin)
        return (
            isinstance(f, stages.Wrapped),
            isinstance(jnp.sin, stages.Wrapped),
            f.lower(1.0) is None,
        )

    @program("stages.Traced")
    def _():
        traced = jax.jit(lambda x: x * 2.0).trace(1.0)
        flags = isinstance(traced, stages.Traced), traced.fun_name, str(traced.jaxpr)
        return flags, str(traced.out_info), isinstance(traced.lower(), stages.Lowered)

    @program("stages.Lowered")
    def _():
        found = lowered()
        dialect = type(found.compiler_ir()).__name__, found.compiler_ir("hlo") is not None
        trees = str(found.in_tree), str(found.out_tree), str(found.out_info), found.donate_argnums
        cost = sorted(found.cost_analysis())[:1]
        return isinstance(found, stages.Lowered), dialect, trees, cost, found.as_text()[:6]

    @program("stages.Lowered of no dialect")
    def _():
        return lowered().compiler_ir("no_such_dialect")

    @program("stages.Compiled")
    def _():
        compiled = jax.jit(lambda x: jnp.sin(x) + 1).lower(jnp.ones(4)).compile()
        memory = compiled.memory_analysis()
        sizes = memory.argument_size_in_bytes, memory.output_size_in_bytes
        flags = isinstance(compiled, stages.Compiled), compiled.as_text()[:9]
        return flags, compiled(jnp.zeros(4)), sizes, "flops" in compiled.cost_analysis()

    @program("stages.CompilerOptions")
    def _():
        options: stages.CompilerOptions = {"xla_embed_ir_in_executable": True}
        return jax.jit(lambda x: x + 1).lower(1.0).compile(compiler_options=options)(1.0)

    # sharding

    mesh = lambda: sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    explicit = lambda: jax.make_mesh((1,), ("x",))

    @program("sharding.Mesh")
    def _():
        m = mesh()
        flags = m.size, dict(m.shape), m.axis_names, m.empty, m.ndim if hasattr(m, "ndim") else 1
        return (
            flags,
            str(m),
            m == mesh(),
            hash(m) == hash(mesh()),
            m.devices.shape,
            m.is_multi_process,
        )

    @program("sharding.AbstractMesh")
    def _():
        m = sharding.AbstractMesh((2, 3), ("x", "y"))
        more = m.size, dict(m.shape), m.axis_names, str(m.axis_types), m == mesh().abstract_mesh
        return str(m), more, str(m.update(axis_names=("a", "b")))

    @program("sharding.AbstractDevice")
    def _():
        device = sharding.AbstractDevice("some", 2, "tpu")
        m = sharding.AbstractMesh((2,), ("x",), abstract_device=device)
        return device.device_kind, device.num_cores, device.platform, m.abstract_device == device

    @program("sharding.AxisType")
    def _():
        types = [sharding.AxisType.Auto, sharding.AxisType.Explicit, sharding.AxisType.Manual]
        return [str(t) for t in types], types[0] == sharding.AxisType.Auto

    @program("sharding.ManualAxisType")
    def _():
        kind = sharding.ManualAxisType(varying=frozenset({"x"}))
        other = sharding.ManualAxisType(unreduced=frozenset({"x"}))
        return str(kind), sorted(kind.varying), sorted(other.unreduced), kind == other

    @program("sharding.NamedSharding")
    def _():
        s = sharding.NamedSharding(mesh(), sharding.PartitionSpec("x"))
        flags = s.is_fully_replicated, s.is_fully_addressable, s.memory_kind, s.num_devices
        maps = s.shard_shape((4,)), s.devices_indices_map((4,))[jax.devices()[0]]
        same = s == sharding.NamedSharding(mesh(), sharding.PartitionSpec("x"))
        return (
            str(s),
            flags,
            str(maps),
            same,
            s.is_equivalent_to(s, 1),
            str(s.with_memory_kind("device")),
        )

    @program("sharding.NamedSharding of no axis")
    def _():
        return sharding.NamedSharding(mesh(), sharding.PartitionSpec("y"))

    @program("sharding.PartitionSpec")
    def _():
        spec = sharding.PartitionSpec("x", None, ("y", "z"))
        return str(spec), len(spec), spec[2], list(spec), str(spec.UNCONSTRAINED), spec == spec

    @program("sharding.SingleDeviceSharding")
    def _():
        s = sharding.SingleDeviceSharding(jax.devices()[0])
        return str(s), s.shard_shape((4,)), s.is_fully_replicated, isinstance(s, sharding.Sharding)

    @program("sharding.make_single_device_sharding")
    def _():
        s = sharding.make_single_device_sharding(jax.devices()[0])
        return type(s).__name__, str(s), jax.device_put(1.0, s)

    @program("sharding.Sharding")
    def _():
        kinds = sharding.NamedSharding, sharding.SingleDeviceSharding, sharding.Mesh
        return [issubclass(kind, sharding.Sharding) for kind in kinds]

    @program("sharding.set_mesh")
    def _():
        with jax.set_mesh(explicit()):
            inside = str(sharding.get_mesh()), str(sharding.get_abstract_mesh())
        return inside, str(sharding.get_abstract_mesh()), sharding.get_mesh().empty

    @program("sharding.get_mesh")
    def _():
        with sharding.set_mesh(explicit()):
            return jax.jit(lambda x: (str(sharding.get_mesh()), x)[1])(1.0)

    @program("sharding.get_abstract_mesh")
    def _():
        seen = []
        with sharding.set_mesh(explicit()):
            jax.jit(lambda x: (seen.append(str(sharding.get_abstract_mesh())), x)[1])(1.0)
        return seen, sharding.get_abstract_mesh().empty

    @program("sharding.use_abstract_mesh")
    def _():
        with sharding.use_abstract_mesh(sharding.AbstractMesh((2,), ("x",))):
            return str(sharding.get_abstract_mesh())

    @program("sharding.reshard")
    def _():
        with sharding.set_mesh(explicit()):
            x = sharding.reshard(jnp.arange(4.0), sharding.PartitionSpec("x"))
            return x, str(jax.typeof(x)), str(x.sharding.spec)

    @program("sharding.auto_axes")
    def _():
        with sharding.set_mesh(explicit()):
            f = sharding.auto_axes(lambda x: x * 2, out_sharding=sharding.PartitionSpec("x"))
            y = f(sharding.reshard(jnp.arange(4.0), sharding.PartitionSpec("x")))
            return y, str(jax.typeof(y))

    @program("sharding.explicit_axes")
    def _():
        with sharding.set_mesh(jax.make_mesh((1,), ("x",), axis_types=(sharding.AxisType.Auto,))):
            f = sharding.explicit_axes(lambda x: x * 2, in_sharding=sharding.PartitionSpec("x"))
            return jax.jit(f)(jnp.arange(4.0))

    # profiler

    @program("profiler.TraceAnnotation")
    def _():
        with profiler.TraceAnnotation("names", step=1) as entered:
            return type(entered).__name__, profiler.TraceAnnotation.is_enabled()

    @program("profiler.StepTraceAnnotation")
    def _():
        with profiler.StepTraceAnnotation("train", step_num=3):
            return issubclass(profiler.StepTraceAnnotation, profiler.TraceAnnotation)

    @program("profiler.annotate_function")
    def _():
        @profiler.annotate_function
        def plain(x):
            return x + 1

        named = profiler.annotate_function(lambda x: x * 2, name="named", step=1)
        return plain(1), plain.__name__, named(2)

    @program("profiler.trace")
    def _():
        with tempfile.TemporaryDirectory() as folder:
            with profiler.trace(folder):
                jnp.sin(jnp.ones(3)).block_until_ready()
            found = sorted(pathlib.Path(folder).rglob("*.xplane.pb"))
            read = profiler.ProfileData.from_file(str(found[0]))
            planes = [plane.name for plane in read.planes]
            return len(found), "/host:CPU" in planes

    @program("profiler.start_trace")
    def _():
        with tempfile.TemporaryDirectory() as folder:
            profiler.start_trace(folder)
            try:
                profiler.start_trace(folder)
            except Exception as error:
                again = type(error).__name__
            profiler.stop_trace()
            return again, len(list(pathlib.Path(folder).rglob("*.xplane.pb")))

    @program("profiler.stop_trace")
    def _():
        return profiler.stop_trace()

    @program("profiler.ProfileOptions")
    def _():
        options = profiler.ProfileOptions()
        options.host_tracer_level = 1
        options.python_tracer_level = 0
        with tempfile.TemporaryDirectory() as folder:
            with profiler.trace(folder, profiler_options=options):
                jnp.sin(jnp.ones(3)).block_until_ready()
            return options.host_tracer_level, len(list(pathlib.Path(folder).rglob("*.xplane.pb")))

    @program("profiler.ProfileData")
    def _():
        kinds = profiler.ProfileData, profiler.ProfilePlane, profiler.ProfileEvent
        return [kind.__name__ for kind in kinds], hasattr(
            profiler.ProfileData, "from_serialized_xspace"
        )

    @program("profiler.device_memory_profile")
    def _():
        found = profiler.device_memory_profile()
        return type(found).__name__, len(found) > 0, found[:2] == b"\x1f\x8b"

    @program("profiler.save_device_memory_profile")
    def _():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "memory.prof"
            return profiler.save_device_memory_profile(str(path)), path.stat().st_size > 0

    @program("profiler.stop_server")
    def _():
        return profiler.stop_server()

    # ffi

    @program("ffi.ffi_call of no target")
    def _():
        call = ffi.ffi_call("no_such_target_of_names", jax.ShapeDtypeStruct((2,), jnp.float32))
        return str(jax.make_jaxpr(call)(jnp.ones(2)).eqns[0].primitive), call(jnp.ones(2))

    @program("ffi.ffi_lowering")
    def _():
        doubled_p = door("extend.core").Primitive("doubled of names")
        doubled_p.def_abstract_eval(lambda x: x)
        rule = ffi.ffi_lowering("names_target", has_side_effect=True)
        door("interpreters.mlir").register_lowering(doubled_p, rule)
        text = jax.jit(doubled_p.bind).lower(jnp.ones(2)).as_text()
        return "@names_target" in text, "has_side_effect = true" in text

    @program("ffi.include_dir")
    def _():
        folder = pathlib.Path(ffi.include_dir())
        return sorted(p.name for p in (folder / "xla" / "ffi" / "api").iterdir())

    @program("ffi.pycapsule")
    def _():
        import ctypes

        return type(ffi.pycapsule(ctypes.CDLL(None).printf)).__name__

    @program("ffi.register_ffi_target")
    def _():
        return ffi.register_ffi_target("names_of_nothing", object(), platform="cpu")

    @program("ffi.register_ffi_target_as_batch_partitionable")
    def _():
        return ffi.register_ffi_target_as_batch_partitionable("names_target_in_batches")

    @program("ffi.register_ffi_type")
    def _():
        return ffi.register_ffi_type("names_type", {"type_id": object()}, platform="cpu")

    corpus.add(
        "ffi.register_ffi_type_id",
        lambda: ffi.register_ffi_type_id("names_type_id", object(), platform="cpu"),
        instead="JaxRuntimeError",  # jax 0.10.2 refuses it with its jaxlib, whatever the object.
    )

    @program("ffi.build_ffi_lowering_function")
    def _():
        doubled_p = door("extend.core").Primitive("doubled again of names")
        doubled_p.def_abstract_eval(lambda x: x)
        build = ffi.build_ffi_lowering_function("names_target", has_side_effect=True)
        door("interpreters.mlir").register_lowering(
            doubled_p, lambda ctx, x: list(build(ctx, x).results)
        )
        text = jax.jit(doubled_p.bind).lower(jnp.ones(2)).as_text()
        return "@names_target" in text, "has_side_effect = true" in text

    return corpus
