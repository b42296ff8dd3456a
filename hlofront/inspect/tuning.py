"""The function `tune`: block sizes ranked by the static cycles of a TPU that is not attached."""

import itertools
import json
import os
import pathlib
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

from hlofront.base.config import options
from hlofront.base.errors import TargetError
from hlofront.base.named_tuple import NamedTuple
from hlofront.inspect.dumps import dump_tpu_kernels, empty_folder, tpu_kernels
from hlofront.inspect.memory_fit import vmem_exceeded
from hlofront.pjrt.targets import Description, Target
from hlofront.pjrt.targets import target as find_target
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.runtime.dispatch.stages import Lowered
from hlotools.cost.costs import line_text, table_lines, time_text
from hlotools.cost.memory_use import size_text
from hlotools.dumps.tpu_kernels import STEPS_BY_ESTIMATE, TpuKernel
from hlotools.ir.program_text import TITLES, program_of_file
from hlotools.terminal_text import counted, is_visible

FORMAT = "hlofront.tuning/1"
_in_subprocess = options["hlofront_compile_apart"]
_warn_recompiles = options["hlofront_warn_recompiles"]
# What a user's function and the compiler raise for sizes that are incompatible.
_REFUSALS = (RuntimeError, ValueError, TypeError, AssertionError)
_MAX_REASON = 200
# The purpose of each slot, by its name in libtpu's profile.
_SLOTS = {
    "MXU": "products of matrices (MXU)",
    "XLU": "transposes and reductions across lanes (XLU)",
    "VALU": "elementwise arithmetic (VALU)",
    "EUP": "transcendental functions (EUP)",
    "VPOP": "pops of results (VPOP)",
    "load": "loads from VMEM",
    "store": "stores to VMEM",
    "scalar": "scalar arithmetic",
}
_NOT_COUNTED = (
    "static cycles leave out waits for copies (DMA) between HBM and VMEM, and count code that a "
    "predicate skips: they rank candidates, and do not predict times"
)


class TuningCandidate(NamedTuple):
    """A program among those that `tune` ranks."""

    name: str
    """Its values, as in "block_q=128 block_k=256"; or its file."""
    kernels: tuple[TpuKernel, ...]
    """Its kernels, those that take most of its time first."""
    problem: str = ""
    """The reason why it was refused, by the compiler or by the function; "" if it compiled."""

    @property
    def cycles(self) -> int:
        """The static cycles of all calls of its kernels."""
        return sum(_cycles(kernel) for kernel in self.kernels)

    @property
    def is_at_least(self) -> bool:
        """Whether `cycles` is a lower bound, as a loop of unknown length counts as one trip."""
        return any(trips is None for kernel in self.kernels for trips in kernel.trips)

    @property
    def seconds(self) -> float | None:
        """The lower bound of its time by cycles and by transfers, None if there are no rates."""
        known = [kernel.seconds for kernel in self.kernels if kernel.seconds is not None]
        return sum(known) if known else None

    @property
    def slowest(self) -> TpuKernel | None:
        """The kernel that takes most of its cycles, None if it has no kernels."""
        return max(self.kernels, key=_cycles, default=None)

    def as_dict(self) -> dict[str, Any]:
        """Return the candidate as a dictionary for JSON."""
        slowest = self.slowest
        return {
            "name": self.name,
            "cycles": self.cycles,
            "is_at_least": self.is_at_least,
            "seconds": self.seconds,
            "limit": slowest.limit if slowest else None,
            "kernels": [row.as_dict() for row in self.kernels],
        }


class Tuning:
    """Candidates ranked by static cycles, the fewest first, and those that were refused."""

    __slots__ = ("candidates", "name", "refused", "target")

    def __init__(self, name: str, target: Description, candidates: Sequence[TuningCandidate]):
        self.name = name
        self.target = target
        compiled = [each for each in candidates if not each.problem]
        self.candidates = sorted(compiled, key=lambda each: each.cycles)
        self.refused = [each for each in candidates if each.problem]

    @property
    def best(self) -> TuningCandidate | None:
        """The candidate with the fewest static cycles, None if all were refused."""
        return self.candidates[0] if self.candidates else None

    def as_dict(self) -> dict[str, Any]:
        """Return the ranking as a dictionary for JSON; None is unknown."""
        return {
            "format": FORMAT,
            "name": self.name,
            "target": self.target.name,
            "candidates": [each.as_dict() for each in self.candidates],
            "refused": [{"name": each.name, "problem": each.problem} for each in self.refused],
        }

    def json(self) -> str:
        """Return the ranking as JSON, with the keys of `as_dict()`."""
        return json.dumps(self.as_dict(), indent=1)

    @is_visible
    def text(self) -> str:
        """Return the ranking as a table, and a sentence on what limits the best candidate."""
        count = len(self.candidates) + len(self.refused)
        lines = [f"{self.name} on {self.target.title}, {counted(count, 'candidate')}"]
        if self.best is not None:
            lines += [*table_lines(*self._table()), _limit_text(self.best, self.target)]
            bounds = [each for each in self.candidates if each.seconds is not None]
            first = min(bounds, key=lambda each: each.seconds or 0.0, default=self.best)
            if (first.seconds or 0.0) < (self.best.seconds or 0.0):
                lines.append(f"by the bound, which counts HBM as well, {first.name} is the best")
            if any(each.is_at_least for each in self.candidates):
                lines.append("at least (>=): a loop whose trips are not constant counts as one")
            kernels = [kernel for each in self.candidates for kernel in each.kernels]
            if any(kernel.steps_by_estimate is not None for kernel in kernels):
                lines.append(STEPS_BY_ESTIMATE)
            lines.append(_NOT_COUNTED)
        lines += [f"refused: {each.name}: {each.problem}" for each in self.refused]
        return "\n".join(lines)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads of columns, and rows, each with the candidate's name at the end."""
        timed = self.best is not None and self.best.seconds is not None
        head = ["cycles", *(["bound"] if timed else []), "limit", "full", "bundles", "spills"]
        rows: list[list[str]] = []
        for each in self.candidates:
            slowest = each.slowest
            rows.append(
                [
                    f"{'>=' if each.is_at_least else ''}{each.cycles:,}",
                    *([time_text(each.seconds)] if timed else []),
                    slowest.limit if slowest else "-",
                    f"{max(slowest.slots.values(), default=0):.0%}" if slowest else "-",
                    f"{sum(kernel.bundles for kernel in each.kernels):,}",
                    f"{sum(kernel.spills or 0 for kernel in each.kernels):,}",
                    f"{sum(kernel.flops for kernel in each.kernels):.3g}",
                    size_text(max((kernel.vmem for kernel in each.kernels), default=0)),
                    size_text(sum(kernel.bytes for kernel in each.kernels)),
                    each.name,
                ]
            )
        return [*head, "flops", "VMEM", "HBM"], rows

    def __repr__(self) -> str:
        return self.text()


def tune(
    program: Callable[..., object] | Sequence[str | os.PathLike[str]],
    *args: object,
    over: Mapping[str, Sequence[object]] | None = None,
    target: Target | str,
    folder: str | os.PathLike[str] | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> Tuning:
    """Rank block sizes, or other choices, by the static cycles of a TPU that is not attached.

    Each candidate is compiled, in as many processes at a time as there are cores. Those that the
    compiler refuses, such as those that exceed VMEM, are listed with the reason. Static cycles are
    the kernels' bundles times the trips of their loops: see docs/reference/costs.md.

    ```python
    print(tune(attention, q, k, v, over={"block_q": (128, 256, 512)}, target="tpu:v6e:1x1"))
    print(tune(["attention_128.mlir", "attention_256.mlir"], target="tpu:v6e:1x1"))  # jax's
    ```

    Args:
      program: a function that takes each combination of the values in `over` as keyword arguments;
        or paths of files of StableHLO, such as that of `jit(f).trace(x).lower(lowering_platforms=
        ("tpu",)).as_text()` in jax, or of folders that libtpu dumped kernels into.
      args: the function's other arguments: arrays, or objects with a shape and dtype.
      over: the values of each keyword argument.
      target: a TPU: a result of `hlofront.target`, or its name.
      folder: a folder to keep the dumps in, those of each candidate in a folder of its name.
      tell: called with a line of text whenever a candidate is done.

    Raises:
      FileExistsError: if the folder has files in it.
      TargetError: if the target is not a TPU.
      ValueError: if there is nothing to rank. If no candidate can be lowered or read, the first
        one's error is raised.
    """
    device = find_target(target) if isinstance(target, str) else target
    if device.platform != "tpu":
        raise TargetError(
            f"tune ranks by the bundles of TPUs, and {device.name} is none: give a target such as "
            "tpu:v6e:1x1"
        )
    if callable(program) or not all(map(os.path.isdir, program)):
        _ = device.devices  # Raises here if the compiler is missing.
    if callable(program):
        name = getattr(program, "__name__", "function")
        choices = [dict(zip(over or {}, each, strict=True)) for each in _product(over or {})]
        named = {_named(each): _lowering(program, args, each, device) for each in choices}
    else:
        name = "programs"
        named = {os.fspath(path): _reading(path) for path in program}
    if not any(named):
        raise ValueError("there is nothing to rank: give values in `over`, or paths of programs")
    with tempfile.TemporaryDirectory() as temporary:
        candidates = _compiled(named, device, empty_folder(folder or temporary), tell)
    return Tuning(name, device.describe(), candidates)


def _product(over: Mapping[str, Sequence[object]]) -> Iterator[tuple[object, ...]]:
    return itertools.product(*over.values())


def _named(values: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in values.items())


# What a candidate is compiled from: a program, or the folder that has its dumps.
_Input = Lowered | str | pathlib.Path


def _lowering(
    function: Callable[..., object],
    args: tuple[object, ...],
    values: Mapping[str, object],
    target: Target,
) -> Callable[[], _Input]:
    def lowered() -> Lowered:
        # No worker starts here, as each candidate is compiled by its own.
        with _in_subprocess(False), _warn_recompiles(False), target:
            return jit(lambda *arrays: function(*arrays, **values)).lower(*args)

    return lowered


def _reading(path: str | os.PathLike[str]) -> Callable[[], _Input]:
    def read() -> str | pathlib.Path:
        if os.path.isdir(path):
            return pathlib.Path(path)
        found = program_of_file(os.fspath(path))
        if found.kind != "stablehlo":
            raise ValueError(
                f"it is {TITLES[found.kind]}: give StableHLO, or a folder of libtpu's dumps"
            )
        return found.text

    return read


def _compiled(
    named: Mapping[str, Callable[[], _Input]],
    target: Target,
    folder: pathlib.Path,
    tell: Callable[[str], object],
) -> list[TuningCandidate]:
    """Return the candidates: each is lowered by this thread, and compiled by another process."""
    refused: dict[str, Exception] = {}
    running: dict[Future[TuningCandidate], str] = {}
    pool = ThreadPoolExecutor(min(_core_count(), len(named)))
    try:
        for n, (name, make) in enumerate(named.items()):
            try:
                made = make()
            except _REFUSALS as error:
                refused[name] = error
                continue
            dumps = folder / (re.sub(r"[^\w=.\-]+", "_", name) or str(n))
            running[pool.submit(_candidate, name, made, target, dumps)] = name
        if not running:
            raise next(iter(refused.values()))
        tell(f"compiling {counted(len(running), 'candidate')}")
        done = {name: TuningCandidate(name, (), _reason(error)) for name, error in refused.items()}
        for count, future in enumerate(as_completed(running), 1):
            done[running[future]] = future.result()
            tell(f"compiling candidates ({count} of {len(running)} done)")
    finally:
        pool.shutdown(cancel_futures=True)
    return [done[name] for name in named]


def _candidate(name: str, program: _Input, target: Target, folder: pathlib.Path) -> TuningCandidate:
    try:
        if not isinstance(program, pathlib.Path):
            dump_tpu_kernels(program, target, folder)
            program = folder
        return TuningCandidate(name, tuple(tpu_kernels(program, target).kernels))
    except _REFUSALS as error:
        return TuningCandidate(name, (), _reason(error))


def _core_count() -> int:
    known = getattr(os, "sched_getaffinity", None)
    return len(known(0)) if known is not None else os.cpu_count() or 1


def _reason(error: Exception) -> str:
    """Return why a candidate was refused as one line: what exceeds VMEM, or the error's text."""
    text = str(error)
    if vmem := vmem_exceeded(text):
        return vmem
    line = " ".join(text.split())
    line = line if len(line) <= _MAX_REASON else line[:_MAX_REASON] + " ..."
    return f"{type(error).__name__}: {line}"


def _cycles(kernel: TpuKernel) -> int:
    return kernel.cycles * kernel.calls


def _limit_text(best: TuningCandidate, target: Description) -> str:
    """Return a sentence on what limits the kernel that takes most cycles of the best candidate."""
    kernel = best.slowest
    if kernel is None:
        return f"{best.name} has no kernels"
    full = max(kernel.slots.values(), default=0)
    if kernel.limit == "HBM" and target.clock and target.bandwidth:
        moved, computing = kernel.bytes / target.bandwidth, _cycles(kernel) / target.clock
        limit = (
            f"memory: {size_text(kernel.bytes)} to and from HBM take {time_text(moved)}, its "
            f"cycles {time_text(computing)}, so that cycles do not decide"
        )
    elif kernel.limit == "latency":
        limit = f"latency: its fullest slot is {full:.0%} full, as instructions wait for results"
    else:
        limit = f"the slot of {_SLOTS.get(kernel.limit, kernel.limit)}, which is {full:.0%} full"
    where = f" at {line_text(kernel.file, kernel.line)}" if kernel.file else ""
    part = _cycles(kernel) / max(best.cycles, 1)
    return (
        f"best: {best.name}; its kernel {kernel.name}{where} ({part:.0%} of the cycles) is limited "
        f"by {limit}"
    )
