"""The stages of a jitted function: Traced, Lowered, Compiled, and what each can tell."""

import numpy as np
import pytest

import hlofront
from hlofront import lax

X = np.ones((2, 3), np.float32)


def scaled(x, d, n=2, *, unused=None):
    return {"out": lax.mul(lax.add(x, d["a"]), float(n)), "same": x}


F = hlofront.jit(scaled, static_argnames="n", donate_argnums=())


def test_traced():
    traced = F.trace(X, {"a": 1.0})
    assert traced.fun_name == "scaled"
    assert [e.primitive.name for e in traced.jaxpr.eqns] == ["add", "mul"]
    assert traced.out_info["out"] == hlofront.ShapeDtypeStruct((2, 3), np.float32)
    (x, d), kwargs = traced.args_info
    assert (x.shape, x.dtype, x.donated, kwargs) == ((2, 3), np.float32, False, {})
    assert repr(d["a"]) == "ArgInfo(_aval=ShapedArray(float32[], weak_type=True), donated=False)"


def test_shapes_in_the_place_of_arrays():
    spec = hlofront.ShapeDtypeStruct((2, 3), np.float32)
    assert F.lower(spec, {"a": spec}).as_text() == F.lower(X, {"a": X}).as_text()
    assert F.eval_shape(spec, {"a": 1.0})["out"].shape == (2, 3)


def test_lowered_texts():
    lowered = F.lower(X, {"a": 1.0})
    assert lowered.as_text() == lowered.as_text("stablehlo")
    assert "stablehlo.add" in lowered.as_text()
    assert lowered.as_text("hlo").startswith("HloModule jit_scaled")
    assert "loc(" in lowered.as_text(debug_info=True)
    assert "test_stages.py" in lowered.as_text("hlo", debug_info=True)
    with pytest.raises(ValueError, match="Unknown dialect: mhlo"):
        lowered.as_text("mhlo")
    assert str(lowered.compiler_ir()) == lowered.as_text()
    assert lowered.cost_analysis()["flops"] == 12.0


def test_compiled_reports():
    compiled = F.lower(X, {"a": 1.0}).compile()
    assert compiled.as_text().startswith("HloModule jit_scaled")
    assert compiled.cost_analysis()["bytes accessed"] > 0
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes >= 28
    assert memory.output_size_in_bytes >= 48
    assert str(compiled.in_tree) == "PyTreeDef(((*, {'a': *}), {}))"
    assert compiled.out_info["same"].shape == (2, 3)
    (sharding, _), _ = compiled.input_shardings
    assert sharding.device_set == {hlofront.devices()[0]}


def test_a_compiled_program_is_called_like_its_function():
    compiled = F.lower(X, {"a": 1.0}, 3).compile()
    for _ in range(3):  # by Python, then by C++
        out = compiled(X, {"a": 1.0})
        np.testing.assert_array_equal(out["out"], (X + 1) * 3)
    out = compiled(hlofront.device_put(X), {"a": np.float32(2.0)})
    np.testing.assert_array_equal(out["out"], (X + 2) * 3)


def test_a_compiled_program_refuses_tracers():
    compiled = hlofront.jit(lambda x: x * 2).lower(1.0).compile()
    for transformation in (
        hlofront.jit,
        hlofront.grad,
        hlofront.make_jaxpr,
        lambda f: lambda x: hlofront.vmap(f)(np.full(2, x)),
        lambda f: lambda x: hlofront.jvp(f, (x,), (x,)),
    ):
        with pytest.raises(TypeError, match=r"Cannot apply JAX transformations.*argument x"):
            transformation(compiled)(1.0)
    # What is concrete is run, though a function is being traced.
    assert hlofront.jit(lambda x: x + int(compiled(2.0)))(1.0) == 5.0
    assert hlofront.vmap(lambda x: x + int(compiled(2.0)))(np.ones(2)).tolist() == [5.0, 5.0]


def test_formats():
    f = hlofront.jit(lambda x, y, z: {"a": x.T})
    compiled = f.lower(np.ones((2, 3)), 1.0, z=np.ones(4)).compile()
    (x, y), named = compiled.input_formats
    assert x.layout.major_to_minor == (0, 1)
    assert x.sharding == compiled.input_shardings[0][0]
    for unused in (y, named["z"]):
        assert (unused.layout, unused.sharding) == (None, None)
    result = compiled.output_formats["a"]
    assert result.layout.major_to_minor == (0, 1)
    assert result.sharding == compiled.output_shardings["a"]


def test_a_compiled_program_refuses_other_arguments_and_stays_usable():
    compiled = F.lower(X, {"a": 1.0}).compile()
    with pytest.raises(TypeError, match=r"'x' compiled with float32\[2,3\].*float32\[3\]"):
        compiled(np.ones(3, np.float32), {"a": 1.0})
    with pytest.raises(TypeError, match=r"compiled with float32\[2,3\] and called with int32"):
        compiled(np.ones((2, 3), np.int32), {"a": 1.0})
    with pytest.raises(TypeError, match="not a valid JAX type"):
        compiled("text", {"a": 1.0})
    with pytest.raises(TypeError, match="does not match the input pytree"):
        compiled(X, {"b": 1.0})
    with pytest.raises(TypeError, match="does not match the input pytree"):
        compiled(X)
    np.testing.assert_array_equal(compiled(X, {"a": 1.0})["out"], (X + 1) * 2)


def test_compiler_options_reach_xla():
    lowered = F.lower(X, {"a": 1.0})
    compiled = lowered.compile(compiler_options={"xla_cpu_enable_fast_math": True})
    np.testing.assert_array_equal(compiled(X, {"a": 1.0})["out"], (X + 1) * 2)
    with pytest.raises(hlofront.errors.JaxRuntimeError, match="xla_nonsense"):
        lowered.compile(compiler_options={"xla_nonsense": 1})


def test_a_traced_program_can_be_called():
    out = F.trace(X, {"a": 1.0})(X, {"a": 1.0})
    np.testing.assert_array_equal(out["out"], (X + 1) * 2)


def test_make_jaxpr_eval_shape_and_closure_convert():
    program, shape = hlofront.make_jaxpr(scaled, return_shape=True)(X, {"a": 1.0})
    assert shape["out"].shape == (2, 3) and len(program.eqns) == 2
    assert (
        hlofront.make_jaxpr(scaled, static_argnums=2)(X, {"a": 1.0}, 5).eqns[1].invars[1].val == 5
    )
    assert hlofront.eval_shape(scaled, X, {"a": 1.0})["same"].dtype == np.float32
    with pytest.raises(TypeError, match="at path d"):
        hlofront.eval_shape(scaled, X, "text")
    with pytest.raises(TypeError, match="requires a function"):
        hlofront.make_jaxpr(3)

    def outer(x, y):
        converted, values = hlofront.closure_convert(lambda z: lax.mul(z, y), x)
        assert len(values) == 1
        return converted(x, *values)

    assert float(hlofront.jit(outer)(2.0, 3.0)) == 6.0


def test_named_scopes_are_in_the_metadata():
    @hlofront.named_scope("attention")
    def block(x):
        with hlofront.named_scope("inner"):
            return lax.sin(x)

    text = hlofront.jit(lambda x: block(x)).lower(1.0).compile().as_text()
    assert 'op_name="jit(<lambda>)/attention/inner/sin"' in text
    with pytest.raises(TypeError, match="requires a string"), hlofront.named_scope(3):
        pass


def test_lowering_for_another_platform():
    lowered = F.trace(X, {"a": 1.0}).lower(lowering_platforms=("tpu",))
    assert "stablehlo.add" in lowered.as_text()
    with pytest.raises(ValueError, match="lowered for tpu"):
        lowered.compile()
    both = F.trace(X, {"a": 1.0}).lower(lowering_platforms=("tpu", "cpu"))
    with pytest.raises(ValueError, match=r"lowered for tpu, cpu.*lower it for cpu"):
        both.compile()
    for platforms in ("tpu", (1,)):
        with pytest.raises(TypeError, match="a sequence of names"):
            F.trace(X, {"a": 1.0}).lower(lowering_platforms=platforms)
