"""Primitives of other packages: lowering rules written as for JAX, with MLIR's bindings."""

import functools

import numpy as np
import pytest
from jaxlib.mlir.dialects import func, stablehlo

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.core import Primitive
from hlofront.interpreters import ad, batching, mlir, xla


def new_primitive(name, multiple_results=False):
    primitive = Primitive(name)
    primitive.multiple_results = multiple_results
    return primitive


def multiply_add_primitive():
    """Return x * y + z as a primitive, the example of JAX's guide "How JAX primitives work"."""
    multiply_add_p = new_primitive("multiply_add")

    def multiply_add(x, y, z):
        return multiply_add_p.bind(x, y, z)

    @multiply_add_p.def_impl
    def _impl(x, y, z):
        return np.add(np.multiply(x, y), z)

    @multiply_add_p.def_abstract_eval
    def _abstract_eval(xs, ys, zs):
        assert xs.shape == ys.shape == zs.shape
        return jax.core.ShapedArray(xs.shape, xs.dtype)

    def lowering(ctx, xc, yc, zc):
        return [stablehlo.AddOp(stablehlo.MulOp(xc, yc), zc).result]

    mlir.register_lowering(multiply_add_p, lowering)

    def value_and_jvp(arg_values, arg_tangents):
        x, y, z = arg_values
        xt, yt, zt = arg_tangents

        def make_zero(tangent):
            return jnp.zeros_like(x) if type(tangent) is ad.Zero else tangent

        primal_out = multiply_add(x, y, z)
        tangent_out = multiply_add(make_zero(xt), y, multiply_add(x, make_zero(yt), make_zero(zt)))
        return primal_out, tangent_out

    ad.primitive_jvps[multiply_add_p] = value_and_jvp

    def transpose(ct, x, y, z):
        if not ad.is_undefined_primal(x):
            ct_y = (
                ad.Zero(y.aval) if type(ct) is ad.Zero else multiply_add(x, ct, jnp.zeros_like(x))
            )
            return None, ct_y, ct
        ct_x = ad.Zero(x.aval) if type(ct) is ad.Zero else multiply_add(ct, y, jnp.zeros_like(y))
        return ct_x, None, ct

    ad.primitive_transposes[multiply_add_p] = transpose

    def batch(vector_arg_values, batch_axes):
        assert batch_axes[0] == batch_axes[1] == batch_axes[2]
        return multiply_add(*vector_arg_values), batch_axes[0]

    batching.primitive_batchers[multiply_add_p] = batch
    return multiply_add


def test_the_primitive_of_jaxs_guide():
    multiply_add = multiply_add_primitive()

    def square_add(a, b):
        return multiply_add(a, a, b)

    assert square_add(2.0, 10.0) == 14.0
    assert jax.jit(square_add)(2.0, 10.0) == 14.0
    assert jax.jit(square_add, static_argnums=1)(2.0, 10.0) == 14.0
    assert jax.jvp(square_add, (2.0, 10.0), (1.0, 1.0)) == (14.0, 5.0)
    assert jax.jit(lambda *args: jax.jvp(square_add, *args))((2.0, 10.0), (1.0, 1.0))[1] == 5.0
    assert jax.grad(square_add)(2.0, 10.0) == 4.0
    assert jax.jit(jax.grad(square_add))(2.0, 10.0) == 4.0
    np.testing.assert_array_equal(
        jax.vmap(square_add)(np.array([2.0, 3.0]), np.array([10.0, 20.0])), [14.0, 29.0]
    )
    scanned = jax.lax.scan(lambda c, x: (multiply_add(c, x, x), c), jnp.float32(1), jnp.arange(3.0))
    assert scanned[0] == 4.0
    text = jax.jit(square_add).lower(2.0, 10.0).as_text()
    assert "stablehlo.multiply" in text and "stablehlo.add" in text


def test_lower_fun_traces_a_function():
    p = new_primitive("sum_and_product", multiple_results=True)
    p.def_abstract_eval(lambda x, y, *, scale: [x, x])
    mlir.register_lowering(
        p, mlir.lower_fun(lambda x, y, *, scale: [scale * (x + y), jnp.sin(x) * y])
    )
    total, product = jax.jit(lambda x, y: p.bind(x, y, scale=3.0))(1.0, 2.0)
    assert total == 9.0 and np.isclose(product, 2 * np.sin(1.0))
    assert p.bind(1.0, 2.0, scale=2.0)[0] == 6.0


def test_lower_fun_of_one_result_inside_of_another_rule():
    p = new_primitive("twice_plus_one")
    p.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        (twice,) = mlir.lower_fun(lambda x: 2 * x, multiple_results=False)(ctx, x)
        one = mlir.ir_constant(np.float32(1))
        return [stablehlo.AddOp(twice, one).result]

    mlir.register_lowering(p, rule)
    assert jax.jit(p.bind)(jnp.float32(4)) == 9.0


def test_lower_fun_emits_into_the_region_that_is_open():
    p = new_primitive("if_positive")
    p.def_abstract_eval(lambda which, x: x)

    def rule(ctx, which, x):
        (type_,) = mlir.aval_to_ir_types(ctx.avals_out[0])
        operation = stablehlo.CaseOp([type_], which, num_branches=2)
        for factor, region in zip((2.0, 3.0), operation.regions, strict=True):
            block = region.blocks.append()
            with mlir.ir.InsertionPoint(block):
                body = mlir.lower_fun(lambda x, f=factor: jnp.sin(x) * f, multiple_results=False)
                stablehlo.ReturnOp(body(ctx.replace(avals_in=ctx.avals_in[1:]), x))
        return operation.results

    mlir.register_lowering(p, rule)
    f = jax.jit(lambda which, x: p.bind(which, x))
    assert np.isclose(f(0, 1.0), 2 * np.sin(1.0)) and np.isclose(f(1, 1.0), 3 * np.sin(1.0))


def test_a_function_is_emitted_before_an_operation_of_the_same_block():
    p = new_primitive("before")
    p.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        last = stablehlo.NegOp(x)
        with mlir.ir.InsertionPoint(last.operation):
            (doubled,) = mlir.lower_fun(lambda x: 2 * x, multiple_results=False)(ctx, x)
        last.operation.operands[0] = doubled
        return [last.result]

    mlir.register_lowering(p, rule)
    assert jax.jit(p.bind)(jnp.float32(4)) == -8.0


def test_a_rule_for_a_platform_goes_before_the_rule_for_all():
    p = new_primitive("which_platform")
    p.def_abstract_eval(lambda x: x)
    for platform, number in ((None, 0), ("cpu", 1), ("tpu", 2)):
        mlir.register_lowering(
            p,
            lambda ctx, x, number=number: [mlir.ir_constant(np.float32(number))],
            platform=platform,
        )
    assert jax.jit(p.bind)(jnp.float32(0)) == 1.0
    lowered = jax.jit(p.bind).trace(jnp.float32(0)).lower(lowering_platforms=("tpu",))
    assert "2.000000e+00" in lowered.as_text()
    with pytest.raises(ValueError, match="platform"):
        mlir.register_lowering(p, lambda ctx, x: [x], platform="abacus")


def test_a_later_rule_replaces_an_earlier_one():
    p = new_primitive("replaced")
    p.def_abstract_eval(lambda x: x)
    for number in (1.0, 2.0):
        mlir.register_lowering(p, lambda ctx, x, n=number: [mlir.ir_constant(np.float32(n))])
        assert p.bind(jnp.float32(0)) == number


def test_a_later_lower_fun_is_asked_by_functions_that_are_jitted_anew():
    p = new_primitive("replaced_by_tracing")
    p.def_abstract_eval(lambda x: x)
    for factor in (2.0, 3.0):
        mlir.register_lowering(p, mlir.lower_fun(lambda x, f=factor: f * x, multiple_results=False))
        assert jax.jit(lambda x: p.bind(x))(jnp.float32(1)) == factor


def test_a_rule_that_is_not_inlined_is_a_shared_function():
    p = new_primitive("shared_function")
    p.def_abstract_eval(lambda x, *, power: x)
    mlir.register_lowering(
        p, mlir.lower_fun(lambda x, *, power: x**power, multiple_results=False), inline=False
    )
    f = jax.jit(lambda x: p.bind(p.bind(x, power=2), power=2) + p.bind(x, power=3))
    assert f(2.0) == 24.0
    text = f.lower(2.0).as_text()
    assert text.count("func.func private @shared_function") == 2
    assert text.count("call @shared_function") == 3


def test_a_rule_adds_a_function_of_a_name_that_a_jitted_function_has():
    p = new_primitive("adds_sine")
    p.def_abstract_eval(lambda x: x)

    def rule(ctx, x):
        module = ctx.module_context
        with module.ip:
            function = func.FuncOp("sine", ([x.type], [x.type]), visibility="private")
        block = function.add_entry_block()
        with mlir.ir.InsertionPoint(block):
            func.ReturnOp([stablehlo.NegOp(block.arguments[0]).result])
        symbol = module.symbol_table.insert(function)
        callee = mlir.ir.FlatSymbolRefAttr.get(symbol.value)
        return [func.CallOp([x.type], callee, [x]).result]

    mlir.register_lowering(p, rule)

    @jax.jit
    def sine(x):
        return jnp.sin(x)

    def before(x):
        return p.bind(p.bind(sine(x)))

    def after(x):
        return sine(p.bind(p.bind(x)))

    for f in (before, after):
        text = jax.jit(f).lower(1.0).as_text()
        for symbol in ("sine", "sine_0", "sine_1"):
            assert text.count(f"func.func private @{symbol}(") == 1
        assert np.isclose(jax.jit(f)(1.0), np.sin(1.0))


def test_tokens_of_an_ordered_effect_pass_through_a_rule():
    class Order(jax.core.Effect):
        ordered = True

    mlir.lowerable_effects.add_type(Order)
    effect = Order()
    p = new_primitive("ordered_identity")
    p.def_effectful_abstract_eval(lambda x: (x, {effect}))
    tokens = []

    def rule(ctx, x):
        tokens.append(ctx.tokens_in)
        ctx.set_tokens_out(ctx.tokens_in)
        with pytest.raises(ValueError, match="effects"):
            ctx.set_tokens_out(mlir.TokenSet())
        return [x]

    mlir.register_lowering(p, rule)
    text = jax.jit(lambda x: p.bind(p.bind(x))).lower(1.0).as_text()
    assert "!stablehlo.token" in text
    assert [set(each.effects()) for each in tokens] == [{effect}, {effect}]


@pytest.mark.parametrize(
    "rule", [lambda ctx, x: None, lambda ctx, x: [], lambda ctx, x: [mlir.ir_constant(np.int32(1))]]
)
def test_a_rule_whose_results_do_not_fit_is_named(rule):
    p = new_primitive("does_not_fit")
    p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(p, rule)
    with pytest.raises(TypeError, match="lowering rule of does_not_fit"):
        jax.jit(p.bind).lower(jnp.float32(1))


def test_a_context_tells_of_the_equation():
    p = new_primitive("curious")
    p.def_abstract_eval(lambda x: x.update(shape=(*x.shape, 2)))
    seen = {}

    def rule(ctx, x):
        seen.update(
            primitive=ctx.primitive,
            avals=(ctx.avals_in, ctx.avals_out),
            platforms=ctx.module_context.platforms,
            symbols=ctx.module_context.symbol_table["main"],
            names=str(ctx.name_stack),
        )
        ctx.module_context.add_keepalive(seen)
        return [mlir.ir_constant(np.zeros((3, 2), np.float32))]

    mlir.register_lowering(p, rule)

    def f(x):
        with jax.named_scope("inside"):
            return p.bind(x)

    assert jax.jit(f)(jnp.ones(3)).shape == (3, 2)
    assert seen["primitive"] is p and seen["platforms"] == ("cpu",)
    assert [aval.shape for (aval,) in seen["avals"]] == [(3,), (3, 2)]
    assert "inside" in seen["names"]


def test_attributes_and_types():
    ir = mlir.ir
    assert str(mlir.ir_attribute(True)) == "true"
    assert str(mlir.ir_attribute(3)) == "3 : i64"
    assert str(mlir.ir_attribute(np.int8(3))) == "3 : i8"
    assert str(mlir.ir_attribute(np.uint8(3))) == "3 : ui8"
    assert str(mlir.ir_attribute(np.float32(0.5))) == "5.000000e-01 : f32"
    assert str(mlir.ir_attribute(0.5)) == "5.000000e-01 : f64"
    assert str(mlir.ir_attribute("a")) == '"a"'
    assert str(mlir.ir_attribute({"a": [1, "b"]})) == '{a = [1, "b"]}'
    assert str(mlir.ir_attribute(np.array([1, 2], np.int32))) == "dense<[1, 2]> : tensor<2xi32>"
    with pytest.raises(TypeError, match="no MLIR attribute"):
        mlir.ir_attribute(object())
    assert str(mlir.i32_attr(1)) == "1 : i32" and str(mlir.i64_attr(1)) == "1 : i64"
    assert str(mlir.dense_int_array([1, 2])) == "array<i64: 1, 2>"
    assert str(mlir.dense_int_elements([1, 2])) == "dense<[1, 2]> : tensor<2xi64>"
    assert str(mlir.dtype_to_ir_type(np.dtype("uint8"))) == "ui8"
    aval = jax.core.ShapedArray((2,), np.dtype(np.float32))
    (type_,) = mlir.aval_to_ir_types(aval)
    assert type_ == mlir.aval_to_ir_type(aval) and str(type_) == "tensor<2xf32>"
    with pytest.warns(DeprecationWarning, match="flatten_ir_types is deprecated"):
        assert mlir.flatten_ir_types([type_, (type_, type_)]) == [type_] * 3
    assert isinstance(mlir.make_ir_context(), ir.Context)


def test_a_rule_calls_a_python_function():
    p = new_primitive("from_python")
    p.def_abstract_eval(lambda x: x)
    calls = []

    def double(x):
        calls.append(x)
        return (np.asarray(x) * 2,)

    def rule(ctx, x):
        token = mlir.ir.Operation.create("stablehlo.create_token", [mlir.token_type()]).result
        for before in (token, None):
            (x,), after, kept = mlir.emit_python_callback(
                ctx, double, before, [x], ctx.avals_in, ctx.avals_out, has_side_effect=True
            )
            assert (after is None) is (before is None)
            ctx.module_context.add_keepalive(kept)
        assert ctx.builder.avals_in == ctx.avals_in
        return [stablehlo.NegOp(x).result]

    mlir.register_lowering(p, rule)
    assert jax.jit(p.bind)(np.float32(3)) == -12.0 and calls == [3.0, 6.0]


def test_a_primitive_is_run_as_a_compiled_program():
    p = new_primitive("run_by_xla")
    p.def_abstract_eval(lambda x, *, power: x)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, power: x**power, multiple_results=False))
    p.def_impl(functools.partial(xla.apply_primitive, p))
    assert p.bind(np.float32(3), power=2) == 9.0 and p.bind(np.float32(3), power=2) == 9.0
    assert xla.apply_primitive(jax.lax.neg_p, 2.0) == -2.0
    assert isinstance(jax.devices()[0].client, xla.Backend)
    with pytest.raises(NotImplementedError, match="Evaluation rule"):
        xla.apply_primitive(new_primitive("nothing_known"), 1.0)


@pytest.mark.filterwarnings("ignore:jax.interpreters.mlir:DeprecationWarning")
def test_values_are_grouped_as_types_are():
    p = new_primitive("grouped", multiple_results=True)
    p.def_abstract_eval(lambda x, y: [x, y])

    def rule(ctx, x, y):
        types = [x.type, (y.type,)]
        grouped = mlir.unflatten_ir_values_like_types([x, y], types)
        assert grouped == [x, (y,)]
        with pytest.raises(ValueError, match="do not fit"):
            mlir.unflatten_ir_values_like_types([x], types)
        return grouped

    mlir.register_lowering(p, rule)
    assert jax.jit(lambda *xs: p.bind(*xs))(1.0, 2) == [1.0, 2]


def test_shape_tensor_mixes_integers_and_values():
    p = new_primitive("shape_of")
    p.def_abstract_eval(lambda n: n.update(shape=(3,), weak_type=False))
    mlir.register_lowering(p, lambda ctx, n: [mlir.shape_tensor(ctx, [1, n, 4])])
    np.testing.assert_array_equal(jax.jit(p.bind)(jnp.int32(7)), [1, 7, 4])


def test_a_call_of_a_program():
    program = jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(1.0)
    p = new_primitive("calls", multiple_results=True)
    p.def_abstract_eval(lambda x: program.out_avals)
    mlir.register_lowering(
        p, functools.partial(mlir.core_call_lowering, name="inner", call_jaxpr=program)
    )
    f = jax.jit(lambda x: p.bind(x))
    assert "func.func private @inner" in f.lower(1.0).as_text()
    assert np.isclose(f(1.0)[0], 2 * np.sin(1.0))


@pytest.mark.parametrize(
    "option",
    [
        "global_constant_computation",
        "for_export",
        "export_ignore_forward_compatibility",
        "hoist_constants_as_args",
    ],
)
def test_options_of_an_exporter_are_refused(option):
    assert not getattr(mlir.LoweringParameters(**{option: False}), option)
    with pytest.raises(ValueError, match=f"were given {option}, which is for an exporter"):
        mlir.LoweringParameters(**{option: True})


def test_lower_fun_takes_functions_with_references():
    def eighth(x):
        ref = jax.new_ref(x)
        jax.lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(..., ref[...] * 2.0), None)
        return ref[...]

    primitive = new_primitive("with_reference")
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, mlir.lower_fun(eighth, multiple_results=False))
    repeated = jax.jit(
        lambda x: jax.lax.scan(lambda c, _: (primitive.bind(c), None), x, None, 2)[0]
    )
    np.testing.assert_array_equal(repeated(jnp.ones(2)), [64.0, 64.0])
