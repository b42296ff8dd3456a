"""Small C++ parts of jaxlib that every layer may use: pytrees, tracebacks, option cells."""

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
    # The class of functions that C++ calls: jitted functions, operations and executables.
    PjitFunction = state.extension.PjitFunction
    Traceback = state.extension.Traceback

registry: PyTreeRegistry = pytree.default_registry()
treedef_tuple: Callable[[PyTreeRegistry, Iterable[PyTreeDef]], PyTreeDef] = pytree.treedef_tuple
all_leaves: Callable[[PyTreeRegistry, Iterable[object]], bool] = pytree.all_leaves

# Pickling a treedef names its registry by module and name (JAXLIB.md section 3).
registry.__module__ = __name__
registry.__name__ = "registry"

# The C++ call path flattens arguments and results with its own registry, which sees the arrays
# inside values such as random keys; these are leaves in the default registry.
call_registry = PyTreeRegistry()
call_registry.__module__ = __name__
call_registry.__name__ = "call_registry"


def register_node(*args: Any) -> None:
    """Register a class of pytree nodes in all registries; the arguments are passed to each."""
    registry.register_node(*args)
    call_registry.register_node(*args)


def register_dataclass_node(*args: Any) -> None:
    """Register a dataclass as a pytree node in all registries; the arguments are passed to each."""
    registry.register_dataclass_node(*args)
    call_registry.register_dataclass_node(*args)


get_traceback = Traceback.get_traceback
Array = state.Array
# Make isinstance of this class consult its instances, so that tracers pass as arrays.
set_tracer_class: Callable[[type], None] = state.extension.set_tracer_class
weakref_lru_cache = state.weakref_lru_cache
# Return (the number of candidates that XLA's approximate top-k leaves, a binary logarithm) for
# (size, rank, k, recall, aggregate, override).
approx_top_k_size: Callable[..., tuple[int, int]] = (
    state.extension.approx_top_k_reduction_output_size
)


def register_typed_scalars(integer: type, floating: type, complex_: type) -> bool:
    """Register classes of Python scalars that have a dtype; return whether C++ supports them."""
    if not hasattr(state.extension, "set_typed_float_type"):
        return False
    state.extension.set_typed_int_type(integer)
    state.extension.set_typed_float_type(floating)
    state.extension.set_typed_complex_type(complex_)
    return True
