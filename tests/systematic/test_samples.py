"""Each sample in every way: infer = run, jit = eager, against NumPy, its program, its module."""

import numpy as np
import pytest

import hlofront
from hlofront.core.programs.check import check_jaxpr
from tests.on_platforms import cached, slack_of
from tests.support.closeness import assert_within
from tests.systematic import trials
from tests.systematic.selected import PAIRS, SAMPLES, SELECTED
from tests.systematic.trials import AT_ONCE

every_sample = pytest.mark.parametrize(
    ("file", "place"),
    PAIRS,
    ids=[f"{file}-{SAMPLES[file][place].name}" for file, place in PAIRS],
)


@cached
def values_of(file, place):
    return SAMPLES[file][place].operand_values()


@cached
def eager(file, place):
    return trials.run_eager(SAMPLES[file][place], values_of(file, place), hlofront)


@cached
def _jitted(file, batch):
    places = SELECTED[file][batch * AT_ONCE :][:AT_ONCE]
    outcomes = trials.run_jitted(
        [SAMPLES[file][place] for place in places],
        [values_of(file, place) for place in places],
        hlofront,
    )
    return dict(zip(places, outcomes, strict=True))


def jitted(file, place):
    """What a sample gives under jit, or the error; some samples are compiled as one program."""
    return _jitted(file, SELECTED[file].index(place) // AT_ONCE)[place]


def as_function(file, place):
    sample = SAMPLES[file][place]
    call, traced = trials.split(sample, values_of(file, place))
    return call, traced, hlofront.enable_x64(sample.needs_x64())


def test_names_are_distinct():
    names = [sample.name for samples in SAMPLES.values() for sample in samples]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"two samples have one name (and so the same values): {sorted(twice)}"


def assert_same_type(found, wanted):
    """Assert that two of (shape, dtype, weak, ...) begin alike."""
    assert found[:3] == wanted[:3], f"shape, dtype, weak: {found[:3]}, and the other {wanted[:3]}"


@every_sample
def test_infer_is_run(file, place):
    call, traced, x64 = as_function(file, place)
    with trials.quiet(), x64:
        inferred = hlofront.tree_util.tree_leaves(hlofront.eval_shape(call, *traced))
    ran = eager(file, place)
    assert len(inferred) == len(ran)
    for struct, result in zip(inferred, ran, strict=True):
        assert_same_type((struct.shape, str(struct.dtype), bool(struct.weak_type)), result)


@every_sample
def test_jit_is_eager(file, place):
    outcome = jitted(file, place)
    assert not isinstance(outcome, str), outcome
    ran = eager(file, place)
    assert len(outcome) == len(ran)
    for one, other in zip(outcome, ran, strict=True):
        assert_same_type(one, other)
        assert_within(one[3], other[3], ulps=8)


@every_sample
def test_program_and_module(file, place):
    """The program keeps the type rules; its module verifies, and is the same each time."""
    call, traced, x64 = as_function(file, place)
    with trials.quiet(), x64:
        check_jaxpr(hlofront.make_jaxpr(call)(*traced))
        texts = [
            hlofront.jit(lambda *operands: call(*operands)).lower(*traced).as_text()
            for _ in range(2)
        ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("file", "place"),
    [(file, place) for file, place in PAIRS if SAMPLES[file][place].reference],
    ids=[f"{f}-{SAMPLES[f][p].name}" for f, p in PAIRS if SAMPLES[f][p].reference],
)
def test_reference(file, place):
    sample = SAMPLES[file][place]
    with trials.quiet(), np.errstate(all="ignore"):
        wanted = sample.reference(*values_of(file, place), **sample.keywords)
    wanted = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
    found = eager(file, place)
    assert len(found) == len(wanted)
    for (shape, _, _, value), array in zip(found, wanted, strict=True):
        assert shape == np.shape(array)
        with np.errstate(all="ignore"):
            ulps = (sample.ulps or 90) * slack_of(sample)
            assert_within(value, np.asarray(array).astype(value.dtype), ulps)
