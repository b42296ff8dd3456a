"""The process-wide C++ settings of jaxlib, set before their first use."""

import gc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

# Without this, each client prints an INFO line about its devices. jaxlib reads it when it loads.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

if "jax" in sys.modules:
    raise ImportError(
        "hlofront cannot be imported after jax in one process: both set up jaxlib's C++ arrays,\n"
        "and the one that comes second would corrupt the first. Import only one of them; to\n"
        "compare the two, run each in a process of its own. To run programs that import jax on\n"
        "hlofront, put `import hlofront.as_jax` before their imports, or start them by\n"
        "`python -m hlofront as-jax SCRIPT`."
    )

import jaxlib.version

if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import ConfigCell

# Extension modules have no stubs: type checkers treat their members as Any.
extension: ModuleType = importlib.import_module("jaxlib._jax")
xla_client: ModuleType = importlib.import_module("jaxlib.xla_client")
# Memoize a function by a weak reference to its first argument and by the other arguments.
weakref_lru_cache: Callable[..., Any] = importlib.import_module(
    "jaxlib.weakref_lru_cache"
).weakref_lru_cache

# The git hash, which distinguishes builds of the same version; "" if the build has none.
jaxlib_build: str = getattr(jaxlib.version, "_git_hash", "")
jaxlib_version = tuple(int(part) for part in jaxlib.version.__version__.split(".")[:3])
if jaxlib_version < (0, 10, 2):
    raise ImportError(
        f"hlofront needs jaxlib 0.10.2 or newer, and {jaxlib.version.__version__} is installed: "
        "run `pip install -U jaxlib`"
    )


# The function of the import system that calls finders to import a module;
# `importlib.util.find_spec`, which only checks for a module, calls them from a different function.
_IMPORTING = "_find_and_load_unlocked"


class _JaxIsRefused:
    """An import finder that refuses `import jax`, but lets code check whether jax is installed.

    jaxlib's C++ also imports `jax` on rare paths and handles its absence, so this also keeps an
    installed jax from being imported without the user's knowledge. If none is installed, the error
    says how hlofront can take its place.
    """

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != "jax":
            return None
        for finder in sys.meta_path:
            if finder is not self and finder.find_spec(name, path, target) is not None:
                # Loaders need no base class at run time, and importing one would take time.
                return importlib.machinery.ModuleSpec(name, self)  # pyright: ignore[reportArgumentType]
        # Frame 1 belongs to the import system's loop over the finders, frame 2 to its caller.
        if sys._getframe(2).f_code.co_name == _IMPORTING:  # pyright: ignore[reportPrivateUsage]
            raise ModuleNotFoundError(
                "No module named 'jax': hlofront takes its place only on request. Write `import "
                "hlofront.as_jax` before the imports that need jax, or run the program with "
                "`python -m hlofront as-jax PROGRAM`.",
                name=name,
            )
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        raise ImportError(
            "jax cannot be imported after hlofront in one process: both set up jaxlib's C++\n"
            "arrays, and jax would corrupt those that hlofront has made. Import only one of\n"
            "them; to compare the two, run each in a process of its own. To make `import jax`\n"
            "give hlofront, put `import hlofront.as_jax` before it."
        )


sys.meta_path.insert(0, _JaxIsRefused())

Config: "Callable[..., ConfigCell]" = extension.config.Config
unset: object = extension.config.unset

# Parts of the C++ jit key, all compared at every call, so there are few. All other options that
# affect tracing are combined into two tuples: one for the process, one for this thread.
enable_x64: "ConfigCell" = Config(
    "enable_x64", False, include_in_jit_key=True, include_in_trace_context=True
)
disable_jit: "ConfigCell" = Config(
    "disable_jit", False, include_in_jit_key=True, include_in_trace_context=True
)
post_hook: "ConfigCell" = Config(
    "post_hook", None, include_in_jit_key=True, include_in_trace_context=False
)
tracing: "ConfigCell" = Config(
    "tracing", False, include_in_jit_key=True, include_in_trace_context=False
)
process_options: "ConfigCell" = Config(
    "process", (), include_in_jit_key=True, include_in_trace_context=True
)
thread_options: "ConfigCell" = Config(
    "thread", (), include_in_jit_key=True, include_in_trace_context=True
)
# The named axes in scope, with their sizes, on which the lowering of `psum(x, "i")` depends.
named_axes: "ConfigCell" = Config(
    "named_axes", (), include_in_jit_key=True, include_in_trace_context=True
)

extension.jax_jit.set_enable_x64_state(enable_x64)
extension.jax_jit.set_disable_jit_state(disable_jit)
extension.jax_jit.set_post_hook_state(post_hook)
# Whether operations on constants are run while functions are traced.
folding: "ConfigCell" = Config(
    "constant_folding", False, include_in_jit_key=True, include_in_trace_context=True
)

# Return a tuple of the values of these option cells, on which programs depend.
trace_context: "Callable[[], tuple[object, ...]]" = extension.config.trace_context
trace_context_fields = (
    "enable_x64",
    "disable_jit",
    "process",
    "thread",
    "named_axes",
    "constant_folding",
)

# The transfer guards: which copies between host and devices are allowed, per process and thread.
guards: ModuleType = extension.guard_lib


def _release_deferred(phase: str, info: dict[str, int]) -> None:
    extension.collect_garbage()


gc.callbacks.append(_release_deferred)

ArrayImpl: type[Any] = xla_client.ArrayImpl
Array: Any = extension.Array
JaxRuntimeError: type[RuntimeError] = extension.JaxRuntimeError
