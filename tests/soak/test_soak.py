"""Each scenario of tests/soak runs for a moment, and finds faults that are planted."""

import gc
import random
import threading
import time

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from tests.soak import processes, running, scenarios

# Those that start processes are tried below, one process each.
HERE = [name for name in scenarios.ALL if name not in ("processes", "exits")]


@pytest.mark.slow
@pytest.mark.parametrize("name", HERE)
def test_a_scenario_runs(name):
    steps = scenarios.ALL[name](random.Random(0))
    assert next(steps) >= 1


@pytest.mark.slow
def test_processes_share_a_cache():
    assert next(processes.processes(random.Random(1))) == processes.AT_ONCE


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a daemon compiles", "a callback runs"])
def test_a_process_ends_with_work_under_way(name):
    processes.ended(name)


def finds(steps, seconds=0.5):
    # Collections leave out the objects of earlier tests: they would take all the time.
    gc.freeze()
    try:
        return running.run(lambda chance: steps(), seconds).finds
    finally:
        gc.unfreeze()


def test_what_is_clean_is_no_find():
    def steps():
        while True:
            jnp.sin(jnp.ones(3)).block_until_ready()
            yield 1

    assert not finds(steps)


def test_a_leaked_array_is_found():
    kept = []

    def steps():
        while True:
            kept.append(jnp.ones(3))
            yield 1

    found = finds(steps)
    assert any("arrays are left by" in each for each in found), found


def test_a_leaked_object_and_the_line_that_made_it_are_found():
    kept = []

    def steps():
        while True:
            kept.extend([number] for number in range(60))
            time.sleep(0.001)
            yield 1

    found = finds(steps)
    assert any("objects of list are left" in each for each in found), found
    assert any("bytes of" in each and __file__ in each for each in found), found


def test_an_error_is_found_and_the_scenario_goes_on():
    def steps():
        yield 1
        raise AssertionError("wrong")

    found = finds(steps)
    assert len(found) == running.MOST_FINDS and found[0].startswith("AssertionError: wrong")


def test_an_option_that_is_not_set_back_is_found():
    try:
        jax.config.update("jax_enable_x64", True)
        with pytest.raises(AssertionError, match="an option was not set back"):
            scenarios.check_clean()
    finally:
        jax.config.update("jax_enable_x64", False)


def test_an_error_in_a_thread_is_found(monkeypatch):
    def wrong(shared, chance):
        assert threading.current_thread() is threading.main_thread(), "in a thread"

    monkeypatch.setattr(scenarios, "TASKS", (wrong,))
    with pytest.raises(AssertionError, match="in a thread"):
        next(scenarios.threads(random.Random(0)))


def test_a_process_that_ends_otherwise_is_found(monkeypatch):
    monkeypatch.setitem(processes.ENDS, "wrong", ("os._exit(7)", 0))
    with pytest.raises(AssertionError, match="wrong: 7"):
        processes.ended("wrong")


def test_each_find_of_the_record_has_a_test():
    from tests.soak import record

    assert "(to be kept)" not in record.PATH.read_text()
    assert np.all(
        [line.count("|") == 10 for line in record.PATH.read_text().splitlines() if line[:1] == "|"]
    )
