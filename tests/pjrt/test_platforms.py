"""Plugins: found without importing their packages, refused with a reason, ranked by priority."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import types

import pytest

import hlofront as jax
from hlofront.base.config import options
from hlofront.base.errors import PluginError
from hlofront.pjrt import clients, hardware, platforms, targets

SOURCE = """
#include <stddef.h>
typedef struct { size_t size; void* extension; int major; int minor; } Version;
typedef struct { size_t size; void* extension; Version version; void* functions[200]; } Api;
static Api api;
#ifdef ENTRY
const Api* GetPjrtApi(void) {
  api.size = sizeof(Api);
  api.version.size = sizeof(Version);
  api.version.major = MAJOR;
  api.version.minor = MINOR;
  return NULL_TABLE ? 0 : &api;
}
#else
int something_else(void) { return 1; }
#endif
"""


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch):
    """Registrations of a test, and what it finds in its environment, go with it."""
    monkeypatch.setattr(platforms, "_registered", {})
    platforms.forget_plugins()
    yield
    monkeypatch.undo()
    platforms.forget_plugins()


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler to build fake plugins with")
    folder = tmp_path_factory.mktemp("plugins")
    source = folder / "fake.c"
    source.write_text(SOURCE)

    def made(name, *flags):
        path = folder / f"{name}.so"
        command = [compiler, "-shared", "-fPIC", *flags, "-o", str(path), str(source)]
        subprocess.run(command, check=True)
        return str(path)

    return made


def entry(major, minor, null=0):
    return "-DENTRY", f"-DMAJOR={major}", f"-DMINOR={minor}", f"-DNULL_TABLE={null}"


def test_fake_plugins_are_refused_and_the_process_lives(build, tmp_path):
    text = tmp_path / "text.so"
    text.write_text("this is no library")
    cases = {
        str(text): "is not a shared library",
        str(tmp_path / "missing.so"): "is not there",
        str(tmp_path): "is a folder",
        build("without"): "has no function GetPjrtApi",
        build("future", *entry(1, 0)): "offers version 1.0 of the PJRT API",
        build("empty", *entry(0, 9999)): "its table has no functions to start it",
        build("null", *entry(0, 100, null=1)): "returned null",
    }
    for path, reason in cases.items():
        with pytest.raises(PluginError, match="the PJRT plugin 'fake'") as caught:
            jax.pjrt.register_plugin("fake", path)
        assert reason in str(caught.value)
        assert path in str(caught.value)
    assert "made for a newer jaxlib" in str(_refusal(build("future", *entry(1, 0))))
    with pytest.raises(RuntimeError, match="Unknown backend: 'fake'"):
        jax.devices("fake")
    assert jax.devices()[0].platform == "cpu"


def _refusal(path):
    with pytest.raises(PluginError) as caught:
        platforms.register_plugin("fake", path)
    return caught.value


@pytest.mark.parametrize("name", ["cpu", "", "a b", "1st", 3])
def test_names_that_no_plugin_can_have(name):
    with pytest.raises(ValueError, match="a plugin's name is a word"):
        platforms.register_plugin(name, "/nowhere.so")


def test_options_of_a_plugin():
    with pytest.raises(TypeError, match="options are a mapping"):
        platforms.register_plugin("mine", "/nowhere.so", options=3)


# ---- found ---------------------------------------------------------------------------------------


def test_plugins_named_by_the_environment(monkeypatch, tmp_path):
    settings = tmp_path / "other.json"
    settings.write_text(json.dumps({"library_path": "/b.so", "create_options": {"n": 1}}))
    monkeypatch.setenv(platforms.ENVIRONMENT, f"mine:/a.so, other:{settings}")
    platforms.forget_plugins()
    found = platforms.find_plugins()
    assert (found["mine"].library, found["mine"].origin) == ("/a.so", platforms.ENVIRONMENT)
    assert (found["other"].library, found["other"].options) == ("/b.so", {"n": 1})
    with pytest.raises(PluginError, match="Correct PJRT_NAMES_AND_LIBRARY_PATHS"):
        platforms.load("mine")


@pytest.mark.parametrize(
    "text", ["mine", "mine:", ":/a.so", "mine:/nowhere/settings.json", "cpu:/a.so"]
)
def test_an_environment_that_cannot_be_read(monkeypatch, text):
    monkeypatch.setenv(platforms.ENVIRONMENT, text)
    platforms.forget_plugins()
    with pytest.raises(PluginError, match=platforms.ENVIRONMENT):
        platforms.find_plugins()


def test_packages_are_found_by_their_files(monkeypatch, tmp_path):
    for name in ("xla_cuda12", "xla_cuda13", "xla_rocm7", "mine"):
        (tmp_path / "jax_plugins" / name).mkdir(parents=True)
        (tmp_path / "jax_plugins" / name / "__init__.py").write_text("raise SystemExit('imported')")
        (tmp_path / "jax_plugins" / name / "the_plugin.so").write_text("")
    (tmp_path / "libtpu").mkdir()
    (tmp_path / "libtpu" / "libtpu.so").write_text("")
    folders = {name: [str(tmp_path / name)] for name in ("jax_plugins", "libtpu")}
    monkeypatch.setattr(platforms, "_folders_of", folders.__getitem__)
    platforms.forget_plugins()
    found = platforms.find_plugins()
    assert {"cuda", "rocm", "tpu", "mine"} <= set(found)
    assert "xla_cuda13" in found["cuda"].library
    assert platforms.kernels_package(found["cuda"]) == "jax_cuda13_plugin"
    monkeypatch.setenv("TPU_LIBRARY_PATH", "/opt/libtpu.so")
    platforms.forget_plugins()
    assert platforms.find_plugins()["tpu"].library == "/opt/libtpu.so"


# ---- which one wins ------------------------------------------------------------------------------


@pytest.fixture
def machine(monkeypatch):
    """Plugins for all platforms, and a way to say which devices are there."""
    there = {}
    plugins = {
        "tpu": platforms.Plugin("tpu", "/tpu.so", "libtpu", 300),
        "cuda": platforms.Plugin("cuda", "/cuda.so", "jax-cuda13-pjrt", 500),
    }
    monkeypatch.setattr(platforms, "_discovered", plugins)
    monkeypatch.setattr(platforms, "_usable", None)
    monkeypatch.setattr(
        hardware,
        "device_visibility",
        lambda name: hardware.DeviceVisibility(there.get(name, False), f"a fake {name}"),
    )

    def say(*names):
        there.clear()
        there.update(dict.fromkeys(names, True))
        monkeypatch.setattr(platforms, "_usable", None)

    return say


def test_the_highest_priority_with_devices_wins(machine):
    assert platforms.usable() == ["cpu"]
    assert clients.default_platform() == "cpu"
    machine("tpu")
    assert clients.default_platform() == "tpu"
    machine("tpu", "cuda")
    assert platforms.usable() == ["cuda", "tpu", "cpu"]
    assert [row.name for row in platforms.standings()] == ["cuda", "tpu", "cpu"]
    machine()
    assert [row.usable for row in platforms.standings()] == [True, False, False]


def test_the_option_jax_platforms_decides(machine):
    machine("tpu", "cuda")
    try:
        jax.config.update("jax_platforms", "cpu,cuda")
        assert clients.default_platform() == "cpu"
        assert jax.default_backend() == "cpu"
        jax.config.update("jax_platforms", "gpu")
        assert clients.default_platform() == "cuda"
        jax.config.update("jax_platforms", "rocm,cpu")
        with pytest.raises(RuntimeError, match="pip install jax-rocm7-pjrt"):
            clients.default_platform()
    finally:
        jax.config.update("jax_platforms", None)


def test_names_that_are_no_platform():
    x = jax.numpy.ones(2)
    for name in ("nope", "", "cpu:0"):
        with pytest.raises(ValueError, match="default_device takes a device"):
            with jax.default_device(name):
                x + 1
    with pytest.raises(RuntimeError, match="Unknown backend: 'gpus' requested"):
        jax.devices("gpus")
    assert jax.devices("") == jax.devices()
    assert jax.device_count("") == jax.device_count()
    with pytest.raises(ValueError, match="can't specify both a device and a backend"):
        jax.jit(lambda x: x, device=jax.devices()[0], backend="cpu")


@pytest.mark.parametrize("count", [0, -2])
def test_how_many_devices_the_cpu_is(count, monkeypatch):
    monkeypatch.setattr(clients, "_clients", {})  # As before the first operation.
    try:
        jax.config.update("jax_num_cpu_devices", count)
        with pytest.raises(ValueError, match=f"how many devices to make of the CPU.* got {count}"):
            clients._make_cpu()
    finally:
        jax.config.update("jax_num_cpu_devices", -1)


def test_a_platform_without_devices_says_so(machine):
    with pytest.raises(PluginError, match="this machine has no device for it"):
        jax.devices("tpu")
    with pytest.raises(PluginError, match=r"hlofront.targets\(\)"):
        jax.devices("gpu")


def test_hidden_gpus_are_not_seen(monkeypatch):
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert hardware.device_visibility("cuda") == (
            False,
            f"CUDA_VISIBLE_DEVICES={hidden!r} hides all GPUs",
        )
    assert hardware.device_visibility("cpu") is None


def test_nothing_is_printed_where_plugins_have_no_device():
    code = (
        "import sys, hlofront as jax, hlofront.numpy as jnp\n"
        "assert 'hlofront.pjrt.platforms' not in sys.modules\n"
        "assert jax.default_backend() in ('cpu', 'gpu', 'tpu')\n"
        "print(float(jax.jit(jnp.sum)(jnp.ones(3))))\n"
        "assert 'jax' not in sys.modules and 'jax_plugins' not in sys.modules\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    environment["PYTHONPATH"] = str(pathlib.Path(jax.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.0\n", "")


@pytest.mark.parametrize("target", ["tpu:v5e:1x1", "cuda:h100"])
def test_profiles_are_made_beside_a_plugin_without_devices(target):
    """The profiler of libtpu ends a process without TPUs: it is not asked there."""
    missing = targets.install_hint(target.partition(":")[0])
    if missing:
        pytest.skip(missing)
    code = (
        "import hlofront as jax, hlofront.numpy as jnp\n"
        f"with jax.target({target!r}):\n"
        "    jax.jit(lambda x: x + 1).lower(jnp.float32(1)).compile()\n"
        "print(jax.inspect.profile(lambda x: jnp.sin(x).sum(), runs=2)(jnp.ones(3)).runs)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(jax.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


# ---- what the options tell a plugin --------------------------------------------------------------


@pytest.fixture
def made_with(monkeypatch):
    """Make the client of a platform, whose plugin is not there; what it would be made with."""
    monkeypatch.setattr(platforms.hardware, "device_visibility", lambda name: None)
    monkeypatch.setattr(platforms, "load", lambda name: f"the API of {name}")
    monkeypatch.setattr(platforms, "_profiled", set())
    profiled = []
    monkeypatch.setattr(platforms.bridge, "register_profiler", profiled.append)
    monkeypatch.setattr(
        platforms.bridge,
        "make_client",
        lambda name, settings, client: settings if client is None else (settings, client),
    )

    def make(name, own_options=None, group=None):
        plugin = platforms.Plugin(name, "/there.so", "register_plugin", 1, options=own_options)
        monkeypatch.setattr(platforms, "_registered", {name: plugin})
        return platforms.make_client(name, group)

    make.profiled = profiled
    return make


def test_profiles_have_the_devices_of_a_plugin_from_its_first_client_on(made_with):
    for name in ("cuda", "mine", "cuda"):
        made_with(name)
    assert made_with.profiled == ["the API of cuda", "the API of mine"]


def test_by_default_a_plugin_gets_its_own_options_alone(made_with):
    assert made_with("cuda") == {}
    assert made_with("mine", {"speed": 2}) == {"speed": 2}


@pytest.mark.parametrize("platform", ["cuda", "rocm", "oneapi"])
def test_a_plugin_is_told_which_devices_to_use(platform, made_with):
    option = options[f"jax_{platform}_visible_devices"]
    with option("0, 3"):
        assert made_with(platform, {"visible_devices": [1]}) == {"visible_devices": [0, 3]}
        assert made_with("mine") == {}
    for wrong in ("", "0,", "first", 0):
        with pytest.raises(ValueError, match="takes 'all', or numbers with commas between"):
            option(wrong)


def group_member(**differing):
    """A process of a group that has a coordination client."""
    usual = {"process_id": 1, "process_count": 4, "local_device_ids": None, "partition_index": None}
    return types.SimpleNamespace(client="coordination", **{**usual, **differing})


def test_a_plugin_is_told_the_group_of_its_process(made_with):
    numbers = {"node_id": 1, "num_nodes": 4}
    assert made_with("mine", group=group_member()) == (numbers, "coordination")
    assert made_with("cuda", group=group_member()) == (numbers, "coordination")
    member = group_member(local_device_ids=[2, 3], partition_index=7)
    whole = {**numbers, "visible_devices": [2, 3], "partition_index": 7}
    assert made_with("cuda", group=member) == (whole, "coordination")
    with options["jax_cuda_visible_devices"]("5"):
        assert made_with("cuda", group=member)[0]["visible_devices"] == [5]
    # libtpu knows the processes of a group by itself.
    assert made_with("tpu", group=member) == {}


def test_a_plugin_is_told_what_its_client_is_to_be_made_with(made_with):
    option = options["jax_pjrt_client_create_options"]
    with option("speed:2;name:quick"):
        assert made_with("mine", {"speed": 1}) == {"speed": "2", "name": "quick"}
    with option({"speed": 2}):
        assert made_with("tpu") == {"speed": 2}
    for wrong in ("speed", "speed:2:3"):
        with option(wrong), pytest.raises(PluginError, match=f"cannot read '{wrong}'"):
            made_with("mine")


def test_a_cluster_of_gpus_can_be_pretended(made_with):
    with options["jax_mock_gpu_topology"]("2x4x8"):
        told = {"enable_mock_nccl": True, "num_nodes": 8, "mock_gpu_topology": "2x4x8"}
        assert made_with("cuda") == told
        assert made_with("tpu") == {}
    with options["mock_num_gpu_processes"](3):
        assert made_with("rocm") == {"enable_mock_nccl": True, "num_nodes": 3}
    with (
        options["jax_mock_gpu_topology"]("two"),
        pytest.raises(PluginError, match="'2x4x8': cannot read 'two'"),
    ):
        made_with("cuda")
