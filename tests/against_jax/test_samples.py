"""Each sample gives what jax 0.10.2 gives under jit: values, shapes, dtypes, weak types."""

import concurrent.futures

import pytest

from tests.systematic import trials
from tests.systematic.closeness import assert_close_to_reference, assert_same_type
from tests.systematic.test_samples import AT_ONCE, PLACES, SAMPLES, jitted, values_of


@pytest.fixture(scope="module")
def theirs(oracle):
    """file -> outcomes, made while ours run; only of files that a test was chosen from."""
    questions = {
        file: [(place, values_of(file, place)) for place in range(len(samples))]
        for file, samples in SAMPLES.items()
    }
    with concurrent.futures.ThreadPoolExecutor(1) as asking:
        answers = {
            file: asking.submit(oracle.ask, "samples", {file: asked})
            for file, asked in questions.items()
        }
        yield lambda file: answers[file].result()[file]
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
    if isinstance(wanted, str):
        pytest.skip(f"jax cannot: {wanted.splitlines()[0][:150]}")
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert_same_type(one, other)
        assert_close_to_reference(one[3], other[3])
