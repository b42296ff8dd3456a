"""Types of arguments with symbolic sizes, for `export`."""

from collections.abc import Sequence

from hlofront.base import tree, tree_prefixes
from hlofront.base.tree import PyTree
from hlofront.core.sizes.scopes import SymbolicScope, symbolic_shape
from hlofront.transforms.flatten import ShapeDtypeStruct


def symbolic_args_specs(
    args: PyTree,
    shapes_specs: PyTree,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> PyTree:
    """Return the types of arguments with symbolic shapes, to export a function for.

    Args:
      args: arrays, or ShapeDtypeStructs in their place, whose dtypes the result has.
      shapes_specs: shapes as `symbolic_shape` reads them, in a prefix of the structure of `args`;
        placeholders in them, and None, stand for sizes of the argument.
      constraints: what is known of the variables.
      scope: the scope of the variables, instead of a new one with these constraints.

    Returns:
      ShapeDtypeStructs in the structure of `args`.

    Raises:
      ValueError: if `shapes_specs` is not a prefix of `args`, a text is not a shape, or there are
        both constraints and a scope.

    Example:
      >>> specs = symbolic_args_specs((jnp.ones((4, 3)), jnp.ones(3)), ("b, ...", None))
      >>> [spec.shape for spec in specs]
      [(b, 3), (3,)]
    """
    if scope is None:
        scope = SymbolicScope(constraints)
    elif constraints:
        raise ValueError("Cannot use both `scope` and `constraints`")
    leaves, structure = tree.tree_flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    try:
        texts = tree_prefixes.broadcast_prefix(shapes_specs, args, tree_prefixes.is_none)
    except ValueError:
        errors = tree_prefixes.prefix_errors(
            shapes_specs, args, name="the shapes_specs of symbolic_args_specs", full_name="args"
        )
        raise ValueError("\n".join(map(str, errors))) from None
    types = map(ShapeDtypeStruct.like, leaves)
    return structure.unflatten(
        [
            ShapeDtypeStruct(symbolic_shape(text, like=each.shape, scope=scope), each.dtype)
            for text, each in zip(texts, types, strict=True)
        ]
    )
