"""shard_map under the names of older versions of JAX; `jax.shard_map` is the current one."""

from collections.abc import Callable
from typing import Any

from hlofront.base.tree import PyTree
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.higher_order.shard_map.shard_map import shard_map as _shard_map


def shard_map(
    f: Callable[..., PyTree],
    mesh: Mesh | AbstractMesh,
    in_specs: object,
    out_specs: object,
    check_rep: bool = True,
) -> Any:
    """Return `jax.shard_map(f, mesh=..., in_specs=..., out_specs=..., check_vma=check_rep)`."""
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
