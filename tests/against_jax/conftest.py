"""The oracle of the session, and both sides' descriptions of a corpus, each made once."""

import functools

import pytest

from tests.against_jax import compare, describe
from tests.against_jax.oracle import PLACES, Oracle, find_interpreter


@pytest.fixture(scope="session")
def oracle():
    """The real jax, in a process of its own."""
    interpreter = find_interpreter()
    if interpreter is None:
        pytest.skip(
            "no Python with jax: set HLOFRONT_ORACLE_PYTHON, or make a virtual environment with "
            f"jax==0.10.2 at {PLACES[-1].parents[1]}"
        )
    process = Oracle(interpreter)
    try:
        assert process.ask("version") == "0.10.2"
        yield process
    finally:
        process.close()


@pytest.fixture(scope="session")
def same_as_jax(oracle):
    """`same_as_jax(corpus, name)` checks one program of a corpus against the reference."""
    import hlofront
    import hlofront.numpy
    from hlofront import lax

    @functools.cache
    def theirs(corpus):
        return oracle.ask("corpus", corpus)

    @functools.cache
    def programs(corpus):
        return describe.load(corpus, hlofront, hlofront.numpy, lax).programs

    def check(corpus, name):
        wanted = theirs(corpus)[name]
        program = programs(corpus)[name]
        compare.check(describe.describe(program, hlofront), wanted, program.tolerance)

    return check


@pytest.fixture(scope="session")
def same_source_as_jax(oracle):
    """`same_source_as_jax(text, "jaxpr", "value", ...)` checks a text that defines `f` and `args`."""
    import hlofront
    import hlofront.numpy
    from hlofront import lax

    def check(source, *modes):
        wanted = oracle.ask("source", source, modes)
        found = describe.describe_source(source, modes, hlofront, hlofront.numpy, lax)
        compare.check(found, wanted)

    return check
