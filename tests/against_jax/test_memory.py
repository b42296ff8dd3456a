"""The derivative of a loop keeps no value of its steps that the reference would not keep."""

import hlofront as jax
from tests.against_jax import memory


def test_temporaries_of_derivatives_of_loops(oracle):
    theirs = oracle.ask("memory")
    # A kept value of each step is 64 KiB; less than that is how XLA happens to lay out the rest.
    step = memory.STEPS * 8 * memory.WIDTH * 4
    more = {
        name: (size, theirs[name])
        for name, size in memory.temporaries(jax).items()
        if size > theirs[name] + step // 2
    }
    assert not more, f"bytes of temporaries, and the reference's: {more}"
