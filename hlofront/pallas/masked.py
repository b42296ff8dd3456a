"""Masked reads and writes of references in kernels: load and store."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hlofront.base import tree
from hlofront.base.dtypes import bool_
from hlofront.base.tree import PyTreeDef
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.jaxpr import Equation
from hlofront.core.primitive import Primitive
from hlofront.core.references import (
    AbstractRef,
    NDIndexer,
    dtype_after,
    indexers_text,
    read_effect,
    shape_after,
    write_effect,
)
from hlofront.core.symbolic_zeros import Dual, Tangents, Zero
from hlofront.primitives.elementwise.compare import select_n
from hlofront.primitives.references.references import RefLike, indexed
from hlofront.primitives.references.rules import Discharged, is_nonzero, not_differentiated
from hlofront.primitives.references.updates import read_at, write_at
from hlofront.primitives.rules.derivatives import instantiate

if TYPE_CHECKING:
    from hlofront.core.programs.print import Printing

# Operands: the leaves of (reference, indexers, mask, value where the mask is False), whose
# structure is the parameter `args_tree`; the value is None.
masked_load_p = Primitive("masked_load")
# Operands: the leaves of (reference, indexers, new value, mask). The result is the old value.
masked_swap_p = Primitive("masked_swap")

for _primitive in (masked_load_p, masked_swap_p):
    _primitive.ref_primitive = True
rules.effects(masked_load_p)(lambda *_, **__: frozenset((read_effect,)))
rules.effects(masked_swap_p)(lambda *_, **__: frozenset((write_effect,)))


def load(ref: RefLike, *, mask: ArrayLike | None = None) -> Array:
    """Return the elements of a reference; they are undefined where a mask is False.

    Args:
      ref: a reference, or a view `ref.at[...]`.
      mask: booleans of the shape of the elements, or None for all of them.

    Raises:
      ValueError: if `ref` is not a reference, or the mask has another shape.
      TypeError: if the mask is not of booleans.
    """
    ref, transforms = indexed(ref, None, "load")
    leaves, structure = tree.tree_flatten((ref, transforms, mask, None))
    return masked_load_p.bind(
        *leaves,
        args_tree=structure,
        cache_modifier=None,
        eviction_policy=None,
        is_volatile=False,
    )


def store(ref: RefLike, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Write a value to the elements of a reference where a mask is True.

    Args:
      ref: a reference, or a view `ref.at[...]`.
      val: an array of the shape and dtype of the elements.
      mask: booleans of that shape, or None for all of them.

    Raises:
      ValueError: if `ref` is not a reference, or a shape or dtype differs.
      TypeError: if the mask is not of booleans.
    """
    ref, transforms = indexed(ref, None, "store")
    leaves, structure = tree.tree_flatten((ref, transforms, val, mask))
    masked_swap_p.bind(*leaves, args_tree=structure, eviction_policy=None)


def _selected(
    name: str, ref: AbstractRef, transforms: Sequence[NDIndexer], mask: ShapedArray | None
) -> ShapedArray:
    """Return the type of the elements of a reference that indexers select."""
    shape = shape_after(ref.shape, transforms)
    if mask is not None:
        if mask.dtype != bool_:
            raise TypeError(f"the mask of `{name}` is of booleans, got dtype {mask.dtype.name}")
        if mask.shape != shape:
            raise ValueError(
                f"the mask of `{name}` has the shape of the elements, {shape}: got {mask.shape}. "
                f"Masks are not broadcast: use jnp.broadcast_to(mask, {shape})"
            )
    return ref.inner_aval.update(shape=shape, dtype=dtype_after(ref.dtype, transforms))


@rules.infer(masked_load_p)
def _(*avals: AbstractValue, args_tree: PyTreeDef, **_: object) -> ShapedArray:
    ref, transforms, mask, _ = args_tree.unflatten(avals)
    return _selected("load", ref, transforms, mask)


@rules.infer(masked_swap_p)
def _(*avals: AbstractValue, args_tree: PyTreeDef, **_: object) -> ShapedArray:
    ref, transforms, value, mask = args_tree.unflatten(avals)
    selected = _selected("store", ref, transforms, mask)
    if value.shape != selected.shape:
        raise ValueError(
            f"Invalid shape for `swap`. Ref shape: {ref.shape}. Expected shape: {selected.shape}. "
            f"Value shape: {value.shape}. Values are not broadcast: use "
            f"jnp.broadcast_to(value, {selected.shape})."
        )
    if value.dtype != selected.dtype:
        raise ValueError(
            f"Invalid dtype for `swap`. Ref dtype: {selected.dtype.name}. Value dtype: "
            f"{value.dtype.name}. Values are not converted: use "
            f"value.astype({selected.dtype.name!r})."
        )
    return selected


@rules.discharge(masked_load_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    array, transforms, _, _ = equation.params["args_tree"].unflatten(operands)
    return [None] * len(operands), read_at(array, transforms)


@rules.discharge(masked_swap_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    array, transforms, value, mask = equation.params["args_tree"].unflatten(operands)
    old = read_at(array, transforms)
    new = value if mask is None else select_n(mask, old, value)
    # Where it does not write, a masked store returns the new value, as on devices.
    result = old if mask is None else select_n(mask, value, old)
    return [write_at(array, transforms, new), *[None] * len(operands[1:])], result


def reference_text(printing: "Printing", ref: object, transforms: Sequence[NDIndexer]) -> str:
    """Return the text of a reference and indexers, such as `a[0,:]`, in an equation."""
    name = printing.used(ref).partition(":")[0]
    return name + indexers_text(transforms, lambda index: printing.used(index).partition(":")[0])


def _masked(printing: "Printing", mask: object) -> str:
    return "" if mask is None else f" mask={printing.used(mask)}"


@rules.show(masked_load_p)
def _(equation: Equation, printing: "Printing") -> str:
    ref, transforms, mask, _ = equation.params["args_tree"].unflatten(equation.invars)
    (result,) = equation.outvars
    part = reference_text(printing, ref, transforms)
    return f"{printing.bound(result)} <- {part}{_masked(printing, mask)}"


@rules.show(masked_swap_p)
def _(equation: Equation, printing: "Printing") -> str:
    ref, transforms, value, mask = equation.params["args_tree"].unflatten(equation.invars)
    (result,) = equation.outvars
    part, new = reference_text(printing, ref, transforms), printing.used(value)
    return f"{printing.bound(result)}, {part} <- {part}, {new}{_masked(printing, mask)}"


# ---- tangents ------------------------------------------------------------------------------------


@rules.jvp(masked_load_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: Any) -> Dual:
    value = masked_load_p.bind(*primals, **params)
    if type(tangents[0]) is Zero:
        return value, Zero.of(value)
    return value, masked_load_p.bind(tangents[0], *primals[1:], **params)


@rules.jvp(masked_swap_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: Any) -> Dual:
    ref = tangents[0]
    _, _, value, _ = params["args_tree"].unflatten(range(len(primals)))
    if type(ref) is Zero and is_nonzero(tangents[value]):
        not_differentiated("a store", primals[0])
    old = masked_swap_p.bind(*primals, **params)
    if type(ref) is Zero:
        return old, Zero.of(old)
    rest = [instantiate(tangents[i]) if i == value else x for i, x in enumerate(primals)]
    return old, masked_swap_p.bind(ref, *rest[1:], **params)
