"""pcast, which changes what a value's type says about its copies along manual mesh axes.

Along a manual axis a value is invarying (the same on all devices), varying, unreduced (devices have
summands of it), or reduced (the same, and its cotangent is unreduced). The casts between these are
the identity on each device; the cotangent of one goes through its transpose.
"""

from collections.abc import Callable, Collection, Hashable, Sequence

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike, ArrayLikes, is_tuple_or_list
from hlofront.core import axes as named
from hlofront.core.aval import Avals, ShapedArray, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.rules import batch, infer, varying
from hlofront.core.sharding.forbidden_collectives import communicating
from hlofront.core.sharding.manual_axes import SETS, ManualAxisType
from hlofront.core.sharding.partition import UnreducedKind
from hlofront.core.symbolic_zeros import Cotangents
from hlofront.core.trace import process
from hlofront.primitives.collectives.varying import manual_among, may_mix, pvary
from hlofront.primitives.rules.derivatives import linear

# From invarying to reduced.
preduced_p = Primitive("preduced")
# From reduced to varying.
reduced_vary_cast_p = Primitive("reduced_vary_cast_p")
# From varying to unreduced.
vary_unreduced_cast_p = Primitive("vary_unreduced_cast_p")
# A sum, from unreduced to invarying.
unreduced_psum_p = Primitive("unreduced_psum")
# The maximum and the minimum, from unreduced to invarying.
unreduced_pmax_p = Primitive("unreduced_pmax")
unreduced_pmin_p = Primitive("unreduced_pmin")

Names = tuple[Hashable, ...]
# For each operation, the set of a ManualAxisType from which it removes its axes, the set to which
# it adds them, and its transpose; "" is the state of axes that are in none of the sets.
_STEPS: dict[Primitive, tuple[str, str, Primitive]] = {
    preduced_p: ("", "reduced", unreduced_psum_p),
    reduced_vary_cast_p: ("reduced", "varying", vary_unreduced_cast_p),
    vary_unreduced_cast_p: ("varying", "unreduced", reduced_vary_cast_p),
    unreduced_psum_p: ("unreduced", "", preduced_p),
}

# The primitives that combine the values of devices along unreduced axes, and the kind of each.
_COMBINES = {
    unreduced_psum_p: UnreducedKind.sum,
    unreduced_pmax_p: UnreducedKind.max,
    unreduced_pmin_p: UnreducedKind.min,
}


def _register(primitive: Primitive, before: str, after: str) -> None:
    @infer(primitive)
    def _(x: ShapedArray, *, axes: Names) -> ShapedArray:
        return x

    @varying(primitive)
    def _(avals: Avals, *, axes: Names) -> list[ManualAxisType]:
        kind = avals[0].manual_axis_type
        combined = _COMBINES.get(primitive, UnreducedKind.sum)
        if kind.unreduced_kind not in (None, combined):
            raise ValueError(
                f"{primitive} requires values with unreduced_kind={combined.name}: got an operand "
                f"of type {avals[0].str_short()}"
            )
        changes: dict[str, frozenset[Hashable]] = {}
        if before:
            changes[before] = getattr(kind, before) - frozenset(axes)
        if after:
            changes[after] = getattr(kind, after) | frozenset(axes)
        return [kind.update(**changes)]

    @batch(primitive)
    def _(values: ArrayLikes, batch_axes: Sequence[int], *, axes: Names) -> PyTree:
        return process(primitive, (values[0],), {"axes": axes}), batch_axes[0]


def _register_transpose(primitive: Primitive, transposed: Primitive) -> None:
    def transpose(cotangent: ArrayLike, x: object, *, axes: Names) -> Cotangents:
        return [process(transposed, (cotangent,), {"axes": axes})]

    linear(primitive, transpose)


for _primitive, (_before, _after, _transposed) in _STEPS.items():
    _register(_primitive, _before, _after)
    _register_transpose(_primitive, _transposed)
for _primitive in (unreduced_pmax_p, unreduced_pmin_p):
    _register(_primitive, "unreduced", "")
may_mix(*_STEPS, *_COMBINES)


def state_along(aval: ShapedArray, axes: Collection[Hashable]) -> str:
    """Return the state of a type along manual axes: "varying", ..., or "mixed" if they differ."""
    kind = aval.manual_axis_type
    states = {
        next((name for name in SETS if axis in getattr(kind, name)), "invarying") for axis in axes
    }
    return states.pop() if len(states) == 1 else "mixed"


def _step(primitive: Primitive) -> Callable[[ArrayLike, Sequence[Hashable]], ArrayLike]:
    return lambda x, axes: process(primitive, (x,), {"axes": tuple(sorted(axes, key=str))})


_CASTS: dict[tuple[str, str], Callable[[ArrayLike, Sequence[Hashable]], ArrayLike]] = {
    ("invarying", "varying"): pvary,
    ("invarying", "reduced"): _step(preduced_p),
    ("reduced", "varying"): _step(reduced_vary_cast_p),
    ("varying", "unreduced"): _step(vary_unreduced_cast_p),
}
unreduced_psum = _step(unreduced_psum_p)
unreduced_pmax = _step(unreduced_pmax_p)
unreduced_pmin = _step(unreduced_pmin_p)


@boundary
def pcast(x: object, axis_name: object, *, to: str) -> PyTree:
    """Cast how values vary along manual axes of a mesh, for `shard_map` with check_vma.

    Args:
      x: a pytree of arrays.
      axis_name: the name of an axis, or a tuple of names.
      to: "varying" for values that may differ between devices; "reduced" for values that are the
          same on all devices and whose cotangents stay unreduced; "unreduced" for varying values
          that are summands, which `psum` adds up.

    Returns:
      A pytree like `x`, of equal values. Without check_vma it is `x`.

    Raises:
      NameError: if no axis of that name is in scope.
      ValueError: if `to` is none of these, or there is no such cast from the type of the values.
    """
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(
            f"Got unexpected `to` value: {to!r}. Wanted 'varying', 'unreduced' or 'reduced'."
        )
    names = tuple(axis_name) if is_tuple_or_list(axis_name) else (axis_name,)
    for name in names:
        named.axis_size(name)
    axes = manual_among(names)
    if not axes:
        return x

    def cast(leaf: ArrayLike) -> ArrayLike:
        state = state_along(typeof(leaf), axes)
        change = _CASTS.get((state, to))
        if change is None:
            raise ValueError(
                f"Unsupported pcast from={state}, to={to!r} along {names}: got a value of type "
                f"{typeof(leaf).str_short()}"
            )
        return change(leaf, axes)

    return tree.tree_map(cast, x)


communicating(*_COMBINES)
