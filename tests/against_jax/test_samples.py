"""Each sample gives what jax 0.10.2 gives under jit: values, shapes, dtypes, weak types."""

import concurrent.futures

import pytest

from tests.systematic import trials
from tests.systematic.closeness import assert_close_to_reference, assert_same_type
from tests.systematic.test_samples import AT_ONCE, PLACES, SAMPLES, jitted, values_of


@pytest.fixture(scope="module")
def theirs(oracle):
    """file -> the outcomes of its samples; made while ours run."""
    with concurrent.futures.ThreadPoolExecutor(1) as asking:
        answers = {}
        for file, samples in SAMPLES.items():
            questions = [
                trials.question_for_reference(sample, values_of(file, place))
                for place, sample in enumerate(samples)
            ]
            answers[file] = asking.submit(oracle.ask, "samples", file, questions)
        yield lambda file: answers[file].result()
        for answer in answers.values():
            answer.cancel()


@pytest.mark.parametrize(
    ("file", "place"),
    PLACES,
    ids=[f"{file}-{SAMPLES[file][place].name}" for file, place in PLACES],
)
def test_same_as_jax(theirs, file, place):
    batch, position = divmod(place, AT_ONCE)
    found = jitted(file, batch)[position]
    assert not isinstance(found, str), found
    wanted = theirs(file)[place]
    sample = SAMPLES[file][place]
    if isinstance(wanted, str):
        pytest.skip(f"jax cannot: {wanted.splitlines()[0][:150]}")
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert_same_type(one, other)
        if not sample.unlike_jax:
            assert_close_to_reference(one[3], other[3], sample.ulps or 40)
