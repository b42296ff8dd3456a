"""find_miscompile: planted faults of XLA are found, and named by the operation and its line."""

import inspect

import pytest

from hlofront.inspect import find_miscompile
from tests.inspect.miscompile.planted import FAULTS, Fault, planted

# The others are as quick, and told apart by the same code: they run in `./check rest`.
QUICK = ("changed comparison", "in a scan", "other bits")


def found(fault: Fault, **options):
    """Return the report of a planted fault, which names the operation and its line."""
    with planted(fault) as edited:
        report = find_miscompile(fault.function, isolated=False, jaxlibs=(), **options)(
            *fault.arguments
        )
    assert edited, "the edit fits no program"
    return report


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(each, id=each.name, marks=() if each.name in QUICK else pytest.mark.long)
        for each in FAULTS
    ],
)
def test_a_planted_fault_is_named_with_its_line(fault):
    report = found(fault)
    assert report.kind == "values", report
    lines, first = inspect.getsourcelines(fault.function)
    here = first + next(i for i, line in enumerate(lines) if "# here" in line)
    named = {(step.primitive, step.source_line.line) for step in report.operations}
    assert (fault.primitive, here) in named, report
    assert len(named) <= 3, report
    assert f":{here}" in str(report)
    # XLA's own passes are innocent.
    assert not report.passes and not report.cures
