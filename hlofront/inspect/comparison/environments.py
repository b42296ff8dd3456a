"""The environments for other versions of jaxlib, each created once with pip or uv in a folder."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hlofront.base.config import options
from hlofront.bridge import state
from hlofront.pjrt.configured_stores import default_folder

WORKER = pathlib.Path(__file__).parents[2] / "bridge" / "other_jaxlib_worker.py"
_folder = options["hlofront_environments_dir"]
_PATIENCE_SECONDS = 900
Tell = Callable[[str], object]


class NoEnvironment(Exception):
    """The error that a version of jaxlib is unavailable; the message says why and what to do."""


def python_with(jaxlib: str, tell: Tell = lambda text: None) -> str:
    """Return the path of a Python with a version of jaxlib, creating its environment if needed.

    Args:
      jaxlib: its version, as in "0.8.3".
      tell: called with a line of text before each slow step.

    Raises:
      NoEnvironment: if the environment cannot be created.
    """
    version = _checked(jaxlib)
    if version == ".".join(map(str, state.jaxlib_version[:3])) or jaxlib == "current":
        return sys.executable
    folder = environments_folder() / f"jaxlib-{jaxlib}"
    with _locked(folder, tell):
        python = _ready(folder)
        if python is None:
            tell(f"making an environment with jaxlib {jaxlib} in {folder}")
            python = _make(folder, jaxlib)
    return python


def about(python: str) -> dict[str, str]:
    """Return the versions of jaxlib and StableHLO that another environment's Python has.

    Args:
      python: the path of its Python.

    Raises:
      NoEnvironment: if jaxlib does not load there.
    """
    done = subprocess.run(
        [python, str(WORKER), "--about"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NoEnvironment(f"jaxlib does not load in {python}: {_last_line(done.stderr)}")
    return json.loads(done.stdout.splitlines()[-1])


def environments_folder() -> pathlib.Path:
    """Return the folder that holds the environments.

    Raises:
      NoEnvironment: if there is no home folder and no option names a folder.
    """
    if _folder.value:
        return pathlib.Path(_folder.value).expanduser()
    executables = default_folder()
    if executables is None:
        raise NoEnvironment(
            "there is no home folder to keep environments in: set HLOFRONT_ENVIRONMENTS_DIR"
        )
    return pathlib.Path(executables).with_name("environments")


def _checked(jaxlib: str) -> str:
    if jaxlib != "current" and not re.fullmatch(r"\d+\.\d+\.\d+(\.\d+)?", jaxlib):
        raise NoEnvironment(f"{jaxlib!r} is not a version of jaxlib, such as 0.10.2")
    return jaxlib


def _ready(folder: pathlib.Path) -> str | None:
    python = _python_in(folder)
    return str(python) if (folder / "ready").exists() and python.exists() else None


def _python_in(folder: pathlib.Path) -> pathlib.Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _make(folder: pathlib.Path, jaxlib: str) -> str:
    interpreter = _interpreter_for(jaxlib)
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = str(_python_in(folder))
    uv = shutil.which("uv")
    if uv:
        steps = [
            [uv, "venv", "--quiet", "--python", interpreter, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", python, f"jaxlib=={jaxlib}"],
        ]
    else:
        steps = [
            [interpreter, "-m", "venv", str(folder)],
            [python, "-m", "pip", "install", "--quiet", f"jaxlib=={jaxlib}"],
        ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise NoEnvironment(
                f"no environment with jaxlib {jaxlib} could be made: `{' '.join(step)}` said: "
                f"{_last_line(done.stderr)}"
            )
    (folder / "ready").write_text(jaxlib)
    return python


def _interpreter_for(jaxlib: str) -> str:
    """Return a Python that a version of jaxlib has wheels for: this one where it does."""
    least, most = _pythons_of(jaxlib)
    if least <= sys.version_info[:2] <= most:
        return sys.executable
    tried: list[str] = []
    for minor in range(most[1], least[1] - 1, -1):
        name = f"python3.{minor}"
        tried.append(name)
        for candidate in _candidates(name):
            done = subprocess.run(
                [candidate, "-c", "import sys, venv; print(*sys.version_info[:2], sep='.')"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0 and done.stdout.strip() == f"3.{minor}":
                return candidate
    supported = f"{least[0]}.{least[1]}" + (f" to {most[0]}.{most[1]}" if most > least else "")
    raise NoEnvironment(
        f"jaxlib {jaxlib} needs Python {supported}, and this is {sys.version_info[0]}."
        f"{sys.version_info[1]}: none of {', '.join(tried)} was found. Install one, for example "
        f"with `uv python install {most[0]}.{most[1]}`"
    )


# For each first version of jaxlib: the oldest and newest Python with wheels.
_PYTHONS = (
    ((0, 11), (3, 12), (3, 14)),
    ((0, 7), (3, 11), (3, 14)),
    ((0, 5), (3, 10), (3, 13)),
    ((0, 4, 31), (3, 10), (3, 13)),
    ((0,), (3, 9), (3, 12)),
)


def _pythons_of(jaxlib: str) -> tuple[tuple[int, int], tuple[int, int]]:
    version = tuple(map(int, jaxlib.split(".")))
    return next((least, most) for start, least, most in _PYTHONS if version >= start)


def _candidates(name: str) -> Iterator[str]:
    executable = shutil.which(name)
    if executable:
        yield executable
    root = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    for python in sorted(root.glob(f"versions/{name.removeprefix('python')}.*/bin/python")):
        yield str(python)
    uv = shutil.which("uv")
    if uv:
        done = subprocess.run(
            [uv, "python", "find", name.removeprefix("python")],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            yield done.stdout.strip()


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if "WARNING" not in line]
    errors = [line for line in lines if line.startswith(("ERROR", "error", "  ×"))]
    return (errors or lines or ["nothing"])[-1].strip()


@contextlib.contextmanager
def _locked(folder: pathlib.Path, tell: Tell) -> Iterator[None]:
    """Hold the lock for creating an environment in a folder; take over an abandoned lock."""
    lock = folder.with_name(folder.name + ".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    announced = False
    started = time.monotonic()
    while True:
        try:
            lock.mkdir()
            break
        except FileExistsError:
            if not announced:
                tell(f"another process is making {folder}: waiting for it")
                announced = True
            with contextlib.suppress(OSError):
                if time.time() - lock.stat().st_mtime > _PATIENCE_SECONDS:
                    lock.rmdir()
            if time.monotonic() - started > _PATIENCE_SECONDS:
                raise NoEnvironment(f"{lock} has existed for too long: remove it") from None
            time.sleep(0.2)
    try:
        yield
    finally:
        lock.rmdir()


def run_worker(python: str, request: Mapping[str, object], folder: pathlib.Path) -> dict[str, Any]:
    """Return the response of `bridge/other_jaxlib_worker.py` to a request, run by another Python.

    Raises:
      NoEnvironment: if the worker ends without a response, as when XLA aborts its process.
    """
    answer = folder / "answer.json"
    question = folder / "request.json"
    question.write_text(json.dumps({**request, "answer": str(answer)}))
    done = subprocess.run(
        [python, str(WORKER), str(question)],
        capture_output=True,
        text=True,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    if not answer.exists():
        raise NoEnvironment(
            f"the compiler of {python} ended with {done.returncode}: {_last_line(done.stderr)}"
        )
    return json.loads(answer.read_text())
