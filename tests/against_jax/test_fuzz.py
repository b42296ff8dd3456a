"""Programs drawn by chance give what they give under jax 0.10.2: a few; see fuzz/ for more."""

import json

import pytest

import hlofront
from tests.against_jax.answers import digest, digest_of_texts
from tests.against_jax.fuzz import generating, running, shrinking

# How many are looked at how: staged alone, under jit, and one operation after the other.
LOOKS = {"shape": 100, "jit": 15, "value": 15}
PROGRAMS = {
    f"{look}_{seed}": generating.draw(first + seed, look)
    for first, (look, count) in zip((1_000, 2_000, 3_000), LOOKS.items(), strict=True)
    for seed in range(count)
}


def keys():
    sources = digest_of_texts(running.__name__)
    return {
        name: digest(sources, json.dumps(program, sort_keys=True))
        for name, program in PROGRAMS.items()
    }


@pytest.fixture(scope="module")
def theirs(reference):
    return reference.answers("fuzz", "programs", keys(), question=PROGRAMS.__getitem__)


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_jax(theirs, name):
    program = PROGRAMS[name]
    found = shrinking.difference(program, running.described(program, hlofront), theirs[name])
    assert not found, f"{found}\n{running.calls_of(program, hlofront)}"
