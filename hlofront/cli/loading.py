"""Functions and arguments that commands load from the user's files, with a progress message."""

from collections.abc import Callable
from types import ModuleType

from hlofront.cli.progress import announce, finish
from hlofront.inspect import target


def load_function(file_and_name: str) -> tuple[Callable[..., object], ModuleType]:
    """Return the function that `path/to/file.py:name` names, and its module.

    The file is imported, which takes long if it trains when it is imported.

    Raises:
      UsageError: if there is no such file or function.
    """
    file = file_and_name.rpartition(":")[0]
    # Imports of libraries take seconds, and say nothing about the file.
    announce(f'importing {file}: what trains belongs below `if __name__ == "__main__":`', 5)
    try:
        return target.load_function(file_and_name)
    finally:
        finish()


def load_call(
    file_and_name: str, specs: str | None
) -> tuple[Callable[..., object], tuple[object, ...]]:
    """Return the function that `path/to/file.py:name` names, and its arguments.

    Raises:
      UsageError: as `load_function` and `target.arguments_for` do.
    """
    function, module = load_function(file_and_name)
    return function, target.arguments_for(function, module, file_and_name, specs)
