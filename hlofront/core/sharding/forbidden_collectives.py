"""The option `no_collectives`: operations that communicate along some mesh axes are refused.

Collectives along these axes are refused when the type of their result is inferred. So is an
operation on arrays that Explicit axes split, if the type of its result is no longer split along a
forbidden axis.
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import wraps

from hlofront.base.config import no_collectives
from hlofront.base.errors import HlofrontError
from hlofront.base.typing import is_tuple_or_list
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, Avals, ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import Entries, InferRule
from hlofront.core.sharding.mesh_context import get_abstract_mesh
from hlofront.core.sharding.partition import PartitionSpec, axes_of


class ForbiddenCollectiveError(HlofrontError):
    """The error for communication along a mesh axis that `no_collectives` forbids."""


def _refusal(name: object, axis: Hashable, problem: str) -> ForbiddenCollectiveError:
    return ForbiddenCollectiveError(
        f"a collective along the mesh axis {axis!r} is forbidden by no_collectives, but {name} "
        f"{problem}. Call it outside of the block of no_collectives, or leave {axis!r} out there."
    )


_collectives: set[Primitive] = set()


def communicating(*primitives: Primitive) -> None:
    """Make the infer rules of collectives refuse the axes that `no_collectives` forbids."""
    for primitive in primitives:
        _collectives.add(primitive)
        rules.infer[primitive] = _checked(primitive, rules.infer[primitive])


def _checked(primitive: Primitive, rule: InferRule) -> InferRule:
    @wraps(rule)
    def checked(*avals: AbstractValue, **params: object) -> AbstractValue | Sequence[AbstractValue]:
        forbidden = no_collectives.value
        if forbidden:
            names = params["axes"] if "axes" in params else params["axis_name"]
            # An axis of vmap may have the same name, but is not an axis of the mesh.
            of_mesh = get_abstract_mesh().manual_axes
            for name in names if is_tuple_or_list(names) else (names,):
                if not isinstance(name, int) and name in forbidden and name in of_mesh:
                    raise _refusal(primitive, name, "acts along it")
        return rule(*avals, **params)

    return checked


def may_communicate(
    primitive: Primitive,
    avals: Sequence[AbstractValue],
    results: Sequence[AbstractValue],
    is_requested: bool,
) -> bool:
    """Return whether an operation of these types may be refused under `no_collectives`.

    Args:
      primitive: the operation.
      avals: the avals of its operands.
      results: the avals of its results.
      is_requested: whether its parameters say how the results are split.
    """
    if primitive in _collectives:
        return True
    operands = _specs(avals)
    if not operands:
        return False
    made = _specs(results)
    unreduced = {name for spec in made for name in spec.unreduced}
    names = unreduced.union(*map(_splitting, made))
    return (
        is_requested
        or primitive in rules.infers_whole_types
        or any(spec.unreduced - unreduced or _splitting(spec) - names for spec in operands)
    )


def check_splits(primitive: Primitive, avals: Avals, results: Sequence[AbstractValue]) -> None:
    """Raise if an operation would gather or add up its operands along a forbidden axis.

    It does if operands, but not results, are split or unreduced along the axis.

    Args:
      primitive: the operation.
      avals: the avals of its operands.
      results: the avals of its results.

    Raises:
      ForbiddenCollectiveError: if one does.
    """
    forbidden = no_collectives.value
    if not forbidden:
        return
    operands, made = _specs(avals), _specs(results)
    if not operands or not any(isinstance(aval, ShapedArray) for aval in results):
        return
    for axis in forbidden:
        unreduced = any(axis in spec.unreduced for spec in made)
        if any(axis in spec.unreduced for spec in operands) and not unreduced:
            raise _refusal(primitive, axis, "adds up summands along it")
        splits_result = any(axis in _splitting(spec) for spec in made)
        if any(axis in _splitting(spec) for spec in operands) and not splits_result | unreduced:
            raise _refusal(primitive, axis, "has a result that is not split along it")


def check_moves(name: object, natural: Entries, spec: PartitionSpec) -> None:
    """Check that no forbidden mesh axis moves from one axis of an array to another.

    Args:
      name: the operation.
      natural: the mesh axes that split each axis of the result if nothing is communicated.
      spec: how the result is split.

    Raises:
      ForbiddenCollectiveError: if one does.
    """
    for axis in no_collectives.value:
        before = [i for i, names in enumerate(natural) if axis in names]
        after = [i for i, entry in enumerate(spec.partitions) if axis in axes_of(entry)]
        if before and after and before != after:
            raise _refusal(name, axis, f"moves it from axes {before} to axes {after} of an array")


def check_sums(name: object, summed: Iterable[Hashable], spec: PartitionSpec) -> None:
    """Check that sums along forbidden mesh axes stay unreduced: each device keeps its summand.

    Args:
      name: the operation.
      summed: the mesh axes along which a sum is taken.
      spec: how the result is split.

    Raises:
      ForbiddenCollectiveError: if one is added up.
    """
    forbidden = no_collectives.value
    if not forbidden:
        return
    for axis in summed:
        if axis in forbidden and axis not in spec.unreduced:
            raise _refusal(name, axis, "adds up along it: request a result unreduced along it")


def _specs(avals: Iterable[AbstractValue]) -> list[PartitionSpec]:
    return [aval.spec for aval in avals if isinstance(aval, ShapedArray) and aval.spec is not None]


def _splitting(spec: PartitionSpec) -> set[Hashable]:
    return {name for entry in spec.partitions for name in axes_of(entry)}
