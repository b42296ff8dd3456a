"""Private functions and tables of JAX that libraries use and that hlofront does not have itself."""

# pyright: strict

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from hlofront.base import source, tree_prefixes
from hlofront.base.dtypes import finfo
from hlofront.base.tree import PyTree, tree_map
from hlofront.base.tree_nodes import is_tree_node
from hlofront.base.typing import Array, ArrayLike, DType, DTypeLike, NumPyArray, Value
from hlofront.bridge.coordination import CoordinationClient
from hlofront.core.aval import typeof
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sharding.mesh_context import NO_MESH, context_mesh
from hlofront.core.sharding.partition import PartitionSpec
from hlofront.core.sharding.requested_shardings import requested
from hlofront.core.trace import Trace, Tracer, current_trace, engine
from hlofront.pjrt import clients
from hlofront.pjrt.named_shardings import NamedSharding
from hlofront.pjrt.process_group import current_group
from hlofront.primitives.arrays.creation import iota
from hlofront.runtime.array.exchange import unpickled
from hlofront.transforms import vmappable
from hlofront.transforms.batch import BatchTrace

# The result of a function that checkify checks, in annotations.
Out = TypeVar("Out")


def __getattr__(name: str) -> object:
    if name == "clients_made":
        return clients.clients()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def reconstruct_array(
    reconstruct: Callable[..., NumPyArray],
    arguments: tuple[object, ...],
    state: Any,
    aval_state: dict[str, bool],
) -> Array:
    """Return an array from a pickle that JAX wrote, on the default device.

    Args:
      reconstruct: the function that makes an empty NumPy array.
      arguments: its arguments.
      state: the NumPy array's state, with its shape, dtype and elements.
      aval_state: {"weak_type": whether the array is weakly typed}.
    """
    value = reconstruct(*arguments)
    value.__setstate__(state)
    return unpickled(value, aval_state["weak_type"])


def trace_state_clean() -> bool:
    """Return whether no transformation is tracing the caller."""
    return current_trace() is engine()


def full_lower(x: Value) -> Value:
    """Return the simplest value that a tracer stands for, and any other value unchanged."""
    return x.full_lower() if isinstance(x, Tracer) else x


class _TraceContext:
    """The context variable of the current trace, as an attribute."""

    @property
    def trace(self) -> Trace:
        return current_trace()


trace_context = _TraceContext()


def dtype_of(x: ArrayLike) -> DType:
    """Return the dtype of an array, a tracer or a scalar."""
    return typeof(x).dtype


def concrete_mesh() -> Mesh:
    """Return the Mesh with devices that `jax.set_mesh` has put in context, or an empty one."""
    return context_mesh() or NO_MESH


def canonicalize_sharding(
    sharding: NamedSharding | PartitionSpec | None,
    api_name: str,
    check_mesh_consistency: bool = True,
) -> NamedSharding | None:
    """Return a requested sharding as a NamedSharding over the mesh in context, or None.

    Args:
      sharding: the request.
      api_name: the function that it is passed to, for messages.
      check_mesh_consistency: whether the mesh of a NamedSharding must be the mesh in context.
    """
    if isinstance(sharding, NamedSharding) and not check_mesh_consistency:
        return sharding
    return requested(api_name, sharding)


def iota_of_axis(axis_size: int) -> Array:
    """Return the indices along an axis that vmap maps over, one per example."""
    return iota("int32", axis_size)


def to_element(trace: BatchTrace, get_idx: Callable[[], Value], x: Value, spec: Any) -> Value:
    """Return the element that a mapped function receives of a batched value.

    Args:
      trace: the trace of the vmap.
      get_idx: a function that returns the example's index, for values of registered types.
      x: the batched value.
      spec: the batch axis of an array, or None.
    """
    return vmappable.to_element(trace, None, x, spec, get_idx)


def supports_inf(dtype: DTypeLike) -> bool:
    """Return whether a floating-point dtype has infinities; some of 8 bits or fewer have none."""
    return bool(np.isinf(np.array(np.inf).astype(finfo(dtype).dtype)))


def prefix_errors(
    prefix_tree: PyTree, full_tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> list[Callable[[str], ValueError]]:
    """Return a function for each node where `prefix_tree` is not a prefix of `full_tree`.

    Each function takes the name of the prefix and returns the error, without raising it.

    Args:
      prefix_tree: the prefix, whose leaves stand for whole subtrees.
      full_tree: the full pytree.
      is_leaf: a predicate, called with nodes of `prefix_tree`; True makes the node a leaf.
    """

    def errors(name: str) -> list[ValueError]:
        return tree_prefixes.prefix_errors(prefix_tree, full_tree, is_leaf, name=name)

    def error_at(index: int) -> Callable[[str], ValueError]:
        return lambda name: errors(name)[index]

    return [error_at(index) for index in range(len(errors("the prefix")))]


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return positions and names of arguments; if one of them is None, it is inferred.

    Args:
      sig: the signature of the function whose arguments they are.
      argnums: a position, or several.
      argnames: a name, or several.
    """
    by_position = [
        (position, name)
        for position, (name, parameter) in enumerate(sig.parameters.items())
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    names = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums or ())
    if argnums is None:
        positions = tuple([position for position, name in by_position if name in names])
    elif argnames is None:
        names = tuple([name for position, name in by_position if position in positions])
    return positions, names


# The default tolerances of check_close; other dtypes are compared exactly.
_TOLERANCES = {
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "float32": 1e-6,
    "float64": 1e-15,
    "complex64": 1e-6,
    "complex128": 1e-15,
}


# A tolerance for all dtypes, or by dtype.
_Tolerance = float | Mapping[Any, float] | None


def _tolerance_for(dtype: DType, tolerance: _Tolerance) -> float:
    if isinstance(tolerance, Mapping):
        by_name = {np.dtype(key).name: value for key, value in tolerance.items()}
        tolerance = by_name.get(dtype.name)
    return _TOLERANCES.get(dtype.name, 0.0) if tolerance is None else tolerance


def check_close(
    xs: PyTree,
    ys: PyTree,
    atol: _Tolerance = None,
    rtol: _Tolerance = None,
    err_msg: str = "",
) -> None:
    """Check that the arrays of two pytrees are close, within absolute and relative tolerances.

    Args:
      xs, ys: pytrees of equal structure.
      atol, rtol: the absolute and relative tolerance, for all dtypes or by dtype; by default the
          typical rounding errors of a dtype.
      err_msg: the beginning of the error's message.

    Raises:
      AssertionError: if two arrays differ by more.
    """

    def check(x: ArrayLike, y: ArrayLike) -> None:
        first: NumPyArray = np.asarray(x)
        second: NumPyArray = np.asarray(y)
        assert first.shape == second.shape, f"{err_msg}: shapes {first.shape} and {second.shape}"
        absolute, relative = (
            first.size * max(_tolerance_for(array.dtype, tolerance) for array in (first, second))
            for tolerance in (atol, rtol)
        )
        np.testing.assert_allclose(first, second, relative, absolute, err_msg=err_msg)

    tree_map(check, xs, ys)


def include_frame(frame: FrameType) -> bool:
    """Return whether a frame is of the user's code, and therefore shown in filtered tracebacks."""
    return source.is_user_file(frame.f_code.co_filename)


class _ExcludedPaths:
    """A mutable list of path prefixes: files under one of them are not the user's."""

    def __contains__(self, path: str) -> bool:
        return path in source.exclusions()

    def __iter__(self) -> Iterator[str]:
        return iter(source.exclusions())

    def __len__(self) -> int:
        return len(source.exclusions())

    def append(self, path: str) -> None:
        """Exclude the files whose paths begin with `path`."""
        source.register_exclusion(path)

    def remove(self, path: str) -> None:
        """Remove one exclusion of `path`; raise a ValueError if there is none."""
        source.unregister_exclusion(path)


excluded_paths = _ExcludedPaths()


class _TreeNodes:
    """The set of types that are pytree nodes, for libraries with `type(x) in tree_nodes`."""

    def __contains__(self, node_type: type) -> bool:
        return is_tree_node(node_type)


tree_nodes = _TreeNodes()


class _GlobalState:
    """The place of this process in its group; without a group, that of a single process."""

    @property
    def process_id(self) -> int:
        group = current_group()
        return 0 if group is None else group.process_id

    @property
    def num_processes(self) -> int | None:
        group = current_group()
        return None if group is None else group.process_count

    @property
    def client(self) -> CoordinationClient | None:
        group = current_group()
        return None if group is None else group.client


global_state = _GlobalState()
