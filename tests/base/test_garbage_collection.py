"""The collector of garbage is paused while hlofront is imported, and left as it was."""

import gc
import subprocess
import sys

import pytest

from hlofront.base.garbage_collection import collection_paused


@pytest.fixture
def collector():
    """The collector of garbage, enabled and with nothing frozen, and so again afterwards."""
    gc.unfreeze()
    gc.enable()
    yield gc
    gc.unfreeze()
    gc.enable()


def test_a_block_is_paused_and_makes_old_objects(collector):
    with collection_paused():
        assert not gc.isenabled()
        cycle = []
        cycle.append(cycle)
        assert any(each is cycle for each in gc.get_objects(generation=0))
    assert gc.isenabled()
    assert any(each is cycle for each in gc.get_objects(generation=2))


def test_an_error_in_the_block_enables_the_collector_again(collector):
    with pytest.raises(ImportError), collection_paused():
        raise ImportError
    assert gc.isenabled()


def test_a_collector_that_the_program_disabled_stays_disabled(collector):
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def test_objects_that_the_program_froze_stay_frozen(collector):
    gc.freeze()
    frozen = gc.get_freeze_count()
    with collection_paused():
        assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() >= frozen > 0


def test_the_import_of_hlofront_walks_few_objects():
    """The collections of an import, and what the collector is afterwards, in a fresh process."""
    code = """
import gc
collections = []
gc.callbacks.append(lambda phase, details: collections.append(phase))
frozen = gc.get_freeze_count()  # Python 3.12 starts with some hundred frozen objects
import hlofront
print(len(collections) // 2, gc.isenabled(), gc.get_freeze_count() - frozen)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, enabled, newly_frozen = done.stdout.split()
    # Without the pause there are about a hundred.
    assert int(count) < 20
    assert (enabled, newly_frozen) == ("True", "0")
