"""Calls of the catalogue of numpy functions: what jax 0.10.2 gives, or refused as it refuses."""

import concurrent.futures

import pytest

import hlofront
import hlofront.numpy as jnp
from tests.numpy import catalogue, comparing, test_against_numpy, trying


@pytest.fixture(scope="module")
def theirs(oracle):
    """("catalogue" or "wrong", chapter) -> what jax gives; made while ours run."""
    with concurrent.futures.ThreadPoolExecutor(1) as asking:
        answers = {
            (kind, chapter): asking.submit(oracle.ask, kind, chapter)
            for kind in ("wrong", "catalogue")
            for chapter in catalogue.CHAPTERS
        }
        yield lambda *which: answers[which].result()
        for answer in answers.values():
            answer.cancel()


@pytest.mark.parametrize("chapter", catalogue.CHAPTERS)
def test_refused_as_by_jax(theirs, chapter):
    """Wrong calls raise the same class of error, or give results of the same types."""
    ours = trying.outcomes_of_wrong(chapter, hlofront, jnp)
    wanted = theirs("wrong", chapter)
    assert ours.keys() == wanted.keys()
    report = []
    for name, found in ours.items():
        try:
            comparing.check_wrong(found, wanted[name])
        except AssertionError as error:
            if not trying.expected(name, wanted[name]):
                report.append(f"{name}: {error}")
    assert not report, "\n".join(report)


@pytest.mark.parametrize("function", catalogue.CALLS)
def test_same_as_jax(theirs, function):
    report = []
    for one in catalogue.CALLS[function]:
        wanted = theirs("catalogue", one.chapter)[one.name]
        try:
            comparing.check_jax(one, test_against_numpy.outcome(one), wanted)
        except AssertionError as error:
            report.append(f"{one.name}: {error}")
    assert not report, "\n\n".join(report)
