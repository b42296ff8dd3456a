"""Meshes with axes of type Explicit, and the mesh in context, on eight devices."""

import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.sharding import (
    AbstractMesh,
    AxisType,
    NamedSharding,
    auto_axes,
    get_abstract_mesh,
    get_mesh,
    set_mesh,
    use_abstract_mesh,
)
from hlofront.sharding import PartitionSpec as P

explicit = jax.make_mesh((2, 4), ("x", "y"))
auto = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
mixed = jax.make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))


def split(mesh, *entries, shape=(8, 4)):
    return jax.device_put(np.ones(shape, np.float32), NamedSharding(mesh, P(*entries)))


def test_arrays_have_the_type_that_their_sharding_says():
    assert str(jax.typeof(split(explicit, "x", "y"))) == "float32[8@x,4@y]"
    assert str(jax.typeof(split(mixed, "x", "y"))) == "float32[8,4@y]"
    assert str(jax.typeof(split(auto, "x", "y"))) == "float32[8,4]"
    there = jax.device_put(split(explicit, "x"), NamedSharding(explicit, P(None, "y")))
    assert str(jax.typeof(there)) == "float32[8,4@y]"


def test_results_are_split_as_their_types_say():
    x = split(explicit, "y", "x")
    assert jax.jit(lambda a: a)(x).sharding == x.sharding
    with jax.set_mesh(explicit):
        results = jax.jit(lambda a: (a, jnp.ones(8)))(x)
    assert results[0].sharding == x.sharding
    assert results[1].sharding == NamedSharding(explicit, P(None))


def test_each_result_is_constrained_to_its_type():
    with jax.set_mesh(explicit):
        text = jax.jit(jnp.sin).lower(jnp.ones((8, 4))).as_text()
    assert text.count("<@mesh, [{}, {}]>") == 3, text
    with jax.set_mesh(mixed):
        text = jax.jit(jnp.sin).lower(jnp.ones((8, 4))).as_text()
    assert "sdy.sharding_constraint %0 <@mesh, [{?}, {?}]>" in text


@pytest.mark.parametrize("mesh", [explicit, auto])
def test_new_arrays_are_on_the_mesh_in_context(mesh):
    everywhere = NamedSharding(mesh, P())
    with set_mesh(mesh):
        arrays = [jnp.ones((8, 4)), jnp.arange(3), jnp.asarray([1.0]), jax.random.key(0)]
        arrays += [jax.random.normal(arrays[-1], (4,)), jnp.ones(4) + 1]
    for array in arrays:
        assert array.sharding.is_equivalent_to(everywhere, array.ndim)
        assert array.committed
    assert jnp.ones(3).sharding.num_devices == 1


def test_the_mesh_in_context_ends_with_its_block():
    assert get_mesh().empty and get_abstract_mesh().empty
    with set_mesh(explicit) as mesh:
        assert mesh is get_mesh() is explicit
        assert get_abstract_mesh() is explicit.abstract_mesh
        with use_abstract_mesh(auto.abstract_mesh):
            assert get_abstract_mesh() is auto.abstract_mesh and get_mesh() is explicit
        assert get_abstract_mesh() is explicit.abstract_mesh
    assert get_mesh().empty and get_abstract_mesh().empty
    set_mesh(auto)
    assert get_mesh() is auto
    set_mesh(None)
    assert get_mesh().empty


def test_meshes_that_cannot_be_in_context():
    with pytest.raises(ValueError, match="Expected mesh of type"):
        set_mesh(explicit.abstract_mesh)
    with pytest.raises(ValueError, match="use_abstract_mesh takes"):
        use_abstract_mesh(explicit)
    with pytest.raises(ValueError, match=r"only be used outside of `jax\.jit`"):
        jax.jit(lambda x: set_mesh(explicit))(1.0)
    with pytest.raises(ValueError, match=r"only be used outside of `jax\.jit`"):
        jax.jit(lambda x: get_mesh())(1.0)
    on_first = jax.device_put(np.ones(8), jax.devices()[0])
    with set_mesh(explicit), pytest.raises(ValueError, match="the mesh in context is on devices"):
        jax.jit(jnp.sin)(on_first)


def test_abstract_meshes_know_the_kind_of_their_devices():
    text = "AbstractMesh('x': 2, 'y': 4, axis_types=(Explicit, Explicit), device_kind=cpu, "
    assert repr(explicit.abstract_mesh) == text + "num_cores=None, platform=cpu)"
    assert explicit.abstract_mesh != AbstractMesh((2, 4), ("x", "y"), explicit.axis_types)


def test_operations_without_a_rule_for_splits_are_refused():
    from hlofront.core.primitive import Primitive
    from hlofront.core.rules import infer

    def same(x):
        return x

    # Rules of other packages say themselves how results are split.
    same.__module__ = "hlofront.odd"
    odd_p = Primitive("odd")
    infer(odd_p)(same)
    with pytest.raises(jax.errors.ShardingTypeError, match=r"odd has no rule .* f32\[8@x,4\]"):
        jax.jit(odd_p.bind)(split(explicit, "x"))


def test_a_mesh_may_be_in_context_before_anything_is_split():
    """In a new process, where no module of shardings has been imported."""
    script = (
        "import hlofront as jax, hlofront.numpy as jnp\n"
        "with jax.set_mesh(jax.make_mesh((8,), ('x',))):\n"
        "    print((jnp.arange(8.0) + 1).sharding.spec)\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout == "P(None,)\n"


def test_operands_that_are_broadcast_are_split_as_the_others():
    x = split(explicit, "x")

    def masked(x):
        return jnp.where(x[:, :1] > 0, x, -1.0) + jnp.where(np.ones((8, 4), bool)[:, :1], x, 0)

    with set_mesh(explicit):
        text = str(jax.make_jaxpr(masked)(x))
        assert jax.jit(masked)(x).sharding.is_equivalent_to(x.sharding, 2)
    assert "f32[8@x,4] = select_n" in text and "bool[8@x,4] = broadcast_in_dim" in text


@pytest.mark.parametrize("in_axes", [None, (0, 0), (0, None), (None, 0)])
def test_convolutions_are_split_as_is_asked_mapped_and_differentiated(in_axes):
    random = np.random.default_rng(0)
    inputs, kernel = random.normal(size=(3, 4, 2, 8)), random.normal(size=(3, 4, 2, 3))
    x = np.float32(inputs if in_axes and in_axes[0] == 0 else inputs[0])
    w = np.float32(kernel if in_axes and in_axes[1] == 0 else kernel[0])

    def loss(x, w, **request):
        def convolved(x, w):
            return lax.conv_general_dilated(x, w, (1,), "SAME", **request)

        result = (jax.vmap(convolved, in_axes) if in_axes else convolved)(x, w)
        return (result**2).sum(), result

    gradients, result = jax.grad(loss, (0, 1), has_aux=True)(x, w)
    with set_mesh(explicit):
        step = jax.jit(jax.grad(partial(loss, out_sharding=P("x", "y")), (0, 1), has_aux=True))
        split_gradients, split_result = step(x, w)
    assert str(jax.typeof(split_result)).endswith("4@x,4@y,8]")
    np.testing.assert_allclose(split_result, result, rtol=1e-5, atol=1e-5)
    for one, other in zip(split_gradients, gradients, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_slices_out_of_bounds_of_a_split_array_are_those_of_one_device(axis):
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    entries = (None, "x") if axis else ("x", None)

    def moved(x):
        part = lax.dynamic_slice(x, (7, -9), (2, 2))
        return lax.dynamic_update_slice(x, 2 * part, (-3, 9))

    gradient = jax.grad(lambda x: jnp.sum(jnp.sin(moved(x))))
    with set_mesh(explicit):
        there = jax.device_put(x, P(*entries))
        found = jax.jit(moved)(there), jax.jit(gradient)(there)
    np.testing.assert_array_equal(found[0], moved(x))
    np.testing.assert_allclose(found[1], gradient(x), rtol=1e-5)


@pytest.mark.parametrize(
    "index, type_text",
    [
        (np.s_[:, ::2], "float32[8@x,4@y]"),
        (np.s_[:4], "float32[4@x,8@y]"),
        (np.s_[2:6, ::-1], "float32[4@x,8@y]"),
        (np.s_[None, 4:, ::2], "float32[1,4@x,4@y]"),
        (np.s_[:, 1::2], "float32[8@x,4@y]"),
        (np.s_[..., ::-2], "float32[8@x,4@y]"),
        (np.s_[1::2, None, 4:], "float32[4@x,1,4@y]"),
        (np.s_[np.zeros(0, int)], "float32[0,8@y]"),
    ],
)
def test_slices_of_a_split_array_are_split_as_it_is_inside_jit_and_outside(index, type_text):
    values = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = jax.device_put(values, NamedSharding(explicit, P("x", "y")))
    for part in (x[index], jax.jit(lambda a: a[index])(x)):
        assert str(jax.typeof(part)) == type_text
        np.testing.assert_array_equal(part, values[index])


@pytest.mark.parametrize("order", [None, (0, 1), (1, 0)])
def test_a_reshape_that_reads_in_another_order_leaves_no_axis_split_by_chance(order):
    x = split(explicit, "x", None)
    merged = jax.jit(lambda x: lax.reshape(x, (x.size,), order))
    if order == (1, 0):
        with pytest.raises(jax.errors.ShardingTypeError, match="it is ambiguous along which axes"):
            merged(x)
    else:
        assert str(jax.typeof(merged(x))) == f"float32[{x.size}@x]"


@pytest.mark.parametrize(
    "entries, type_text", [(("x", "y"), "float32[4@y]"), (("x",), "float32[4]")]
)
def test_rows_of_a_split_array_are_split_along_their_own_axes(entries, type_text):
    values = np.arange(32, dtype=np.float32).reshape(8, 4)
    x = jax.device_put(values, NamedSharding(explicit, P(*entries)))
    assert {str(jax.typeof(row)) for row in x} == {type_text}
    np.testing.assert_array_equal(np.stack(list(x)), values)
    np.testing.assert_array_equal(np.stack(list(reversed(x))), values[::-1])


def test_a_refused_index_says_which_axis_is_too_short_and_how_to_ask():
    x = split(explicit, "x", "y")
    for indexed in (lambda a: a[0], jax.jit(lambda a: a[0])):
        with pytest.raises(jax.errors.ShardingTypeError) as refused:
            indexed(x)
        assert "would have the result f32[1@x,4@y]" in str(refused.value)
        assert "x.at[...].get(out_sharding=)" in str(refused.value)
    with jax.set_mesh(explicit):
        row = x.at[0].get(out_sharding=P("y"))
    assert str(jax.typeof(row)) == "float32[4@y]"


def test_gradients_of_maxima_over_windows_of_split_axes():
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)

    def loss(x):
        return jnp.sum(jnp.sin(lax.reduce_window(x, -np.inf, lax.max, (2, 3), (1, 2), "SAME")))

    with set_mesh(explicit):
        found = jax.jit(jax.grad(loss))(jax.device_put(x, P("x")))
    assert str(jax.typeof(found)) == "float32[4@x,6]"
    np.testing.assert_allclose(found, jax.grad(loss)(x), rtol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda s, x: lax.clamp(s, x, np.float32(2)),
        lambda s, x: lax.add(s, x),
        lambda s, x: lax.sub(x, s),
        lambda s, x: lax.complex(s, x),
    ],
    ids=["clamp", "add", "sub", "complex"],
)
def test_tangents_of_scalars_are_split_as_the_result(function):
    x = split(explicit, "x", "y")
    with set_mesh(explicit):
        result, tangent = jax.jvp(lambda s: function(s, x), (np.float32(1.5),), (np.float32(1),))
    assert str(jax.typeof(tangent)) == str(jax.typeof(result))
    assert tangent.sharding == result.sharding == x.sharding


def test_cotangents_are_split_as_what_they_are_of():
    x = split(explicit, "x")

    def loss(whole, x):
        return jnp.sum(jnp.sin(whole * x) + whole)

    with set_mesh(explicit):
        whole = jnp.ones((8, 4))
        for_whole, for_split = jax.jit(jax.grad(loss, (0, 1)))(whole, x)
    assert str(jax.typeof(for_whole)) == "float32[8,4]"
    assert str(jax.typeof(for_split)) == "float32[8@x,4]"
    np.testing.assert_allclose(for_whole, jax.grad(loss)(np.ones((8, 4)), np.ones((8, 4))))


def test_updates_and_choices_are_split_as_the_array():
    x = split(explicit, "x", "y")

    def changed(x):
        x = x.at[:, 1].set(0.0, out_sharding=P("x", "y"))
        x = jax.vmap(lambda row: jnp.where(jnp.sum(row) > 2, row, -1.0))(x)
        return jnp.where(jnp.ones((8, 4), bool), x, 0.0)

    def updated(x):
        return x.at[:, :2].add(1.0).at[:, jnp.array([0, 3])].multiply(jnp.full((8, 2), 3.0))

    one_device = np.ones((8, 4), np.float32)
    with set_mesh(explicit):
        y = jax.device_put(one_device, P("x"))
        result, other = jax.jit(changed)(x), jax.jit(updated)(y)
    assert str(jax.typeof(result)) == "float32[8@x,4@y]"
    assert str(jax.typeof(other)) == "float32[8@x,4]"
    np.testing.assert_array_equal(other, updated(jnp.asarray(one_device)))
    np.testing.assert_array_equal(np.asarray(result)[0], [1, 0, 1, 1])


@pytest.mark.parametrize("mesh", [explicit, auto])
@pytest.mark.parametrize("reduction", [np.bitwise_and, np.bitwise_or, np.bitwise_xor])
@pytest.mark.parametrize("dtype", [bool, np.int32])
def test_bits_are_reduced_over_split_axes(mesh, reduction, dtype):
    bits = (np.arange(32).reshape(8, 4) * 7 % 31).astype(dtype)
    x = jax.device_put(bits, NamedSharding(mesh, P("x", "y")))
    reduce = getattr(lax, reduction.__name__.replace("bitwise", "reduce"))
    for axes in ((0,), (0, 1)):
        np.testing.assert_array_equal(
            jax.jit(reduce, static_argnums=1)(x, axes), reduction.reduce(bits, axis=axes)
        )


def test_products_of_groups_and_of_blocks_are_split_as_their_operands():
    rows, matrices = np.float32(np.arange(24).reshape(6, 4)), np.ones((2, 4, 8), np.float32)
    sizes = np.array([2, 4], np.int32)

    def loss(rows, matrices):
        return jnp.sum(jnp.sin(lax.ragged_dot(rows, matrices, sizes)))

    there = split(explicit, None, None, "y", shape=(2, 4, 8))
    with set_mesh(explicit):
        result = jax.jit(lax.ragged_dot)(rows, there, sizes)
        gradients = jax.jit(jax.grad(loss, (0, 1)))(rows, there)
        blocks = jax.jit(lax.scaled_dot)(split(explicit, "x"), np.ones((4, 3), np.float32))
    assert str(jax.typeof(result)) == "float32[6,8@y]"
    assert str(jax.typeof(blocks)) == "bfloat16[8@x,3]"
    np.testing.assert_allclose(result, lax.ragged_dot(rows, matrices, sizes))
    for one, other in zip(gradients, jax.grad(loss, (0, 1))(rows, matrices), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    with pytest.raises(jax.errors.ShardingTypeError, match=r"ragged_dot_general .* axis 0"):
        jax.eval_shape(lax.ragged_dot, split(explicit, "x"), matrices, sizes)


def test_loops_say_that_carries_are_split_differently():
    with set_mesh(explicit), pytest.raises(TypeError, match=r"split differently: reshard"):
        jax.jit(lambda x: lax.fori_loop(0, 3, lambda _, c: c + x, jnp.zeros((8, 4))))(
            split(explicit, "x")
        )


def test_refused_splits_name_the_lines_of_their_operands():
    def product(a, b):
        sines = jnp.sin(a)
        return sines * b

    x, y = split(explicit, "x", "y"), split(explicit, "y", "x")
    for call in (product, jax.jit(product)):
        with pytest.raises(jax.errors.ShardingTypeError) as refused:
            call(x, y)
        text = str(refused.value)
        assert "cannot be split" in text and "jax.sharding.reshard" in text
        assert "sines * b" in text and "sines : f32[8@x,4@y]" in text
        assert "b     : f32[8@y,4@x]" in text
    assert "sines = jnp.sin(a)" in text and "argument b of product" in text


@pytest.mark.parametrize(
    ("function", "start", "of_numpy"),
    [
        (lax.add, 2.0, np.sum),
        (lambda a, b: b * a, 3.0, np.prod),
        (lax.bitwise_xor, np.int32(5), np.bitwise_xor.reduce),
        (lax.max, 2.0, np.max),
    ],
)
@pytest.mark.parametrize("mesh", [explicit, auto])
def test_initial_values_are_taken_once(function, start, of_numpy, mesh):
    """XLA takes them once per device that has a part, in jax's programs."""
    values = np.array([1, 2, 1, 2, 1, 1, 2, 1], np.asarray(start).dtype).astype(np.float32)
    values = values.astype(np.int32) if isinstance(start, np.int32) else values
    x = jax.device_put(values, NamedSharding(mesh, P("y")))
    start = np.asarray(start, values.dtype)
    result = jax.jit(lambda a: lax.reduce(a, start, function, (0,)))(x)
    assert result == function(of_numpy(values), start)


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_outside_of_a_region_of_auto_axes_are_used_in_it(compiled):
    """jax refuses them: "context mesh should match the mesh of inputs"."""
    x, outside = split(explicit, "x"), split(explicit, "x", "y") * 3

    def loss(outside, x):
        scaled = jax.sharding.auto_axes(lambda a: jnp.sin(a) * outside, out_sharding=P("x"))(x)
        return scaled.sum()

    call = jax.value_and_grad(loss, argnums=(0, 1))
    with set_mesh(explicit):
        value, gradients = (jax.jit(call) if compiled else call)(outside, x)
    np.testing.assert_allclose(value, 96 * np.sin(1), rtol=1e-5)
    for gradient, operand, wanted in zip(gradients, (outside, x), (np.sin(1), 3 * np.cos(1))):
        assert jax.typeof(gradient) == jax.typeof(operand)
        np.testing.assert_allclose(gradient, np.full((8, 4), wanted), rtol=1e-5)


def test_auto_axes_without_a_mesh_runs_the_function_as_it_is():
    twice = jax.sharding.auto_axes(lambda a: a * 2, axes="x", out_sharding=P("x"))
    assert twice(3) == 6


REFUSED = {
    "operands": lambda x, y: x + y,
    "contracted axes": lambda x, y: x.T @ y,
    "concatenated": lambda x, y: jnp.concatenate([x, y]),
    "an axis twice": lambda x, y: x @ x.T,
    "a size that the mesh does not divide": lambda x, y: y[:3],
}


@pytest.mark.parametrize("name", REFUSED)
def test_errors_name_operands_with_their_shardings_and_lines_and_the_mend(name):
    with jax.set_mesh(explicit):
        x, y = split(explicit, "x", shape=(8, 8)), split(explicit, "y", shape=(8, 8))
        for call in (REFUSED[name], jax.jit(REFUSED[name])):
            with pytest.raises(jax.errors.ShardingTypeError) as caught:
                call(x, y)
            text = str(caught.value)
            first, *lines = text.splitlines()
            assert "f32[8@x,8]" in first or "f32[8@y,8]" in first, text
            assert re.search(r"at .*cases_explicit\.py:\d+", lines[0]), text
            assert re.search(r" : f32\[8.*@[xy].*\]", lines[1]), text
            assert "jax.sharding.reshard(x, jax.P(...))" in text or "out_sharding=" in text, text


@pytest.mark.parametrize("make", [jnp.ones, jnp.zeros, lambda shape: jnp.full(shape, 2.0)])
def test_filled_arrays_are_on_the_mesh_in_context_inside_of_transformations(make):
    x = jax.device_put(np.ones((3, 8, 4), np.float32), NamedSharding(explicit, P(None, "x")))
    with set_mesh(explicit):
        total = jax.vmap(lambda row: row + make((8, 4)))(x)
        _, tangent = jax.jvp(lambda row: row * make((3, 8, 4)), (x,), (x,))
        scalar = jax.vmap(lambda row: row + make(()))(x)
    assert {str(jax.typeof(y)) for y in (total, tangent, scalar)} == {"float32[3,8@x,4]"}
    np.testing.assert_array_equal(total, 1 + np.asarray(make((3, 8, 4))))


def test_auto_axes_of_some_axes_are_mapped_outside_of_jit():
    values = np.random.default_rng(0).random((3, 8, 8)).astype(np.float32)
    x = jax.device_put(values, NamedSharding(explicit, P(None, "x", "y")))
    doubled = auto_axes(lambda row: row * 2, axes="x", out_sharding=P("x", "y"))
    summed = auto_axes(lambda row: jnp.sin(row).sum(0), axes=("y",), out_sharding=P("y"))
    with set_mesh(explicit):
        twice, sums = jax.vmap(doubled)(x), jax.vmap(summed)(x)
    assert str(jax.typeof(twice)) == "float32[3,8@x,8@y]"
    assert str(jax.typeof(sums)) == "float32[3,8@y]"
    np.testing.assert_array_equal(twice, 2 * values)
    np.testing.assert_allclose(sums, np.sin(values).sum(1), rtol=1e-5)
