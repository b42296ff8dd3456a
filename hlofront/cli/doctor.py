"""The command `python -m hlofront doctor`: installed packages, devices and mismatches."""

import argparse
import json
import os
import platform as machine
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from typing import TextIO

from hlofront.base.config import options as settings
from hlofront.base.errors import PluginError
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.version import __version__
from hlofront.bridge import xla_faults
from hlofront.bridge.plugins import jaxlib_version
from hlofront.cli.options import Commands
from hlofront.cli.progress import announce, finish
from hlofront.pjrt import clients, configured_stores, hardware, platforms, targets, toolchain
from hlofront.pjrt.cache_store import Store
from hlotools.terminal_text import on_one_line

FINE, NOTE, WRONG = "fine", "note", "wrong"
_MARKS = {FINE: " ", NOTE: "-", WRONG: "!"}
_JAXLIB_RANGE = (0, 10, 2), (0, 13)
_PATIENCE_SECONDS = 60
_LEAST = {"numpy": (2, 0), "ml_dtypes": (0, 5), "opt_einsum": (3, 3)}
# The oldest driver for each major version of CUDA, from NVIDIA's release notes.
_MIN_DRIVER = {"13": 580, "12": 525}
_VARIABLES = (
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "PJRT_NAMES_AND_LIBRARY_PATHS",
    "TPU_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_HOME",
    "LD_LIBRARY_PATH",
    "XLA_FLAGS",
    "LIBTPU_INIT_ARGS",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "HLOFRONT_CACHE",
    "HLOFRONT_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_ENABLE_X64",
)
_HELP = """\
Shows what hlofront finds: Python, jaxlib, PJRT plugins, drivers and tools, the default platform and
why it was chosen, what it can compile for, and the caches on disk. Problems are marked with ! and
come with the command that fixes them.

exit codes: 0 no problems, 1 problems

example:
  python -m hlofront doctor
  python -m hlofront doctor --json
"""


class Finding(NamedTuple):
    """A line of doctor's report: a value, its state, and the reason and remedy of a problem."""

    chapter: str
    name: str
    value: str
    state: str = FINE
    why: str = ""
    mend: str = ""
    """The command that fixes the problem, if there is one."""


def add_parser(commands: Commands) -> None:
    """Add the command `doctor` to the command line's parser."""
    parser = commands.add_parser(
        "doctor",
        help="what is installed, which devices are available, and problems",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace, out: TextIO) -> int:
    announce("looking at packages, plugins and devices")
    lines_of_report = findings()
    finish()
    wrong = [finding for finding in lines_of_report if finding.state == WRONG]
    if options.json:
        report = {
            "findings": [finding._asdict() for finding in lines_of_report],
            "wrong": len(wrong),
        }
        json.dump(report, out, indent=2)
        print(file=out)
    else:
        _print(lines_of_report, out)
        mends = list(dict.fromkeys(finding.mend for finding in wrong if finding.mend))
        if wrong:
            count = "1 thing is" if len(wrong) == 1 else f"{len(wrong)} things are"
            print(f"\n{count} wrong{'. To fix:' if mends else '.'}", file=out)
        else:
            print("\nNothing is wrong.", file=out)
        for mend in mends:
            print(on_one_line(f"  {mend}"), file=out)
    return 1 if wrong else 0


def _print(lines_of_report: list[Finding], out: TextIO) -> None:
    width = max(len(finding.name) for finding in lines_of_report)
    chapter = None
    for finding in lines_of_report:
        if finding.chapter != chapter:
            print(("\n" if chapter else "") + finding.chapter, file=out)
            chapter = finding.chapter
        text = (
            f"{finding.value}: {finding.why}"
            if finding.why and finding.value
            else finding.value or finding.why
        )
        line = f"{_MARKS[finding.state]} {finding.name:<{width}}  {text}".rstrip()
        print(on_one_line(line), file=out)
        if finding.mend and finding.state != WRONG:
            print(on_one_line(f"  {'':<{width}}  for it: {finding.mend}"), file=out)


def findings() -> list[Finding]:
    """Return all findings, in the order in which the report prints them."""
    try:
        platforms.find_plugins()
    except PluginError as error:  # An invalid environment variable: the other checks still run.
        before = [
            *_python(),
            Finding(
                "Plugins",
                platforms.ENVIRONMENT,
                "",
                WRONG,
                str(error),
                f"unset {platforms.ENVIRONMENT}",
            ),
        ]
        return [*before, *_packages(), *_environment(), *_caches()]
    return [
        *_python(),
        *_plugins(),
        *_packages({plugin.library for plugin in platforms.find_plugins().values()}),
        *_tools(),
        *_platforms(),
        *_faults(),
        *_targets(),
        *_environment(),
        *_caches(),
    ]


# ---- Python ------------------------------------------------------------------------------------


def _python() -> Iterator[Finding]:
    chapter = "Python"
    text = f"{machine.python_version()} ({machine.python_implementation()}), {sys.executable}"
    yield Finding(chapter, "interpreter", text)
    system = f"{machine.system()} {machine.release()}, {machine.machine()}, {os.cpu_count()} cores"
    yield Finding(chapter, "system", system)
    yield Finding(
        chapter, "hlofront", f"{__version__}, {os.path.dirname(os.path.dirname(__file__))}"
    )
    version = _numbers(jaxlib_version())
    least, below = _JAXLIB_RANGE
    if least <= version < below:
        yield Finding(chapter, "jaxlib", jaxlib_version())
    else:
        required = f"'jaxlib>={_dotted(least)},<{_dotted(below)}'"
        why = f"hlofront is tried with {required}"
        yield Finding(chapter, "jaxlib", jaxlib_version(), WRONG, why, f"pip install {required}")
    for name, oldest in _LEAST.items():
        installed = platforms.version_of(name)
        if installed is None or _numbers(installed) < oldest:
            why = f"hlofront needs {_dotted(oldest)} or newer"
            mend = f"pip install -U '{name}>={_dotted(oldest)}'"
            yield Finding(chapter, name, installed or "missing", WRONG, why, mend)
        else:
            yield Finding(chapter, name, installed)
    jax = platforms.version_of("jax")
    if jax is not None:
        yield Finding(chapter, "jax", jax, NOTE, "is installed too; hlofront never imports it")


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: (0, 10, 2) for `0.10.2.dev1`."""
    numbers = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


# ---- plugins -------------------------------------------------------------------------------------


def _plugins() -> Iterator[Finding]:
    chapter = "Plugins"
    plugins = platforms.find_plugins()
    for name, plugin in plugins.items():
        try:
            major, minor = platforms.check(plugin)
        except PluginError as error:
            text = str(error)
            mend = text.partition("Run `")[2].partition("`")[0]
            if plugin.origin in platforms.VARIABLES:
                mend = f"unset {plugin.origin}"
            yield Finding(chapter, name, plugin.source, WRONG, text, mend)
            continue
        value = f"{plugin.source}, PJRT API {major}.{minor}, {plugin.library}"
        yield Finding(chapter, name, value)
        if plugin.installed and name in ("cuda", "rocm"):
            yield from _kernels(chapter, name, plugin)
    yield from _missing(chapter, plugins)
    if not plugins:
        yield Finding(chapter, "none", "", NOTE, "programs run on the CPU, and compile for it only")


def _packages(used: Collection[str] | None = None) -> Iterator[Finding]:
    """Yield a finding per package of a plugin that cannot be imported, or has no library.

    Args:
      used: the libraries of the plugins; packages with other libraries are reported. None if they
        are unknown.
    """
    chapter = "Plugins"
    for package in platforms.plugin_packages():
        name, library, folder = package.reference, package.library, package.folder
        version = platforms.version_of(package.origin)
        value = package.origin if version is None else f"{package.origin} {version}"
        value = "" if value == name else f"from {value}"
        error = _import_error(name)
        problems = [f"cannot be imported: {error}"] if error else []
        if folder and library is None:
            problems.append(f"has no library: there is no {package.library_pattern} in {folder}")
        elif library is None and not error:
            problems.append(
                f"has no library: it is a module, with no folder for {package.library_pattern}"
            )
        if problems:
            mend = f"pip install --force-reinstall {package.origin}" if version is not None else ""
            yield Finding(chapter, name, value, WRONG, "; it ".join(problems), mend)
        elif used is None or library is None or library in used:
            continue
        elif name.startswith(("jax_plugins.", "libtpu")):
            yield Finding(chapter, name, value, NOTE, "another plugin of its platform is used")
        else:
            platform = name.partition(":")[0].rpartition(".")[2].strip()
            mend = f"export {platforms.ENVIRONMENT}={platform}:{library}"
            why = "is not used: hlofront finds libraries in jax_plugins, or by their paths"
            yield Finding(chapter, name, value, NOTE, why, mend)


# Hlofront needs only the libraries of plugins. So an import that fails in jax, which plugins import
# and which need not be installed, does not count as a fault of the plugin.
_IMPORT = """
import importlib, json, sys, traceback

sys.path[:] = json.loads(sys.argv[1])
module, _, names = sys.argv[2].partition(":")
try:
    found = importlib.import_module(module.strip())
    for name in filter(None, names.strip().split(".")):
        found = getattr(found, name)
except BaseException as error:
    said = f"{type(error).__name__}: {error}"
    while error is not None:
        frames = traceback.walk_tb(error.__traceback__)
        modules = [frame.f_globals.get("__name__") for frame, _ in frames]
        modules.append(error.name if isinstance(error, ModuleNotFoundError) else None)
        if any(str(name).partition(".")[0] == "jax" for name in modules):
            said = ""
        error = error.__cause__ or error.__context__
    print("\\n" + json.dumps(said), flush=True)
"""


def _import_error(reference: str) -> str:
    """Return the error of importing a plugin's package in a separate process, "" if none."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _IMPORT, json.dumps(sys.path), reference],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"its import did not end within {_PATIENCE_SECONDS} s"
    except (OSError, subprocess.SubprocessError) as error:
        return f"no process could be started for it: {error}"
    if done.returncode != 0:
        said = done.stderr.strip().rpartition("\n")[2]
        return f"its import ended the process with status {done.returncode}{said and ': '}{said}"
    answer = done.stdout.rstrip().rpartition("\n")[2]
    return json.loads(answer) if answer.startswith('"') else ""


def _kernels(chapter: str, name: str, plugin: platforms.Plugin) -> Iterator[Finding]:
    """Yield the versions of a GPU plugin's packages, as errors where they differ from jaxlib's."""
    required = jaxlib_version()
    package = platforms.kernels_package(plugin).replace("_", "-")
    mend = f"pip install {plugin.origin}=={required} {package}=={required}"
    if not platforms.is_of_jaxlib(plugin.version):
        why = f"jaxlib is {required}, and the two versions must match"
        yield Finding(chapter, plugin.origin, plugin.version, WRONG, why, mend)
    version = platforms.version_of(package)
    if version is None:
        why = "missing: callbacks and linear algebra on GPUs are in it"
        state = WRONG if _is_seen(name) else NOTE
        yield Finding(chapter, package, "", state, why, mend)
    elif not platforms.is_of_jaxlib(version):
        why = f"jaxlib is {required}, and the two versions must match"
        yield Finding(chapter, package, version, WRONG, why, mend)
    else:
        yield Finding(chapter, package, version)


def _is_seen(name: str) -> bool:
    visibility = hardware.device_visibility(name)
    return visibility is not None and visibility.is_visible


def _missing(chapter: str, plugins: dict[str, platforms.Plugin]) -> Iterator[Finding]:
    """Yield a finding for each visible kind of accelerator, such as "cuda", that has no plugin."""
    for name in ("tpu", "cuda", "rocm"):
        visibility = hardware.device_visibility(name)
        if name not in plugins and visibility is not None and visibility.is_visible:
            why = f"this machine has such devices ({visibility.why}), and no plugin for them"
            yield Finding(chapter, name, "", WRONG, why, platforms.install_command(name))


# ---- drivers and tools -------------------------------------------------------------------------


def _tools() -> Iterator[Finding]:
    chapter = "Drivers and tools"
    has_plugin = "cuda" in platforms.find_plugins()
    cuda = targets.cuda_of_plugin()
    driver = hardware.nvidia_driver()
    if driver is not None:
        least = _MIN_DRIVER.get(cuda, 0)
        if has_plugin and _numbers(driver)[:1] < (least,):
            why = f"CUDA {cuda} needs {least} or newer. Update the driver, or use an older CUDA"
            version = jaxlib_version()
            mend = f"pip install jax-cuda12-pjrt=={version} jax-cuda12-plugin=={version}"
            yield Finding(chapter, "NVIDIA's driver", driver, WRONG, why, mend)
        else:
            yield Finding(chapter, "NVIDIA's driver", driver)
    elif hardware.has_nvidia_card():
        why = "there is a card of NVIDIA's, and its driver is not loaded"
        mend = "sudo apt install nvidia-driver-580-server, or as your system has it"
        yield Finding(chapter, "NVIDIA's driver", "", WRONG, why, mend)
    else:
        yield Finding(chapter, "NVIDIA's driver", "none", FINE, "no card of NVIDIA's")
    for name, label in (("rocm", "AMD's driver"), ("tpu", "TPU")):
        visibility = hardware.device_visibility(name)
        if visibility is not None:
            yield Finding(
                chapter,
                label,
                visibility.why if visibility.is_visible else f"none: {visibility.why}",
            )
    yield _ptxas(chapter, cuda, has_plugin)
    if has_plugin and _is_seen("cuda"):
        yield from _libraries(chapter, cuda)


def _ptxas(chapter: str, cuda: str, has_plugin: bool) -> Finding:
    path = toolchain.find_ptxas(cuda)
    mend = f"pip install {toolchain.PACKAGES.get(cuda, toolchain.PACKAGES['13'])}"
    if path is None:
        why = "without it nothing compiles for a GPU that is not attached"
        if not has_plugin:
            return Finding(chapter, "ptxas", "none", FINE, "only GPUs need it")
        return Finding(chapter, "ptxas", "missing", WRONG, why, mend)
    version = toolchain.version_of_tool(path)
    value = f"CUDA {version or '?'}, {path}"
    if has_plugin and version and _numbers(version)[:1] < (int(cuda),):
        why = f"older than the plugin, which is made for CUDA {cuda}"
        return Finding(chapter, "ptxas", value, WRONG, why, mend)
    return Finding(chapter, "ptxas", value)


def _libraries(chapter: str, cuda: str) -> Iterator[Finding]:
    """Yield a finding per NVIDIA library that GPU programs call: its version, or its absence.

    Args:
      cuda: the major version of CUDA, such as "12".
    """
    suffix = "" if cuda == "13" else f"-cu{cuda}"
    names = [f"nvidia-cublas{suffix}", f"nvidia-cusolver{suffix}", f"nvidia-cufft{suffix}"]
    names.append(f"nvidia-cudnn-cu{cuda}")
    version = jaxlib_version()
    for name in names:
        installed = platforms.version_of(name)
        if installed is None:
            mend = f"pip install 'jax-cuda{cuda}-plugin[with-cuda]=={version}'"
            why = "no such package: it must come with an installed CUDA toolkit"
            yield Finding(chapter, name, "", NOTE, why, mend)
        else:
            yield Finding(chapter, name, installed)


# ---- platforms and targets ---------------------------------------------------------------------


def _platforms() -> Iterator[Finding]:
    chapter = "Platforms, the default one first"
    requested = settings["jax_platforms"].value or settings["jax_platform_name"].value
    standings = platforms.standings()
    try:
        chosen = clients.default_platform()
    except RuntimeError as error:
        yield Finding(chapter, "default", requested or "", WRONG, str(error), "unset JAX_PLATFORMS")
        chosen = ""
    if chosen:
        best = next((row for row in standings if row.name == chosen), None)
        if requested:
            why = f"the option jax_platforms is {requested!r}"
        else:
            priority = best.priority if best else 0
            why = f"the highest priority ({priority}) of those with devices"
        if best is not None and not best.usable:
            mend = "unset JAX_PLATFORMS"
            yield Finding(chapter, "default", chosen, WRONG, f"{why}, and {best.why}", mend)
        else:
            yield Finding(chapter, "default", chosen, FINE, why)
    for row in standings:
        state = FINE if row.usable else NOTE
        value = f"priority {row.priority}, {'usable' if row.usable else 'no device'}"
        yield Finding(chapter, row.name, value, state, row.why)


def _faults() -> Iterator[Finding]:
    """Yield a finding per known fault of XLA that this jaxlib has on a usable platform."""
    chapter = "Known faults of XLA"
    option = settings["hlofront_xla_guards"]
    for platform in (row.name for row in platforms.standings() if row.usable):
        for guard in xla_faults.guards_for(platform, ()):
            fault = guard.fault
            reports = f" ({', '.join(fault.reports)})" if fault.reports else ""
            why = f"{fault.effect}{reports}"
            if not option.value:
                value, state, mend = "no guard", NOTE, f"unset {option.environment}"
            elif guard.replaced_by_user:
                value, state = f"no guard, as XLA_FLAGS has {guard.replaced_by_user}", NOTE
                mend = f"take {guard.replaced_by_user} out of XLA_FLAGS"
            else:
                value = "such programs are refused" if fault.refused_in else "programs are guarded"
                state, mend = FINE, ""
            yield Finding(chapter, fault.name, value, state, why, mend)


def _targets() -> Iterator[Finding]:
    chapter = "Compiles for, attached or not"
    kinds: dict[str, list[str]] = {}
    for name in targets.NAMES:
        kinds.setdefault(targets.target(name).platform, []).append(name)
    for kind, names in kinds.items():
        missing = targets.install_hint(kind)
        if missing:
            yield Finding(chapter, kind, "", NOTE, "not yet", missing)
        else:
            yield Finding(chapter, kind, ", ".join(names))


# ---- the environment, and the caches -------------------------------------------------------------


def _environment() -> Iterator[Finding]:
    for name in _VARIABLES:
        if name in os.environ:
            why = _refusal_of_flags() if name == "XLA_FLAGS" and os.environ[name].strip() else ""
            if why:
                yield Finding("Environment", name, os.environ[name], WRONG, why, f"unset {name}")
            else:
                yield Finding("Environment", name, os.environ[name])


def _refusal_of_flags() -> str:
    """Return the message with which XLA aborts on invalid XLA_FLAGS, "" if they are valid."""
    code = f"import sys; sys.path[:] = {sys.path!r}; import hlofront; hlofront.devices('cpu')"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    if done.returncode == 0:
        return ""
    fatal = re.search(r"^F\d+ \S+ +\d+ \S+\] (.*)$", done.stderr, re.MULTILINE)
    said = fatal.group(1) if fatal else done.stderr.strip().rpartition("\n")[2]
    return f"XLA ends each process that uses it: {said}"


def _caches() -> Iterator[Finding]:
    chapter = "Caches on disk"
    small, whole = configured_stores.small_store(), configured_stores.whole_store()
    if small is None:
        why = "the option hlofront_cache is off, or this user has no home"
        yield Finding(chapter, "small executables", "none", NOTE, why)
    else:
        yield _store(chapter, "small executables", small)
    if whole is not None:
        yield _store(chapter, "all executables", whole)
    else:
        why = "JAX_COMPILATION_CACHE_DIR names no folder"
        yield Finding(chapter, "all executables", "none", FINE, why)


def _cannot_write(folder: str | os.PathLike[str]) -> str:
    """Return why a folder, which may not exist yet, is not writable; "" if it is."""
    existing = os.path.abspath(folder)
    try:
        while not os.path.isdir(existing):
            above = os.path.dirname(existing)
            if above == existing or os.path.lexists(existing):
                break
            existing = above
        with tempfile.TemporaryDirectory(prefix=".hlofront-doctor-", dir=existing):
            return ""
    except OSError as error:
        why = f"nothing can be written to {existing} ({error.strerror})"
    return f"{why}: name another folder"


def _store(chapter: str, name: str, store: Store) -> Finding:
    if store.refusal:
        mend = store.refusal.partition("`")[2].partition("`")[0]
        return Finding(chapter, name, store.folder, WRONG, store.refusal, mend)
    why = _cannot_write(store.folder)
    if why:
        return Finding(chapter, name, store.folder, WRONG, why)
    entries = [entry for entry in store.entries() if not entry.damaged]
    size = sum(entry.size for entry in entries) / 1e6
    value = f"{store.folder}, {len(entries)} executables, {size:.1f} MB"
    return Finding(chapter, name, value)
