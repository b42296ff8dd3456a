"""smap: shard_map along one mesh axis, with axis numbers instead of PartitionSpecs."""

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from hlofront.base import tree
from hlofront.base.tree import PyTree
from hlofront.base.tree_prefixes import is_none
from hlofront.core.sharding.partition import INFER, PartitionSpec
from hlofront.higher_order.shard_map.shard_map import shard_map


def smap(
    f: Callable[..., PyTree] | None = None,
    /,
    *,
    in_axes: object = INFER,
    out_axes: object,
    axis_name: Hashable,
) -> Any:
    """Return a function that runs `f` along one axis of the mesh in context; see `shard_map`.

    Axis numbers instead of PartitionSpecs say how arguments and results are split.

    Args:
      f: a function of pytrees of arrays: one device's parts of the arguments. Without it, smap
        returns a decorator.
      in_axes: the axis of each argument that is split along the mesh axis: an integer, None, or a
        pytree prefix of the tuple of arguments. By default it comes from the arguments' types.
      out_axes: the axis of each result along which parts are concatenated, or None for results
        that are the same on all devices; a pytree prefix of the result.
      axis_name: the name of the mesh axis.

    Raises:
      TypeError: if `axis_name` is a tuple, or axes are not integers; in a call, if types do not say
        how arguments are split.
      ValueError: in a call, if there is no mesh in context, and in the cases of `shard_map`.
    """
    if f is None:
        return partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, tuple | list):
        raise TypeError(f"smap axis_name should be the name of one axis, but got {axis_name!r}")
    return shard_map(
        f,
        in_specs=INFER if in_axes is INFER else _specs_of_axes(in_axes, axis_name, "in_axes"),
        out_specs=_specs_of_axes(out_axes, axis_name, "out_axes"),
        axis_names={axis_name},
    )


def _specs_of_axes(axes: object, axis_name: Hashable, name: str) -> object:
    """Return a pytree of PartitionSpecs from a pytree of the array axes that are split."""

    def spec(axis: object) -> PartitionSpec:
        if axis is None:
            return PartitionSpec()
        if not isinstance(axis, int) or axis < 0:
            raise TypeError(f"smap {name} must be nonnegative axis numbers or None: got {axis!r}")
        return PartitionSpec(*[None] * axis, axis_name)

    return tree.tree_map(spec, axes, is_leaf=is_none)
