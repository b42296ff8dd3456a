"""A shared value is computed once by threads at the same time, whatever interrupts one of them."""

import itertools
import linecache
import sys
import threading

import pytest

from hlofront.base import compute_once as module
from hlofront.base.compute_once import compute_once


def interrupted_at(event, table):
    """Compute a value, with an interrupt before a line of the function; return if it was there."""
    left = event

    def trace(frame, kind, _):
        nonlocal left
        if frame.f_code is not compute_once.__code__:
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        # The interpreter looks for signals before it begins a block of `with`, but not as one ends.
        if kind == "line" and not text.startswith("with"):
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        compute_once(table, "key", lambda: 1)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("in_a_thread", [False, True])
def test_an_interrupt_between_any_two_lines_makes_nobody_wait_twice(in_a_thread, monkeypatch):
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.01)
    for event in itertools.count(1):
        table = {}
        if not interrupted_at(event, table):
            break
        table.clear()
        if in_a_thread:
            thread = threading.Thread(target=compute_once, args=(table, "key", lambda: 2))
            thread.start()
            thread.join()
        else:
            monkeypatch.setattr(module, "_PATIENCE_SECONDS", 1e6)
            compute_once(table, "key", lambda: 2)
        assert table == {"key": 2}
        assert not module._under_way
        module._of_thread.making = 0
    assert event > 15


def test_threads_wait_for_the_first_one():
    started, go_on, table, calls = threading.Event(), threading.Event(), {}, []

    def make():
        calls.append(1)
        started.set()
        go_on.wait()
        return 1

    threads = [threading.Thread(target=compute_once, args=(table, 0, make)) for _ in range(5)]
    threads[0].start()
    started.wait()
    for thread in threads[1:]:
        thread.start()
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and not module._under_way


def test_after_an_error_the_next_one_computes():
    table = {}
    with pytest.raises(ZeroDivisionError):
        compute_once(table, 0, lambda: 1 // 0)
    assert compute_once(table, 0, lambda: 1) == 1 and not module._under_way
