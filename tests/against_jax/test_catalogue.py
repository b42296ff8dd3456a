"""Calls of the catalogue of numpy functions give what jax 0.10.2 gives, or are refused alike."""

import functools
import re

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
from tests.support.outcomes import Raised


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


@functools.cache
def our_outcomes_of_wrong_calls(chapter):
    names = keys_of("wrong", chapter)
    return catalogue_runner.outcomes_of_wrong(chapter, names, hlofront, jnp)


def differing_wrong_calls(chapter, jax_outcomes):
    """Yield, per wrong call with another outcome than in jax, the record that covers it, a text."""
    for call, outcome in our_outcomes_of_wrong_calls(chapter).items():
        try:
            comparing.check_wrong(outcome, jax_outcomes[call])
        except AssertionError as error:
            covering = known_differences.covering(call, jax_outcomes[call], outcome)
            yield covering, f"{call}: {error}"


@pytest.mark.long
@pytest.mark.parametrize("chapter", catalogue.CHAPTERS)
def test_refused_as_by_jax(theirs, chapter):
    """Wrong calls raise the same class of error, or give results of the same types."""
    differing = differing_wrong_calls(chapter, theirs["wrong", chapter])
    report = [text for covering, text in differing if covering is None]
    assert not report, "\n".join(report)


@pytest.mark.long
def test_each_known_difference_is_met(theirs):
    met = {
        covering
        for chapter in catalogue.CHAPTERS
        for covering, _ in differing_wrong_calls(chapter, theirs["wrong", chapter])
    }
    unmet = [known for known in known_differences.KNOWN_DIFFERENCES if known not in met]
    assert not unmet, "no call differs for these reasons any more: remove them"


def test_known_differences_name_functions_of_the_catalogue():
    for known in known_differences.KNOWN_DIFFERENCES:
        assert set(known.functions.split()) <= set(catalogue.CALLS), known


def test_no_known_difference_covers_every_outcome():
    for known in known_differences.KNOWN_DIFFERENCES:
        for pattern in (known.jax, known.hlofront):
            assert re.search(pattern, "an outcome that no call has") is None, known


def test_no_known_difference_covers_a_call_that_it_does_not_name():
    refused = Raised(["TypeError", "Exception"], "refused")
    for outcomes in ((refused, ("PyTreeDef(*)", [])), (("PyTreeDef(*)", []), refused)):
        assert known_differences.covering("sin of None at 0", *outcomes) is None
        assert known_differences.covering("roll of a list at 0", *outcomes) is None


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
