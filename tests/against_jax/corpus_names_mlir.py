"""Each name of jax.interpreters.mlir in use, in lowering rules; a program has the name it calls."""

import importlib

import numpy as np

from tests.against_jax.describe import Anything, Corpus


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    if isinstance(jax, Anything):
        mlir = core = jax
    else:
        mlir = importlib.import_module(f"{jax.__name__}.interpreters.mlir")
        core = importlib.import_module(f"{jax.__name__}.extend.core")

    def program(name):
        """Add a function as the program of this name."""
        return lambda function: corpus.add(name, function)

    def lowered_by(rule, *args, results=None, **params):
        """Run, in a jitted function, a new primitive that this rule lowers."""
        p = core.Primitive("lowered by names")
        if results is not None:
            p.multiple_results = True
            p.def_abstract_eval(lambda *avals, **_: [avals[0]] * results)
        else:
            p.def_abstract_eval(lambda *avals, **_: avals[0])
        mlir.register_lowering(p, rule)
        return jax.jit(lambda *xs: p.bind(*xs, **params))(*args)

    def sine(x):
        return jnp.sin(x) + 1

    x = np.arange(3, dtype="float32")

    @program("mlir.register_lowering")
    def _():
        p = core.Primitive("for some platforms")
        p.def_abstract_eval(lambda aval: aval)
        general = mlir.lower_fun(lambda x: x * 2, multiple_results=False)
        returned = mlir.register_lowering(p, general) is general
        on_cpu = mlir.lower_fun(lambda x: x * 3, multiple_results=False)
        mlir.register_lowering(p, on_cpu, platform="cpu", cacheable=False)
        text = jax.jit(p.bind).trace(x).lower(lowering_platforms=("tpu",)).as_text()
        return jax.jit(p.bind)(x), "2.0" in text, "3.0" in text, returned

    @program("mlir.register_lowering of no rule")
    def _():
        p = core.Primitive("without a rule")
        p.def_abstract_eval(lambda aval: aval)
        return jax.jit(p.bind)(x)

    @program("mlir.lower_fun")
    def _():
        one = lowered_by(mlir.lower_fun(sine, multiple_results=False), x)
        two = lowered_by(mlir.lower_fun(lambda x: [x, sine(x)]), x, results=2)
        kept = mlir.lower_fun(lambda x, *, n: x * n, multiple_results=False)
        return one, two, lowered_by(kept, x, n=3)

    @program("mlir.LoweringRuleContext")
    def _():
        seen = []

        def rule(ctx, x):
            seen.append(isinstance(ctx, mlir.LoweringRuleContext))
            seen.append(([str(a) for a in ctx.avals_in], [str(a) for a in ctx.avals_out]))
            seen.append((str(ctx.primitive), [str(a) for a in ctx.replace(avals_in=[]).avals_in]))
            seen.append((len(ctx.tokens_in.effects()), ctx.is_forward_compat()))
            return [x]

        return lowered_by(rule, x), seen

    @program("mlir.ModuleContext")
    def _():
        seen = []

        def rule(ctx, x):
            seen.append(isinstance(ctx.module_context, mlir.ModuleContext))
            seen.append(
                (list(ctx.module_context.platforms), type(ctx.module_context.module).__name__)
            )
            return [x]

        return lowered_by(rule, x), seen

    @program("mlir.Value")
    def _():
        seen = []

        def rule(ctx, x):
            seen.append((isinstance(x, mlir.ir.Value), str(x.type)))
            return [x]

        annotated: mlir.Value = lowered_by(rule, x)
        return annotated, seen

    @program("mlir.ir")
    def _():
        with mlir.make_ir_context(), mlir.ir.Location.unknown():
            return str(mlir.ir.IntegerType.get_signless(8)), str(mlir.ir.F32Type.get())

    @program("mlir.make_ir_context")
    def _():
        with mlir.make_ir_context() as context, mlir.ir.Location.unknown():
            module = mlir.ir.Module.parse("func.func @f() { return }")
            return type(context).__name__, module.operation.verify()

    @program("mlir.module_to_string")
    def _():
        with mlir.make_ir_context(), mlir.ir.Location.unknown():
            module = mlir.ir.Module.parse("func.func @f() { return }")
            return mlir.module_to_string(module), "loc(" in mlir.module_to_string(module, True)

    @program("mlir.module_to_bytecode")
    def _():
        with mlir.make_ir_context(), mlir.ir.Location.unknown():
            found = mlir.module_to_bytecode(mlir.ir.Module.parse("func.func @f() { return }"))
            return type(found).__name__, found[:4]

    def in_context(function):
        with mlir.make_ir_context(), mlir.ir.Location.unknown():
            return function()

    avals = lambda: [jax.typeof(v) for v in (x, 1, True, jnp.ones((2, 3), "bfloat16"))]

    @program("mlir.aval_to_ir_type")
    def _():
        def rule(ctx, x):
            seen.append([str(mlir.aval_to_ir_type(ctx.module_context, aval)) for aval in avals()])
            return [x]

        seen = []
        return lowered_by(rule, x), seen

    @program("mlir.aval_to_ir_types")
    def _():
        def rule(ctx, x):
            seen.append(
                [str(t) for t in mlir.aval_to_ir_types(ctx.module_context, ctx.avals_in[0])]
            )
            return [x]

        seen = []
        return lowered_by(rule, x), seen

    @program("mlir.dtype_to_ir_type")
    def _():
        kinds = "float32", "bfloat16", "int8", "uint8", "bool", "complex64", "int4", "float8_e4m3fn"
        to_type = mlir.dtype_to_ir_type
        return in_context(lambda: [str(to_type(np.dtype(jnp.dtype(k)))) for k in kinds])

    @program("mlir.flatten_ir_types")
    def _():
        def flat():
            one, two = mlir.ir.F32Type.get(), mlir.ir.IntegerType.get_signless(8)
            return [str(t) for t in mlir.flatten_ir_types([one, [two, one], ()])]

        return in_context(flat)

    @program("mlir.flatten_ir_values")
    def _():
        def rule(ctx, x, y):
            flat = mlir.flatten_ir_values([x, (y, x)])
            return [flat[1]] if len(flat) == 3 else [x]

        return lowered_by(rule, x, x + 1)

    @program("mlir.unflatten_ir_values_like_types")
    def _():
        def rule(ctx, x, y):
            types = [x.type, (y.type, x.type)]
            one, two = mlir.unflatten_ir_values_like_types([y, x, y], types)
            return [two[0]] if one is y and len(two) == 2 else [y]

        return lowered_by(rule, x, x + 1)

    @program("mlir.ir_constant")
    def _():
        def rule(ctx, x):
            values = np.int8(3), np.bool_(True), np.arange(3.0, dtype="float32"), np.complex64(1j)
            seen.append([str(mlir.ir_constant(v).type) for v in values])
            return [mlir.ir_constant(np.full(3, 7, "float32"))]

        seen = []
        return lowered_by(rule, x), seen

    @program("mlir.ir_constants")
    def _():
        def rule(ctx, x):
            return mlir.flatten_ir_values([mlir.ir_constant(np.full(3, 7, "float32"))])

        return lowered_by(rule, x), callable(getattr(mlir, "ir_constants", len))

    @program("mlir.ir_attribute")
    def _():
        values = 1, 2.5, True, "text", np.int8(3), np.ones(2, "int64"), [1, 2]
        return in_context(lambda: [str(mlir.ir_attribute(v)) for v in values])

    @program("mlir.i32_attr")
    def _():
        return in_context(lambda: (str(mlir.i32_attr(5)), str(mlir.i64_attr(5))))

    @program("mlir.i64_attr")
    def _():
        return in_context(lambda: str(mlir.i64_attr(-1)))

    @program("mlir.dense_int_array")
    def _():
        return in_context(
            lambda: (str(mlir.dense_int_array([1, 2])), str(mlir.dense_int_array([])))
        )

    @program("mlir.dense_int_elements")
    def _():
        return in_context(lambda: str(mlir.dense_int_elements([1, 2])))

    @program("mlir.shape_tensor")
    def _():
        def rule(ctx, x):
            seen.append(str(mlir.shape_tensor(ctx.module_context, [2, 3]).type))
            return [x]

        seen = []
        return lowered_by(rule, x), seen

    @program("mlir.token_type")
    def _():
        return in_context(lambda: str(mlir.token_type()))

    @program("mlir.TokenSet")
    def _():
        empty, some = mlir.TokenSet(), mlir.TokenSet({"a": 1, "b": 2})
        more = empty.update_tokens(mlir.TokenSet({"a": 1}))
        sizes = len(empty), len(some), len(some.subset({"a"}))
        return sizes, some.get("b"), sorted(some.effects()), list(more.items())

    @program("mlir.jaxpr_subcomp")
    def _():
        jaxpr = jax.make_jaxpr(sine)(x).jaxpr

        def rule(ctx, x):
            results, _ = mlir.jaxpr_subcomp(
                ctx.module_context,
                jaxpr,
                ctx.name_stack.extend("inner"),
                mlir.TokenSet(),
                (),
                x,
                dim_var_values=ctx.dim_var_values,
                const_lowering=ctx.const_lowering,
                outer_traceback=None,
            )
            return results

        return lowered_by(rule, x)

    @program("mlir.core_call_lowering")
    def _():
        jaxpr = jax.make_jaxpr(sine)(x)

        def rule(ctx, x, *, call_jaxpr):
            return mlir.core_call_lowering(ctx, x, name="called", call_jaxpr=call_jaxpr)

        return lowered_by(rule, x, results=1, call_jaxpr=jaxpr)

    @program("mlir.emit_python_callback")
    def _():
        def rule(ctx, x):
            results, _, _ = mlir.emit_python_callback(
                ctx,
                lambda v: (np.asarray(v) * 3,),
                None,
                [x],
                ctx.avals_in,
                ctx.avals_out,
                has_side_effect=False,
            )
            return results

        return lowered_by(rule, x)

    @program("mlir.LoweringRule")
    def _():
        rule: mlir.LoweringRule = mlir.lower_fun(sine, multiple_results=False)
        return lowered_by(rule, x)

    @program("mlir.Token")
    def _():
        return "Value" in str(mlir.Token)

    return corpus
