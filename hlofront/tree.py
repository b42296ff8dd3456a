"""Re-exports: pytrees under the short names of `jax.tree`."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.base.tree": (
            "static_field=static tree_all=all tree_broadcast=broadcast tree_flatten=flatten "
            "tree_flatten_with_path=flatten_with_path tree_leaves=leaves "
            "tree_leaves_with_path=leaves_with_path tree_map=map tree_map_with_path=map_with_path "
            "tree_reduce=reduce tree_reduce_associative=reduce_associative "
            "tree_structure=structure tree_transpose=transpose tree_unflatten=unflatten"
        ),
    },
)
