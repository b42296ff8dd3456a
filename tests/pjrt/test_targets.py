"""Targets: what is compiled for devices that are not there can be read, and is not run.

Skipped where the plugin that compiles for a target is not installed.
"""

import copy
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.base.errors import AbsentDeviceError, PluginError, TargetError
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, lower
from hlofront.experimental import mesh_utils, topologies
from hlofront.pjrt import configured_stores, platforms, targets, toolchain
from hlofront.pjrt.shardings import on_device
from tests.pjrt.needed import need

WIDTH = 128
ABSENT = [name for name in targets.NAMES if name != "cpu"]
OWN = {"tpu": r"\{[\d,]+:T\(8,128\)", "cuda": "__triton|__cublas|__cudnn|cuda_dnn", "cpu": "fusion"}


@jax.jit
def matmul_softmax(x, w):
    y = jnp.dot(x, w)
    y = jnp.exp(y - y.max(-1, keepdims=True))
    return y / y.sum(-1, keepdims=True)


def normalized(x, scale):
    x32 = x.astype(jnp.float32)
    mean = x32.mean(-1, keepdims=True)
    variance = ((x32 - mean) ** 2).mean(-1, keepdims=True)
    return ((x32 - mean) * lax.rsqrt(variance + 1e-5)).astype(x.dtype) * scale


@jax.jit
def gpt_block(weights, x):
    length, heads = x.shape[0], 4
    qkv = normalized(x, weights["scale"]) @ weights["qkv"]
    q, k, v = jnp.moveaxis(qkv.reshape(length, 3, heads, -1), (1, 2), (0, 1))
    scores = (q @ jnp.swapaxes(k, 1, 2)).astype(jnp.float32) / WIDTH**0.5
    scores = jnp.where(jnp.tri(length, dtype=bool), scores, -1e9)
    shares = jnp.exp(scores - scores.max(-1, keepdims=True))
    shares = (shares / shares.sum(-1, keepdims=True)).astype(x.dtype)
    x = x + jnp.moveaxis(shares @ v, 0, 1).reshape(length, WIDTH) @ weights["out"]
    y = normalized(x, weights["scale"]) @ weights["up"]
    return x + (y * (1 + jnp.tanh(y)) / 2) @ weights["down"]


def described(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16)


SOFTMAX_ARGS = (described(WIDTH, 256), described(256, 512))
BLOCK_ARGS = (
    {
        "scale": described(WIDTH),
        "qkv": described(WIDTH, 3 * WIDTH),
        "out": described(WIDTH, WIDTH),
        "up": described(WIDTH, 4 * WIDTH),
        "down": described(4 * WIDTH, WIDTH),
    },
    described(64, WIDTH),
)


@pytest.mark.parametrize("name", targets.NAMES)
def test_every_target_compiles_for_itself(name):
    target = jax.target(name)
    need(target.platform)
    with target:
        compiled = [
            matmul_softmax.lower(*SOFTMAX_ARGS).compile(),
            gpt_block.lower(*BLOCK_ARGS).compile(),
        ]
    products = (2 * WIDTH * 256 * 512, 2 * 64 * WIDTH * 12 * WIDTH)
    for each, product in zip(compiled, products, strict=True):
        text = each.as_text()
        assert re.search(OWN[target.platform], text), text[:2000]
        cost = each.cost_analysis()
        # XLA may leave out work, such as what the mask hides, but not much of the products.
        assert cost["flops"] > 0.9 * product
        assert cost["bytes accessed"] > 2 * WIDTH * WIDTH
        memory = each.memory_analysis()
        assert memory.argument_size_in_bytes >= 2 * WIDTH * WIDTH
        assert memory.temp_size_in_bytes >= 0
    if not target.is_attached:
        assert all(e.output_shardings.device_set == {target.devices[0]} for e in compiled)


@pytest.mark.parametrize("name", targets.NAMES)
def test_every_target_describes_itself(name):
    what = jax.target(name).describe()
    assert what.memory_bytes is None or what.memory_bytes > 1e9
    if name != "cpu":
        assert 1e11 < what.bandwidth < 1e13
        assert all(1e12 < peak < 1e16 for peak in what.peak_flops.values())
        assert what.peak_flops.keys() & {"bfloat16", "float16"}
        assert all(source.startswith("https://") for source in what.sources)
    assert str(what).startswith(name)
    assert str(what.devices) in str(what) or what.devices == 1


@pytest.mark.parametrize(
    ("name", "gibibytes", "gigabytes_per_second", "teraflops"),
    [
        ("tpu:v4:2x2x1", 32, 1228, {"bfloat16": 275}),
        ("tpu:v5e:1x1", 16, 819, {"bfloat16": 197, "int8": 394}),
        ("tpu:v5p:2x2x1", 95, 2765, {"bfloat16": 459}),
        ("tpu:v6e:1x1", 32, 1640, {"bfloat16": 918}),
        # A chip has two devices.
        ("tpu:7x:2x2x1", 192 / 2, 7380 / 2, {"bfloat16": 2307 / 2, "float8": 4614 / 2}),
        ("cuda:t4", 16, 320, {"float16": 65, "float32": 8.1}),
        ("cuda:l4", 24, 300, {"bfloat16": 121, "float32": 30.3, "float8": 242.5}),
        ("cuda:a100", 80, 2039, {"bfloat16": 312, "float32": 19.5, "float64": 9.7}),
        ("cuda:h100", 80, 3350, {"bfloat16": 989.4, "float8": 1979, "float32": 67, "float64": 34}),
        ("cuda:h200", 141, 4800, {"bfloat16": 989.4, "float8": 1979}),
        ("cuda:b200", 180, 8000, {"bfloat16": 2250, "float8": 4500}),
    ],
)
def test_the_numbers_are_those_that_are_published(name, gibibytes, gigabytes_per_second, teraflops):
    """Copied a second time, from the makers' pages: dense, of one device."""
    what = jax.target(name).describe()
    assert what.memory_bytes == gibibytes * 2**30
    assert what.bandwidth / 1e9 == pytest.approx(gigabytes_per_second, rel=2e-3)
    for dtype, peak in teraflops.items():
        assert what.peak_flops[dtype] / 1e12 == pytest.approx(peak, rel=1e-3)


@pytest.mark.parametrize("name", ABSENT)
def test_there_are_as_many_devices_as_are_described(name):
    target = jax.target(name)
    need(target.platform)
    assert len(target.devices) == target.describe().devices
    assert len({device.id for device in target.devices}) == len(target.devices)
    assert {device.platform for device in target.devices} <= {"tpu", "gpu"}


def test_the_list_of_targets(monkeypatch):
    listed = jax.targets()
    assert [row.name for row in listed] == list(targets.NAMES)
    assert all(row.name in repr(listed) for row in listed)
    monkeypatch.setattr(platforms, "find_plugins", dict)
    rows = {row.name: row for row in jax.targets()}
    assert not rows["tpu:v5e:2x2"].ready
    assert rows["tpu:v5e:2x2"].how == "pip install libtpu"
    assert "jax-cuda13-pjrt" in rows["cuda:h100"].how
    assert rows["cpu"].ready


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("", "a target is 'cpu', 'tpu:GENERATION:SHAPE'"),
        ("tpu", "generations of TPUs are v2, v3, v4, v5e.* Did you mean 'tpu:v5e:1x1'"),
        ("gpu", "Did you mean 'cuda:h100'"),
        ("v6e", "Did you mean 'tpu:v6e:1x1'"),
        ("tpu:v5e", r"the name has none; TPU v5e has 1x1, 2x2, 2x4.* Did you mean 'tpu:v5e:1x1'"),
        ("tpu:v9:2x2", "generations of TPUs are"),
        (
            "tpu:v5e:3x3",
            r"'3x3' is none of them; TPU v5e has 1x1, 2x2.* Did you mean 'tpu:v5e:2x4'",
        ),
        ("tpu:v5p:2x2", r"TPU v5p has 2x2x1, .* multiples of 4x4x4.* Did you mean 'tpu:v5p:2x2x"),
        ("tpu:v5p:4x8x4", "sides in ascending order"),
        ("tpu:v5e:2x2:4", "has 1x1, 2x2"),
        ("TPU:V5E:2x2", "Did you mean 'tpu:v5e:2x2'"),
        ("v6e:4x4", "Did you mean 'tpu:v6e:4x4'"),
        ("gpu:h100", "Did you mean 'cuda:h100'"),
        ("h100", "Did you mean 'cuda:h100'"),
        ("cuda:h1000", "the GPUs are h100, h200.* Did you mean 'cuda:h100'"),
        ("cuda:h100:0", "1 to 8, or a multiple of 8"),
        ("cuda:h100:12", "1 to 8, or a multiple of 8"),
        ("cuda:h100:two", "1 to 8, or a multiple of 8"),
        ("cuda:h100:2:2", "1 to 8, or a multiple of 8"),
        ("v5litepod-8", "Did you mean 'tpu:v5e:2x4'"),
        ("tpu:v5litepod-4", "Did you mean 'tpu:v5e:2x2'"),
        ("v4-8", "Did you mean 'tpu:v4:2x2x1'"),
        ("v6e-16", "Did you mean 'tpu:v6e:4x4'"),
        ("trillium", "Did you mean 'tpu:v6e:1x1'"),
        ("tpu:ironwood", "Did you mean 'tpu:7x:2x2x1'"),
        ("tpu:v5p-9", "generations of TPUs are"),
        ("cpu:4", "the CPU has no kinds.* Did you mean 'cpu'"),
        ("rocm:mi300", "programs are compiled on machines that have them"),
    ],
)
def test_malformed_names_are_refused_helpfully(name, wanted):
    with pytest.raises(TargetError, match=wanted) as caught:
        jax.target(name)
    assert repr(name) in str(caught.value)
    assert "hlofront.targets() lists all names" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_name_is_a_string():
    with pytest.raises(TypeError, match="a target's name is a string"):
        jax.target(5)


# ---- what is compiled ----------------------------------------------------------------------------


def test_targets_do_not_get_in_each_others_way(tpu):
    need("cuda")
    calls = []

    @jax.jit
    def f(x):
        calls.append(x)
        return jnp.tanh(x @ x)

    x = jnp.ones((128, 128))
    before = np.asarray(f(x))
    found = {}
    for name in ("tpu:v5e:2x2", "tpu:v6e:1x1", "cuda:h100"):
        with jax.target(name) as target:
            found[name] = f.lower(x).compile()
            assert f.lower(x).compile().as_text() == found[name].as_text()
            # What runs inside runs where it did before.
            np.testing.assert_array_equal(f(x), before)
            assert f(x).device.platform == jax.default_backend()
            assert found[name]._executable.device is target.devices[0]
    found["here"] = f.lower(x).compile()
    assert len({compiled.as_text() for compiled in found.values()}) == 4
    np.testing.assert_array_equal(found["here"](x), before)
    assert len(calls) == 1  # one program for all of them


def test_targets_are_copied_and_pickled_by_name(absent):
    assert copy.deepcopy(absent) is absent
    assert pickle.loads(pickle.dumps(absent)) is absent


def test_for_all_devices(tpu):
    x = jax.ShapeDtypeStruct((128, 128), jnp.float32)
    with tpu.on_all():
        lowered = jax.jit(jnp.dot).lower(x, x)
        every = lowered.compile()
    assert "num_partitions=4" in every.as_text()
    with tpu:
        lowered = jax.jit(jnp.dot).lower(x, x)
        one = lowered.compile()
        again = lowered.compile(device_assignment=tpu.devices)
    assert "num_partitions=4" not in one.as_text()
    assert again.as_text() == every.as_text()
    with pytest.raises(ValueError, match="device_assignment takes devices of a target"):
        jax.jit(jnp.dot).lower(x, x).compile(device_assignment=tpu.devices)
    with pytest.raises(AbsentDeviceError, match="4 devices of"):
        every(jnp.ones((128, 128)), jnp.ones((128, 128)))


def test_described_arguments_name_their_device(absent):
    sharding = on_device(absent.devices[0])
    x = jax.ShapeDtypeStruct((8, 128), jnp.float32, sharding=sharding)
    text = jax.jit(lambda x: x @ x.T).lower(x).compile().as_text()
    assert re.search(OWN[absent.platform], text)


def test_blocks_of_targets_nest_and_belong_to_their_thread(tpu):
    seen = []

    def platform_of_stages():
        return jax.jit(jnp.sin).trace(1.0)._first_device.platform

    with tpu:
        with jax.target("cpu"):
            seen.append(platform_of_stages())
        seen.append(platform_of_stages())
        thread = threading.Thread(target=lambda: seen.append(platform_of_stages()))
        thread.start()
        thread.join()
        with pytest.raises(KeyError), tpu:
            raise KeyError
        seen.append(platform_of_stages())
    seen.append(platform_of_stages())
    here = jax.default_backend()
    assert seen == ["cpu", "tpu", here, "tpu", here]


def test_what_is_explicit_goes_before_the_target(tpu):
    with pytest.warns(DeprecationWarning, match="arguments of jit are deprecated"):
        on_cpu = jax.jit(jnp.sin, backend="cpu")
        on_device = jax.jit(jnp.sin, device=jax.devices()[0])
    with tpu:
        assert on_cpu.trace(1.0)._first_device.platform == "cpu"
        assert on_device.trace(1.0)._first_device in jax.devices()


def test_nothing_is_kept_on_disk(tpu, tmp_path):
    try:
        jax.config.update("hlofront_cache", True)
        jax.config.update("hlofront_cache_dir", str(tmp_path / "small"))
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / "whole"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        with tpu:
            jax.jit(lambda x: x * 17).lower(1.0).compile()
        stores = [configured_stores.small_store(), configured_stores.whole_store()]
        assert not any(list(store.entries()) for store in stores)
    finally:
        jax.config.update("hlofront_cache", False)
        jax.config.update("hlofront_cache_dir", None)
        jax.config.update("jax_compilation_cache_dir", None)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)


# ---- what differs by platform --------------------------------------------------------------------


def test_code_per_platform(absent):
    def f(x):
        return lax.platform_dependent(
            x, cpu=lambda x: x * 2, tpu=lambda x: x * 3, cuda=lambda x: x * 5
        )

    factor = {"tpu": "3.0", "cuda": "5.0"}[absent.platform]
    with absent:
        assert f"dense<{factor}" in jax.jit(f).lower(1.0).as_text()
        jax.jit(f).lower(1.0).compile()
    traced = jax.jit(f).trace(1.0)
    text = traced.lower(lowering_platforms=(absent.platform,)).as_text()
    assert f"dense<{factor}" in text
    with pytest.raises(ValueError, match=f"was lowered for {absent.platform}"):
        traced.lower(lowering_platforms=(absent.platform,)).compile()


def test_lowering_rules_per_platform():
    here_p = Primitive("here")
    infer(here_p)(lambda x: x)
    lower(here_p)(lambda build, x: build.op("stablehlo.negate", (x,)))
    lower(here_p, platform="tpu")(lambda build, x: build.op("stablehlo.sine", (x,)))
    lower(here_p, platform="gpu")(lambda build, x: build.op("stablehlo.cosine", (x,)))
    traced = jax.jit(here_p.bind).trace(1.0)
    for platform, operation in {
        "cpu": "negate",
        "tpu": "sine",
        "cuda": "cosine",
        "rocm": "cosine",
    }.items():
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        assert f"stablehlo.{operation}" in text
    with pytest.raises(ValueError, match="one of the platforms cpu, cuda"):
        lower(here_p, platform="gpus")


# ---- what is missing -----------------------------------------------------------------------------


def test_a_missing_plugin_says_what_to_install(monkeypatch):
    monkeypatch.setattr(platforms, "find_plugins", dict)
    for name, command in (
        ("tpu:v4:2x2x2", "pip install libtpu"),
        ("cuda:a100:4", "pip install jax-cuda13-pjrt==.* jax-cuda13-plugin=="),
    ):
        with pytest.raises(PluginError, match=f"Run `{command}"):
            jax.target(name).__enter__()
    with pytest.raises(PluginError, match="pip install libtpu"):
        topologies.get_topology_desc("v5e:2x2", "tpu")


def test_a_missing_assembler_says_what_to_install(monkeypatch):
    need("cuda")

    def compile_one(number):
        with jax.target("cuda:l4"):
            return jax.jit(lambda x: x + number).lower(1.0).compile()

    monkeypatch.setattr(toolchain, "find_ptxas", lambda cuda: None)
    with pytest.raises(PluginError, match="Run `pip install nvidia-cuda-nvcc`"):
        compile_one(1)
    monkeypatch.setattr(toolchain, "find_ptxas", lambda cuda: "/opt/old/bin/ptxas")
    monkeypatch.setattr(toolchain, "version_of_tool", lambda path: "11.8")
    with pytest.raises(PluginError, match=r"is of CUDA 11.8.*Run `pip install nvidia-cuda-nvcc`"):
        compile_one(2)


def test_a_program_that_is_too_large(absent):
    x = jax.ShapeDtypeStruct((1 << 17, 1 << 17), jnp.float32)
    found = jax.fits(lambda x: x + 1, x, target=absent)
    assert found.fits is False
    assert found.needed_bytes >= 2 * 2**36 > found.available_bytes
    assert found.argument_bytes == found.output_bytes == 2**36
    assert f"does not fit into the memory of {absent.name}" in str(found)


def test_a_shape_that_the_plugin_does_not_know(monkeypatch):
    need("tpu")
    chip = targets.TPUS["v5e"]
    monkeypatch.setitem(targets.TPUS, "v5e", chip._replace(shapes=("3x3",)))
    monkeypatch.setattr(targets, "_targets", {})
    with pytest.raises(PluginError, match=r"does not know it: .*pip install -U libtpu"):
        jax.target("tpu:v5e:3x3").__enter__()


def test_a_plugin_of_another_jaxlib_is_named_where_it_fails(monkeypatch):
    need("cuda")
    monkeypatch.setattr(platforms, "version_of", lambda name: "0.1.2")
    x = jax.ShapeDtypeStruct((4, 4), jnp.float32)
    with jax.target("cuda:l4"), pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(jnp.sin).lower(x).compile({"xla_gpu_no_such_option": True})
    (note,) = [note for note in caught.value.__notes__ if "must match" in note]
    assert "jax-cuda13-pjrt 0.1.2 is not for jaxlib" in note
    assert "pip install jax-cuda13-pjrt==" in note


@pytest.mark.long
def test_two_processes_compile_at_once_and_print_nothing():
    need("tpu")
    code = (
        "import hlofront as jax, hlofront.numpy as jnp\n"
        "with jax.target('tpu:v5e:2x2'):\n"
        "    compiled = jax.jit(jnp.sin).lower(1.0).compile()\n"
        "print('T(' in compiled.as_text())\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("TPU_", "TF_"))}
    environment.pop("ALLOW_MULTIPLE_LIBTPU_LOAD", None)
    environment["PYTHONPATH"] = str(pathlib.Path(jax.__file__).parents[1])
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for _ in range(2)
    ]
    for process in running:
        out, err = process.communicate(timeout=100)
        assert (process.returncode, out, err) == (0, "True\n", "")


# ---- by JAX's names ------------------------------------------------------------------------------


def test_topologies(tpu):
    described_by_jax = topologies.get_topology_desc("v5e:2x2", "tpu")
    kinds = [(d.id, d.device_kind, d.coords) for d in described_by_jax.devices]
    assert kinds == [(d.id, d.device_kind, d.coords) for d in tpu.devices]
    here = topologies.get_attached_topology()
    assert here.devices == jax.devices()
    with pytest.raises(jax.errors.JaxRuntimeError):
        topologies.get_topology_desc("v5e:3x3", "tpu")
    with pytest.raises(NotImplementedError, match="get_attached_topology"):
        topologies.get_topology_desc("", "cpu")
    mesh = topologies.make_mesh(described_by_jax, (2, 2), ("x", "y"))
    assert str(mesh) == "Mesh('x': 2, 'y': 2, axis_types=(Auto, Auto))"
    assert set(mesh.devices.flat) == set(described_by_jax.devices)


@pytest.mark.parametrize(
    ("name", "shape", "wanted"),
    [
        # As jax arranges them, of the same coordinates.
        ("tpu:v5e:2x2", (2, 2), [0, 1, 3, 2]),
        ("tpu:v5e:2x2", (4, 1), [0, 1, 3, 2]),
        ("tpu:v5p:2x2x1", (2, 2), [0, 1, 2, 3]),
        ("tpu:v6e:4x4", (4, 4), None),
    ],
)
def test_meshes_follow_the_wires(name, shape, wanted):
    need("tpu")
    devices = jax.target(name).devices
    mesh = mesh_utils.create_device_mesh(shape, devices)
    assert mesh.shape == shape
    assert sorted(d.id for d in mesh.ravel()) == sorted(d.id for d in devices)
    if wanted is not None:
        assert [d.id for d in mesh.ravel()] == wanted
    else:
        # Along an axis of the mesh lies one of the torus.
        assert len({d.coords[1] for d in mesh[0]}) * len({d.coords[0] for d in mesh[0]}) == 4


def test_meshes_that_do_not_fit():
    need("tpu")
    devices = jax.target("tpu:v6e:4x4").devices
    with pytest.raises(ValueError, match="Number of devices 16 must equal the product"):
        mesh_utils.create_device_mesh((4, 2), devices)
    with pytest.raises(NotImplementedError, match="allow_split_physical_axes=True"):
        mesh_utils.create_device_mesh((2, 8), devices)
    split = mesh_utils.create_device_mesh((2, 8), devices, allow_split_physical_axes=True)
    assert split.shape == (2, 8)
    assert len({d.id for d in split.ravel()}) == 16
    for places in (split[0], split[1]):
        assert len({d.coords[0] for d in places}) * len({d.coords[1] for d in places}) == 8


class FakeDevice:
    platform, device_kind = "gpu", "a fake"

    def __init__(self, number, slice_index):
        self.id, self.slice_index, self.process_index = number, slice_index, number // 2


def test_hybrid_meshes():
    devices = [FakeDevice(i, i // 4) for i in range(8)]
    mesh = mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1), devices)
    assert [[d.id for d in row] for row in mesh] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    mesh = mesh_utils.create_hybrid_device_mesh((2, 2), (1, 2), devices)
    assert [[d.id for d in row] for row in mesh] == [[0, 1, 4, 5], [2, 3, 6, 7]]
    mesh = mesh_utils.create_hybrid_device_mesh((2,), (4,), devices, process_is_granule=True)
    assert [d.id for d in mesh] == list(range(8))
    with pytest.raises(ValueError, match="Number of slices 2 must equal"):
        mesh_utils.create_hybrid_device_mesh((2, 2), (1, 1), devices)
    with pytest.raises(ValueError, match="differ in length"):
        mesh_utils.create_hybrid_device_mesh((2, 2), (2,), devices)
