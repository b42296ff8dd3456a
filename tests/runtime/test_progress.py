"""The line on a terminal that says what XLA compiles, if that takes long."""

import contextlib
import io
import os
import select
import threading
import time
import types

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base import progress
from hlofront.base.config import options
from hlofront.cli import doctor
from hlofront.cli import progress as of_commands
from hlofront.cli.main import main
from hlofront.inspect.target import UsageError
from hlofront.runtime.compilation.pipeline import Compilation

pytestmark = pytest.mark.skipif(not hasattr(os, "openpty"), reason="a terminal is made by POSIX")


class Terminal:
    """A terminal in the place of stderr, and what is on it."""

    def __init__(self):
        self.reading, self.writing = os.openpty()
        self.text = ""

    def read_until(self, wanted):
        """Wait until a text is on the terminal; it is in `text`, with all that was before it."""
        deadline = time.monotonic() + 30
        while wanted not in self.text:
            ready, _, _ = select.select([self.reading], [], [], 30)
            assert ready and time.monotonic() < deadline, f"no {wanted!r} in {self.text[-500:]!r}"
            self.text += os.read(self.reading, 4096).decode()

    def read_what_is_there(self):
        while select.select([self.reading], [], [], 0)[0]:
            self.text += os.read(self.reading, 4096).decode()
        return self.text


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    # pytest sets sys.stderr itself, between the fixtures and the test.
    terminal.system = types.SimpleNamespace(stderr=os.fdopen(terminal.writing, "w"))
    monkeypatch.setattr(progress, "sys", terminal.system)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "_UPDATE", 0.01)
    monkeypatch.setattr(of_commands, "PATIENCE", 0.01)
    yield terminal
    terminal.system.stderr.close()
    os.close(terminal.reading)


@pytest.fixture
def slow_xla(terminal, monkeypatch):
    """XLA takes until a text is on the terminal, which the test appends to the list."""
    compiled, awaited = Compilation._compiled, []

    def slowly(self, *args):
        for text in awaited:
            terminal.read_until(text)
        return compiled(self, *args)

    monkeypatch.setattr(Compilation, "_compiled", slowly)
    return awaited


def test_a_long_compilation_says_the_function_and_its_line_and_is_erased(slow_xla, terminal):
    def layer(x):
        return jnp.tanh(x) * 3

    slow_xla.append(f"{layer.__code__.co_firstlineno}, 0 s")
    jax.jit(layer)(jnp.ones(3))
    text = terminal.read_what_is_there()
    assert "hlofront: XLA compiles layer at " in text and "test_progress.py:" in text
    shown = text.split("\r")[-2]
    assert not shown.strip() and text.endswith("\r"), "it is overwritten by spaces"


def test_where_the_terminal_is_narrow_the_seconds_stay(terminal):
    with progress.progress_line(lambda: "x" * 100):
        terminal.read_until("x, 0 s")
    assert len(terminal.text.split("\r")[1]) == 79


def test_a_second_call_starts_no_thread(terminal, monkeypatch):
    double = jax.jit(lambda x: x * 2)
    double(jnp.ones(3))
    started = []
    monkeypatch.setattr(progress, "start_new_thread", lambda *args: started.append(args))
    double(jnp.ones(3))
    assert not started


def test_the_thread_does_not_count_as_one(terminal):
    threads = threading.active_count()
    with progress.progress_line(lambda: "working"):
        assert threading.active_count() == threads
        terminal.read_until("working")
        assert threading.active_count() == threads


@pytest.mark.parametrize("reason", ["the option", "no terminal"])
def test_nothing_is_said_on_request_and_in_pipes(reason, terminal, monkeypatch):
    if reason == "no terminal":
        monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=io.StringIO()))
    with options["hlofront_progress"](reason != "the option"):
        line = progress.progress_line(lambda: "working")
    assert isinstance(line, contextlib.nullcontext)


def test_work_within_work_has_the_line(terminal):
    with progress.progress_line(lambda: "a long text for the work around it"):
        terminal.read_until("around it, 0 s")
        with progress.progress_line(lambda: "inner"):
            terminal.read_until("\rhlofront: inner, 0 s")
        terminal.text = ""
        terminal.read_until("around it, 0 s")


def test_a_terminal_that_goes_away_does_not_end_the_work(terminal):
    with progress.progress_line(lambda: "working"):
        terminal.read_until("working")
        os.close(terminal.reading)
        terminal.reading = os.open(os.devnull, os.O_RDONLY)


def test_a_command_says_on_a_terminal_what_it_does_and_for_how_long(terminal):
    of_commands.announce("making an environment")
    terminal.read_until("\rhlofront: making an environment, 0 s")
    of_commands.announce("compiling (2 of 2)")
    terminal.read_until("\rhlofront: compiling (2 of 2), 0 s")
    of_commands.finish()
    assert terminal.read_what_is_there().endswith("\r")
    assert "\n" not in terminal.text


@pytest.mark.parametrize("is_on", [True, False])
def test_a_command_says_it_elsewhere_on_a_line_of_its_own_unless_that_is_off(
    is_on, monkeypatch, capsys
):
    monkeypatch.setattr(of_commands, "PATIENCE", 0)
    with options["hlofront_progress"](is_on):
        of_commands.announce("compiling")
    assert capsys.readouterr().err == ("hlofront: compiling\n" if is_on else "")


def test_errors_and_other_messages_begin_a_line(terminal, monkeypatch, capsys):
    def run(options, out):
        of_commands.announce("compiling")
        terminal.read_until("compiling, 0 s")
        raise UsageError("it cannot be compiled")

    monkeypatch.setattr(doctor, "_run", run)
    assert main(["doctor"]) == 2
    assert capsys.readouterr().err == "hlofront doctor: it cannot be compiled\n"
    assert terminal.read_what_is_there().endswith("\r")
    of_commands.announce("compiling again")
    terminal.read_until("compiling again, 0 s")
    of_commands.say("wrote a file")
    assert terminal.read_what_is_there().endswith("\r")
