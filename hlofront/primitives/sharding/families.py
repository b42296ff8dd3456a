# pyright: strict
"""Families of sharding rules, for results whose axes are axes of the operands."""

from collections.abc import Callable, Hashable, Sequence

from hlofront.core.aval import Avals
from hlofront.core.primitive import Primitive
from hlofront.core.rules import Entries, sharding
from hlofront.core.sharding.sharded_types import entries_of, refusal

BATCHES_ALIKE = "the batch axes of all operands must be split the same way"


def _for_all_results(
    primitives: Sequence[Primitive], split: Callable[[str, Avals], Entries]
) -> None:
    """Register the sharding rule of operations whose results are all split the same way.

    Args:
      primitives: the operations.
      split: takes the name of an operation and the avals of its operands.
    """
    for primitive in primitives:
        name = primitive.name

        def rule(avals: Avals, results: Avals, name: str = name, **params: object) -> list[Entries]:
            return [split(name, avals)] * len(results)

        rule.__name__ = rule.__qualname__ = f"{name}_split"
        sharding(primitive)(rule)


def elementwise(*primitives: Primitive) -> None:
    """Register the sharding rule of operations whose results combine the splits of operands.

    An axis that is split in one operand may be unsplit in others. Scalars are ignored.
    """
    _for_all_results(primitives, merged)


def merged(name: str, avals: Avals) -> Entries:
    """Combine the splits of arrays of equal rank: each axis is split if it is in any of them.

    Raises:
      ShardingTypeError: if an axis is split along different mesh axes in two of them.
    """
    result: list[tuple[Hashable, ...]] = []
    for axis, column in enumerate(zip(*[entries_of(aval) for aval in avals if aval.ndim])):
        names = {entry for entry in column if entry}
        if len(names) > 1:
            raise refusal(
                name,
                avals,
                f"the operands are split differently along axis {axis}, by "
                f"{' and '.join(map(str, sorted(names, key=str)))}",
            )
        result.append(names.pop() if names else ())
    return tuple(result)


def split_alike(*primitives: Primitive) -> None:
    """Register the sharding rule of operations whose non-scalar operands must be split equally."""
    _for_all_results(primitives, common)


def common(name: str, avals: Avals) -> Entries:
    """Return the split that all arrays except scalars have in common.

    Raises:
      ShardingTypeError: if they are split in different ways.
    """
    splits = {entries_of(aval) for aval in avals if aval.ndim}
    if len(splits) > 1:
        raise refusal(name, avals, "all operands must be split the same way")
    return splits.pop() if splits else ()


def split_as_first_operand(*primitives: Primitive) -> None:
    """Register the sharding rule of operations whose results are split like the first operand.

    Sizes of results may differ from the operand's, but must still be divisible.
    """
    _for_all_results(primitives, lambda _, avals: entries_of(avals[0]))


def split_as_each_operand(*primitives: Primitive) -> None:
    """Register the sharding rule of operations whose result i is split like operand i."""

    def rule(avals: Avals, results: Avals, **_: object) -> list[Entries]:
        return list(map(entries_of, avals))

    sharding(*primitives)(rule)


def reduced(*primitives: Primitive) -> None:
    """Register the sharding rule of reductions over the axes in their parameter `axes`."""

    def rule(avals: Avals, results: Avals, *, axes: Sequence[int], **_: object) -> list[Entries]:
        return [without(entries_of(avals[0]), axes)]

    sharding(*primitives)(rule)


def without(entries: Entries, axes: Sequence[int]) -> Entries:
    """Return a split without the entries of some axes."""
    return tuple([entry for axis, entry in enumerate(entries) if axis not in axes])


def need_unsplit(name: str, avals: Avals, axes: Sequence[int], operand: int = 0) -> None:
    """Raise ShardingTypeError if an operand is split along any of these axes.

    Args:
      name: the operation's name.
      avals: the avals of the operands.
      axes: the axes, which are not negative.
      operand: the operand's position.
    """
    entries = entries_of(avals[operand])
    split = [axis for axis in axes if entries[axis]]
    if split:
        which = f"operand {operand}" if len(avals) > 1 else "the operand"
        raise refusal(
            name,
            avals,
            f"{which} must not be split along axis {split[0]}, as it is by {entries[split[0]]}",
        )


def along_batches(primitive: Primitive, ranks: Sequence[int]) -> None:
    """Register the sharding rule of an operation that treats its leading axes as batches.

    Args:
      primitive: the operation.
      ranks: per operand the number of trailing axes that are not batch axes; these may not be
        split. The other axes are split the same way in all operands and in the results.
    """

    def rule(avals: Avals, results: Avals, **_: object) -> list[Entries]:
        batches: set[Entries] = set()
        for operand, (aval, rank) in enumerate(zip(avals, ranks, strict=True)):
            first = aval.ndim - rank
            need_unsplit(primitive.name, avals, range(first, aval.ndim), operand)
            batches.add(entries_of(aval)[:first])
        if len(batches) > 1:
            raise refusal(primitive.name, avals, BATCHES_ALIKE)
        batch = batches.pop()
        return [batch + ((),) * (result.ndim - len(batch)) for result in results]

    rule.__name__ = rule.__qualname__ = f"{primitive.name}_split"
    sharding(primitive)(rule)
