"""Exports for arrays of unknown sizes: files, other processes, and what calls check."""

import os
import subprocess
import textwrap

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import export
from hlofront.bridge.state import jaxlib_version
from hlofront.errors import InconclusiveDimensionOperation
from tests.export.test_jax_format import ARTIFACTS, ORACLE, has_flatbuffers

Spec = jax.ShapeDtypeStruct


def layer(x, w):
    """A function with a loop, a reduction, slices, a gather and sizes as values."""
    hidden = jnp.tanh(x @ w) / x.shape[0]
    _, rows = jax.lax.scan(lambda carry, row: (carry + row, carry * row), hidden[0], hidden)
    return rows[:-1].sum(0) + hidden.std(0) + hidden[jnp.argmax(hidden[:, 0])]


def exported_layer(**options):
    b, n = export.symbolic_shape("b, n", constraints=["b >= 2"])
    return export.export(jax.jit(layer), platforms=["cpu"], **options)(
        Spec((b, n), "float32"), Spec((n, 3), "float32")
    )


def arguments(b, n):
    x = np.sin(np.arange(b * n, dtype=np.float32)).reshape(b, n)
    return x, np.cos(np.arange(n * 3, dtype=np.float32)).reshape(n, 3)


def check_layer(exported):
    """Check values of an exported `layer` for three sizes, and its second derivative for one."""
    for sizes in ((2, 1), (5, 2), (3, 4)):
        x, w = arguments(*sizes)
        np.testing.assert_allclose(exported.call(x, w), layer(x, w), rtol=1e-5)
    twice = [
        jax.grad(lambda x, f=f: (jax.grad(lambda y: f(y, w).sum())(x) ** 2).sum())(x)
        for f in (exported.call, layer)
    ]
    np.testing.assert_allclose(*twice, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["hlofront", "jax"])
def test_files_keep_symbolic_sizes(form):
    made = exported_layer()
    loaded = export.deserialize(made.serialize(vjp_order=2, format=form))
    assert [str(aval) for aval in loaded.in_avals] == ["float32[b,n]", "float32[n,3]"]
    check_layer(loaded)
    with pytest.raises(ValueError, match=r"do not satisfy the constraint 'b >= 2'"):
        loaded.call(*arguments(1, 2))


def test_own_format_keeps_constraints():
    loaded = export.deserialize(exported_layer().serialize())
    assert loaded.in_avals[0].shape[0] > 1


@pytest.mark.parametrize("jax_version", ["0.10.2", "0.12.0.1"])
def test_exports_of_jax(jax_version):
    exported = export.deserialize((ARTIFACTS / f"symbolic.jax-{jax_version}").read_bytes())
    assert str(exported.in_avals[0]) == "float32[b]"
    if jax_version == "0.12.0.1" and jaxlib_version < (0, 11):
        # Its StableHLO is newer than what this jaxlib reads.
        with pytest.raises(ValueError, match=r"is written in version .* Take a newer jaxlib"):
            exported.call(np.ones(3, np.float32))
    else:
        assert exported.call(np.ones(3, np.float32)).shape == (3,)


PROGRAMS = """
import numpy as np
def programs(jax, jnp, export):
    shape = lambda text, **options: export.symbolic_shape(text, **options)
    spec = jax.ShapeDtypeStruct
    def made(f, *texts, constraints=()):
        scope = export.SymbolicScope(constraints)
        specs = [spec(shape(text, scope=scope), "float32") for text in texts]
        return export.export(jax.jit(f), platforms=["cpu"])(*specs)
    yield "product", made(lambda x, w: jnp.tanh(x @ w), "b, n", "n, 3"), ((4, 2), (2, 3)), 1
    yield "mean", made(lambda x: x - x.mean(0), "b, 3"), ((5, 3),), 1
    yield "slices", made(lambda x: x[1:] * x[:-1], "b", constraints=["b >= 2"]), ((6,),), 1
    yield "cumsum", made(lambda x: jnp.cumsum(x, 0), "b, c"), ((4, 3),), 0
    scanned = lambda x: jax.lax.scan(lambda c, r: (c + r, c), x[0], x)
    yield "scan", made(scanned, "b, 2"), ((4, 2),), 0
    yield "sort", made(lambda x: jnp.sort(x.reshape(-1)), "b, 2*c"), ((3, 4),), 0
    yield "iota", made(lambda x: jnp.arange(x.shape[0]) * x, "b"), ((7,),), 1
    yield "inner", made(lambda x: jax.jit(lambda y: y * y.shape[0])(x).sum(), "b"), ((3,),), 1
    yield "softmax", made(lambda x: jax.nn.softmax(x @ x.T), "b, c"), ((4, 2),), 1
    yield "pad", made(lambda x: jnp.pad(x, ((1, x.shape[1]), (0, 2))), "b, c"), ((2, 3),), 0
    joined = lambda x, y: jnp.concatenate([x, y])
    yield "concatenate", made(joined, "b, 2", "c, 2"), ((1, 2), (3, 2)), 0
    yield "gather", made(lambda x: x[jnp.argsort(x[:, 0])], "b, 2"), ((5, 2),), 0
def filled(*shapes):
    for shape in shapes:
        yield np.sin(np.arange(np.prod(shape), dtype=np.float32) + 1).reshape(shape)
def results(jax, exported, shapes, order):
    values = list(filled(*shapes))
    yield from jax.tree_util.tree_leaves(exported.call(*values))
    if order:
        yield jax.grad(lambda x: exported.call(x, *values[1:]).sum())(values[0])
"""


def run_in_jax(script, folder):
    source = PROGRAMS + textwrap.dedent(script)
    command = [str(ORACLE), "-c", source, str(folder)]
    subprocess.run(command, check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})


def ours():
    namespace = {}
    exec(PROGRAMS, namespace)
    return namespace


def compare(folder, made_by):
    namespace = ours()
    for name, exported, shapes, order in namespace["programs"](jax, jnp, export):
        direct = exported
        if made_by == "jax":
            direct = export.deserialize((folder / name).read_bytes())
        theirs = np.load(folder / f"{name}.npz")
        for position, x in enumerate(namespace["results"](jax, direct, shapes, order)):
            np.testing.assert_allclose(theirs[f"arr_{position}"], x, rtol=2e-5, atol=1e-6)


@pytest.mark.long
def test_jax_reads_a_dozen(tmp_path):
    if not has_flatbuffers():
        pytest.skip("the oracle has no flatbuffers: PYTHONPATH may have a folder with it")
    for name, exported, _, order in ours()["programs"](jax, jnp, export):
        (tmp_path / name).write_bytes(exported.serialize(vjp_order=order, format="jax"))
    script = """
        import sys, jax, jax.numpy as jnp
        from jax import export
        for name, _, shapes, order in programs(jax, jnp, export):
            data = open(f"{sys.argv[1]}/{name}", "rb").read()
            loaded = export.deserialize(bytearray(data))
            np.savez(f"{sys.argv[1]}/{name}.npz", *results(jax, loaded, shapes, order))
    """
    run_in_jax(script, tmp_path)
    compare(tmp_path, "hlofront")


@pytest.mark.long
def test_a_dozen_of_jax_are_read(tmp_path):
    if not has_flatbuffers():
        pytest.skip("the oracle has no flatbuffers: PYTHONPATH may have a folder with it")
    script = """
        import sys, jax, jax.numpy as jnp
        from jax import export
        for name, exported, shapes, order in programs(jax, jnp, export):
            open(f"{sys.argv[1]}/{name}", "wb").write(exported.serialize(vjp_order=order))
            np.savez(f"{sys.argv[1]}/{name}.npz", *results(jax, exported, shapes, order))
    """
    run_in_jax(script, tmp_path)
    compare(tmp_path, "jax")


# ---- calls ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_calls_in_transformations():
    exported = exported_layer()
    x, w = arguments(3, 2)
    expected = layer(x, w)
    np.testing.assert_allclose(jax.jit(exported.call)(x, w), expected, rtol=1e-5)
    batched = jax.vmap(exported.call, (0, None))(np.stack([x, x + 1]), w)
    np.testing.assert_allclose(batched, [expected, layer(x + 1, w)], rtol=1e-5)
    twice = jax.jit(lambda x, w: (exported.call(x, w), exported.call(x[1:], w)))(x, w)
    np.testing.assert_allclose(twice, [expected, layer(x[1:], w)], rtol=1e-5)
    looped = jax.lax.fori_loop(0, 2, lambda i, y: y + exported.call(x, w), jnp.zeros(3))
    np.testing.assert_allclose(looped, 2 * expected, rtol=1e-5)


@pytest.mark.slow
def test_exports_in_exports():
    inner = exported_layer()
    m, k = export.symbolic_shape("m, k")
    outer = export.export(jax.jit(lambda x, w: inner.call(jnp.concatenate([x, x]), w) * x.shape[0]))
    for specs in (
        (Spec((m, k), "float32"), Spec((k, 3), "float32")),
        (Spec((3, 2), "float32"), Spec((2, 3), "float32")),
    ):
        loaded = export.deserialize(outer(*specs).serialize())
        x, w = arguments(3, 2)
        expected = layer(np.concatenate([x, x]), w) * 3
        np.testing.assert_allclose(loaded.call(x, w), expected, rtol=1e-5)
    with pytest.raises(ValueError, match=r"'b >= 2'.*'m - 2' >= '0' is inconclusive"):
        export.export(jax.jit(inner.call))(Spec((m, k), "float32"), Spec((k, 3), "float32"))


def test_several_platforms_and_x64():
    (b,) = export.symbolic_shape("b")
    f = jax.jit(lambda x: x * x.shape[0] + jnp.arange(x.shape[0]))
    exported = export.export(f, platforms=["cpu", "tpu"])(Spec((b,), "float32"))
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(exported.call(x), [3, 4, 5])
    with jax.enable_x64(True):
        wide = export.export(f)(Spec((b,), "float64"))
        assert wide.call(x.astype(np.float64)).dtype == np.float64
        assert "tensor<i64>" in str(wide.mlir_module())
        np.testing.assert_array_equal(exported.call(x), [3, 4, 5])


@pytest.mark.slow
def test_random_keys_and_booleans():
    (b,) = export.symbolic_shape("b")
    draw = jax.jit(lambda keys, mask: jnp.where(mask, jax.vmap(jax.random.uniform)(keys), 0))
    keys = jax.random.split(jax.random.key(0), 3)
    exported = export.export(draw)(Spec((b,), keys.dtype), Spec((b,), "bool"))
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(exported.call(keys, mask), draw(keys, mask))


def test_errors_name_the_argument():
    b, n = export.symbolic_shape("b, 2*n")
    exported = export.export(jax.jit(lambda tree, *, y: tree["a"].sum() + y))(
        {"a": Spec((b, n), "float32")}, y=Spec((b,), "float32")
    )

    def called(*shapes):
        a, y = (np.ones(shape, np.float32) for shape in shapes)
        return exported.call({"a": a}, y=y)

    assert called((3, 4), (3,)).shape == (3,)
    with pytest.raises(ValueError, match=r"args\[0\]\['a'\]\.shape\[1\] is 3, .* '2\*n', which no"):
        called((3, 3), (3,))
    with pytest.raises(ValueError, match=r"kwargs\['y'\]\.shape\[0\] is 2, .*'b' it is to be 3"):
        called((3, 4), (2,))
    with pytest.raises(ValueError, match=r"args\[0\]\['a'\]\.shape\[0\] is 0, .* the value 0 < 1"):
        called((0, 4), (0,))
    with pytest.raises(ValueError, match=r"Rank mismatch for kwargs\['y'\]"):
        called((3, 4), (3, 1))


def test_operations_without_a_dynamic_form_are_named():
    (n,) = export.symbolic_shape("n")
    with pytest.raises(
        InconclusiveDimensionOperation, match=r"^fft has no StableHLO .* of fft_lengths=\(n,\)"
    ):
        export.export(jax.jit(jnp.fft.fft))(Spec((n,), "complex64"))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jax.lax.top_k(x, x.shape[1] // 2),
        lambda x: jax.lax.top_k(x.astype("int8"), x.shape[0], axis=0),
        lambda x: jax.lax.rng_bit_generator(jnp.arange(4, dtype="uint32"), x.shape),
        lambda x: jax.random.uniform(jax.random.key(0, impl="rbg"), x.shape),
        lambda x: jax.random.categorical(jax.random.key(0), x, axis=0),
        lambda x: jnp.quantile(x, 0.25, axis=0),
        lambda x: jax.lax.index_in_dim(x, x.shape[1] - 1, axis=1),
    ],
)
def test_results_of_unknown_sizes(function):
    exported = export.export(jax.jit(function))(Spec(export.symbolic_shape("b, n"), "float32"))
    for sizes in ((1, 2), (3, 5), (4, 8)):
        x = np.sin(np.arange(np.prod(sizes), dtype=np.float32)).reshape(sizes)
        called, direct = (jax.tree.leaves(f(x)) for f in (exported.call, jax.jit(function)))
        for one, other in zip(called, direct, strict=True):
            np.testing.assert_array_equal(one, other)


def test_programs_that_run_have_known_sizes():
    (n,) = export.symbolic_shape("n")
    traced = jax.jit(jnp.sin).trace(Spec((n,), "float32"))
    assert str(traced.out_info) == "ShapeDtypeStruct(shape=(n,), dtype=float32)"
    with pytest.raises(ValueError, match=r"argument float32\[n\] of unknown sizes.*export it"):
        traced.lower()


# ---- specifications ------------------------------------------------------------------------------


def test_specs_of_arguments():
    tree = {"x": np.ones((4, 3), np.float32), "y": [np.ones(3, np.int32), np.ones((), bool)]}
    specs = export.symbolic_args_specs((tree,), ({"x": "b, _", "y": "..."},))
    assert str(specs[0]["x"].shape) == "(b, 3)" and specs[0]["x"].dtype == np.float32
    assert specs[0]["y"][0].shape == (3,) and specs[0]["y"][1].dtype == bool
    same = export.symbolic_args_specs((tree["x"], tree["x"]), "b, c", constraints=["b <= 4"])
    assert same[0].shape == same[1].shape and same[0].shape[0] < 5
    with pytest.raises(ValueError, match="different size 5 for known dimension"):
        export.symbolic_args_specs((tree["x"],), ("b, 5",))
    with pytest.raises(ValueError, match="shapes_specs of symbolic_args_specs"):
        export.symbolic_args_specs((tree,), ({"x": None},))
    with pytest.raises(ValueError, match="both `scope` and `constraints`"):
        export.symbolic_args_specs((), (), ["a >= 2"], export.SymbolicScope())
