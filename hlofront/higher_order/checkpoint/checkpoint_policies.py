"""The policies of checkpoint, which decide which values are saved, and names of values."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.source import callable_name, shortened
from hlofront.base.typing import Array, ArrayLikes
from hlofront.core.aval import ShapedArray, is_value
from hlofront.core.jaxpr import Equation, Value
from hlofront.core.primitive import Primitive
from hlofront.core.rules import batch, infer, jvp
from hlofront.core.symbolic_zeros import BatchAxes, BatchAxis, Tangent, Tangents
from hlofront.core.trace import process
from hlofront.primitives.linalg.conv import conv_general_dilated_p
from hlofront.primitives.linalg.dot_general import dot_general_p
from hlofront.primitives.sharding.families import split_as_first_operand

Tree = TypeVar("Tree")
# (primitive, *operand avals, **parameters) -> a decision; True or Saveable saves the results.
Policy = Callable[..., object]


# ---- answers of a policy -------------------------------------------------------------------------


class _Answer:
    __slots__ = ("_name", "_truth")

    def __init__(self, name: str, truth: bool):
        self._name = name
        self._truth = truth

    def __bool__(self) -> bool:
        return self._truth

    def __repr__(self) -> str:
        return self._name


Recompute = _Answer("Recompute", False)
Saveable = _Answer("Saveable", True)


class Offloadable:
    """A policy's decision to save a value in another memory.

    Args:
      src: the memory kind of the computed value, such as "device".
      dst: the memory kind of the saved value, such as "pinned_host".
    """

    __slots__ = ("dst", "src")

    def __init__(self, src: str, dst: str):
        self.src = src
        self.dst = dst

    def __repr__(self) -> str:
        return f"Offloadable(src={self.src!r}, dst={self.dst!r})"


def decision_on(policy: Policy, equation: Equation) -> object:
    """Return the decision of a checkpoint policy about the results of an equation.

    It is an Offloadable, or a value that is true if the results are saved.

    Raises:
      TypeError: if the policy returns something else.
    """
    avals = [atom.aval for atom in equation.invars]
    decision = policy(equation.primitive, *avals, **equation.params)
    if not isinstance(decision, bool | _Answer | Offloadable):
        raise TypeError(
            f"the checkpoint policy {callable_name(policy)} returned {shortened(repr(decision))} "
            f"of type {type(decision).__name__} for {equation.primitive}: a policy returns True "
            "or Saveable for results to save, False or Recompute for others, or an Offloadable."
        )
    return decision


def either_policy(outer: Policy | None, inner: Policy | None) -> Policy | None:
    """Return the policy that saves what `outer` or `inner` saves; None saves nothing."""
    if inner is None or inner is outer:
        return outer
    if outer is None or (isinstance(inner, _Either) and inner.outer is outer):
        return inner
    return _Either(outer, inner)


class _Either:
    """The union of two policies, which saves what either saves; equal if both members are.

    Args:
      outer: the policy of the outer checkpointed function.
      inner: the policy of the checkpointed function inside it.
    """

    __slots__ = ("inner", "outer")

    def __init__(self, outer: Policy, inner: Policy):
        self.outer = outer
        self.inner = inner

    def __call__(self, prim: Primitive, *avals: ShapedArray, **params: object) -> object:
        return self.outer(prim, *avals, **params) or self.inner(prim, *avals, **params)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Either) and (self.outer, self.inner) == (other.outer, other.inner)

    def __hash__(self) -> int:
        return hash((self.outer, self.inner))

    def __repr__(self) -> str:
        return f"either({self.outer!r}, {self.inner!r})"


# ---- names ---------------------------------------------------------------------------------------

name_p = Primitive("name")


@infer(name_p)
def _(x: ShapedArray, *, name: Hashable) -> ShapedArray:
    return x


split_as_first_operand(name_p)


@batch(name_p)
def _(values: ArrayLikes, axes: BatchAxes, *, name: Hashable) -> tuple[Array, BatchAxis]:
    return process(name_p, tuple(values), {"name": name}), axes[0]


@jvp(name_p)
def _(primals: ArrayLikes, tangents: Tangents, *, name: Hashable) -> tuple[Array, Tangent]:
    return process(name_p, tuple(primals), {"name": name}), tangents[0]


@boundary
def checkpoint_name(x: Tree, name: Hashable) -> Tree:
    """Return a pytree of arrays unchanged, named so that checkpoint policies can select it.

    Args:
      x: a pytree of arrays.
      name: the name: a string or another hashable value.

    Raises:
      TypeError: if the name cannot be hashed, or a leaf is not an array.
    """
    hash(name)

    def named(leaf: object) -> Array:
        if not is_value(leaf):
            raise TypeError(f"checkpoint_name requires arrays, got {leaf!r} of type {type(leaf)}")
        return process(name_p, (leaf,), {"name": name})

    return tree.tree_map(named, x)


# ---- policies ------------------------------------------------------------------------------------


def everything_saveable(*_: object, **__: object) -> bool:
    """Save all values, so that nothing is recomputed (a checkpoint policy)."""
    return True


def nothing_saveable(*_: object, **__: object) -> bool:
    """Save no values, so that everything is recomputed (a checkpoint policy)."""
    return False


def dots_saveable(prim: Primitive, *_: ShapedArray, **__: object) -> bool:
    """Save results of matrix products and convolutions (a checkpoint policy)."""
    return prim in (dot_general_p, conv_general_dilated_p)


def dots_with_no_batch_dims_saveable(prim: Primitive, *_: ShapedArray, **params: Value) -> bool:
    """Save results of matrix products without batch dimensions (a checkpoint policy)."""
    if prim is not dot_general_p:
        return False
    _, (left_batch, right_batch) = params["dimension_numbers"]
    return not left_batch and not right_batch


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Return a policy that offloads results of matrix products without batch dimensions.

    Args:
      offload_src: the memory kind in which they are computed, such as "device".
      offload_dst: the memory kind in which they are stored, such as "pinned_host".
    """

    def policy(prim: Primitive, *avals: ShapedArray, **params: object) -> object:
        if dots_with_no_batch_dims_saveable(prim, *avals, **params):
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., bool]:
    """Return a policy that saves all values except those with these `checkpoint_name` names."""
    names = frozenset(names_not_to_save)

    def policy(prim: Primitive, *_: ShapedArray, **params: object) -> bool:
        return not (prim is name_p and params["name"] in names)

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., bool]:
    """Return a policy that saves values named by `checkpoint_name`, except these names."""
    names = frozenset(names_not_to_save)

    def policy(prim: Primitive, *_: ShapedArray, **params: object) -> bool:
        return prim is name_p and params["name"] not in names

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., bool]:
    """Return a policy that saves only values with these names from `checkpoint_name`."""
    names = frozenset(names_which_can_be_saved)

    def policy(prim: Primitive, *_: ShapedArray, **params: object) -> bool:
        return prim is name_p and params["name"] in names

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Iterable[str],
    names_which_can_be_offloaded: Iterable[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Return a policy that saves values of some names, and offloads values of others.

    Args:
      names_which_can_be_saved: names, set by `checkpoint_name`, of values that are saved.
      names_which_can_be_offloaded: names of values that are saved in another memory.
      offload_src: the memory kind of the computed values, such as "device".
      offload_dst: the memory kind of the offloaded values, such as "pinned_host".

    Raises:
      ValueError: if a name is among both.
    """
    saved = frozenset(names_which_can_be_saved)
    offloaded = frozenset(names_which_can_be_offloaded)
    if saved & offloaded:
        raise ValueError(
            "The names should be exclusive and should not intersect in "
            f"`names_which_can_be_saved` and `names_which_can_be_offloaded`: {saved & offloaded}"
        )

    def policy(prim: Primitive, *_: ShapedArray, **params: object) -> object:
        if prim is name_p and params["name"] in saved:
            return Saveable
        if prim is name_p and params["name"] in offloaded:
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Return a policy that saves the values that either of two policies saves."""

    def policy(prim: Primitive, *avals: ShapedArray, **params: object) -> object:
        return policy_1(prim, *avals, **params) or policy_2(prim, *avals, **params)

    return policy


class _Policies:
    """The namespace of policies, such as `checkpoint_policies.dots_saveable`."""

    everything_saveable = staticmethod(everything_saveable)
    nothing_saveable = staticmethod(nothing_saveable)
    dots_saveable = staticmethod(dots_saveable)
    checkpoint_dots = staticmethod(dots_saveable)
    dots_with_no_batch_dims_saveable = staticmethod(dots_with_no_batch_dims_saveable)
    checkpoint_dots_with_no_batch_dims = staticmethod(dots_with_no_batch_dims_saveable)
    offload_dot_with_no_batch_dims = staticmethod(offload_dot_with_no_batch_dims)
    save_anything_except_these_names = staticmethod(save_anything_except_these_names)
    save_any_names_but_these = staticmethod(save_any_names_but_these)
    save_only_these_names = staticmethod(save_only_these_names)
    save_from_both_policies = staticmethod(save_from_both_policies)
    save_and_offload_only_these_names = staticmethod(save_and_offload_only_these_names)


checkpoint_policies = _Policies()
