"""How `import jax` is made to import hlofront: for a block, or for the rest of the process."""

# pyright: strict

import importlib
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

from hlofront.bridge.jax_shims import shims_installed
from hlofront.jax_names import naming
from hlofront.jax_names.modules import JaxFinder

_TOP = "jax"
_lock = threading.RLock()
_finder = JaxFinder()


def open_names() -> None:
    """Make `import jax`, and the imports of its submodules, import hlofront from now on.

    No module of jax is imported and no device is used before the program needs one. Nothing happens
    if the names are already open.

    Raises:
      ImportError: if another module named jax is imported already.
    """
    with _lock:
        if _finder in sys.meta_path:
            return
        # jaxlib's C++ imports some of these modules, which are now hlofront's.
        with shims_installed.excluded():
            if _TOP in sys.modules:
                raise ImportError(
                    "hlofront can be imported as jax only before jax is: a module jax is imported "
                    "already. Put `import hlofront.as_jax` before all imports that use jax, or "
                    "start the program by `python -m hlofront as-jax SCRIPT`."
                )
            shims_installed.needed = False
            sys.meta_path.insert(0, _finder)  # pyright: ignore[reportArgumentType]


def _close_names() -> None:
    with _lock, shims_installed.excluded():
        sys.meta_path.remove(_finder)  # pyright: ignore[reportArgumentType]
        for name in [*sys.modules]:
            if name.partition(".")[0] == _TOP:
                del sys.modules[name]
        naming.restore_all()
        shims_installed.needed = True


@contextmanager
def as_jax() -> Generator[ModuleType]:
    """Make `import jax` import hlofront inside a `with` block, for tests; yield the module `jax`.

    Modules that are imported in the block keep their references to hlofront afterwards. The block
    has no effect in a process that has imported `hlofront.as_jax`.

    Example:
      >>> with as_jax() as jax:
      ...     import jax.numpy as jnp

    Raises:
      ImportError: if another module named jax is imported already.
    """
    with _lock:
        was_open = _finder in sys.meta_path
    open_names()
    try:
        yield importlib.import_module(_TOP)
    finally:
        if not was_open:
            _close_names()
