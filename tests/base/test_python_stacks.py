"""The stacks of this process's threads, as the user's lines."""

import inspect
import queue
import threading

import pytest

from hlofront.base.python_stacks import current_place, error_text, shown_place, thread_stacks


def line():
    """The number of the caller's line."""
    return inspect.currentframe().f_back.f_lineno


def test_the_first_stack_is_that_of_the_main_thread_with_its_innermost_line():
    found, here = thread_stacks()[0], line()
    assert found.thread == "MainThread"
    name = "test_the_first_stack_is_that_of_the_main_thread_with_its_innermost_line"
    assert found.place.startswith(f"{name} at ")
    assert found.place.endswith(f"test_python_stacks.py:{here}")
    assert found.lines[-1].endswith("found, here = thread_stacks()[0], line()")
    assert found.error == ""


def test_a_thread_that_waits_in_a_library_is_at_the_line_that_calls_it():
    waiting, stop = queue.Queue(), threading.Event()

    def read():
        stop.set()
        waiting.get()

    thread = threading.Thread(target=read, name="reader")
    thread.start()
    stop.wait()
    while not any("Queue.get" in stack.place for stack in thread_stacks()):
        pass
    found = thread_stacks(thread.ident)[0]
    assert found.thread == "reader" and found.place.endswith(" (in Queue.get)")
    assert ".read at " in found.place
    assert current_place(thread.ident)[0] is read.__code__
    waiting.put(None)
    thread.join()
    assert thread_stacks(thread.ident)[0].thread == "MainThread"


def test_generated_code_is_at_the_line_that_calls_it():
    found = []
    exec("found.append(thread_stacks()[0])", {"found": found, "thread_stacks": thread_stacks})
    assert found[0].place.startswith("test_generated_code_is_at_the_line_that_calls_it at ")


def test_the_exception_that_a_thread_handles_is_told_with_its_line():
    try:
        here = line() + 1
        raise ValueError("a bad batch\nand more")
    except ValueError as error:
        found = thread_stacks()[0].error
        assert found == error_text(error)
    assert found.startswith("ValueError: a bad batch at ")
    assert found.endswith(f"test_python_stacks.py:{here}")


@pytest.mark.parametrize(
    ("error", "text"), [(ValueError(), "ValueError"), (OSError(2, "no"), "no")]
)
def test_exceptions_that_nobody_raised_have_no_line(error, text):
    assert error_text(error).endswith(text)


def test_a_line_of_a_module_has_no_function():
    code = compile("pass", "train.py", "exec")
    assert shown_place(code, 3) == "train.py:3"
