"""Functions that run with other types of mesh axes: auto_axes, explicit_axes."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, tree_leaves, tree_map
from hlofront.base.typing import ArrayLike
from hlofront.core.aval import spec_of, typeof
from hlofront.core.sharding.mesh import AbstractMesh, AxisType
from hlofront.core.sharding.mesh_context import get_abstract_mesh, use_abstract_mesh
from hlofront.core.sharding.partition import PartitionSpec, axes_of
from hlofront.core.sharding.requested_shardings import named_sharding, requested
from hlofront.primitives.sharding.resharding import bind_reshard, reshard_tree

# A name of a mesh axis, several, or None for all.
AxisNames = str | tuple[str, ...] | None


def auto_axes(
    f: Callable[..., PyTree] | None = None,
    /,
    *,
    axes: AxisNames = None,
    out_sharding: PyTree = None,
) -> Callable[..., Any]:
    """Return a function that runs with axes of the mesh in context changed to type Auto.

    Inside, XLA decides how arrays are split along these axes, so operations are allowed whose rules
    cannot infer the sharding of their results. Without a mesh the function runs unchanged.

    Args:
      f: the function; without it, auto_axes returns a decorator.
      axes: the name of an axis of the mesh or a tuple of names; None for all.
      out_sharding: the shardings of results outside: a PartitionSpec or NamedSharding, or a pytree
        prefix of the result with them. It may be passed to the call instead.

    Raises:
      TypeError: at the call, if there is no out_sharding.
      KeyError: at the call, if the mesh has no axis of that name.
      ValueError: at the call, if results cannot have these shardings.

    Example:
      >>> @jax.sharding.auto_axes(out_sharding=jax.P("x"))
      ... def rows(table, i):
      ...     return table[i]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    function = f

    @boundary
    @functools.wraps(function)
    def with_auto_axes(*args: PyTree, **kwargs: PyTree) -> PyTree:
        shardings = _keyword(kwargs, "out_sharding", out_sharding)
        mesh = _mesh_of(shardings)
        inside = mesh if mesh.empty else _retyped(mesh, axes, AxisType.Auto)
        if inside is mesh:
            return function(*args, **kwargs)
        return run_with_auto_axes(function, args, kwargs, shardings, mesh, inside)

    return with_auto_axes


def run_with_auto_axes(
    f: Callable[..., PyTree],
    args: Sequence[PyTree],
    kwargs: dict[str, PyTree],
    out_sharding: PyTree,
    mesh: AbstractMesh,
    inside: AbstractMesh,
) -> PyTree:
    """Call a function in the context of a mesh with more axes of type Auto.

    Args:
      f: the function.
      args: its arguments; the arrays among them are resharded.
      kwargs: its other arguments.
      out_sharding: the shardings of results outside; a pytree prefix of the result.
      mesh: the mesh outside.
      inside: the mesh inside.
    """
    with use_abstract_mesh(inside):
        result = f(*_moved_tree(tuple(args), mesh, inside), **kwargs)
    return reshard_tree(result, out_sharding, inside)


def with_sharding(
    name: str, f: Callable[..., PyTree], args: Sequence[PyTree], out_sharding: object
) -> PyTree:
    """Call a function with all mesh axes of type Auto, and split its result as requested.

    Args:
      name: the operation's name, for messages.
      f: the function.
      args: its arguments.
      out_sharding: a PartitionSpec or a NamedSharding.

    Raises:
      TypeError: if `out_sharding` is of another type.
      ValueError: for a PartitionSpec without a mesh in context, for a NamedSharding over a mesh
        other than that in context, and for axes that are not of type Explicit.
    """
    requested_sharding = requested(name, out_sharding)
    if requested_sharding is None:
        return f(*args)
    mesh = requested_sharding.mesh
    inside = _retyped(mesh, None, AxisType.Auto)
    return run_with_auto_axes(f, args, {}, out_sharding, mesh, inside)


def explicit_axes(
    f: Callable[..., PyTree] | None = None,
    /,
    *,
    axes: AxisNames = None,
    in_sharding: PyTree = None,
) -> Callable[..., Any]:
    """Return a function that runs with axes of the mesh in context changed to type Explicit.

    Inside, the types of arrays say how they are split along these axes.

    Args:
      f: the function; without it, explicit_axes returns a decorator.
      axes: the name of an axis of the mesh or a tuple of names; None for all.
      in_sharding: the shardings of positional arguments inside: a PartitionSpec or NamedSharding,
        or a pytree prefix of the tuple of arguments with them. It may be passed to the call
        instead.

    Raises:
      TypeError: at the call, if there is no in_sharding.
      KeyError: at the call, if the mesh has no axis of that name.
      ValueError: at the call, if there is no mesh in context, or arguments cannot have these
        shardings.
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    function = f

    @boundary
    @functools.wraps(function)
    def with_explicit_axes(*args: PyTree, **kwargs: PyTree) -> PyTree:
        shardings = _keyword(kwargs, "in_sharding", in_sharding)
        mesh: AbstractMesh = get_abstract_mesh()
        if mesh.empty:
            raise ValueError(
                "explicit_axes makes axes of the mesh in context explicit, and there is none: put "
                "one in context by jax.set_mesh"
            )
        inside = _retyped(mesh, axes, AxisType.Explicit)
        with use_abstract_mesh(inside):
            result = function(*reshard_tree(args, shardings, mesh), **kwargs)
        return _moved_tree(result, inside, mesh)

    return with_explicit_axes


def _keyword(kwargs: dict[str, PyTree], name: str, default: PyTree) -> PyTree:
    value = kwargs.pop(name, default)
    if value is None:
        raise TypeError(
            f"Missing required keyword argument: {name!r}. Give it where the function is made, or "
            "at the call."
        )
    return value


def _mesh_of(shardings: PyTree) -> AbstractMesh:
    """Return the mesh in context; if there is none, the mesh of the first NamedSharding."""
    mesh: AbstractMesh = get_abstract_mesh()
    if mesh.empty:
        meshes = [getattr(leaf, "mesh", None) for leaf in tree_leaves(shardings)]
        first: Any = next((known for known in meshes if known is not None), mesh)
        return first.abstract_mesh
    return mesh


def _retyped(mesh: AbstractMesh, axes: AxisNames, kind: AxisType) -> AbstractMesh:
    """Return a mesh with some axes changed to another type.

    Raises:
      KeyError: if the mesh has no axis of a name.
    """
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else axes
    for name in names:
        if name not in mesh.axis_names:
            raise KeyError(name)
    return mesh.update_axis_types(dict.fromkeys(names, kind))


def _moved_tree(arrays: PyTree, mesh: AbstractMesh, inside: AbstractMesh) -> PyTree:
    """Return a pytree of arrays over one mesh as arrays over a mesh with other axis types."""

    def moved(x: ArrayLike) -> ArrayLike:
        return _moved(x, mesh, inside)

    return tree_map(moved, arrays)


def _moved(x: ArrayLike, mesh: AbstractMesh, inside: AbstractMesh) -> ArrayLike:
    """Return an array over one mesh as an array over a mesh with other axis types."""
    spec = spec_of(typeof(x))
    entries = [
        tuple(name for name in axes_of(entry) if name in inside.explicit_axes)
        for entry in spec.partitions
    ]
    sharding = named_sharding(inside, PartitionSpec(*entries))
    return bind_reshard(x, sharding, source_mesh=mesh)
