"""What cures a wrong part: leaving out a pass of XLA, an option, or another jaxlib."""

import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence

from hlofront.base.errors import JaxRuntimeError
from hlofront.base.typing import ArrayLikes
from hlofront.bridge.xla_faults import FAULTS
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.inspect.comparison.environments import NoEnvironment, environments_folder
from hlofront.inspect.kernel_decoding import parse
from hlofront.inspect.miscompile.trials import Outcome, Trials
from hlotools.dumps.dump_files import dumped_modules, main_module
from hlotools.ir.hlo import Instruction

Option = tuple[str, object]
# Runs the part with options of XLA's compiler.
Run = Callable[[Mapping[str, object]], Outcome]

_DISABLED = "xla_disable_hlo_passes"
# Options that turn off a part of XLA's compiler, by platform, those that cost least first.
_OPTIONS: dict[str, tuple[Option, ...]] = {
    "cpu": (
        ("xla_cpu_experimental_ynn_fusion_type", ""),
        ("xla_cpu_use_onednn", False),
        ("xla_cpu_use_fusion_emitters", False),
        ("xla_cpu_enable_fast_min_max", False),
        ("xla_cpu_enable_platform_dependent_math", False),
        ("xla_cpu_max_isa", "AVX2"),
    ),
    "gpu": (
        ("xla_gpu_enable_cublaslt", False),
        ("xla_gpu_enable_triton_gemm", False),
        ("xla_gpu_autotune_level", 0),
        ("xla_gpu_enable_fast_min_max", False),
    ),
}
_ANYWHERE: tuple[Option, ...] = (
    ("xla_allow_excess_precision", False),
    ("xla_llvm_disable_expensive_passes", True),
    ("xla_backend_optimization_level", 0),
)
_LAST: tuple[Option, ...] = (("xla_disable_all_hlo_passes", True),)
_MADE = ("fusion", "custom-call")
# The fusions and calls of the optimized HLO that a report has.
_MAX_FUSIONS = 3


def passes_that_changed(run: Run) -> list[str]:
    """Return the names of the passes that change a part as XLA compiles it, in order."""
    with tempfile.TemporaryDirectory(prefix="hlofront_") as name:
        run({"xla_dump_to": name, "xla_dump_hlo_pass_re": ".*", "xla_dump_hlo_as_text": True})
        modules = dumped_modules(pathlib.Path(name))
        if not modules:
            return []
        titles = [stage.title for stage in main_module(modules).passes]
    changed = [title.rpartition(" > ")[2] for title in titles if " > " in title]
    return list(dict.fromkeys(changed))


def curing_passes(run: Run, is_right: Callable[[Outcome], bool]) -> list[str]:
    """Return the passes that each make a part right when they are disabled, in order."""
    return [name for name in passes_that_changed(run) if is_right(run({_DISABLED: name}))]


def curing_pass(run: Run, is_right: Callable[[Outcome], bool]) -> list[str]:
    """Return a pass without which a part is right, with few trials, if there is one."""
    names = passes_that_changed(run)
    while len(names) > 1:
        half = names[: len(names) // 2]
        cured = is_right(run({_DISABLED: ",".join(half)}))
        names = half if cured else names[len(half) :]
    return [name for name in names if is_right(run({_DISABLED: name}))]


def candidates(platform: str, passes: Sequence[str]) -> Iterator[Option]:
    """Yield the options that may cure a program, those that cost least first.

    Args:
      platform: the platform that the program is compiled for.
      passes: the passes without which its smallest wrong part is right.
    """
    for fault in FAULTS:
        if fault.platform == platform and len(fault.options) == 1:
            yield from fault.options.items()
    yield from _OPTIONS.get(platform, ())
    yield from _ANYWHERE
    for name in passes:
        yield _DISABLED, name
    yield from _LAST


def curing(
    options: Iterator[Option],
    run: Run,
    is_right: Callable[[Outcome], bool],
    run_whole: Run,
    whole_is_right: Callable[[Outcome], bool],
) -> list[Option]:
    """Return the options under which both a part and the whole program are right."""
    return [
        (name, value)
        for name, value in options
        if is_right(run({name: value})) and whole_is_right(run_whole({name: value}))
    ]


def fusions_of(trials: Trials, program: ClosedJaxpr, operands: ArrayLikes) -> tuple[str, ...]:
    """Return the fusions and calls of libraries that XLA makes of a part, as text."""
    if trials.isolated:
        return ()
    try:
        text = trials.lowered(program, operands).compile().as_text() or ""
    except JaxRuntimeError:
        return ()
    made = [each for each in parse(text).instructions() if each.opcode in _MADE]
    return tuple(map(_described, made[:_MAX_FUSIONS]))


def _described(instruction: Instruction) -> str:
    inside = [
        each.opcode
        for computations in instruction.called.values()
        for computation in computations
        for each in computation
        if each.opcode not in ("parameter", "constant")
    ]
    target = instruction.attributes.get("custom_call_target", "")
    contents = ", ".join(inside[:8]) + (", ..." if inside[8:] else "")
    kind = instruction.attributes.get("kind", "")
    words = [
        instruction.opcode,
        instruction.name,
        kind,
        target,
        f"({contents})" if contents else "",
    ]
    return " ".join(filter(None, words))


def known_jaxlibs() -> list[str]:
    """Return the versions of jaxlib that `compare --jaxlib` has made environments for."""
    try:
        folder = environments_folder()
    except NoEnvironment:
        return []
    return sorted(
        (path.parent.name.removeprefix("jaxlib-") for path in folder.glob("jaxlib-*/ready")),
        key=lambda version: [int(n) for n in version.split(".")],
    )
