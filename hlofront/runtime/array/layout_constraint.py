"""with_layout_constraint: layouts of values inside of programs."""

from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree, tree_flatten
from hlofront.base.tree_prefixes import broadcast_prefix, is_none
from hlofront.base.typing import Array, ArrayLike
from hlofront.bridge.client import ArrayImpl
from hlofront.core.aval import typeof
from hlofront.core.rules import run
from hlofront.core.trace import as_array
from hlofront.pjrt.layouts import Format, Layout
from hlofront.primitives.sharding.placing import (
    CopySemantics,
    layout_constraint,
    layout_constraint_p,
)
from hlofront.runtime.array.relayout import laid_out
from hlofront.runtime.array.transfer import put_leaf


@run(layout_constraint_p)
def _(x: ArrayLike, *, layout: Layout) -> Array:
    """Lay out an array immediately: outside of programs there is nothing for XLA to choose."""
    array = as_array(x)
    if type(array) is ArrayImpl:
        return laid_out(array, layout.mode(typeof(x), "the value of with_layout_constraint"))
    return put_leaf(array, Format(layout, array.sharding), CopySemantics.REUSE_INPUT)


@boundary
def with_layout_constraint(x: PyTree, layouts: PyTree) -> PyTree:
    """Return values that XLA stores in the given layouts at this point of a program.

    Args:
      x: an array or a pytree of arrays.
      layouts: a Layout for all, or a tree of them that is a prefix of `x`.

    Returns:
      A tree like `x`. Derivatives are laid out in the same way; under vmap the new axis has the
      largest stride. Outside of programs the arrays themselves are laid out.

    Raises:
      ValueError: if one of the layouts is not a Layout or does not order the axes of its array.

    Example:
      >>> with_layout_constraint(jnp.ones((2, 3)), Layout((1, 0))).format.layout.major_to_minor
      (1, 0)
    """
    leaves, structure = tree_flatten(x)
    flat = broadcast_prefix(layouts, x, is_none)
    for layout in flat:
        if not isinstance(layout, Layout):
            raise ValueError(
                "layouts passed to `with_layout_constraint` must be of type `Layout`: got "
                f"{layout!r} of type {type(layout).__name__}"
            )
    return structure.unflatten(map(layout_constraint, leaves, flat))
