"""The small C++ parts of jaxlib that every floor may use: pytrees, tracebacks, option cells."""

from typing import Any

from hlofront.bridge import state

pytree = state.extension.pytree
registry = pytree.default_registry()
PyTreeDef = pytree.PyTreeDef

# Pickling a treedef names its registry by module and name (JAXLIB.md section 3).
registry.__module__ = __name__
registry.__name__ = "registry"

# What the C++ call path takes arguments and results apart with: it sees the arrays that values such
# as random keys are made of, which are leaves to everybody else.
call_registry = pytree.PyTreeRegistry()
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


Traceback = state.extension.Traceback
get_traceback = Traceback.get_traceback
Array = state.Array
set_tracer_class: Any = state.extension.set_tracer_class
# The class of jitted functions, and of others that C++ calls.
PjitFunction = state.extension.PjitFunction
parse_arguments = state.extension.jax_jit.parse_arguments
weakref_lru_cache = state.weakref_lru_cache
# How many candidates XLA's approximate top-k leaves: (size, ranks, k, recall, aggregate, override).
approx_top_k_size = state.extension.approx_top_k_reduction_output_size
