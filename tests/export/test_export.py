"""export: the fields of exported programs, their calls under each transformation, and refusals."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export
from hlofront.core.effects import OwnEffect
from hlofront.core.primitive import Primitive
from hlofront.core.rules import effects, infer, lower
from hlofront.interpreters import mlir
from tests.export.programs import ARGUMENTS, X, energy
from tests.lowering.test_fences import barriers, largest_fusion, layer, stream


def exported_energy():
    return export.export(jax.jit(energy))(ARGUMENTS, scale=2.0)


def test_fields():
    exported = export.export(jax.jit(lambda x, y, unused: jnp.sin(x) * y))(X, 2.0, X)
    assert exported.fun_name == "<lambda>"
    assert str(exported) == "Exported(fun_name=<lambda>, ...)"
    assert str(exported.in_tree) == "PyTreeDef(((*, *, *), {}))"
    assert str(exported.in_avals[:2]) == (
        "(ShapedArray(float32[2,3]), ShapedArray(float32[], weak_type=True))"
    )
    assert str(exported.out_avals) == "(ShapedArray(float32[2,3]),)"
    assert exported.platforms == (export.default_export_platform(),)
    assert exported.nr_devices == 1
    assert exported.module_kept_var_idx == (0, 1)
    assert exported.calling_convention_version == 10
    assert not exported.uses_global_constants
    assert exported.has_vjp()
    assert "func.func public @main" in exported.mlir_module()
    assert exported.mlir_module(serialized=False).operation.verify()


def test_specs_and_static_arguments():
    power = jax.jit(lambda x, n: x**n, static_argnums=1)
    exported = export.export(power)(jax.ShapeDtypeStruct((2, 3), np.float32), 3)
    assert exported.in_tree.num_leaves == 1
    np.testing.assert_allclose(exported.call(X), X**3, rtol=1e-6)


def test_large_constants_are_in_the_module():
    table = np.arange(10_000, dtype=np.float32)
    exported = export.export(jax.jit(lambda i: jnp.asarray(table)[i]))(np.int32(0))
    assert exported.call(np.int32(77)) == 77


def test_call_inside_of_transformations():
    exported = exported_energy()
    expected = energy(ARGUMENTS, 2.0)
    np.testing.assert_allclose(exported.call(ARGUMENTS, scale=2.0), expected, rtol=1e-6)
    call = lambda a: exported.call({"a": a, "n": np.int32(3)}, scale=2.0)
    direct = lambda a: energy({"a": a, "n": np.int32(3)}, 2.0)
    np.testing.assert_allclose(jax.jit(call)(X), expected, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(call)(X), jax.grad(direct)(X), rtol=1e-6)
    second = [jax.grad(lambda a, f=f: jnp.sum(jax.grad(f)(a) ** 2))(X) for f in (call, direct)]
    np.testing.assert_allclose(*second, rtol=1e-5)
    many = np.stack([X, 2 * X, 3 * X])
    np.testing.assert_allclose(jax.vmap(call)(many), jax.vmap(direct)(many), rtol=1e-6)
    gradients = [jax.jit(jax.vmap(jax.grad(f)))(many) for f in (call, direct)]
    np.testing.assert_allclose(*gradients, rtol=1e-5)


def test_vmap_along_some_arguments_and_other_axes():
    exported = export.export(jax.jit(lambda x, y: (x @ y, x.sum())))(X, X.T)
    many = np.stack([X, 2 * X], axis=1)
    products, sums = jax.vmap(exported.call, in_axes=(1, None))(many, X.T)
    np.testing.assert_allclose(products, np.stack([X @ X.T, 2 * X @ X.T]), rtol=1e-6)
    np.testing.assert_allclose(sums, [X.sum(), 2 * X.sum()], rtol=1e-6)


def test_call_inside_of_another_export():
    inner = exported_energy()
    both = lambda x: inner.call(x, scale=1.0) + inner.call(x, scale=2.0)
    outer = export.export(jax.jit(both))(ARGUMENTS)
    np.testing.assert_allclose(outer.call(ARGUMENTS), 3 * energy(ARGUMENTS), rtol=1e-6)
    # Both calls are of one function of the module.
    assert outer.mlir_module().count("func.func private @call_exported_energy") == 1
    gradient = jax.grad(outer.call, allow_int=True)(ARGUMENTS)["a"]
    np.testing.assert_allclose(gradient, 3 * np.sin(2 * X) * 3, rtol=1e-5)


def test_functions_of_equal_names_stay_apart():
    def calls(n):
        inner = jax.jit(lambda x: x * n)
        return jax.jit(lambda x: inner(x) + 1)

    twice, thrice = (export.export(calls(n))(X) for n in (2, 3))
    total = jax.jit(lambda x: twice.call(x) * thrice.call(x) + calls(5)(x))
    np.testing.assert_allclose(
        total(X), (2 * X + 1) * (3 * X + 1) + 5 * X + 1, rtol=1e-5, atol=1e-6
    )


def test_random_keys():
    exported = export.export(jax.jit(lambda key: jax.random.split(key)))(jax.random.key(0))
    expected = jax.random.key_data(jax.random.split(jax.random.key(7)))
    np.testing.assert_array_equal(jax.random.key_data(exported.call(jax.random.key(7))), expected)


def test_several_platforms():
    def by_platform(x):
        return jax.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x - 1)

    exported = export.export(jax.jit(by_platform), platforms=("tpu", "cpu"))(X)
    assert exported.platforms == ("tpu", "cpu")
    assert exported.uses_global_constants
    assert '"_platform_index"' in exported.mlir_module()
    np.testing.assert_array_equal(exported.call(X), X + 1)
    np.testing.assert_array_equal(jax.jit(exported.call)(X), X + 1)
    # Another export picks the platform of the inner one by its own platform.
    outer = export.export(jax.jit(exported.call), platforms=("cpu", "tpu"))(X)
    assert outer.uses_global_constants
    np.testing.assert_array_equal(outer.call(X), X + 1)


def test_programs_for_cpus_have_their_fences():
    """A deep program that is read from a file compiles and runs like the function itself."""
    x, w = np.ones((8, 16), np.float32), np.ones((16, 16), np.float32)
    deep = jax.jit(jax.value_and_grad(lambda x, w: (stream(layer, 30)(x, w) ** 2).sum()))
    exported = export.export(deep, platforms=["cpu"])(x, w)
    assert barriers(exported.mlir_module()) == barriers(deep.lower(x, w).as_text()) > 0
    loaded = export.deserialize(exported.serialize())
    called = jax.jit(loaded.call).lower(x, w).compile()
    assert largest_fusion(called) == largest_fusion(deep.lower(x, w).compile())
    # The compilers for other platforms would keep the values apart.
    several = export.export(deep, platforms=["cpu", "tpu"])(x, w)
    assert barriers(several.mlir_module()) == 0


def test_lowering_rules_of_the_user():
    def as_cosine(ctx, x, **_):
        return mlir.ir.Operation.create("stablehlo.cosine", [x.type], [x]).results

    sine = jax.jit(lambda x: jnp.sin(x) + jax.lax.abs(x))
    rules = [(jax.lax.sin_p, as_cosine)]
    exported = export.export(sine, _override_lowering_rules=rules)(X)
    np.testing.assert_allclose(exported.call(X), np.cos(X) + np.abs(X), rtol=1e-6)
    np.testing.assert_allclose(sine(X), np.sin(X) + np.abs(X), rtol=1e-6)


class Marked(OwnEffect):
    """An ordered effect of no consequence, whose instances are equal."""

    __slots__ = ()
    ordered = True

    def __eq__(self, other):
        return type(other) is Marked

    def __hash__(self):
        return hash(Marked)

    def __str__(self):
        return "Marked"


class Noticed(Marked):
    """An effect like it, without an order."""

    __slots__ = ()
    ordered = False

    def __eq__(self, other):
        return type(other) is Noticed

    def __hash__(self):
        return hash(Noticed)


marked_p, unordered_p = Primitive("marked"), Primitive("noticed")


@infer(marked_p)
def _(x):
    return x


@effects(marked_p)
def _(x):
    return frozenset({Marked()})


@lower(marked_p)
def _(build, x):
    return x


infer(unordered_p)(lambda x: x)
effects(unordered_p)(lambda x: frozenset({Noticed()}))
lower(unordered_p)(lambda build, x: x)


def test_ordered_effects():
    exported = export.export(jax.jit(lambda x: marked_p.bind(x) + 1))(X)
    assert exported.ordered_effects == (Marked(),)
    again = export.deserialize(exported.serialize())
    assert again.ordered_effects == (Marked(),)
    jaxpr = jax.make_jaxpr(lambda x: jax.jit(lambda x: x + 1)(x))(X)
    assert not jaxpr.effects
    assert "stablehlo.token" in exported.mlir_module()


def test_calls_have_the_effects_of_the_program():
    """Ordered effects pass their tokens, and both kinds are those of the caller."""

    def program(x):
        return unordered_p.bind(marked_p.bind(x)) + 1

    loaded = export.deserialize(export.export(jax.jit(program))(X).serialize())
    assert loaded.unordered_effects == (Noticed(),)
    assert jax.make_jaxpr(loaded.call)(X).effects == {Marked(), Noticed()}
    outer = export.export(jax.jit(lambda x: loaded.call(loaded.call(x))))(X)
    assert (outer.ordered_effects, outer.unordered_effects) == ((Marked(),), (Noticed(),))
    # The second call waits for the token of the first.
    main = outer.mlir_module().split("func.func public @main")[1].split("func.func")[0]
    assert main.count("call @call_exported_program") == 2
    assert "!stablehlo.token" in main


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0],), r"Rank mismatch for args\[0\]: expected \(2, 3\) and called with \(3,\)"),
        ((X[:1],), r"Shape mismatch for args\[0\].shape\[0\] \(expected same constant\)"),
        ((X.astype(np.int32),), r"Dtype mismatch for args\[0\]: expected float32"),
        ((X, X), "same pytree structure as when the function '<lambda>' was exported"),
        (([X],), "same pytree structure as when the function '<lambda>' was exported"),
    ],
)
def test_arguments_of_other_types(arguments, message):
    exported = export.export(jax.jit(lambda x: x + 1))(X)
    with pytest.raises(ValueError, match=message):
        exported.call(*arguments)


def test_what_cannot_be_exported():
    with pytest.raises(ValueError, match="must be the result of `jit`"):
        export.export(lambda x: x)
    with pytest.raises(TypeError, match="sequence of names"):
        export.export(jax.jit(lambda x: x), platforms="cpu")(X)
    printing = jax.jit(lambda x: jax.debug.print("{}", x))
    with pytest.raises(NotImplementedError, match="host_callbacks is not yet implemented"):
        export.export(printing)(X)
    reference = jax.new_ref(X)
    with pytest.raises(NotImplementedError, match="mutable references"):
        export.export(jax.jit(lambda r: r[...]))(reference)


def test_custom_calls_without_guarantees():
    foreign = jax.jit(lambda x: jax.ffi.ffi_call("my_kernel", x)(x))
    with pytest.raises(ValueError, match=r"DisabledSafetyCheck.custom_call\('my_kernel'\)"):
        export.export(foreign)(X)
    checks = [export.DisabledSafetyCheck.custom_call("my_kernel")]
    exported = export.export(foreign, disabled_checks=checks)(X)
    assert "@my_kernel" in exported.mlir_module()
    assert exported.disabled_safety_checks == tuple(checks)
    every = [export.DisabledSafetyCheck.custom_call("ALL")]
    assert "@my_kernel" in export.export(foreign, disabled_checks=every)(X).mlir_module()


def test_another_platform():
    exported = export.export(jax.jit(lambda x: x + 1), platforms=["tpu"])(X)
    with pytest.raises(ValueError, match="was exported for platforms"):
        exported.call(X)
    checks = [export.DisabledSafetyCheck.platform()]
    exported = export.export(jax.jit(lambda x: x + 1), platforms=["tpu"], disabled_checks=checks)(X)
    np.testing.assert_array_equal(exported.call(X), X + 1)


def test_forward_mode_is_refused():
    exported = export.export(jax.jit(lambda x: x + 1))(X)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(exported.call, (X,), (X,))
