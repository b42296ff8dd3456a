"""Each sample gives what jax 0.10.2 gives under jit: values, shapes, dtypes, weak types."""

import numpy as np
import pytest

from hlofront.bridge.state import jaxlib_version
from tests.against_jax.answers import digest_of_texts
from tests.support.closeness import assert_within, assert_zeros_alike
from tests.systematic import trials
from tests.systematic.test_samples import (
    PAIRS,
    SAMPLES,
    assert_same_type,
    jitted,
    values_of,
)

# Their vectors are known up to phases, or signs: roundings decide which one LAPACK gives, and each
# processor has kernels of its own. Absolute values of elements have no phases.
UP_TO_PHASES = {"eig", "eigh", "schur", "svd"}


# Samples whose values depend on the jaxlib, under jax as well: from 0.12 on, digamma of 0 is -inf.
BY_JAXLIB = ("digamma(line)",)


def keys_of(file):
    key = digest_of_texts("tests.systematic.trials", f"tests.samples.{file}")
    return {sample.name: key for sample in SAMPLES[file]}


@pytest.fixture(scope="module")
def theirs(reference):
    """file -> the outcomes of its samples, by their names."""

    def answers(file):
        places = {sample.name: place for place, sample in enumerate(SAMPLES[file])}

        def question(name):
            place = places[name]
            return trials.question_for_reference(
                SAMPLES[file][place], place, values_of(file, place)
            )

        return reference.answers("samples", file, keys_of(file), question=question)

    return {file: answers(file) for file in SAMPLES}


@pytest.mark.parametrize(
    ("file", "place"),
    PAIRS,
    ids=[f"{file}-{SAMPLES[file][place].name}" for file, place in PAIRS],
)
def test_same_as_jax(theirs, file, place):
    found = jitted(file, place)
    assert not isinstance(found, str), found
    sample = SAMPLES[file][place]
    wanted = theirs[file][sample.name]
    if isinstance(wanted, str):
        pytest.skip(f"jax cannot: {wanted.splitlines()[0][:150]}")
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert_same_type(one, other)
        if sample.unlike_jax or (jaxlib_version > (0, 10, 2) and sample.name in BY_JAXLIB):
            continue
        ours, reference = one[3], other[3]
        if sample.function.__name__ in UP_TO_PHASES:
            ours, reference = np.abs(ours), np.abs(reference)
        assert_within(ours, reference, sample.ulps or 40)
        assert_zeros_alike(ours, reference)
