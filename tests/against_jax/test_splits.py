"""Operands split along explicit axes: results have jax's types, or it raises jax's errors."""

import functools

import pytest

import hlofront
from tests.against_jax.answers import digest_of_texts
from tests.systematic import splits
from tests.systematic.test_samples import PAIRS, SAMPLES, values_of

REFUSAL = "ShardingTypeError"

# By a part of a sample's name: why its results have other types than jax's.
KNOWN = {
    "CWNH": "jax takes the axes of a permuted result from the wrong axes of the operand",
    "'NHWC', 'HWIO', 'NCHW'": "jax takes the axes of a permuted result from the wrong axes",
    "scaled_dot_of": "jax forgets how the operands are split, where we refuse them",
    "random_gamma_grad": "one operation here, and in jax a loop of arrays that are not split alike",
    "among_constants": "jax lets constants be split as anything, where we see unsplit arrays",
    "cholesky(": "jax takes a triangle by a mask that is not split as the batch is",
    "symmetrize_output": "jax takes a triangle by a mask that is not split as the batch is",
}


def keys_of(file):
    key = digest_of_texts("tests.systematic.splits", f"tests.samples.{file}")
    return {sample.name: key for sample in SAMPLES[file]}


@pytest.fixture(scope="module")
def theirs(reference):
    """file -> jax's answers for its samples, by their names."""

    @functools.cache
    def answers(file):
        places = {sample.name: place for place, sample in enumerate(SAMPLES[file])}
        return reference.answers("splits", file, keys_of(file), question=places.__getitem__)

    for file in SAMPLES:
        answers(file)
    return answers


def is_error(text):
    return text.endswith("Error")


def unlike(ours, theirs):
    """Return what is wrong with the types of results, or ""."""
    # Where jax fails by another error than of shardings, it has no rule, or a fault.
    if ours != theirs and (not is_error(theirs) or theirs == REFUSAL):
        return f"the result is {ours}, and jax's {theirs}"
    if is_error(ours) and ours not in (REFUSAL, theirs):
        return f"raises {ours}, and jax {theirs}"
    return ""


def wrong_types(theirs, file, place):
    """Return what is wrong with the types of a sample's results, by the name of the split."""
    sample = SAMPLES[file][place]
    wanted = theirs(file)[sample.name]
    ours = splits.types_of(sample, values_of(file, place), hlofront)
    return {
        name: problem for name, types in ours.items() if (problem := unlike(types, wanted[name]))
    }


@pytest.mark.parametrize(
    ("file", "place"),
    PAIRS,
    ids=[f"{file}-{SAMPLES[file][place].name}" for file, place in PAIRS],
)
def test_same_types_as_jax(theirs, file, place):
    wrong = wrong_types(theirs, file, place)
    for part, reason in KNOWN.items():
        if wrong and part in SAMPLES[file][place].name:
            pytest.skip(reason)
    assert not wrong, "\n".join(f"{name}: {problem}" for name, problem in wrong.items())


@pytest.mark.parametrize("part", KNOWN)
def test_each_known_difference_is_met(theirs, part):
    samples = [
        (file, place)
        for file, samples in SAMPLES.items()
        for place, sample in enumerate(samples)
        if part in sample.name
    ]
    assert any(wrong_types(theirs, *sample) for sample in samples), "no sample differs any more"
