"""debug.breakpoint: a console at a line of a running program, with the values of its variables."""

import cmd
import dataclasses
import linecache
import pprint
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO

from hlofront.base import source, tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array
from hlofront.core.aval import typeof
from hlofront.core.trace import Tracer
from hlofront.primitives.calls import callbacks
from hlofront.primitives.elementwise.converting import stop_gradient
from hlofront.runtime.dispatch.callbacks import pure_callback

# The variables of a frame by name: their traced arrays, and other values wrapped.
Variables = dict[str, object]


@boundary
def debug_breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: object = None,
    **kwargs: TextIO,
) -> PyTree:
    """Stop where a program runs this line, and read commands from the console.

    The command `help` lists the others: they print expressions of the variables, and move up and
    down the stack that the line was traced in. Traced arrays show the computed values.

    Args:
      backend: the console: "cli", or None, which is equivalent.
      filter_frames: whether frames of hlofront itself are omitted.
      num_frames: the number of frames, from the line outward; None for all.
      ordered: whether it runs in order with other ordered debug callbacks.
      token: a pytree of arrays, which is returned unchanged. The program stops where the result is
          computed, or not at all if nothing uses it.
      **kwargs: `stdin` and `stdout`, the files to use instead of the process's own.

    Returns:
      `token`, or None.

    Raises:
      ValueError: if there is no such console, or both `ordered` and `token` are passed.
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: expected backend 'cli' or None, got {backend!r}")
    if ordered and token is not None:
        raise ValueError(
            "debug.breakpoint takes ordered=True or a token, not both: a token is an order of its "
            "own"
        )
    frames = _frames(sys._getframe(1), filter_frames, num_frames)
    variables = [frame.variables for frame in frames]
    if token is None:

        def stop(*values: Variables) -> None:
            _Console(_filled(frames, values), **kwargs).run()

        callbacks.debug_callback(stop, tuple(variables), {}, ordered, False)
        return None
    arguments, arrays = callbacks.CallbackArguments.split(tuple(variables), {})

    def stop_and_return(token: object, values: Sequence[Array]) -> object:
        _Console(_filled(frames, arguments.restored(values)[0]), **kwargs).run()
        return token

    shapes = tree.tree_map(lambda x: typeof(x).strip_weak_type(), token)
    return pure_callback(stop_and_return, shapes, *stop_gradient((token, arrays)))


# ---- the stack while tracing ---------------------------------------------------------------------


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class DebuggerFrame:
    """One entry of the stack that a breakpoint was traced in."""

    file: str
    line: int
    function: str
    variables: Variables
    # The module's globals, and Python's builtins.
    others: dict[str, object]

    def text(self, before: int = 2, after: int = 2) -> str:
        """Return the lines around the frame's line."""
        shown = [f"> {self.file}({self.line}) in {self.function}"]
        for number in range(max(self.line - before, 1), self.line + after + 1):
            line = linecache.getline(self.file, number)
            if line:
                shown.append(f"{'->' if number == self.line else '  '} {line.rstrip()}")
        return "\n".join(shown)


class _Wrapped:
    """A value that is concrete during tracing, and is passed to the console unchanged."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value


def _frames(
    frame: types.FrameType | None, filtered: bool, limit: int | None
) -> list[DebuggerFrame]:
    """Return the stack from a frame outward, with `limit` entries at most."""
    frames: list[DebuggerFrame] = []
    while frame is not None and (limit is None or len(frames) < limit):
        code = frame.f_code
        if not filtered or source.is_user_file(code.co_filename):
            # At module level, locals are the globals, and may be many and large.
            local_variables = {} if frame.f_locals is frame.f_globals else frame.f_locals
            variables = {name: _known_wrapped(value) for name, value in local_variables.items()}
            frames.append(
                DebuggerFrame(
                    code.co_filename, frame.f_lineno, code.co_name, variables, frame.f_globals
                )
            )
        frame = frame.f_back
    return frames


def _known_wrapped(value: object) -> object:
    """Return a variable's value with all leaves wrapped, except traced arrays."""
    try:
        leaves, structure = tree.tree_flatten(value, _is_iterator)
    except (TypeError, ValueError):  # For example, a dictionary's keys cannot be sorted.
        return _Wrapped(value)
    if not any(map(_is_traced, leaves)):
        return _Wrapped(value)
    return structure.unflatten(x if _is_traced(x) else _Wrapped(x) for x in leaves)


def _is_traced(x: object) -> bool:
    return isinstance(x, Tracer) and x._trace.alive


def _is_iterator(x: object) -> bool:
    """Return whether a value is an iterator, which is not a pytree."""
    return isinstance(x, Iterator)


def _filled(frames: Iterable[DebuggerFrame], variables: Iterable[Variables]) -> list[DebuggerFrame]:
    """Return the frames with the run-time values of their variables."""
    return [
        DebuggerFrame(
            frame.file,
            frame.line,
            frame.function,
            tree.tree_map(lambda x: x.value if type(x) is _Wrapped else x, own),
            frame.others,
        )
        for frame, own in zip(frames, variables, strict=True)
    ]


# ---- the console ---------------------------------------------------------------------------------


class _Console(cmd.Cmd):
    """The console of a breakpoint, which reads commands until one resumes the program."""

    prompt = "(jdb) "

    def __init__(
        self,
        frames: list[DebuggerFrame],
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
    ):
        super().__init__(stdin=stdin, stdout=stdout)
        # Commands come from the terminal unless `stdin` is a file.
        self.use_rawinput = stdin is None
        self.frames = frames
        self.position = 0

    @property
    def frame(self) -> DebuggerFrame:
        return self.frames[self.position]

    def run(self) -> None:
        self.cmdloop(f"Stopped at debug.breakpoint():\n{self.frame.text()}")

    def say(self, text: object) -> None:
        print(text, file=self.stdout)

    def evaluated(self, expression: str, show: Callable[[object], object]) -> None:
        """Evaluate an expression of the frame's variables; print its value, or its error."""
        frame = self.frame
        try:
            value = eval(expression, frame.others, dict(frame.variables))
            shown = show(value)
        except Exception as error:
            self.say("*** " + "".join(traceback.format_exception_only(error)).strip())
        else:
            self.say(shown)

    def emptyline(self) -> bool:
        return False

    def default(self, line: str) -> None:
        """Treat a line that is not a command as an expression, and print its value."""
        self.do_p(line)

    def do_p(self, line: str) -> None:
        """p EXPRESSION: print its value."""
        self.evaluated(line, repr)

    def do_pp(self, line: str) -> None:
        """pp EXPRESSION: print its value over several lines."""
        self.evaluated(line, pprint.pformat)

    def do_variables(self, line: str) -> None:
        """variables: print all variables of this frame."""
        for name, value in self.frame.variables.items():
            self.say(f"{name} = {source.shortened(repr(value))}")

    def do_up(self, line: str) -> None:
        """u(p): go to the frame that called this one."""
        self.go_to(self.position + 1, "*** This is the outermost frame.")

    def do_down(self, line: str) -> None:
        """d(own): go to the frame that this one called."""
        self.go_to(self.position - 1, "*** This is the innermost frame.")

    def go_to(self, position: int, message: str) -> None:
        """Select a frame by its position, or print the message if there is none."""
        if 0 <= position < len(self.frames):
            self.position = position
            self.do_list("")
        else:
            self.say(message)

    def do_list(self, line: str) -> None:
        """l(ist): print the lines around this one."""
        self.say(self.frame.text(5, 5))

    def do_where(self, line: str) -> None:
        """w(here), bt: print the stack, the outermost frame first."""
        for i in range(len(self.frames) - 1, -1, -1):
            frame = self.frames[i]
            mark = ">" if i == self.position else " "
            text = linecache.getline(frame.file, frame.line).strip()
            self.say(f"{mark} {frame.file}({frame.line}) in {frame.function}\n      {text}")

    def do_continue(self, line: str) -> bool:
        """c(ont(inue)): let the program continue."""
        return True

    def do_quit(self, line: str) -> bool:
        """q(uit): end the program: it fails with SystemExit as the cause."""
        sys.exit(0)

    def do_EOF(self, line: str) -> bool:
        """End the program at the end of the input."""
        return self.do_quit(line)

    do_u, do_d, do_l = do_up, do_down, do_list
    do_w = do_bt = do_where
    do_c = do_cont = do_continue
    do_q = do_quit
