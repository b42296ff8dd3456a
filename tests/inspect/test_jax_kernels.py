"""Kernels of jax's own library, for TPUs and GPUs: one change in each is the first cause in `diff`.

jax lowers them in its own process, without devices.
"""

import importlib.util
import os
import pathlib
import subprocess

import pytest

from hlofront.inspect import diff
from hlotools.ir.kernel_parameters import kernels_in

PROGRAM = """
import functools
import importlib.metadata
import pathlib
import sys

# Mosaic GPU needs absl, and the CUDA plugin of this version of jax for the version of CUDA.
packages = sys.argv[2]
found = importlib.metadata.distributions(path=[packages], name="jax-cuda13-plugin")
has_mosaic_gpu = importlib.metadata.version("jax") in [each.version for each in found]
if has_mosaic_gpu:
    sys.path.append(packages)

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas.ops.gpu import (
    attention as gpu_attention, rms_norm, softmax,
)
from jax.experimental.pallas.ops.tpu import flash_attention as flash, matmul
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from jax.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel as splash, splash_attention_mask as masks,
)


def spec(*sizes, dtype="bfloat16"):
    return jax.ShapeDtypeStruct(sizes, dtype)


def write(name, platform, arguments, *functions):
    for side, function in zip("ab", functions):
        lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=(platform,))
        path = pathlib.Path(sys.argv[1]) / f"{name}.{side}.mlir"
        path.write_text(lowered.as_text(debug_info=True))


def flashed(block=128, causal=True):
    names = ("block_q", "block_q_major_dkv", "block_q_dkv", "block_q_dq")
    keys = ("block_k_major", "block_k", "block_k_major_dkv", "block_k_dkv", "block_k_major_dq",
            "block_k_dq")
    sizes = flash.BlockSizes(
        block_b=1, **dict.fromkeys(names, block), **dict.fromkeys(keys, 128)
    )
    return lambda q, k, v: flash.flash_attention(q, k, v, causal=causal, block_sizes=sizes)


def gradient(function):
    return jax.grad(lambda q, k, v: function(q, k, v).astype("float32").sum(), (0, 1, 2))


def splashed(block=128, mask=masks.CausalMask):
    sizes = splash.BlockSizes(block_q=block, block_kv=128, block_kv_compute=128)
    heads = masks.MultiHeadMask([mask((512, 512))] * 2)
    return splash.make_splash_mha(
        mask=heads, head_shards=1, q_seq_shards=1, block_sizes=sizes
    )


def product(precision="default", space=None, mode=None):
    def kernel(x, y, out):
        right = y[...] if space is None else jnp.full((128, 128), y[0, 0])
        out[...] = jnp.dot(x[...], right, precision=precision, preferred_element_type="float32")

    modes = {} if mode is None else {"pipeline_mode": mode}
    second = pl.BlockSpec((128, 128), lambda i: (0, i), **modes)
    return pl.pallas_call(
        kernel,
        out_shape=spec(128, 512, dtype="float32"),
        grid=(4,),
        in_specs=[
            pl.BlockSpec((128, 128), lambda i: (0, 0)),
            second if space is None else pl.BlockSpec(memory_space=space),
        ],
        out_specs=pl.BlockSpec((128, 128), lambda i: (0, i)),
    )


def grouped(rows):
    return functools.partial(gmm, preferred_element_type=jnp.bfloat16, tiling=(rows, 128, 128))


def paged(pages):
    return functools.partial(paged_attention, pages_per_compute_block=pages)


def blocked(inner):
    return functools.partial(matmul.matmul, block_shape=(256, 256), block_k=inner)


def triton_attention(rows=64, causal=True, stages=2):
    sizes = gpu_attention.BlockSizes(block_q=rows, block_k=64)
    return lambda q, k, v: gpu_attention.mha(
        q, k, v, segment_ids=None, causal=causal, block_sizes=sizes, num_stages=stages
    )


q = [spec(1, 1, 512, 128)] * 3
write("flash", "tpu", q, flashed(), flashed(256))
write("flash_mask", "tpu", q, flashed(), flashed(causal=False))
write("flash_gradient", "tpu", q, gradient(flashed()), gradient(flashed(256)))
write("splash", "tpu", [spec(2, 512, 128)] * 3, splashed(), splashed(256))
write("splash_mask", "tpu", [spec(2, 512, 128)] * 3, splashed(), splashed(mask=masks.FullMask))
pages = [spec(8, 16, 16, 128)] * 2 + [spec(2, dtype="int32"), spec(2, 8, dtype="int32")]
write("paged", "tpu", [spec(2, 8, 128), *pages], paged(4), paged(8))
groups = [spec(1024, 512), spec(4, 512, 512), spec(4, dtype="int32")]
write("megablox", "tpu", groups, grouped(128), grouped(256))
write("matmul", "tpu", [spec(512, 512)] * 2, blocked(256), blocked(128))
floats = [spec(128, 128, dtype="float32"), spec(128, 512, dtype="float32")]
write("precision", "tpu", floats, product(), product("highest"))
write("pipelining", "tpu", floats, product(), product(mode=pl.Buffered(1)))
write("space", "tpu", floats, product(space=pltpu.SMEM), product(space=pltpu.VMEM))
h = [spec(1, 512, 2, 64, dtype="float16")] * 3
write("triton_attention", "cuda", h, triton_attention(), triton_attention(128))
write("triton_mask", "cuda", h, triton_attention(), triton_attention(causal=False))
write("triton_pipelining", "cuda", h, triton_attention(), triton_attention(stages=3))
rows = [spec(64, 512, dtype="float32")]
write(
    "triton_softmax", "cuda", rows,
    *(functools.partial(softmax.softmax, num_warps=n) for n in (4, 8)),
)
norm = [spec(2, 64, 512, dtype="float32"), *[spec(512, dtype="float32")] * 2]
write(
    "triton_rms_norm", "cuda", norm,
    *(functools.partial(rms_norm.rms_norm, num_stages=n) for n in (3, 2)),
)
write(
    "triton_epsilon", "cuda", norm,
    *(functools.partial(rms_norm.rms_norm, eps=e) for e in (1e-5, 1e-6)),
)
if has_mosaic_gpu:
    from jax.experimental.pallas.ops.gpu import attention_mgpu

    def mosaic_attention(rows=64, steps=2, causal=False):
        config = attention_mgpu.TuningConfig(
            block_q=rows, block_kv=64, max_concurrent_steps=steps, causal=causal
        )
        return functools.partial(attention_mgpu.attention, config=config)

    write("mosaic_attention", "cuda", h, mosaic_attention(), mosaic_attention(128))
    write("mosaic_mask", "cuda", h, mosaic_attention(), mosaic_attention(causal=True))
    write("mosaic_pipelining", "cuda", h, mosaic_attention(), mosaic_attention(steps=4))
"""
# The sentence of the first change, up to the names of values.
CAUSES = {
    "flash": "kernel _flash_attention_kernel, block sizes of operand 0, result 0",
    "flash_mask": "kernel _flash_attention_kernel, index maps of operand 1, operand 2: ",
    "flash_gradient": "kernel _flash_attention_kernel, block sizes of operand 0, result 0",
    "splash": "kernel splash_mha_fwd_no_residuals, block sizes of operand 0",
    "splash_mask": "kernel splash_mha_fwd_no_residuals, block sizes of operand 3: 128x128 -> none",
    "paged": "kernel paged_flash_attention_kernel_inline_seq_dim, block sizes of scratch 0",
    "megablox": "kernel kernel, block sizes of operand 0",
    "matmul": "kernel matmul_kernel, block sizes of operand 0: 256x256 -> 256x128",
    "precision": "kernel kernel, precision of tpu.matmul: none -> fp32",
    "pipelining": "kernel kernel, pipeline_mode of operand 1: none -> ",
    "space": "kernel kernel, memory spaces of operand 1: smem -> vmem",
    "triton_attention": "kernel mha_forward, block sizes of load 0, load 3, store 0: 64x64 -> 128",
    "triton_mask": "kernel mha_forward: removed scf.for; added scf.for",
    "triton_pipelining": "kernel mha_forward, num_stages: 2 -> 3",
    "triton_rms_norm": "kernel rms_norm_forward_kernel, num_stages: 3 -> 2",
    "triton_epsilon": "kernel rms_norm_forward_kernel, operation of arith.constant: "
    "arith.constant 9.99999974E-6 : f32 -> arith.constant 9.99999997E-7 : f32",
    "mosaic_attention": "kernel entry_mosaic_gpu, block sizes of shared memory 6: 2x8x1x8x64xf16 "
    "-> 2x16x1x8x64xf16",
    "mosaic_mask": "kernel entry_mosaic_gpu: added 2 × scf.index_switch, 2 × scf.for",
    "mosaic_pipelining": "kernel entry_mosaic_gpu, block sizes of shared memory 0, shared memory 1",
    "triton_softmax": "kernel _vmappable_softmax_kernel, num_warps: 4 -> 8",
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    if "HLOFRONT_ORACLE_PYTHON" not in os.environ:
        pytest.skip("no Python that has jax")
    folder = tmp_path_factory.mktemp("kernels")
    plugin = importlib.util.find_spec("jax_cuda13_plugin")
    packages = pathlib.Path(plugin.origin).parents[1] if plugin and plugin.origin else ""
    process = subprocess.run(
        [os.environ["HLOFRONT_ORACLE_PYTHON"], "-c", PROGRAM, str(folder), str(packages)],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return {path.name.removesuffix(".mlir"): path for path in pathlib.Path(folder).iterdir()}


@pytest.mark.long
@pytest.mark.parametrize("name", CAUSES)
def test_a_change_in_a_kernel_of_jax_is_the_first_cause(name, texts):
    if name.startswith("mosaic") and f"{name}.a" not in texts:
        pytest.skip("no CUDA plugin of jax's version")
    before, after = (texts[f"{name}.{side}"].read_text() for side in "ab")
    kernels = kernels_in(before)
    assert kernels and all(kernel.mlir and not kernel.problem for _, kernel in kernels)
    assert diff(before, before).equal
    first, *_ = diff(before, after).changes
    assert first.sentence.startswith(CAUSES[name]), first.sentence
    assert first.sources
