"""Names for packages that lower whole modules, send arrays, or change what XLA compiles."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))

    def door(name):
        if isinstance(jax, Anything):
            return jax
        return importlib.import_module(f"{jax.__name__}.{name}")

    mlir, core, ad = door("interpreters.mlir"), door("extend.core"), door("interpreters.ad")
    x = np.arange(3, dtype="float32")

    def program(name):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function)

    def primitive(rule, results=None):
        p = core.Primitive("lowered by names")
        p.def_abstract_eval(lambda *avals, **_: avals[0])
        mlir.register_lowering(p, rule)
        return p

    def lowered(jaxpr, **options):
        options = {
            "num_const_args": 0,
            "in_avals": jaxpr.in_avals,
            "ordered_effects": [],
            "platforms": ("cpu",),
            "backend": None,
            "axis_context": mlir.ShardingContext(1),
            "donated_args": [False] * len(jaxpr.in_avals),
            "lowering_parameters": mlir.LoweringParameters(),
            **options,
        }
        return mlir.lower_jaxpr_to_module("jit_f", jaxpr, **options)

    def has(text, *parts):
        return [part in text for part in parts]

    def traced():
        return jax.make_jaxpr(lambda x, y: (jnp.sin(x) + y, y * 2))(x, x)

    @program("mlir.lower_jaxpr_to_module")
    def _():
        result = lowered(traced())
        text = str(result.module)
        assert isinstance(result, mlir.LoweringResult)
        parts = "@jit_f", "public @main", "stablehlo.sine", "mhlo.num_partitions = 1"
        return has(text, *parts), list(result.keepalive), len(result.host_callbacks)

    @program("mlir.lower_jaxpr_to_module with attributes")
    def _():
        text = str(
            lowered(
                traced(),
                donated_args=[True, False],
                replicated_args=[False, True],
                result_names=["first", "second"],
            ).module
        )
        return has(
            text,
            "tf.aliasing_output = 0",
            "mhlo.is_same_data_across_replicas = true",
            'jax.result_info = "first"',
        )

    @program("mlir.lower_jaxpr_to_module of shardings")
    def _():
        mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        split = jax.NamedSharding(mesh, jax.P("i"))
        text = str(
            lowered(
                traced(),
                axis_context=mlir.SPMDAxisContext(mesh),
                arg_shardings=[split, None],
                result_shardings=[None, split],
            ).module
        )
        return has(text, '[{"i"}]'), text.count("sdy.sharding =")

    @program("mlir.lower_jaxpr_to_module of other arguments")
    def _():
        return lowered(traced(), in_avals=[])

    @program("mlir.LoweringParameters")
    def _():
        as_cosine = mlir.lower_fun(jnp.cos, multiple_results=False)
        sine = jax.make_jaxpr(lambda x: lax.sin(x))(x)
        rules = ((sine.eqns[0].primitive, as_cosine),)
        text = str(lowered(sine, lowering_parameters=mlir.LoweringParameters(rules)).module)
        return has(text, "sine", "cosine"), mlir.LoweringParameters().for_export

    @program("mlir.LoweringResult")
    def _():
        return mlir.LoweringResult._fields

    @program("mlir.ShapePolyLoweringState")
    def _():
        one = mlir.ShapePolyLoweringState(("a", "b"), ("cpu",))
        two = mlir.ShapePolyLoweringState((), ("cpu", "tpu"))
        none = mlir.ShapePolyLoweringState((), None)
        return [
            (s.dim_vars, s.uses_dim_vars, s.has_platform_index_argument) for s in (one, two, none)
        ]

    @program("mlir.SPMDAxisContext")
    def _():
        mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        some = mlir.SPMDAxisContext(mesh, frozenset({"i"}))
        return some == mlir.SPMDAxisContext(mesh, frozenset({"i"})), some.manual_axes == {"i"}

    @program("mlir.ShardingContext")
    def _():
        devices = tuple(jax.devices())[:1]
        context = mlir.ShardingContext(1, devices)
        return context.num_devices, context.device_assignment == devices, context.abstract_mesh

    @program("mlir.ShardingContext of other devices")
    def _():
        return mlir.ShardingContext(3, tuple(jax.devices())[:1])

    @program("mlir.AxisContext")
    def _():
        return isinstance(mlir.ShardingContext(1), mlir.AxisContext)

    @program("mlir kinds of channels")
    def _():
        return mlir.DEVICE_TO_DEVICE_TYPE, mlir.SEND_TO_HOST_TYPE, mlir.RECV_FROM_HOST_TYPE

    @program("mlir.Mesh")
    def _():
        return mlir.Mesh is jax.sharding.Mesh, mlir.MeshAxisName is not None

    @program("mlir.lower_jaxpr_to_fun")
    def _():
        inner = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(x)
        func = door("extend.mlir.dialects.func")

        def rule(ctx, x):
            function = mlir.lower_jaxpr_to_fun(
                ctx.module_context, "inner", inner, [], num_const_args=0, in_avals=inner.in_avals
            )
            call = func.CallOp(
                function.type.results, mlir.ir.FlatSymbolRefAttr.get(function.name.value), [x]
            )
            return call.results

        p = primitive(rule)
        text = jax.jit(lambda x: p.bind(p.bind(x))).lower(x).as_text()
        names = has(text, "func.func private @inner(", "stablehlo.sine")
        return jax.jit(p.bind)(x), names

    @program("mlir.merge_mlir_modules")
    def _():
        ir = mlir.ir
        with mlir.make_ir_context(), ir.Location.unknown():
            into = ir.Module.parse(
                "module { func.func @main() { return }\nfunc.func private @f() { return } }"
            )
            source = ir.Module.parse(
                "module { func.func @main() { func.call @f() : () -> ()\nreturn }\n"
                "func.func private @f() { return }\nfunc.func private @g() { return } }"
            )
            name = mlir.merge_mlir_modules(into, "f", source)
            names = [op.name.value for op in into.body.operations]
            valid = into.operation.verify()
            return name, names, valid, has(str(into), f"call @{names[3]}()")

    @program("mlir.ir_tree_registry")
    def _():
        leaves, structure = mlir.ir_tree_registry.flatten([1, (2, [3]), {"a": 4}])
        return leaves, structure.unflatten(leaves)

    @program("mlir.ir_type_handlers")
    def _():
        class Mine(core.AbstractValue if hasattr(core, "AbstractValue") else object):
            pass

        class Wrapped(jax.core.AbstractValue):
            pass

        mlir.ir_type_handlers[Wrapped] = lambda aval: mlir.ir.F32Type.get()
        with mlir.make_ir_context():
            known = [c.__name__ for c in mlir.ir_type_handlers if c is jax.core.ShapedArray]
            return known, Wrapped in mlir.ir_type_handlers

    @program("mlir.register_constant_handler")
    def _():
        class Twice:
            def __init__(self, value):
                self.value = value

        def handler(val, aval):
            return mlir.ir_constant(np.float32(2 * val.value))

        mlir.register_constant_handler(Twice, handler)

        def rule(ctx, x):
            double = mlir.ir_constant(Twice(4))
            (same,) = mlir.ir_constants(Twice(4))
            assert isinstance(handler, object) and same.type == double.type
            scalar = mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False)
            inner = jax.core.ShapedArray((), np.dtype("float32"))
            return scalar(ctx.replace(avals_in=[*ctx.avals_in, inner, inner]), x, double, same)

        return jax.jit(primitive(rule).bind)(x)

    @program("mlir.ConstantHandler")
    def _():
        return mlir.ConstantHandler is not None

    @program("mlir.lowerable_effects")
    def _():
        class Allowed(core.Effect):
            pass

        effect = Allowed()
        p = core.Primitive("with an effect of mine")
        p.def_effectful_abstract_eval(lambda aval: (aval, {effect}))
        mlir.register_lowering(p, lambda ctx, x: [x])
        before = mlir.lowerable_effects.contains(effect)
        mlir.lowerable_effects.add_type(Allowed)
        after = mlir.lowerable_effects.filter_in([effect]) == [effect]
        return before, after, mlir.lowerable_effects.filter_not_in([effect]), jax.jit(p.bind)(x)

    @program("effects that were not added to mlir.lowerable_effects")
    def _():
        class Refused(core.Effect):
            pass

        p = core.Primitive("with an effect that is refused")
        p.def_effectful_abstract_eval(lambda aval: (aval, {Refused()}))
        mlir.register_lowering(p, lambda ctx, x: [x])
        return jax.jit(p.bind)(x)

    @program("effects that were not added to control_flow_allowed_effects")
    def _():
        class Refused(core.Effect):
            pass

        mlir.lowerable_effects.add_type(Refused)
        p = core.Primitive("with an effect that loops refuse")
        p.def_effectful_abstract_eval(lambda aval: (aval, {Refused()}))
        mlir.register_lowering(p, lambda ctx, x: [x])
        return lax.fori_loop(0, 3, lambda _, x: p.bind(x), x)

    @program("effects that were added to control_flow_allowed_effects")
    def _():
        class Looping(core.Effect):
            pass

        hijax = door("experimental.hijax")
        mlir.lowerable_effects.add_type(Looping)
        hijax.control_flow_allowed_effects.add_type(Looping)
        p = core.Primitive("with an effect that loops allow")
        p.def_effectful_abstract_eval(lambda aval: (aval, {Looping()}))
        mlir.register_lowering(p, lambda ctx, x: [x])
        return lax.fori_loop(0, 3, lambda _, x: p.bind(x), x)

    @program("mlir.emit_python_callback with a sharding")
    def _():
        sharding = door("extend.sharding")
        one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        described = sharding.get_serialized_proto_from_hlo_sharding(one._to_xla_hlo_sharding(1))
        described = sharding.get_op_sharding_from_serialized_proto(described)

        def rule(ctx, x):
            results, _, _ = mlir.emit_python_callback(
                ctx,
                lambda v: (np.asarray(v) * 3,),
                None,
                [x],
                ctx.avals_in,
                ctx.avals_out,
                has_side_effect=False,
                sharding=described,
            )
            return results

        p = primitive(rule)
        text = jax.jit(p.bind).lower(x).as_text()
        return jax.jit(p.bind)(x), has(text, 'mhlo.sharding = "{replicated}"')

    @program("ad.Zero.instantiate")
    def _():
        zero = ad.Zero(jax.core.ShapedArray((2,), np.dtype("float32")))
        return zero.instantiate(), jax.jit(lambda: zero.instantiate())()

    # ---- extend

    @program("extend.mlir")
    def _():
        extend = door("extend.mlir")
        module = jax.jit(jnp.sin).lower(x).compiler_ir("stablehlo")
        text = mlir.module_to_bytecode(module)
        artifact = extend.serialize_portable_artifact(text, "1.0.0")
        back = extend.deserialize_portable_artifact(artifact)
        return isinstance(artifact, bytes), isinstance(back, (str, bytes))

    @program("extend.mlir.refine_polymorphic_shapes")
    def _():
        module = jax.jit(jnp.sin).lower(x).compiler_ir("stablehlo")
        refined = door("extend.mlir").refine_polymorphic_shapes(
            mlir.module_to_bytecode(module),
            enable_shape_assertions=True,
            validate_static_shapes=True,
        )
        return isinstance(refined, bytes)

    @program("extend.mlir.ir and passmanager")
    def _():
        ir, passes = door("extend.mlir.ir"), door("extend.mlir.passmanager")
        with ir.Context(), ir.Location.unknown():
            module = ir.Module.parse("module {}")
            passes.PassManager.parse("builtin.module()").run(module.operation)
            return str(ir.F32Type.get()), str(module).split()[0]

    @program("extend.mlir.dialects")
    def _():
        stablehlo = door("extend.mlir.dialects.stablehlo")
        names = "arith builtin chlo func math memref mpmd scf sdy sparse_tensor vector".split()
        found = [len(vars(door(f"extend.mlir.dialects.{n}"))) > 0 for n in names]

        def rule(ctx, x):
            return [stablehlo.add(x, x)]

        return jax.jit(primitive(rule).bind)(x), found

    @program("extend.mlir.lower_with_sharding_in_types")
    def _():
        extend = door("extend.mlir")
        mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Explicit,))

        def rule(ctx, x):
            return [extend.lower_with_sharding_in_types(ctx, x, ctx.avals_out[0])]

        p = primitive(rule)
        plain = jax.jit(p.bind).lower(x).as_text()
        with jax.set_mesh(mesh):
            split = jax.device_put(x, jax.P("i"))
            text = jax.jit(p.bind).lower(split).as_text()
            value = np.asarray(jax.jit(p.bind)(split))
        return has(plain, "sharding_constraint"), has(text, "sharding_constraint"), value

    @program("extend.sharding")
    def _():
        sharding = door("extend.sharding")
        mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        hlo = jax.NamedSharding(mesh, jax.P())._to_xla_hlo_sharding(1)
        text = sharding.get_serialized_proto_from_hlo_sharding(hlo)
        back = sharding.get_hlo_sharding_from_serialized_proto(text)
        made = sharding.GSPMDSharding(jax.devices()[:1], back)
        return isinstance(text, bytes), str(back), made.is_fully_replicated

    @program("extend.xla")
    def _():
        xla = door("extend.xla")
        seen = []
        xla.register_hlo_module_transformation(lambda text: seen.append(text), name="of names")
        value = jax.jit(lambda x: jnp.sin(x) * 3.25)(x)
        cleared = xla.clear_hlo_module_transformation("of names")
        again = xla.clear_hlo_module_transformation("of names")
        return value, len(seen) > 0, isinstance(seen[0], bytes), cleared, again

    @program("extend.xla.PipelineStage")
    def _():
        stages = [(stage.name, stage.value) for stage in door("extend.xla").PipelineStage]
        return stages

    @program("extend.xla of no stage")
    def _():
        door("extend.xla").register_hlo_module_transformation(bytes, name="none", stage=1)

    @program("extend.backend.ifrt_proxy")
    def _():
        proxy = door("extend.backend").ifrt_proxy
        return [name for name in dir(proxy) if not name.startswith("_")]

    # ---- experimental

    @program("experimental.transfer")
    def _():
        transfer = door("experimental.transfer")
        client = jax.devices()[0].client
        local = "127.0.0.1:0"
        server = transfer.start_transfer_server(client, local, [local])
        array = jnp.arange(4.0)
        server.await_pull(7, {"a": array, "b": [array * 2]})
        struct = jax.ShapeDtypeStruct((4,), array.dtype, sharding=array.sharding)
        connection = server.connect(server.address())
        pulled = jax.block_until_ready(connection.pull(7, {"a": struct, "b": [struct]}))
        kinds = (
            isinstance(server, transfer.TransferServer),
            isinstance(connection, transfer.TransferConnection),
        )
        return pulled, connection.pull(8, ()), kinds

    @program("experimental.transfer.make_error_array")
    def _():
        one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
        struct = jax.ShapeDtypeStruct((4,), np.dtype("float32"), sharding=one)
        array = door("experimental.transfer").make_error_array(struct, "the message")
        try:
            np.asarray(array)
        except Exception as error:
            return array.shape, "the message" in str(error)

    return corpus
