"""The small C++ parts of jaxlib that every floor may use: pytrees, tracebacks, option cells."""

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hlofront.bridge import state

pytree: ModuleType = state.extension.pytree
if TYPE_CHECKING:
    from hlofront.bridge.jaxlib_types import DictKey as DictKey
    from hlofront.bridge.jaxlib_types import FlattenedIndexKey as FlattenedIndexKey
    from hlofront.bridge.jaxlib_types import GetAttrKey as GetAttrKey
    from hlofront.bridge.jaxlib_types import PjitFunction as PjitFunction
    from hlofront.bridge.jaxlib_types import PyTreeDef as PyTreeDef
    from hlofront.bridge.jaxlib_types import PyTreeRegistry
    from hlofront.bridge.jaxlib_types import SequenceKey as SequenceKey
    from hlofront.bridge.jaxlib_types import Traceback as Traceback
else:
    PyTreeDef = pytree.PyTreeDef
    PyTreeRegistry = pytree.PyTreeRegistry
    DictKey = pytree.DictKey
    FlattenedIndexKey = pytree.FlattenedIndexKey
    GetAttrKey = pytree.GetAttrKey
    SequenceKey = pytree.SequenceKey
    # A class of jitted functions, and of others that C++ calls.
    PjitFunction = state.extension.PjitFunction
    Traceback = state.extension.Traceback

registry: PyTreeRegistry = pytree.default_registry()
treedef_tuple: Callable[[PyTreeRegistry, Iterable[PyTreeDef]], PyTreeDef] = pytree.treedef_tuple
all_leaves: Callable[[PyTreeRegistry, Iterable[object]], bool] = pytree.all_leaves

# Pickling a treedef names its registry by module and name (JAXLIB.md section 3).
registry.__module__ = __name__
registry.__name__ = "registry"

# The C++ call path takes arguments and results apart with a registry of its own: it sees the arrays
# that values such as random keys are made of, which are leaves to everybody else.
call_registry = PyTreeRegistry()
call_registry.__module__ = __name__
call_registry.__name__ = "call_registry"


def register_node(*args: Any) -> None:
    """Register a class of pytree nodes; the arguments are those of a registry."""
    registry.register_node(*args)
    call_registry.register_node(*args)


def register_dataclass_node(*args: Any) -> None:
    """Register a dataclass as pytree nodes; the arguments are those of a registry."""
    registry.register_dataclass_node(*args)
    call_registry.register_dataclass_node(*args)


get_traceback = Traceback.get_traceback
Array = state.Array
# Have isinstance ask instances of this class whether they are arrays.
set_tracer_class: Callable[[type], None] = state.extension.set_tracer_class
weakref_lru_cache = state.weakref_lru_cache
# Return the number of candidates that XLA's approximate top-k leaves, of the arguments
# (size, ranks, k, recall, aggregate, override), and a binary logarithm.
approx_top_k_size: Callable[..., tuple[int, int]] = (
    state.extension.approx_top_k_reduction_output_size
)
