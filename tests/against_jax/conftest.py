"""The oracle of the session, and both sides' descriptions of a corpus, each made once."""

import concurrent.futures
import functools

import pytest

from tests.against_jax import compare, describe
from tests.against_jax.oracle import PLACE, Oracle, find_interpreter


@pytest.fixture(scope="session")
def oracle():
    """The real jax, in a process of its own."""
    interpreter = find_interpreter()
    if interpreter is None:
        pytest.skip(
            "no Python with jax: set HLOFRONT_ORACLE_PYTHON, or make a virtual environment with "
            f"jax==0.10.2 at {PLACE.parents[1]}"
        )
    process = Oracle(interpreter)
    try:
        assert process.ask("version") == "0.10.2"
        yield process
    finally:
        process.close()


@pytest.fixture(scope="session")
def same_as_jax(oracle, request):
    """`same_as_jax(corpus, name)` checks one program of a corpus against the reference."""
    import hlofront
    import hlofront.numpy
    from hlofront import lax

    wanted_corpora = dict.fromkeys(
        item.callspec.params["corpus"]
        for item in request.session.items
        if "same_as_jax" in getattr(item, "fixturenames", ()) and hasattr(item, "callspec")
    )

    @functools.cache
    def programs(corpus):
        return describe.load(corpus, hlofront, hlofront.numpy, lax).programs

    def check(corpus, name):
        program = programs(corpus)[name]
        ours = describe.describe(program, hlofront)
        wanted = theirs[corpus].result()[name]
        compare.check(ours, wanted, program.tolerance, program.instead)

    # Both sides work at once: the reference runs ahead while ours runs its programs one by one.
    with concurrent.futures.ThreadPoolExecutor(1) as asking:
        theirs = {c: asking.submit(oracle.ask, "corpus", c) for c in wanted_corpora}
        yield check
        for future in theirs.values():
            future.cancel()


@pytest.fixture(scope="session")
def same_source_as_jax(oracle):
    """`same_source_as_jax(text, "jaxpr", ...)` checks a text that defines `f` and `args`."""
    import hlofront
    import hlofront.numpy
    from hlofront import lax

    def check(source, *modes):
        wanted = oracle.ask("source", source, modes)
        found = describe.describe_source(source, modes, hlofront, hlofront.numpy, lax)
        compare.check(found, wanted)

    return check
