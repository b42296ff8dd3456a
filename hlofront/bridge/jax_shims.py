"""Shims: the `jax` modules that jaxlib's C++ imports, installed only while it runs."""

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType

# C++ imports these by name (JAXLIB.md section 2.5) when it constructs an array from a shard or a
# DLPack capsule, and when the first NamedSharding is constructed. `jax` itself must exist too.
_modules: dict[str, ModuleType] = {
    name: ModuleType(name)
    for name in (
        "jax",
        "jax.core",
        "jax._src.sharding_impls",
        "jax._src.named_sharding",
        "jax._src.literals",
    )
}


def provide(module: str, name: str, value: object) -> None:
    """Set an attribute of one of the shim modules that C++ imports."""
    setattr(_modules[module], name, value)


class NoTypedArray:
    """A class without instances, which C++ 0.11 looks up as the class of array constants."""


provide("jax._src.literals", "TypedNdArray", NoTypedArray)


class _ShimsInstalled:
    """A context manager, `with shims_installed:`, around a C++ call that may import parts of jax.

    Outside the block `jax` is not in `sys.modules`, where libraries look to learn whether it is
    used. The block does nothing while the attribute `needed` is false, as when `import jax` imports
    hlofront: the modules that C++ imports are then found like any others.
    """

    def __init__(self):
        self._lock = threading.RLock()
        self._depth = 0
        self._before: dict[str, ModuleType] = {}
        self.needed = True

    def __enter__(self) -> None:
        self._lock.acquire()
        if self._depth == 0 and self.needed:
            self._before = {name: sys.modules[name] for name in _modules if name in sys.modules}
            sys.modules.update(_modules)
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        self._depth -= 1
        if self._depth == 0 and self.needed:
            for name in _modules:
                sys.modules.pop(name, None)
            sys.modules.update(self._before)
        self._lock.release()

    @contextmanager
    def excluded(self) -> Generator[None]:
        """Keep other threads from installing the shims inside a block, to change `needed`."""
        with self._lock:
            if self._depth:
                raise RuntimeError("import hlofront.as_jax outside of functions that jaxlib calls")
            yield


shims_installed = _ShimsInstalled()
