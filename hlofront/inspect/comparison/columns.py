"""The columns of a comparison: a function compiled by a jaxlib, for a device or at a revision."""

import base64
import contextlib
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

import numpy as np

from hlofront.base.config import options
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import NumPyArray, Shape
from hlofront.bridge import state
from hlofront.bridge.mlir import portable_artifact, stablehlo_version
from hlofront.inspect import kernel_decoding  # noqa: F401  # Reads texts with their kernels.
from hlofront.inspect.comparison import environments
from hlofront.inspect.comparison.environments import NoEnvironment
from hlofront.inspect.cost import description_of
from hlofront.inspect.difference import compiler_of
from hlofront.inspect.dumps import compiled_with_kernels
from hlofront.inspect.jitted import jitted
from hlofront.pjrt.autotuning import VARIABLE as AUTOTUNE_VARIABLE
from hlofront.pjrt.autotuning import autotune_results
from hlofront.pjrt.compile import compile_options
from hlofront.pjrt.targets import Description
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.stages import Lowered
from hlotools.html.kernels_tab import KernelTab, kernel_tab
from hlotools.matching.difference import Side
from hlotools.matching.flags import flags_of
from hlotools.profiles.compile_times import PassTime, pass_times
from hlotools.profiles.xplane import parse_xplane

Tell = Callable[[str], object]

_HERE = ".".join(map(str, state.jaxlib_version))
_disk_cache = options["hlofront_cache"]
_whole_disk_cache = options["jax_enable_compilation_cache"]


class Column(NamedTuple):
    """A function compiled by one jaxlib, for one device or at one revision.

    A field is None where it is unknown.
    """

    label: str
    """The request for the column: "jaxlib 0.8.3", "tpu:v5e:2x2", "at HEAD~3"."""
    hlo: str | None
    """The optimized HLO of the function."""
    flops: float | None
    bytes_accessed: float | None
    argument_bytes: int | None
    output_bytes: int | None
    temporary_bytes: int | None
    code_bytes: int | None
    compile_seconds: float | None
    run_seconds: float | None
    """The median time of several runs; None where the device is absent."""
    error: str | None = None
    """The reason for which there is no HLO."""
    flags: dict[str, str] | None = None
    """The compiler's flags by name: those of XLA_FLAGS, and the options of the function."""
    stablehlo: str | None = None
    """The StableHLO that this process's XLA, or that of its worker, compiled."""
    compiler: str | None = None
    """The name of the device that it was compiled for."""
    passes: tuple[PassTime, ...] = ()
    """The times of XLA's passes; none where they were not recorded."""
    kernels: KernelTab | None = None
    """The kernels of a TPU's or GPU's program for its page; None where they were not dumped."""


def rates_of_column(column: Column) -> Description | None:
    """Return the rates of the device that a column is compiled for, None where it has no target."""
    # The names of targets have a colon; those of platforms have none.
    return description_of(column.compiler) if ":" in (column.compiler or "") else None


def side_of_column(column: Column, label: str) -> Side:
    """Return a column that compiled as a side of a diff."""
    stablehlo = column.stablehlo
    return Side(
        "hlo",
        label,
        column.hlo or "",
        flags=column.flags,
        rates=rates_of_column(column),
        source=None if stablehlo is None else lambda: stablehlo,
        compiler=column.compiler,
    )


def failed(label: str, error: object) -> Column:
    """Return the column of a compilation that failed, with its error."""
    return Column(label, *[None] * 9, error=str(error))


# ---- versions of jaxlib --------------------------------------------------------------------------


class Artifact:
    """A lowered program for another process: portable StableHLO, compile options and arguments."""

    def __init__(self, lowered: Lowered):
        module = lowered._module
        if module.callbacks:
            raise ValueError(
                "a program that calls back to Python cannot be compiled in another process"
            )
        self._module = module
        self._avals = [
            *(aval for _, aval in module.const_args),
            *(lowered._traced.program.in_avals[i] for i in module.kept_inputs),
        ]
        self._constants = [value for value, _ in module.const_args]
        self.flags = flags_of(lowered._jitted.compiler_options)
        self._compile_options = functools.partial(
            compile_options,
            [lowered._first_device],
            dict(lowered._jitted.compiler_options),
            keep_barriers=module.keeps_barriers,
            barriers_in_loops=module.has_inner_barriers,
        )
        self.stablehlo = lowered.as_text(debug_info=True)

    def options_for(self, jaxlib: str) -> list[list[object]]:
        """Return the options of XLA's compiler, under the names of a version of jaxlib."""
        options = self._compile_options(jaxlib=tuple(map(int, jaxlib.split(".")[:3])))
        return [list(pair) for pair in options.env_option_overrides]

    def as_bytes(self, stablehlo: str | None) -> bytes:
        """Return the program as a portable artifact that a version of StableHLO reads.

        Raises:
          ValueError: if the program has an operation that is newer than the reader.
        """
        ours = stablehlo_version()
        known = [ours, stablehlo or "1.0.0"]
        version = min(known, key=lambda text: tuple(map(int, text.split("."))))
        return portable_artifact(self._module.ir_module, version)

    def save_random_arguments(self, path: pathlib.Path) -> None:
        """Save constants and random arguments between 0 and 1 as an .npz file."""
        random = np.random.default_rng(0)
        values = [
            np.zeros(aval.shape, aval.dtype)
            if aval.dtype.kind in "biu"
            else random.uniform(0.1, 0.9, aval.shape).astype(aval.dtype)
            for aval in self._avals[len(self._constants) :]
        ]
        _save(path, [*map(np.asarray, self._constants), *values])

    def save_arguments(self, path: pathlib.Path, arguments: Sequence[NumPyArray]) -> None:
        """Save constants and those of the function's arguments that the program takes."""
        taken = [arguments[i] for i in self._module.kept_inputs]
        _save(path, [*map(np.asarray, self._constants), *taken])


def _save(path: pathlib.Path, values: Sequence[NumPyArray]) -> None:
    """Save arrays to an .npz file, which `bridge/other_jaxlib_worker.py` reads."""
    arrays: dict[str, NumPyArray] = {}
    for i, value in enumerate(values):
        # NumPy's files have no extension dtypes such as bfloat16: their bytes are stored.
        flat = np.ascontiguousarray(value).reshape(-1)
        arrays[f"a{i}"] = flat if flat.dtype.isbuiltin == 1 else flat.view(np.uint8)
    types: list[tuple[str, Shape]] = [(value.dtype.name, value.shape) for value in values]
    np.savez(path, types=json.dumps(types), **arrays)


def under_jaxlib(
    artifact: Artifact, jaxlib: str, *, run: bool = True, tell: Tell = lambda text: None
) -> Column:
    """Return the column of a version of jaxlib, which compiles in its own process."""
    label = f"jaxlib {jaxlib}"
    try:
        python = environments.python_with(jaxlib, tell)
        about = environments.about(python)
        tell(f"compiling under jaxlib {about['jaxlib']}")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "artifact").write_bytes(artifact.as_bytes(about["stablehlo"]))
            request: dict[str, object] = {
                "artifact": str(folder / "artifact"),
                "options": artifact.options_for(about["jaxlib"]),
            }
            if run:
                artifact.save_random_arguments(folder / "arguments.npz")
                request["arguments"] = str(folder / "arguments.npz")
            answer = environments.run_worker(python, request, folder)
    except (NoEnvironment, ValueError) as error:
        return failed(label, error)
    if "error" in answer:
        return failed(label, answer["error"])
    cost, memory = answer["cost"], answer["memory"]
    return Column(
        label,
        answer["hlo"],
        cost.get("flops"),
        cost.get("bytes accessed"),
        *(memory.get(name) for name in ("argument", "output", "temp", "generated_code")),
        answer["compile_seconds"],
        answer["run_seconds"],
        flags=artifact.flags,
        stablehlo=artifact.stablehlo,
        compiler="cpu" if about["jaxlib"] == _HERE else f"cpu of jaxlib {about['jaxlib']}",
        passes=tuple(pass_times(parse_xplane(base64.b64decode(answer["recording"])))),
    )


# ---- here ----------------------------------------------------------------------------------------


def here(
    label: str,
    function: Callable[..., object],
    args: Sequence[object],
    target: str | None = None,
    tell: Tell = lambda text: None,
    kernels: bool = False,
) -> Column:
    """Return the column of this process's compiler, for an attached or a compile-only device.

    The disk caches are off: loading an executable would not show how long XLA compiles. The
    `kernels` of a device that is not attached come from a second compilation, as dumps take time.
    """
    tell(f"compiling for {label}")
    caches_off = (_disk_cache(False), _whole_disk_cache(False))
    try:
        with _on(target), caches_off[0], caches_off[1]:
            lowered = jitted(function).lower(*args)
            started = time.perf_counter()
            compiled = lowered.compile()
            seconds = time.perf_counter() - started
            cost = compiled.cost_analysis() or {}
            memory = compiled.memory_analysis()
            text = compiled.as_text()
        shown = _kernels(lowered, target) if kernels else None
        flags = flags_of(lowered._jitted.compiler_options)
        tuned = autotune_results(lowered._first_device.client)
        if tuned is not None:
            flags["autotuning results"] = tuned.digest[:16]
    except (RuntimeError, ValueError, TypeError) as error:
        return failed(label, error)
    return Column(
        label,
        text,
        cost.get("flops"),
        cost.get("bytes accessed"),
        *(
            getattr(memory, f"{name}_size_in_bytes", None)
            for name in ("argument", "output", "temp", "generated_code")
        ),
        seconds,
        None,
        flags=flags,
        stablehlo=lowered.as_text(debug_info=True),
        compiler=compiler_of(lowered),
        kernels=shown,
    )


def _kernels(lowered: Lowered, target: str | None) -> KernelTab | None:
    """Return the kernels of a program for a device that is not attached, None for other devices."""
    device = find_target(target) if target else None
    if device is None or device.is_attached:
        return None
    with compiled_with_kernels(lowered, device) as (_, report):
        return kernel_tab(report) if report is not None else None


def _on(target: str | None) -> AbstractContextManager[object]:
    if target is None:
        return contextlib.nullcontext()
    return find_target(target)


# ---- revisions -----------------------------------------------------------------------------------


@contextlib.contextmanager
def checkout(path: pathlib.Path, revision: str) -> Iterator[pathlib.Path]:
    """Check out a file and its folder at a git revision, and yield the file's path.

    Raises:
      NoEnvironment: if the file is not in a repository, or the revision lacks it.
    """
    path = path.resolve()
    top = pathlib.Path(_git(path.parent, "rev-parse", "--show-toplevel"))
    inside = path.relative_to(top.resolve())
    commit = _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "checkout"
        _git(top, "worktree", "add", "--detach", "--quiet", str(folder), commit)
        try:
            if not (folder / inside).exists():
                raise NoEnvironment(f"{inside} does not exist at {revision}")
            yield folder / inside
        finally:
            _git(top, "worktree", "remove", "--force", str(folder))


def _git(folder: pathlib.Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        reason = said[-1] if said else f"git has no {arguments[-1].removesuffix('^{commit}')!r}"
        raise NoEnvironment(f"git {arguments[0]} in {folder}: {reason}")
    return done.stdout.strip()


def at_revision(
    path: pathlib.Path,
    name: str,
    specs: str | None,
    revision: str,
    tell: Tell = lambda text: None,
    target: str | None = None,
) -> Column:
    """Return the column of the function `path:name` at a git revision, by the current hlofront.

    A subprocess compiles the function, as the modules of both revisions have the same names: for
    this process's device, or for a target.
    """
    label = f"{target} at {revision}" if target else f"at {revision}"
    tell(f"compiling {path.name}:{name} {'for ' if target else ''}{label}")
    try:
        with checkout(path, revision) as file:
            return _by_worker(label, f"{file}:{name}", specs, target)
    except NoEnvironment as error:
        return failed(label, error)


def with_autotuning(
    target_function: str,
    specs: str | None,
    target: str | None,
    results: str,
    tell: Tell = lambda text: None,
) -> Column:
    """Return the column of a function that is compiled with a file of autotuning results.

    A subprocess compiles it, as XLA reads one such file in the life of a process.
    """
    label = f"{target} with {results}" if target else f"with {results}"
    tell(f"compiling {target_function} {label}")
    return _by_worker(label, target_function, specs, target, {AUTOTUNE_VARIABLE: results})


def _by_worker(
    label: str,
    target_function: str,
    specs: str | None,
    target: str | None = None,
    variables: Mapping[str, str] = {},
) -> Column:
    """Return the column of FILE:FUNCTION that a process with these variables compiles."""
    with tempfile.TemporaryDirectory() as folder:
        answer = pathlib.Path(folder) / "answer.json"
        worker = [sys.executable, "-m", "hlofront.inspect.comparison.column_worker"]
        command = [*worker, str(answer), label, target_function, target or ""]
        done = subprocess.run(
            [*command, *([specs] if specs is not None else [])],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, **variables},
        )
        if done.returncode:
            said = done.stderr.strip().splitlines()
            return failed(label, said[-1] if said else f"it ended with {done.returncode}")
        return Column(**json.loads(answer.read_text()))
