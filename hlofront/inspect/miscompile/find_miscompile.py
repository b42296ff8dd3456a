"""The function `find_miscompile`: whether XLA compiles a program wrongly, which part, and why."""

import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from hlofront.base.errors import JaxRuntimeError
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.bridge.xla_faults import FAULTS
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.inspect.comparison.environments import NoEnvironment, environments_folder
from hlofront.inspect.kernel_decoding import parse
from hlofront.inspect.miscompile.report import MiscompileReport
from hlofront.inspect.miscompile.reproducer import written
from hlofront.inspect.miscompile.search import Found, Search, Tell, refuse_effects
from hlofront.inspect.miscompile.trials import Outcome, Trials
from hlofront.inspect.stepwise.call import search_on_values
from hlofront.runtime.dispatch.stages import Traced
from hlotools.dumps.dump_files import dumped_modules, main_module
from hlotools.ir.hlo import Instruction

# The time limit of the smallest part of a hanging program, tried with another option.
_SECONDS_OF_A_CURE = 10.0


def find_miscompile(
    fun: Callable[..., object],
    *,
    isolated: bool | None = None,
    seconds: float = 60.0,
    jaxlibs: Sequence[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    tell: Tell = lambda text: None,
) -> Callable[..., MiscompileReport]:
    """Return a function that finds out whether XLA compiles `fun` wrongly, and which part of it.

    The returned function runs the program of `fun` as a whole and operation by operation, also in
    float64 and with random roundings, which show how much results may differ: integers, booleans
    and random bits must be equal, unless rounding decides them. If the results differ by more, it
    looks for the smallest part of the program that is wrong when compiled, on the values that it
    has in the program, including inside branches and loops. The report has the user's line, what
    XLA makes of that part, the passes of XLA without which the part is right, and the options with
    which the whole program is right.

        report = find_miscompile(step)(params, batch)
        print(report)

    The values of all operations are kept while it runs, several times: arguments should be small.
    On a CPU, the program first runs in a separate process, so that crashes and hangs are found as
    well.

    Args:
      fun: a function of pytrees of arrays without effects, jitted or not; it must be jitted if it
        has static arguments or needs options of XLA's compiler. Donated arguments stay valid.
      isolated: whether all programs run in a separate process, on one CPU; by default only if the
        first one ends that process.
      seconds: the time limit of a program in that process.
      jaxlibs: the versions of jaxlib under which a wrong part is tried, on CPUs, as in
        ("0.8.3",); by default those that `compare` has made environments for.
      folder: a folder for files that reproduce the fault, in StableHLO and with jax.
      tell: called with a line of text before each slow step.

    Returns:
      A function of the arguments of `fun` that returns a MiscompileReport, which is true if the
      program is wrong, and prints as text.

    Raises:
      FileExistsError: from the returned function, if the folder has files in it.
      ValueError: likewise, if programs for other devices are to be isolated.
      TypeError: from the returned function, if the program has effects or uses the device's own
        random generator, or if it is called while another function is traced.
      TimeoutError: from the returned function, if a loop of the program does not end.

    Example:
      >>> from hlofront.inspect import find_miscompile
      >>> report = find_miscompile(lambda x: jax.nn.softmax(x) @ x)(jnp.arange(4.0))
      >>> bool(report)
      False
    """

    def judge(traced: Traced, arrays: list[ArrayLike]) -> MiscompileReport:
        refuse_effects(traced.jaxpr, "find_miscompile")
        trials = Trials(dict(traced._jitted.compiler_options), seconds, bool(isolated))
        try:
            search = Search(traced, arrays, trials, tell)
            if isolated and not (search.platform == "cpu" and search.is_on_one_device):
                raise ValueError(
                    "find_miscompile isolates programs for one CPU: leave out isolated=True, or "
                    "the arguments' placement on other devices"
                )
            report, found = search.run(isolated is None)
            if found is not None and found.part.equations:
                tell("compiling what is wrong without passes and with options")
                report = _with_cures(report, found, search, jaxlibs)
                if folder is not None:
                    report = replace(report, files=written(report, found, trials, folder))
            return report
        finally:
            trials.close()

    return search_on_values("find_miscompile", fun, judge)


def _with_cures(
    report: MiscompileReport, found: Found, search: Search, jaxlibs: Sequence[str] | None
) -> MiscompileReport:
    """Return a report that also has what XLA makes of the wrong part, and what cures it."""
    trials, program, operands = search.trials, found.part.program, found.operands

    def run(more: Mapping[str, object]) -> Outcome:
        return trials.run(program, operands, more)

    def run_whole(more: Mapping[str, object]) -> Outcome:
        return trials.run(search.program, search.arrays, more)

    def is_right(outcome: Outcome) -> bool:
        return outcome.kind == "values" and not found.differs(outcome)

    if search.platform != "cpu":
        # Other jaxlibs run on CPUs only.
        jaxlibs = ()
    if found.kind == "hang":
        # A hanging trial takes the whole time limit, and a right one is quick.
        trials.seconds = min(trials.seconds, _SECONDS_OF_A_CURE)
        passes = curing_pass(run, is_right)
    else:
        passes = curing_passes(run, is_right)
    options = candidates(search.platform, passes)
    return replace(
        report,
        fusions=fusions_of(trials, program, operands),
        passes=tuple(passes),
        cures=tuple(curing(options, run, is_right, run_whole, search.is_right)),
        jaxlibs=tuple(
            (
                report.jaxlib if version == "current" else version,
                _verdict(version, found, trials, operands, is_right),
            )
            for version in (known_jaxlibs() if jaxlibs is None else jaxlibs)
        ),
        trials=trials.count,
    )


def _verdict(
    version: str,
    found: Found,
    trials: Trials,
    operands: ArrayLikes,
    is_right: Callable[[Outcome], bool],
) -> str:
    """Return how a part does under a version of jaxlib: "right", "wrong", or what fails."""
    try:
        outcome = trials.run_under(version, found.part.program, operands)
    except NoEnvironment as error:
        return f"cannot be tried: {error}"
    if outcome.kind != "values":
        return f"{outcome.kind}: {outcome.failure}"
    return "right" if is_right(outcome) else "wrong"


# ---- passes, options and versions ----------------------------------------------------------------


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
