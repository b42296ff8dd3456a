"""`python -m hlofront doctor`: what does not fit comes with the command that fixes it."""

import importlib
import io
import json

import pytest

import hlofront as jax
from hlofront.cli import doctor, main
from hlofront.pjrt import hardware, platforms, targets, toolchain


@pytest.fixture(autouse=True)
def forgotten_findings():
    platforms.forget_plugins()
    yield
    platforms.forget_plugins()


@pytest.fixture
def machine(monkeypatch):
    """A machine with the plugins and devices that a test says, and nothing wrong."""
    there, versions, plugins = {}, {}, {}
    real = platforms.version_of
    monkeypatch.setattr(platforms, "find_plugins", lambda: dict(plugins))
    monkeypatch.setattr(platforms, "check", lambda plugin: (0, 112))
    monkeypatch.setattr(platforms, "version_of", lambda name: versions.get(name, real(name)))
    monkeypatch.setattr(platforms, "_usable", None)
    monkeypatch.setattr(
        hardware,
        "device_visibility",
        lambda name: hardware.DeviceVisibility(name in there, f"a fake {name}"),
    )
    monkeypatch.setattr(hardware, "nvidia_driver", lambda: there.get("driver"))
    monkeypatch.setattr(hardware, "has_nvidia_card", lambda: "card" in there)
    monkeypatch.setattr(toolchain, "find_ptxas", lambda cuda: there.get("ptxas"))
    monkeypatch.setattr(toolchain, "version_of_tool", lambda path: "13.0")

    def say(plugin=None, **more):
        if plugin is not None:
            versions["jax-cuda13-pjrt"] = versions["jax-cuda13-plugin"] = plugin
            plugins["cuda"] = platforms.Plugin("cuda", "/cuda.so", "jax-cuda13-pjrt", 500, True)
        there.update(more)
        monkeypatch.setattr(platforms, "_usable", None)
        # Of a name's findings the first, which is the gravest.
        return {each.name: each for each in reversed(doctor.findings())}

    return say


def run(*argv):
    out = io.StringIO()
    return main.main(["doctor", *argv], out), out.getvalue()


def test_what_it_says_here():
    code, text = run()
    assert code in (0, 1)
    for chapter in ("Python", "Plugins", "Drivers and tools", "Platforms", "Caches on disk"):
        assert f"\n{chapter}" in f"\n{text}"
    assert jax.__version__ in text
    assert ("Nothing is wrong." in text) == (code == 0)


def test_json_says_the_same():
    code, text = run("--json")
    report = json.loads(text)
    assert report["wrong"] == len([f for f in report["findings"] if f["state"] == "wrong"])
    assert (code == 1) == bool(report["wrong"])
    names = {each["name"] for each in report["findings"]}
    assert {"interpreter", "jaxlib", "numpy", "ptxas", "default", "small executables"} <= names
    assert set(report["findings"][0]) == {"chapter", "name", "value", "state", "why", "mend"}


def test_a_machine_with_all_that_it_needs(machine):
    version = ".".join(map(str, doctor._numbers(platforms.version_of("jaxlib"))))
    found = machine(version, cuda=True, driver="580.65.06", ptxas="/usr/bin/ptxas")
    assert not [each for each in found.values() if each.state == doctor.WRONG]
    assert found["default"].value == "cuda"
    assert "highest priority" in found["default"].why
    assert found["NVIDIA's driver"].value == "580.65.06"


def test_versions_that_do_not_fit(machine):
    found = machine("0.9.0", cuda=True, driver="550.1", ptxas="/usr/bin/ptxas")
    wanted = platforms.version_of("jaxlib")
    assert found["jax-cuda13-pjrt"].mend.startswith(f"pip install jax-cuda13-pjrt=={wanted}")
    assert found["jax-cuda13-plugin"].state == doctor.WRONG
    assert "580 or newer" in found["NVIDIA's driver"].why
    assert "jax-cuda12-pjrt" in found["NVIDIA's driver"].mend


def test_what_is_missing(machine):
    wanted = platforms.version_of("jaxlib")
    found = machine(wanted, card=True)
    assert found["ptxas"].mend == "pip install nvidia-cuda-nvcc"
    assert "its driver is not loaded" in found["NVIDIA's driver"].why
    assert found["NVIDIA's driver"].state == doctor.WRONG


def test_devices_without_a_plugin(machine, monkeypatch):
    monkeypatch.setattr(
        hardware,
        "device_visibility",
        lambda name: hardware.DeviceVisibility(True, f"a fake {name}"),
    )
    found = machine()
    assert found["tpu"].mend == "pip install libtpu"
    wanted = platforms.version_of("jaxlib")
    assert f"jax-cuda13-plugin=={wanted}" in found["cuda"].mend


def test_an_older_ptxas(machine, monkeypatch):
    monkeypatch.setattr(toolchain, "version_of_tool", lambda path: "12.4")
    found = machine(platforms.version_of("jaxlib"), ptxas="/opt/ptxas")
    assert "older than the plugin" in found["ptxas"].why


def test_a_jaxlib_of_another_time(monkeypatch):
    monkeypatch.setattr(doctor, "jaxlib_version", lambda: "0.13.1")
    found = {each.name: each for each in doctor._python()}
    assert found["jaxlib"].mend == "pip install 'jaxlib>=0.10.2,<0.13'"


def test_an_option_that_names_no_platform(monkeypatch):
    try:
        jax.config.update("jax_platforms", "rocm")
        code, text = run()
    finally:
        jax.config.update("jax_platforms", None)
    assert code == 1
    assert "unset JAX_PLATFORMS" in text


def test_an_environment_that_cannot_be_read(monkeypatch):
    monkeypatch.setenv(platforms.ENVIRONMENT, "nonsense")
    platforms.forget_plugins()
    code, text = run()
    assert code == 1
    assert f"unset {platforms.ENVIRONMENT}" in text


def test_a_plugin_that_is_none(monkeypatch, tmp_path):
    path = tmp_path / "text.so"
    path.write_text("no library")
    monkeypatch.setenv(platforms.ENVIRONMENT, f"mine:{path}")
    platforms.forget_plugins()
    code, text = run()
    assert code == 1
    assert f"{path} is not a shared library" in text
    assert f"  unset {platforms.ENVIRONMENT}" in text


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Installs packages of plugins: their modules' texts by path, and their entry points."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(files, entry_points=()):
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        information = tmp_path / "mine-1.5.dist-info"
        information.mkdir()
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.5\n")
        listed = "\n".join(["[jax_plugins]", *entry_points])
        (information / "entry_points.txt").write_text(listed)
        importlib.invalidate_caches()
        platforms.forget_plugins()
        code, text = run()
        found = {each.name: each for each in doctor._packages()}
        assert code == (1 if found else code)
        assert all(each.state == doctor.WRONG and each.why in text for each in found.values())
        assert not found or "Nothing is wrong" not in text
        return found

    return install


def test_packages_of_plugins_that_cannot_be_imported_or_have_no_library(installed, tmp_path):
    found = installed(
        {
            "jax_plugins/empty/__init__.py": "",
            "jax_plugins/single.py": "",
            "jax_plugins/needy/__init__.py": "import no_such_package",
            "jax_plugins/needy/plugin.so": "",
            "jax_plugins/wrong/__init__.py": "def f(:",
            "jax_plugins/ending/__init__.py": "print('text'); import os; os._exit(3)",
            "jax_plugins/leaving/__init__.py": "raise SystemExit('left')",
            "jax_plugins/removed/__pycache__/__init__.pyc": "",
            "jax_plugins/__pycache__/single.pyc": "",
            "jax_plugins/named/__init__.py": "",
            "libtpu/__init__.py": "",
            "elsewhere/__init__.py": "",
            "elsewhere/deep/__init__.py": "import no_such_package",
            "lonely.py": "",
        },
        [
            "one = nowhere.at.all",
            "two = elsewhere:initialize",
            "three = elsewhere.deep",
            "four = jax_plugins.named",
            "five = lonely",
        ],
    )
    path = tmp_path / "jax_plugins"
    missing = "cannot be imported: ModuleNotFoundError: No module named"
    no_library = "it has no library"
    wanted = {
        "jax_plugins.empty": f"has no library: there is no *.so in {path / 'empty'}",
        "jax_plugins.single": "has no library: it is a module, with no folder for *.so",
        "jax_plugins.needy": f"{missing} 'no_such_package'",
        "jax_plugins.wrong": "cannot be imported: SyntaxError: ",
        "jax_plugins.ending": "its import ended the process with status 3; it has no library",
        "jax_plugins.leaving": "cannot be imported: SystemExit: left; it has no library",
        "jax_plugins.named": "has no library",
        "libtpu": f"has no library: there is no libtpu.so in {tmp_path / 'libtpu'}",
        "lonely": "has no library: it is a module, with no folder for *.so",
        "nowhere.at.all": f"{missing} 'nowhere'",
        "elsewhere:initialize": f"'elsewhere' has no attribute 'initialize'; {no_library}",
        "elsewhere.deep": f"{missing} 'no_such_package'; it has no library",
    }
    assert found.keys() == wanted.keys()
    for name, why in wanted.items():
        assert why in found[name].why
    for name in ("nowhere.at.all", "jax_plugins.named"):
        assert found[name].value == "from mine 1.5"
        assert found[name].mend == "pip install --force-reinstall mine"
    assert found["jax_plugins.empty"].mend == ""


def test_packages_of_plugins_may_import_jax(installed):
    library = {f"jax_plugins/{name}/plugin.so": "" for name in ("direct", "wrapped", "fine")}
    wrapped = (
        "try:\n    import jax.no_such\nexcept ImportError as e:\n    raise RuntimeError from e"
    )
    modules = {
        "jax_plugins/direct/__init__.py": "from jax._src.no_such import xla_bridge",
        "jax_plugins/wrapped/__init__.py": wrapped,
        "jax_plugins/fine/__init__.py": "",
    }
    assert installed({**library, **modules}, ["mine = jax_plugins.fine"]) == {}


def test_libraries_of_packages_that_are_not_used(installed, tmp_path):
    installed(
        {
            "jax_plugins/xla_cuda98/plugin.so": "",
            "jax_plugins/xla_cuda99/plugin.so": "",
            "elsewhere/__init__.py": "",
            "elsewhere/plugin.so": "",
        },
        ["one = elsewhere"],
    )
    used = {each.library for each in platforms.find_plugins().values()}
    found = {each.name: each for each in doctor._packages(used)}
    # Plugins that are installed on this machine may be noted, too.
    assert found.keys() >= {"jax_plugins.xla_cuda98", "elsewhere"}
    assert "jax_plugins.xla_cuda99" not in found
    assert {each.state for each in found.values()} == {doctor.NOTE}
    wanted = f"export {platforms.ENVIRONMENT}=elsewhere:{tmp_path / 'elsewhere' / 'plugin.so'}"
    assert found["elsewhere"].mend == wanted


def test_what_others_wrote_does_not_steer_the_terminal(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "jax_plugins" / "mine"
    package.mkdir(parents=True)
    hostile = "\x1b]0;owned\x07\x9b\u202e\n! forged"
    (package / "__init__.py").write_text(f"raise ImportError({hostile!r})")
    monkeypatch.setattr(platforms, "version_of", lambda name: hostile)
    code, text = run()
    assert code == 1
    assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert "\n! forged" not in text
    assert r"ImportError: \x1b]0;owned\x07\x9b\u202e\x0a! forged" in text


def test_a_folder_that_others_can_write_to(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir()
    folder.chmod(0o777)
    try:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        code, text = run()
    finally:
        jax.config.update("jax_compilation_cache_dir", None)
    assert code == 1
    assert f"  chmod go-w {folder}" in text


# ---- show --target -------------------------------------------------------------------------------

PROGRAM = """
import hlofront.numpy as jnp

def f(x, w):
    return jnp.tanh(x @ w)
"""


def test_show_for_several_targets(tmp_path, capsys):
    for platform in ("tpu", "cuda"):
        if targets.install_hint(platform):
            pytest.skip(f"compiling for {platform} takes `{targets.install_hint(platform)}`")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    out = io.StringIO()
    argv = ["show", f"{path}:f", "--args", "bf16[128,128], bf16[128,128]"]
    names = ("cpu", "tpu:v5e:1x1", "cuda:h100")
    for name in names:
        argv += ["--target", name]
    assert main.main([*argv, "--stage", "hlo", "--stage", "cost"], out) == 0
    text = out.getvalue()
    places = [text.index(f"Optimized HLO for {name}") for name in names]
    assert places == sorted(places)
    assert "T(8,128)" in text[places[1] : places[2]]
    assert "T(8,128)" not in text[: places[1]]
    columns = text[text.index("Cost and memory") :]
    assert [name for name in columns.split("\n")[1].split() if name] == list(names)
    assert main.main([*argv, "--target", "tpu:v5e:9x9"], out) == 2
    assert "there is no target 'tpu:v5e:9x9'" in capsys.readouterr().err


def test_flags_that_xla_ends_processes_on(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_no_such_flag=1")
    found = {each.name: each for each in doctor.findings()}["XLA_FLAGS"]
    assert found.state == doctor.WRONG
    assert "Unknown flag in XLA_FLAGS: --xla_no_such_flag=1" in found.why
    assert found.mend == "unset XLA_FLAGS"


def test_folders_that_cannot_be_written_to(tmp_path):
    assert doctor._cannot_write(tmp_path) == ""
    assert doctor._cannot_write(tmp_path / "new" / "folder") == ""
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below", "/proc/nothing"):
        assert "nothing can be written to" in doctor._cannot_write(place)
