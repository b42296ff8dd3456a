"""pltpu.einshape: axes of an array split, reordered and merged."""

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.core.programs.subprograms import all_equations
from hlofront.experimental import pallas as pl
from hlofront.experimental.pallas import tpu as pltpu
from hlofront.sharding import AbstractDevice, AbstractMesh, use_abstract_mesh
from tests.pallas.mosaic_modules import array, on_tpu

x = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize(
    ("equation", "sizes", "expected"),
    [
        ("ab->ba", {}, x.T),
        ("a(bc)->abc", {"b": 2}, x.reshape(4, 2, 3)),
        ("a(bc)->bac", {"c": 3}, x.reshape(4, 2, 3).transpose(1, 0, 2)),
        ("(ab)c -> a (bc)", {"a": 2}, x.reshape(2, 12)),
        (
            "(ab)(cd)->(ac)(bd)",
            {"b": 2, "d": 2},
            x.reshape(2, 2, 3, 2).swapaxes(1, 2).reshape(6, 4),
        ),
        ("ab->(ab)", {}, x.reshape(24)),
        ("a(b)->ab", {}, x),
    ],
)
def test_axes_are_split_reordered_and_merged(equation, sizes, expected):
    np.testing.assert_array_equal(pltpu.einshape(equation, x, **sizes), expected)


def test_it_is_differentiated_and_batched():
    turned = jax.vmap(lambda x: pltpu.einshape("(ab)c->(bc)a", x, a=2))(x[None])
    np.testing.assert_array_equal(turned[0], x.reshape(2, 2, 6).transpose(1, 2, 0).reshape(12, 2))
    gradient = jax.grad(lambda x: (pltpu.einshape("ab->ba", x) * x.T).sum())(x)
    np.testing.assert_array_equal(gradient, 2 * x)


@pytest.mark.parametrize(
    ("equation", "sizes", "error", "message"),
    [
        ("ab", {}, ValueError, "exactly one '->'"),
        ("(ab->ab", {}, ValueError, r"Unmatched parenthesis in '\(ab'"),
        ("abc->cba", {}, ValueError, "LHS has 3 groups but input has 2 dims"),
        ("a(bc)->abc", {}, ValueError, "Ambiguous split for bc with size 6.*b=..."),
        ("a(bc)->abc", {"b": 4}, ValueError, r"Cannot split size 6 with known sizes 4"),
        ("a(bc)->abc", {"b": 3, "c": 3}, ValueError, "Cannot split size 6 with known sizes 9"),
        ("aa->a", {}, ValueError, "Cannot split size 6 with known sizes 4, for a"),
        ("ab->a", {}, NotImplementedError, "no broadcast yet"),
    ],
)
def test_wrong_equations_are_refused(equation, sizes, error, message):
    with pytest.raises(error, match=message):
        pltpu.einshape(equation, x, **sizes)


# ---- in kernels ----------------------------------------------------------------------------------


def kernel_of(equation, shape, dtype=jnp.float32, **options):
    """A function that runs einshape in a kernel, and the shape of its result."""
    out = jax.eval_shape(lambda x: pltpu.einshape(equation, x, **options), array(shape, dtype))

    def kernel(x_ref, o_ref):
        o_ref[...] = pltpu.einshape(equation, x_ref[...], **options)

    return lambda x, **how: pl.pallas_call(kernel, array(out.shape, dtype), **how)(x)


ON_V5E = AbstractMesh((), (), abstract_device=AbstractDevice("TPU v5e", 1, "tpu"))


def operations(function, *avals):
    with use_abstract_mesh(ON_V5E):
        program = jax.make_jaxpr(function)(*avals)
    return {each.primitive.name for each in all_equations(program)}


KEPT = [
    ("a(bc)->bac", (8, 256), {"b": 2}),
    ("(ab)(cd)->(cab)d", (16, 256), {"b": 8, "d": 128}),
    ("a(bc)->(ba)c", (4, 256), {"b": 2}),
    ("(ab)cd->a(bc)d", (4, 8, 128), {"b": 2}),
    ("abc->(ab)c", (2, 16, 128), {}),
]


@pytest.mark.parametrize(("equation", "shape", "sizes"), KEPT)
def test_whole_tiles_move_in_kernels_for_tpus(equation, shape, sizes):
    function = kernel_of(equation, shape, assert_is_tile_preserving=True, **sizes)
    names = operations(function, array(shape))
    assert "transpose" not in names
    given = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    expected = pltpu.einshape(equation, given, **sizes)
    with use_abstract_mesh(ON_V5E):
        traced = jax.jit(lambda x: function(x, interpret=True)).trace(array(shape))
    program = jax.core.jaxpr_as_fun(traced.jaxpr)
    np.testing.assert_array_equal(program(given)[0], expected)


def test_torn_tiles_are_transposed_or_refused():
    assert "transpose" in operations(kernel_of("a(bc)->bca", (8, 256), b=2), array((8, 256)))
    refused = kernel_of("a(bc)->bca", (8, 256), b=2, assert_is_tile_preserving=True)
    with pytest.raises(ValueError, match="Tile preserving check failed for einshape kernel"):
        operations(refused, array((8, 256)))
    refused(np.zeros((8, 256), np.float32), interpret=True)


@pytest.mark.slow
def test_libtpu_compiles_moved_tiles():
    def function(x):
        with jax.target("tpu:v5e:1x1"):
            return kernel_of("(ab)(cd)->(cab)d", (16, 256), b=8, d=128)(x)

    assert "tpu_custom_call" in on_tpu(function, array((16, 256))).compile().as_text()
