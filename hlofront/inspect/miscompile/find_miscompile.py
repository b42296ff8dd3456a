"""The function `find_miscompile`: whether XLA compiles a program wrongly, which part, and why."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.inspect.comparison.environments import NoEnvironment
from hlofront.inspect.miscompile import cures
from hlofront.inspect.miscompile.report import MiscompileReport
from hlofront.inspect.miscompile.reproducer import written
from hlofront.inspect.miscompile.search import Found, Search, Tell, refuse_effects
from hlofront.inspect.miscompile.trials import Outcome, Trials
from hlofront.inspect.stepwise.call import search_on_values
from hlofront.runtime.dispatch.stages import Traced

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
        passes = cures.curing_pass(run, is_right)
    else:
        passes = cures.curing_passes(run, is_right)
    options = cures.candidates(search.platform, passes)
    return replace(
        report,
        fusions=cures.fusions_of(trials, program, operands),
        passes=tuple(passes),
        cures=tuple(cures.curing(options, run, is_right, run_whole, search.is_right)),
        jaxlibs=tuple(
            (
                report.jaxlib if version == "current" else version,
                _verdict(version, found, trials, operands, is_right),
            )
            for version in (cures.known_jaxlibs() if jaxlibs is None else jaxlibs)
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
