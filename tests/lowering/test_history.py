"""What a program becomes does not depend on the programs that the process ran before it."""

import random

import numpy as np
import pytest

import hlofront
import hlofront.numpy as jnp
from hlofront import lax
from tests.against_jax import describe
from tests.systematic import trials

CORPORA = (
    "corpus_batching",
    "corpus_branches",
    "corpus_custom",
    "corpus_derivatives",
    "corpus_indexing",
    "corpus_lax",
    "corpus_linalg",
    "corpus_loops",
    "corpus_nn",
    "corpus_numpy",
    "corpus_programs",
    "corpus_random",
)
TRIED, WANTED = 270, 200


def fresh_programs():
    """Return the corpora's programs that can be jitted, as function objects made anew."""
    programs = {
        (corpus, name): program
        for corpus in CORPORA
        for name, program in describe.load(corpus, hlofront, jnp, lax).programs.items()
        if program.instead is None and {"value", "jit"} & set(program.modes)
    }
    chosen = sorted(programs)
    step = len(chosen) / TRIED  # More than are wanted, as the subject of some is an error.
    return {name: programs[name] for name in (chosen[int(i * step)] for i in range(TRIED))}


def lowered_and_run(program):
    """Return the StableHLO of a program and the bytes of its results; None where it is refused."""
    with hlofront.enable_x64(program.x64):
        jitted = hlofront.jit(
            program.function,
            static_argnums=program.static_argnums,
            compiler_options=trials.COMPILES_FAST,
        )
        try:
            text = jitted.lower(*program.operands, **program.keywords).as_text()
            results = jitted(*program.operands, **program.keywords)
        except Exception as error:
            return type(error).__name__
        leaves = [x for x in hlofront.tree.leaves(results) if isinstance(x, hlofront.Array)]
        leaves = [
            hlofront.random.key_data(x) if jnp.issubdtype(x.dtype, hlofront.dtypes.prng_key) else x
            for x in leaves
        ]
        return text, [np.asarray(x).tobytes() for x in leaves]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_order_of_programs_changes_neither_their_stablehlo_nor_a_bit_of_their_results():
    outcomes = []
    for seed in range(3):
        programs = fresh_programs()
        names = sorted(programs)
        random.Random(seed).shuffle(names)
        outcomes.append({name: lowered_and_run(programs[name]) for name in names})
    ran = [name for name, outcome in outcomes[0].items() if isinstance(outcome, tuple)]
    assert len(ran) >= WANTED
    changed = [
        name for name in ran if any(other[name] != outcomes[0][name] for other in outcomes[1:])
    ]
    assert not changed
