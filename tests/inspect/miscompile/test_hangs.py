"""find_miscompile names a loop that hangs when XLA compiles it, and a loop that never ends."""

import inspect

import numpy as np
import pytest

import hlofront.numpy as jnp
from hlofront import lax
from hlofront.core.programs.subprograms import all_equations
from hlofront.inspect import find_miscompile
from hlofront.inspect.miscompile.trials import Outcome, Trials


def hanging(xs):
    start = jnp.cos(xs.sum())
    total = lax.while_loop(lambda t: t < 3, lambda t: t + lax.tanh(t) + 1, start)  # here
    return total * 2


def scanned(xs):
    return lax.scan(lambda t, x: (lax.tanh(t) * x, lax.neg(t)), 1.0, xs)  # here


CURE = "xla_cpu_use_onednn"


@pytest.fixture
def hangs(monkeypatch):
    """Isolated programs that have a loop with a tanh hang, unless oneDNN is off."""

    def run_under(trials, jaxlib, program, operands, more={}):
        names = {equation.primitive.name for equation in all_equations(program)}
        if "tanh" in names and names & {"while", "scan"} and CURE not in more:
            return Outcome((), "hang", f"it takes more than {trials.seconds:g} seconds")
        in_this_process = Trials(trials.compiler_options, trials.seconds)
        return in_this_process.run(program, operands, more)

    monkeypatch.setattr(Trials, "run_under", run_under)


@pytest.mark.parametrize("function, primitive", [(hanging, "while"), (scanned, "scan")])
def test_a_loop_that_hangs_only_when_it_is_compiled(hangs, function, primitive):
    report = find_miscompile(function, jaxlibs=())(np.arange(3, dtype=np.float32))
    lines, first = inspect.getsourcelines(function)
    here = first + next(i for i, line in enumerate(lines) if "# here" in line)
    assert report.kind == "hang" and report.is_alone
    (operation,) = report.operations
    assert (operation.primitive, operation.source_line.line) == (primitive, here)
    assert (CURE, False) in report.cures and not report.passes
    assert "more than 60 seconds" in str(report)


@pytest.mark.long
@pytest.mark.slow
def test_a_loop_that_does_not_end_one_step_at_a_time_either_is_an_error():
    def endless(x):
        return lax.while_loop(lambda x: x > 0, lambda x: x + 1 - 1, jnp.sin(x) + 1)

    with pytest.raises(
        TimeoutError, match=r"the while_loop at .*test_hangs\.py:\d+ does not end in"
    ):
        find_miscompile(endless, seconds=3, jaxlibs=())(jnp.ones(()))
