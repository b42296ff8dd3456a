"""Where XLA reshards values: the line of a wrong spec is named, and the spec that cures it."""

import pathlib

import pytest

import hlofront as jax
from hlofront.inspect import reshards
from hlofront.pjrt import targets
from tests.inspect import resharded_programs
from tests.inspect.resharded_programs import PROGRAMS, check

TARGETS = ("tpu:v5e:2x4", "cuda:h100:8")


# The partitioner is the same for all; compiling for GPUs takes longer.
ALSO_FOR_GPUS = (
    "the second layer is split as the first",
    "a gradient is split as another parameter",
)


@pytest.mark.parametrize(
    ("name", "target"),
    [*((name, TARGETS[0]) for name in PROGRAMS), *((name, TARGETS[1]) for name in ALSO_FOR_GPUS)],
)
def test_a_wrong_spec_is_named_with_its_cure(name, target):
    missing = targets.install_hint(target.partition(":")[0])
    if missing:
        pytest.skip(f"compiling for {target} takes `{missing}`")
    check(PROGRAMS[name], jax.target(target).devices)


def test_a_program_for_one_device_has_none():
    with pytest.raises(ValueError, match="the program is for one device: reshards"):
        reshards(lambda x: x + 1)(jax.numpy.ones(3))


def test_each_wrong_constraint_has_a_line():
    source = pathlib.Path(resharded_programs.__file__).read_text(encoding="utf-8")
    wrong = [program for program in PROGRAMS.values() if program.wrong is None]
    assert source.count("  # wrong\n") == len(wrong) > 5
