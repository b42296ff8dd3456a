"""Reading of program text from files, and writing of pages to files."""

import contextlib
import pathlib
from collections.abc import Callable, Iterator

from hlofront.cli.progress import announce, say
from hlofront.inspect import kernel_decoding  # noqa: F401  # Reads texts with their kernels.
from hlofront.inspect.dumps import compiled_with_kernels
from hlofront.inspect.jitted import jitted
from hlofront.inspect.target import UsageError
from hlofront.pjrt.targets import target as find_target
from hlotools.ir.hlo import HloSyntaxError
from hlotools.ir.program_text import STDIN, ProgramText, program_of_file

PAGES = ("jaxpr", "stablehlo", "hlo")


def is_program(text: str) -> bool:
    """Return whether an argument is "-" or a file of program text, rather than FILE:FUNCTION."""
    return text == STDIN or (pathlib.Path(text).exists() and not text.endswith(".py"))


def read_program(path: str) -> ProgramText:
    """Parse the program in a file, or in standard input for "-".

    Raises:
      UsageError: if the text contains no program.
    """
    try:
        return program_of_file(path)
    except ValueError as error:
        raise UsageError(str(error)) from error


@contextlib.contextmanager
def naming_errors(label: str) -> Iterator[None]:
    """Prefix errors about unparsable program text with the name of its file."""
    try:
        yield
    except HloSyntaxError as error:
        raise HloSyntaxError(error.message, error.line, error.column, error.text, label) from None


def write_file(path: str, text: str) -> None:
    """Write a text to a file, and report it on stderr.

    Raises:
      UsageError: if the file cannot be written.
    """
    try:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    say(f"wrote {path}")


def write_page(
    path: str,
    function: Callable[..., object],
    args: tuple[object, ...],
    stage: str,
    target: str | None,
) -> None:
    """Write a function's program to an HTML file, for an absent device with its kernels.

    Args:
      path: the path of the HTML file.
      function: the function to stage.
      args: the function's arguments.
      stage: "jaxpr", "stablehlo" or "hlo".
      target: the name of the device to compile and estimate time for; None for the current device.
    """
    from hlofront.inspect.program_page import page

    staged = jitted(function)
    target_device = find_target(target) if target else None
    with target_device or contextlib.nullcontext():
        traced = staged.trace(*args)
        lowered = None if stage == "jaxpr" else traced.lower()
        program = lowered or traced
        if lowered and stage == "hlo":
            announce(f"compiling {getattr(function, '__name__', 'the function')}")
            if target_device is not None and not target_device.is_attached:
                with compiled_with_kernels(lowered, target_device) as (compiled, kernels):
                    text = page(compiled, target_device, kernels=kernels)
                write_file(path, text)
                return
            program = lowered.compile()
    write_file(path, page(program, target_device))
