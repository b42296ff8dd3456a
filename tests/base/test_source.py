"""Source lines: which frames are the user's, what they say, and tracebacks of only these."""

import contextlib
import functools
import inspect
import linecache
import os
import subprocess
import sys
import threading
import traceback
import types

import numpy as np
import pytest

from hlofront.base import boundary as edge
from hlofront.base import source
from hlofront.base.boundary import JaxStackTraceBeforeTransformation, boundary, user_context
from hlofront.base.config import config
from hlofront.jax_names.import_hook import as_jax
from tests.base import fake_library as fake

HERE = __file__


def frame_here(_=None):
    return source.user_frames(source.current(), 2)[1]


# ---- frames ----------------------------------------------------------------------------------


def test_user_frames_are_innermost_first_and_leave_ours_out():
    def inner():
        return fake.call_without_boundary(source.current)

    @contextlib.contextmanager
    def block():
        yield inner()

    def outer():
        with block() as found:
            return found

    frames = source.user_frames(fake.call_without_boundary(outer))
    assert [frame.function for frame in frames[:4]] == [
        "inner",
        "block",
        "outer",
        "test_user_frames_are_innermost_first_and_leave_ours_out",
    ]
    assert {frame.file for frame in frames[:4]} == {HERE}
    assert [f.line for f in source.user_frames(fake.call_without_boundary(outer), 2)] == [
        frame.line for frame in frames[:2]
    ]


def test_what_runs_the_cells_of_a_notebook_is_not_the_users():
    packages = "/usr/lib/python3.12/site-packages"
    for shell in ("IPython/core/interactiveshell.py", "ipykernel_launcher.py", "tornado/ioloop.py"):
        assert not source.is_user_file(f"{packages}/{shell}")
    for own in ("/tmp/ipykernel_107/42.py", f"{packages}/flax/nnx.py", "/home/me/IPython/a.py"):
        assert source.is_user_file(own)


def test_no_traceback_and_no_user_frames():
    assert source.user_frames(None) == []
    assert source.user_frame(None) is None
    assert source.summarize(None) == "unknown"


def test_register_exclusion_covers_what_was_seen_before(tmp_path):
    code = compile("def through(f): return f()", str(tmp_path / "library.py"), "exec")
    exec(code, names := {})
    assert source.user_frames(names["through"](source.current))[0].function == "through"
    source.register_exclusion(str(tmp_path))
    assert source.user_frames(names["through"](source.current))[0].file == HERE


@pytest.mark.smoke
def test_frame_spans_the_expression():
    first = inspect.currentframe().f_lineno + 1
    frame = frame_here()
    assert (frame.line, frame.end_line) == (first, first)
    assert (frame.column, frame.end_column) == (12, 24)
    assert source.expression_text(frame) == "frame_here()"
    assert source.line_text(frame) == "frame = frame_here()"
    assert source.summarize(None) == "unknown"
    assert source.describe_frame(frame).endswith(f"test_source.py:{first} in {frame.function}")


def test_summarize_names_line_column_and_function():
    found = source.summarize(source.current())
    line = inspect.currentframe().f_lineno - 1
    assert found == f"{HERE}:{line}:29 (test_summarize_names_line_column_and_function)"


def test_summarize_several_frames():
    def inner():
        return source.summarize(source.current(), 2)

    lines = inner().split("\n")
    assert [line.split(" ")[1] for line in lines] == [
        "(test_summarize_several_frames.<locals>.inner)",
        "(test_summarize_several_frames)",
    ]


def test_expression_over_several_lines_and_beyond_ascii():
    größe = 1
    frame = frame_here(
        größe
    )  # fmt: skip
    assert source.expression_text(frame) == "frame_here( größe )"
    é = "é"; frame = frame_here("ünï" + é)  # noqa: E702  # fmt: skip
    assert source.expression_text(frame) == 'frame_here("ünï" + é)'


def test_expression_of_an_operator_is_its_operands_alone():
    class Number:
        def __add__(self, other):
            return source.user_frames(source.current(), 2)[1]

    x = y = Number()
    found = [abs(3), x + y, 5]
    assert source.expression_text(found[1]) == "x + y"


def test_code_without_source():
    code = compile("\n\nframe = frame_here()", "<made up>", "exec")
    exec(code, names := {"frame_here": frame_here})
    frame = names["frame"]
    assert (frame.line, source.line_text(frame), source.expression_text(frame)) == (3, "", "")
    assert source.describe_frame(frame) == "<made up>:3"
    assert source.describe_frame_with_line(frame) == "<made up>:3"


def test_notebook_cells_have_source():
    text = "frame = frame_here( 7 )\n"
    linecache.cache["<cell 1>"] = (len(text), None, [text], "<cell 1>")
    exec(compile(text, "<cell 1>", "exec"), names := {"frame_here": frame_here})
    assert source.expression_text(names["frame"]) == "frame_here( 7 )"
    del linecache.cache["<cell 1>"]


def test_a_file_that_changed_since_does_not_break_anything(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("\n\ndef f(x, y):\n    return x + y\n")
    exec(compile(path.read_text(), str(path), "exec"), names := {})
    path.write_text("é\n")
    with pytest.raises(TypeError, match="add got") as caught:
        names["f"](fake.ones(3), fake.ones(4))
    assert "operand 0" in str(caught.value)
    path.write_text("\n\n\né = ((((((((((((((\n")
    with pytest.raises(TypeError, match="add got"):
        names["f"](fake.ones(3), fake.ones(4))
    path.write_bytes(b"\n\n\n\xff\xfe\x00 return x + y")
    with pytest.raises(TypeError, match="add got"):
        names["f"](fake.ones(3), fake.ones(4))


def test_code_compiled_without_columns():
    program = (
        "from tests.base import fake_library as fake\n"
        "from hlofront.base import source\n"
        "try:\n    fake.ones(3) + fake.ones(4)\n"
        "except TypeError as error:\n    print(error)\n"
        "print(source.summarize(source.current()))\n"
    )
    found = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", "-c", program],
        capture_output=True, text=True, check=True, cwd=os.getcwd(),
    )  # fmt: skip
    assert "operand 0 : f32[3]   from <string>:4" in found.stdout
    assert found.stdout.endswith("<string>:7 (<module>)\n")


def test_shown_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    here = os.getcwd()
    assert source.shown_path(os.path.join(here, "a", "b.py")) == os.path.join("a", "b.py")
    assert source.shown_path(here + "2/b.py") == here + "2/b.py"

    def removed():
        raise FileNotFoundError

    monkeypatch.setattr(os, "getcwd", removed)
    assert source.shown_path("/a/b.py") == "/a/b.py"


def test_describe_callable():
    def f():
        pass

    class Model:
        def __call__(self):
            pass

        def method(self):
            pass

    line = f.__code__.co_firstlineno
    at = f"at {source.shown_path(HERE)}:{line}"
    assert source.describe_callable(f) == f"f {at}"
    assert source.describe_callable(functools.partial(functools.partial(f), 1)) == f"f {at}"
    assert source.describe_callable(boundary(f)) == f"f {at}"
    model = source.shown_path(HERE)
    assert source.describe_callable(Model().method) == f"method at {model}:{line + 7}"
    assert source.describe_callable(Model()) == f"Model at {model}:{line + 4}"
    assert source.describe_callable(len) == "len"
    assert source.describe_callable(np.sin) == "sin"
    assert source.describe_callable(3) == "int"
    f.__wrapped__ = f
    assert source.describe_callable(f).startswith("f")


# ---- the boundary ----------------------------------------------------------------------------


@pytest.fixture
def filtering():
    before = config.jax_traceback_filtering
    yield lambda mode: config.update("jax_traceback_filtering", mode)
    config.update("jax_traceback_filtering", before)


def functions_of(error):
    return [entry.tb_frame.f_code.co_name for entry in entries(error.__traceback__)]


def entries(tb):
    while tb is not None:
        yield tb
        tb = tb.tb_next


@fake.jit
def inner(x):
    return x + fake.ones(4)


@fake.jit
def outer(x):
    return inner(x)


def run_outer():
    try:
        outer(fake.ones(3))
    except TypeError as error:
        return error


def test_the_note_has_the_name_that_the_program_imports(filtering):
    filtering("quiet_remove_frames")
    start = "For simplicity, {} has removed its internal frames"
    assert run_outer().__notes__[0].splitlines()[1].startswith(start.format("hlofront"))
    with as_jax():
        assert run_outer().__notes__[0].splitlines()[1].startswith(start.format("JAX"))


@pytest.mark.smoke
@pytest.mark.parametrize("mode", ["auto", "quiet_remove_frames"])
def test_only_user_frames_remain(filtering, mode):
    filtering(mode)
    error = run_outer()
    assert functions_of(error) == ["run_outer", "outer", "inner"]
    shown = "".join(traceback.format_exception(error))
    assert "return inner(x)" in shown and "fake_library.py" not in shown
    assert error.__notes__ == [edge.note_of_removal()]
    lines = [entry.tb_lineno for entry in entries(error.__traceback__)][1:]
    assert lines == [
        outer.function.__code__.co_firstlineno + 2,
        inner.function.__code__.co_firstlineno + 2,
    ]


def test_off_leaves_every_frame(filtering):
    filtering("off")
    error = run_outer()
    found = functions_of(error)
    assert found.count("at_boundary") == 2 and found.count("_trace") == 2 and found[-1] == "add"
    assert not hasattr(error, "__notes__")


def test_tracebackhide_marks_frames(filtering):
    filtering("tracebackhide")
    error = run_outer()
    shown = [
        entry.tb_frame.f_code.co_name
        for entry in entries(error.__traceback__)
        if "__tracebackhide__" not in entry.tb_frame.f_locals
    ]
    assert shown == ["run_outer", "outer", "inner"]
    assert "add" in functions_of(error)


def test_auto_hides_in_ipython(filtering, monkeypatch):
    filtering("auto")
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert "add" not in functions_of(run_outer())
    ipython.get_ipython = lambda: object()
    assert "add" in functions_of(run_outer())


def test_remove_frames_keeps_the_whole_traceback_as_the_cause(filtering):
    filtering("remove_frames")
    error = run_outer()
    assert functions_of(error) == ["run_outer", "outer", "inner"]
    assert isinstance(error.__cause__, edge.UnfilteredTraceback)
    assert functions_of(error.__cause__)[-1] == "add"
    assert "outer" in functions_of(error.__cause__)
    assert error.__cause__.__cause__ is None


def test_remove_frames_keeps_the_cause_below(filtering):
    filtering("remove_frames")
    with pytest.raises(TypeError) as caught:
        fake.fail_from_cause()
    assert type(caught.value.__cause__.__cause__) is KeyError


def test_cause_is_kept_and_filtered():
    with pytest.raises(TypeError) as caught:
        fake.fail_from_cause()
    error = caught.value
    assert type(error.__cause__) is KeyError
    assert functions_of(error.__cause__) == []
    assert functions_of(error) == ["test_cause_is_kept_and_filtered"]


def test_what_we_raised_and_handled_ourselves_is_kept_but_not_shown():
    with pytest.raises(TypeError) as caught:
        fake.fail_after_handling()
    error = caught.value
    assert type(error.__context__) is KeyError
    assert "KeyError" not in "".join(traceback.format_exception(error))


def test_context_of_the_user_is_shown():
    def divide():
        return 1 // 0

    with pytest.raises(TypeError) as caught:
        fake.fail_on_errors_of(divide)
    shown = "".join(traceback.format_exception(caught.value))
    assert "ZeroDivisionError" in shown and "return 1 // 0" in shown
    assert functions_of(caught.value.__context__) == ["divide"]

    try:
        {}["theirs"]
    except KeyError:
        with pytest.raises(TypeError) as caught:
            fake.fail()
    assert "KeyError: 'theirs'" in "".join(traceback.format_exception(caught.value))


def test_an_error_caught_inside_of_a_traced_function_is_filtered_already():
    found = []

    @fake.jit
    def tries(x):
        try:
            inner(x)
        except TypeError as error:
            found.append(error)
        return x

    tries(fake.ones(3))
    assert functions_of(found[0]) == ["tries", "inner"]


def test_reraised_and_passed_through_many_boundaries_notes_once():
    def through(depth):
        try:
            return fake.call(through, depth - 1) if depth else fake.fail()
        except TypeError:
            raise

    with pytest.raises(TypeError) as caught:
        through(20)
    assert set(functions_of(caught.value)[1:]) == {"through"}
    assert len(functions_of(caught.value)) == 1 + 21
    assert caught.value.__notes__ == [edge.note_of_removal()]


def test_endless_recursion_through_boundaries():
    def endless():
        return fake.call(endless)

    with pytest.raises(RecursionError) as caught:
        fake.call(endless)
    assert set(functions_of(caught.value)[1:]) <= {"endless"}


def test_generators_of_the_user():
    def numbers():
        yield 1
        yield fake.fail()

    def total():
        return sum(numbers())

    with pytest.raises(TypeError) as caught:
        fake.call(total)
    assert functions_of(caught.value)[1:] == ["total", "numbers"]

    def stop():
        raise StopIteration(5)

    with pytest.raises(StopIteration) as stopped:
        fake.call(stop)
    assert stopped.value.value == 5


def test_an_exception_that_refuses_attributes():
    class Frozen(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    class Noted(Exception):
        __notes__ = "not a list"

    def fail(kind):
        raise kind("text")

    for kind in (Frozen, Noted):
        with pytest.raises(kind) as caught:
            fake.call(fail, kind)
        assert functions_of(caught.value)[1:] == ["fail"]


def test_exception_groups_are_filtered_within():
    def fail():
        found = []
        for each in (fake.call_without_boundary, fake.call):
            try:
                each(fake.fail)
            except TypeError as error:
                found.append(error)
        raise ExceptionGroup("both", found)

    with pytest.raises(ExceptionGroup) as caught:
        fake.call(fail)
    for member in caught.value.exceptions:
        assert functions_of(member) == ["fail"]


def test_an_interrupt_passes_untouched():
    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        fake.call(interrupt)
    assert "at_boundary" in functions_of(caught.value)


def test_boundary_keeps_the_function_as_it_was():
    @boundary
    def f(x: int, *, axis=None) -> int:
        """Doc."""
        return x, axis

    assert f(1, axis=2) == (1, 2)
    assert (f.__name__, f.__doc__) == ("f", "Doc.")
    assert str(inspect.signature(f)) == "(x: int, *, axis=None) -> int"


def test_boundaries_in_threads():
    found = []

    def run():
        found.append(functions_of(run_outer()))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [["run_outer", "outer", "inner"]] * 4


# ---- replaying -------------------------------------------------------------------------------


def test_user_context_names_the_innermost_operation():
    first, second = source.current(), source.current()
    line = inspect.currentframe().f_lineno - 1

    def replay():
        with user_context(second):
            with user_context(None):
                with user_context(first):
                    raise TypeError("no rule")

    with pytest.raises(TypeError) as caught:
        replay()
    (note,) = caught.value.__notes__
    assert note.startswith("While transforming the operation at ")
    assert f"test_source.py:{line} in test_user_context" in note
    assert note.endswith("first, second = source.current(), source.current()")
    with user_context(first):
        pass


def test_the_cause_of_a_replayed_error_shows_the_line_of_the_operation():
    def traced():
        return source.current()

    def replay(earlier):
        with user_context(earlier):
            raise TypeError("no rule") from KeyError("a")

    with pytest.raises(TypeError) as caught:
        replay(traced())
    cause = caught.value.__cause__
    assert type(cause) is JaxStackTraceBeforeTransformation
    assert str(cause).startswith("TypeError: no rule\n")
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "traced"
    assert type(cause.__cause__) is KeyError


def test_a_replayed_error_that_has_no_text():
    class SilentError(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    with pytest.raises(SilentError) as caught, user_context(source.current()):
        raise SilentError
    assert "SilentError: <exception str() failed>" in str(caught.value.__cause__)
