"""Attention by cuDNN's kernels: which are called, over how many devices; on a GPU, its values.

`pytest -m gpu` runs the last tests on the GPU: see tests/on_platforms.py.
"""

import json
import re

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.pjrt import targets

LENGTHS = np.array([100, 128], np.int32)
# What is passed to dot_product_attention, the custom call, the mask and the window of its options.
KINDS = {
    "plain": ({}, "Softmax", "NO_MASK", 0),
    "causal": ({"is_causal": True}, "Softmax", "CAUSAL", 0),
    "a window": ({"local_window_size": (32, 0)}, "Softmax", "CAUSAL", 33),
    "a causal window": ({"local_window_size": 16, "is_causal": True}, "Softmax", "CAUSAL", 17),
    "lengths": ({"key_value_seq_lengths": LENGTHS}, "Softmax", "PADDING", 0),
    "causal lengths": (
        {"query_seq_lengths": LENGTHS, "key_value_seq_lengths": LENGTHS, "is_causal": True},
        "Softmax",
        "PADDING_CAUSAL",
        0,
    ),
    "a bias": ({"bias": (2, 8, 128, 128)}, "ScaleBiasSoftmax", "NO_MASK", 0),
    "a bias for all": ({"bias": (1, 1, 128, 128)}, "ScaleBiasSoftmax", "NO_MASK", 0),
    "a bias of keys": ({"bias": (1, 8, 1, 128)}, "ScaleBiasSoftmax", "NO_MASK", 0),
    "a mask": ({"mask": np.tri(128, dtype=bool)[None, None]}, "ScaleBiasSoftmax", "NO_MASK", 0),
    "a mask and a bias": (
        {"mask": np.tri(128, dtype=bool)[None, None], "bias": (1, 8, 1, 128)},
        "ScaleBiasSoftmax",
        "NO_MASK",
        0,
    ),
}


def attention(implementation, **kwargs):
    def f(q, k, v, bias=None):
        return jax.nn.dot_product_attention(
            q, k, v, bias=bias, implementation=implementation, **kwargs
        )

    return f


def loss(f):
    return lambda *args: (f(*args).astype(jnp.float32) ** 2).sum()


def spec(*shape, dtype=jnp.bfloat16, **kwargs):
    return jax.ShapeDtypeStruct(shape, dtype, **kwargs)


def split_bias(kwargs):
    """Return the keyword arguments without the bias, and its shape in a list."""
    kwargs = dict(kwargs)
    return kwargs, [kwargs.pop("bias")] if "bias" in kwargs else []


@pytest.fixture
def h100():
    missing = targets.install_hint("cuda")
    if missing:
        pytest.skip(missing)
    with jax.target("cuda:h100"):
        yield


def calls(lowered):
    """The names and the options of the custom calls in a module."""
    found = re.findall(r'custom_call @__cudnn\$fmha(\w+)\(.*?backend_config = "(.*?)"', lowered)
    return [
        (name, json.loads(re.sub(r"\\22", '"', text))["cudnn_fmha_backend_config"])
        for name, text in found
    ]


@pytest.mark.cpu
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_and_its_options(kind, h100):
    kwargs, name, mask, window = KINDS[kind]
    kwargs, bias = split_bias(kwargs)
    args = [
        spec(2, 128, 8, 64),
        spec(2, 128, 4, 64),
        spec(2, 128, 4, 64),
        *(spec(*b) for b in bias),
    ]
    f = attention("cudnn", scale=0.5, **kwargs)
    gradient = jax.jit(jax.grad(loss(f), tuple(range(len(args))))).lower(*args).as_text()
    both = calls(gradient)
    assert [each for each, _ in both] == [name, name + "Backward"]
    for _, options in both:
        assert (options["mask_type"], options["sliding_window_length"]) == (mask, window)
        assert options["fmha_scale"] == 0.5
        assert options["intermediate_tensor_shape"]["dimensions"] == ["2", "8", "128", "128"]
    # The logsumexps are computed for the derivative alone.
    assert "xf32>, tensor<0xui8>" in gradient
    assert "xf32>, tensor<0xui8>" not in jax.jit(f).lower(*args).as_text()


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("what", "given"),
    [
        (
            "float16 and bfloat16, and query is float32",
            lambda: [spec(1, 8, 2, 64, dtype="float32")],
        ),
        ("multiple of 8 up to 256 elements, and query has 20", lambda: [spec(1, 8, 2, 20)]),
        ("multiple of 8 up to 256 elements, and query has 264", lambda: [spec(1, 8, 2, 264)]),
        ("even numbers of queries", lambda: [spec(1, 7, 2, 64), spec(1, 2, 7, 7)]),
    ],
)
def test_what_has_no_kernel_says_so(what, given, h100):
    query, *bias = given()
    f = loss(attention("cudnn"))
    with pytest.raises(NotImplementedError, match=what):
        jax.jit(jax.grad(f)).lower(query, query, query, *bias)


@pytest.mark.cpu
def test_windows_to_the_right_are_refused(h100):
    q = spec(1, 8, 2, 64)
    with pytest.raises(ValueError, match="no window to the right"):
        jax.jit(attention("cudnn", local_window_size=(4, 1))).lower(q, q, q)


@pytest.mark.cpu
def test_without_a_gpu_it_is_refused():
    q = jnp.zeros((1, 8, 2, 64), jnp.bfloat16)
    if jax.default_backend() == "cpu":
        with pytest.raises(RuntimeError, match="cuDNN is not detected"):
            attention("cudnn")(q, q, q)


@pytest.mark.cpu
def test_mapped_axes_are_batches_of_one_kernel(h100):
    """A bias that all share stays one array, but for its derivative, which is each example's."""
    f = attention("cudnn")
    q, k, bias = spec(3, 2, 128, 8, 64), spec(2, 128, 4, 64), spec(1, 8, 128, 128)
    axes = (0, None, None, None)
    forward = jax.jit(jax.vmap(f, axes)).lower(q, k, k, bias)
    assert [
        o["intermediate_tensor_shape"]["dimensions"][0] for _, o in calls(forward.as_text())
    ] == ["6"]
    assert "tensor<1x8x128x128xbf16>) -> (tensor<6x8x128x64xbf16>" in forward.as_text()
    gradient = jax.jit(jax.vmap(jax.grad(loss(f), (0, 1, 2, 3)), axes)).lower(q, k, k, bias)
    assert len(calls(gradient.as_text())) == 2
    shapes = [aval.shape for aval in jax.tree.leaves(gradient.out_info)]
    assert shapes == [q.shape, (3, *k.shape), (3, *k.shape), (3, *bias.shape)]


@pytest.mark.cpu
def test_batches_and_heads_are_split_over_devices():
    missing = targets.install_hint("cuda")
    if missing:
        pytest.skip(missing)
    with jax.target("cuda:h100:8") as target:
        mesh = jax.sharding.Mesh(np.array(target.devices).reshape(4, 2), ("x", "y"))

        def split(shape, *axes):
            return spec(*shape, sharding=jax.NamedSharding(mesh, jax.P(*axes)))

        q, k = split((8, 128, 8, 64), "x", None, "y"), split((8, 128, 4, 64), "x", None, "y")
        bias = split((1, 8, 128, 128), None, "y")
        gradient = jax.jit(jax.grad(loss(attention("cudnn", is_causal=True)), (0, 1, 2, 3)))
        compiled = gradient.lower(q, k, k, bias).compile()
    text = compiled.as_text()
    # Each device has a quarter of the batches and half of the heads.
    assert re.search(r"bf16\[2,4,128,64\]\S*, f32\[2,4,128\]\S*, u8\S* custom-call", text)
    assert "all-gather" not in text
    # A bias for all batches has the sum of their derivatives.
    sums = re.findall(r"(bf16\S*) all-reduce(?:-start)?\(", text)
    assert [each.partition("{")[0] for each in sums] == ["bf16[1,4,128,128]"]
    shardings = compiled.output_shardings
    assert [s.spec for s in shardings] == [jax.P("x", None, "y")] * 3 + [jax.P(None, "y")]


# ---- on a GPU ------------------------------------------------------------------------------------


@pytest.fixture
def gpu():
    device = next(iter(jnp.zeros(()).devices()))
    if device.platform != "gpu":
        pytest.skip("cuDNN is for GPUs of NVIDIA's")
    return device


def arrays(bias):
    rng = np.random.default_rng(0)
    shapes = [(2, 128, 8, 64), (2, 128, 4, 64), (2, 128, 4, 64), *bias]
    return [rng.normal(size=shape).astype(np.float32) / 2 for shape in shapes]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_those_of_xla(kind, dtype, gpu):
    kwargs, bias = split_bias(KINDS[kind][0])
    given = [jnp.asarray(x, dtype) for x in arrays(bias)]
    exact = [x.astype(jnp.float32) for x in given]
    if "local_window_size" in kwargs:
        kwargs["is_causal"] = True
    fused, plain = attention("cudnn", **kwargs), attention("xla", **kwargs)
    wanted = jax.jit(plain)(*exact)
    np.testing.assert_allclose(np.float32(jax.jit(fused)(*given)), wanted, rtol=0.02, atol=0.01)
    positions = tuple(range(len(given)))
    gradients = jax.jit(jax.grad(loss(fused), positions))(*given)
    for ours, theirs in zip(gradients, jax.jit(jax.grad(loss(plain), positions))(*exact)):
        scale = float(jnp.abs(theirs).max())
        np.testing.assert_allclose(np.float32(ours), theirs, rtol=0.05, atol=0.02 * scale)


def test_residuals_and_batches_are_those_of_xla(gpu):
    given = [jnp.asarray(x, "bfloat16") for x in arrays([(1, 8, 128, 128)])]
    q = jnp.stack([given[0], given[0] * 0.5, -given[0]])
    results = {}
    for implementation in ("cudnn", "xla"):
        f = attention(implementation, return_residual=True)
        mapped = jax.vmap(f, (0, None, None, None))(q, *given[1:])
        g = jax.grad(loss(attention(implementation)), 3)
        results[implementation] = (*mapped, jax.vmap(g, (0, None, None, None))(q, *given[1:]))
    for ours, theirs in zip(results["cudnn"], results["xla"]):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        theirs = np.float32(theirs)
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(np.float32(ours), theirs, rtol=0.05, atol=0.02 * scale)
