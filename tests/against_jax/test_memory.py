"""The derivative of a loop keeps no value of its steps that the reference would not keep."""

import pytest

import hlofront as jax
from tests.against_jax import memory
from tests.against_jax.answers import digest_of_texts


@pytest.mark.long
def test_temporaries_of_derivatives_of_loops(reference):
    key = digest_of_texts("tests.against_jax.memory")
    theirs = reference.answers("memory", "loops", {"temporaries": key})["temporaries"]
    # A kept value of each step is 64 KiB; less than that is how XLA happens to lay out the rest.
    step = memory.STEPS * 8 * memory.WIDTH * 4
    more = {
        name: (size, theirs[name])
        for name, size in memory.temporaries(jax).items()
        if size > theirs[name] + step // 2
    }
    assert not more, f"bytes of temporaries, and the reference's: {more}"
