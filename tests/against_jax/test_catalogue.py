"""Calls of the catalogue of numpy functions: what jax 0.10.2 gives, or refused as it refuses."""

import pytest

import hlofront
import hlofront.numpy as jnp
from tests.against_jax.answers import digest_of_call
from tests.numpy import (
    catalogue,
    catalogue_runner,
    comparing,
    known_differences,
    test_against_numpy,
)


def keys_of(kind, chapter):
    calls = (
        catalogue_runner.wrong_calls(chapter)
        if kind == "wrong"
        else [(one.name, one) for one in catalogue.of_chapter(chapter)]
    )
    module = f"tests.numpy.catalogue.{chapter}"
    return {name: digest_of_call(module, one) for name, one in calls}


@pytest.fixture(scope="module")
def theirs(reference):
    """("catalogue" or "wrong", chapter) -> what jax gives, by the names of calls."""
    return {
        (kind, chapter): reference.answers(kind, chapter, keys_of(kind, chapter))
        for kind in ("wrong", "catalogue")
        for chapter in catalogue.CHAPTERS
    }


@pytest.mark.parametrize("chapter", catalogue.CHAPTERS)
def test_refused_as_by_jax(theirs, chapter):
    """Wrong calls raise the same class of error, or give results of the same types."""
    wanted = theirs["wrong", chapter]
    ours = catalogue_runner.outcomes_of_wrong(chapter, wanted.keys, hlofront, jnp)
    report = []
    for name, found in ours.items():
        try:
            comparing.check_wrong(found, wanted[name])
        except AssertionError as error:
            if not known_differences.expected(name, wanted[name]):
                report.append(f"{name}: {error}")
    assert not report, "\n".join(report)


@pytest.mark.parametrize("function", catalogue.CALLS)
def test_same_as_jax(theirs, function):
    report = []
    for one in catalogue.CALLS[function]:
        wanted = theirs["catalogue", one.chapter][one.name]
        try:
            comparing.check_jax(one, test_against_numpy.outcome(one), wanted)
        except AssertionError as error:
            report.append(f"{one.name}: {error}")
    assert not report, "\n\n".join(report)
