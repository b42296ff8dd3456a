"""What jax answers, for the session: kept answers, and the process that gives new ones."""

import functools

import pytest

from tests.against_jax import compare, describe
from tests.against_jax.answers import Reference, digest_of_texts


@pytest.fixture(scope="session")
def reference(request):
    """What the real jax answers."""
    found = Reference(request.config.getoption("--ask-jax"))
    try:
        yield found
    finally:
        found.close()


def keys_of(corpus):
    key = digest_of_texts(f"tests.against_jax.{corpus}")
    return dict.fromkeys(describe.names_of(corpus), key)


@pytest.fixture(scope="session")
def same_as_jax(reference, request):
    """`same_as_jax(corpus, name)` checks one program of a corpus against the reference."""
    import hlofront
    import hlofront.numpy
    from hlofront import lax

    wanted = {}
    for item in request.session.items:
        if "same_as_jax" in getattr(item, "fixturenames", ()) and hasattr(item, "callspec"):
            chosen = item.callspec.params
            wanted.setdefault(chosen["corpus"], []).append(chosen["name"])

    @functools.cache
    def programs(corpus):
        return describe.load(corpus, hlofront, hlofront.numpy, lax).programs

    # All are asked before the first is awaited: both sides work at once.
    theirs = {
        corpus: reference.answers("corpus", corpus, keys_of(corpus), names)
        for corpus, names in wanted.items()
    }

    def check(corpus, name):
        program = programs(corpus)[name]
        found = theirs[corpus][name]
        ours = describe.describe(program, hlofront)
        compare.check(ours, found, program.tolerance, program.instead)

    return check
