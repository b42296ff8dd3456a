"""The places of a program at which an operation needs a value in another split than it has."""

import math
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from hlofront.bridge.mlir import Value, Values, ir
from hlofront.inspect.resharding.propagation import (
    CONSTRAINTS,
    MANUAL,
    AxisSplit,
    Origin,
    Propagated,
    Rule,
    main_of,
    mark_of,
    operations_of,
    place_of,
    place_of_call,
    rule_of,
    splits_in,
)

Kind = Literal["gather", "move"]
# Operations whose results every device makes on its own.
_MADE = ("sdy.constant", "stablehlo.constant", "stablehlo.iota", "stablehlo.partition_id")
_CONTROL_FLOW = (
    "stablehlo.case",
    "stablehlo.if",
    "stablehlo.optimization_barrier",
    "stablehlo.while",
)
# HLO's names of MLIR's types.
_COMPLEX = {"complex<f32>": "c64", "complex<f64>": "c128"}
# The number of operations that are searched for the cause of a split.
_FAR = 300


class Cause(NamedTuple):
    """What the user wrote that splits a value: a sharding constraint, or an argument.

    Attributes:
      number: the constraint's number in the module's order, or the argument's.
      origin: the constraint; None for an argument.
      argument: the name of the argument.
      split: how it splits the value.
    """

    number: int
    origin: Origin | None
    argument: str | None
    split: AxisSplit

    @property
    def is_constraint(self) -> bool:
        """Whether the cause is a sharding constraint."""
        return self.argument is None


class ReshardPlace(NamedTuple):
    """A value that one operation makes with a split and another needs with a different one.

    Attributes:
      value: the operation that makes the value; None if it is not known.
      argument: the name of the argument if the value is one.
      type: the type of the whole value, such as "f32[64,256]".
      before, after: the splits.
      kind: "gather" if each device needs more of the value, "move" if it needs other parts.
      needed_by: the operation that needs it; None for a result of the program.
      received: the bytes that a device receives at least.
      made_so, needed_so: the causes of the splits before and after.
    """

    value: Origin | None
    argument: str | None
    type: str
    before: AxisSplit
    after: AxisSplit
    kind: Kind
    needed_by: Origin | None
    received: int
    made_so: Cause | None
    needed_so: Cause | None


class Places:
    """The search for places in a program that Shardy has split.

    Args:
      program: the program.
    """

    def __init__(self, program: Propagated):
        self.program = program
        self.main = main_of(program.module)
        self.constraints = [
            operation
            for operation in operations_of(self.main)
            if operation.name in CONSTRAINTS and "sharding" in operation.attributes
        ]
        block = self.main.regions[0].blocks[0]
        attributes = self.main.attributes
        given = attributes["arg_attrs"] if "arg_attrs" in attributes else ()
        wholes = [AxisSplit(((),) * _rank(value)) for value in block.arguments]
        self.arguments = [
            next(iter(splits_in(given[i]) if i < len(given) else ()), whole)
            for i, whole in enumerate(wholes)
        ]
        self.results = list(attributes["res_attrs"]) if "res_attrs" in attributes else []

    def found(self) -> list[ReshardPlace]:
        """Return the places, in the program's order."""
        return list(self._in_block(self.main))

    def _in_block(self, parent: ir.Operation) -> Iterator[ReshardPlace]:
        for region in parent.regions:
            for block in region.blocks:
                for each in block.operations:
                    operation = each.operation
                    yield from self._of_operation(operation, parent)
                    # Bodies of shard_map compute with the shards themselves.
                    if operation.name != MANUAL:
                        yield from self._in_block(operation)

    def _of_operation(
        self, operation: ir.Operation, parent: ir.Operation
    ) -> Iterator[ReshardPlace]:
        for value, after in zip(operation.operands, self._needed(operation, parent), strict=False):
            if after is None or not _rank(value):
                continue
            before = self.split_of(value)
            kind = _kind(before, after)
            if kind is not None and not _is_made_anywhere(value):
                yield self._place(operation, value, before, after, kind)

    # ---- splits

    def split_of(self, value: Value) -> AxisSplit:
        """Return how a value is split."""
        whole = AxisSplit(((),) * _rank(value))
        if isinstance(value, ir.BlockArgument):
            owner = value.owner.owner
            if owner == self.main:
                return self.arguments[value.arg_number]
            # Functions of reductions, sorts and scatters have scalars.
            splits = _results_of(owner) if owner.name in _CONTROL_FLOW else []
            return splits[value.arg_number] if value.arg_number < len(splits) else whole
        result = ir.OpResult(value)
        splits = _results_of(result.owner)
        split = splits[result.result_number] if result.result_number < len(splits) else whole
        # What callbacks return is on one device: its sharding has no dimensions.
        return split if len(split.axes) == len(whole.axes) else whole

    def _needed(self, operation: ir.Operation, parent: ir.Operation) -> Sequence[AxisSplit | None]:
        """Return the splits that an operation needs of its operands; None if any will do."""
        name = operation.name
        if name in CONSTRAINTS:
            return _results_of(operation)
        if name == MANUAL:
            return splits_in(operation.attributes["in_shardings"])
        if name == "func.return":
            found = [splits_in(each) for each in self.results]
            return [splits[0] if splits else None for splits in found]
        if name == "stablehlo.return":
            return _results_of(parent) if parent.name in _CONTROL_FLOW else ()
        rule = rule_of(operation)
        if rule is None:
            same = len(operation.operands) == len(operation.results)
            return _results_of(operation) if same and name in _CONTROL_FLOW else ()
        return self._by_rule(operation, rule)

    def _by_rule(self, operation: ir.Operation, rule: Rule) -> list[AxisSplit | None]:
        """Return the splits of operands that agree with those of results, and with each other."""
        mesh = self.program.mesh
        axes: dict[str, tuple[str, ...]] = dict.fromkeys(rule.whole, ())
        for value, mapping in zip(operation.results, rule.results, strict=False):
            for factor, along in _by_factor(self.split_of(value), mapping, rule, mesh).items():
                axes.setdefault(factor, along)
        # Dimensions that are summed over are split as in the largest operand.
        pairs = list(zip(operation.operands, rule.operands, strict=False))
        taken = {axis for along in axes.values() for axis in along}
        for value, mapping in sorted(pairs, key=lambda pair: -_byte_count(pair[0])):
            for factor, along in _by_factor(self.split_of(value), mapping, rule, mesh).items():
                if factor not in axes:
                    axes[factor] = tuple(axis for axis in along if axis not in taken)
                    taken.update(axes[factor])
        return [
            AxisSplit(
                tuple(tuple(a for f in factors for a in axes.get(f, ())) for factors in mapping)
            )
            for _, mapping in pairs
        ]

    # ---- causes

    def _place(
        self, operation: ir.Operation, value: Value, before: AxisSplit, after: AxisSplit, kind: Kind
    ) -> ReshardPlace:
        mesh = self.program.mesh
        whole = _byte_count(value)
        shards = [whole // max(1, _shard_count(split, mesh)) for split in (before, after)]
        argument = self._argument(value)
        is_input = isinstance(value, ir.BlockArgument)
        maker = value.owner.owner if is_input else ir.OpResult(value).owner
        return ReshardPlace(
            None if argument else self._origin(maker),
            argument,
            _type_text(value),
            before,
            after,
            kind,
            self._origin(operation),
            shards[1] - shards[0] if kind == "gather" else shards[1],
            self._cause_of_value(value),
            # The needs of a shard_map are its own in_specs.
            None if operation.name == MANUAL else self._cause_of_use(operation, value),
        )

    def _argument(self, value: Value) -> str | None:
        if not isinstance(value, ir.BlockArgument) or value.owner.owner != self.main:
            return None
        # Tokens and large constants come first.
        names = self.program.arguments
        number = value.arg_number - (len(self.arguments) - len(names))
        return names[number] if number >= 0 else None

    def _origin(self, operation: ir.Operation) -> Origin | None:
        number = self.constraint_mark(operation)
        number = mark_of(operation) if number is None else number
        if number is not None:
            return self.program.origins[number]
        # What a lowering rule emits before its last operation has no mark.
        for result in operation.results:
            for use in result.uses:
                mark = mark_of(use.owner.operation)
                if mark is not None:
                    return self.program.origins[mark]
        return None

    def constraint_mark(self, operation: ir.Operation) -> int | None:
        """Return the number of the equation of a sharding constraint, or of a shard_map."""
        if operation.name == MANUAL:
            return self.program.constraints.get(place_of_call(operation))
        if operation.name not in CONSTRAINTS:
            return None
        return self.program.constraints.get(place_of(operation.results[0]))

    def _cause(self, value: Value) -> Cause | None:
        """Return a value as a cause, if it is an argument or the result of a constraint."""
        argument = self._argument(value)
        if argument is not None:
            number = ir.BlockArgument(value).arg_number
            split = self.arguments[number]
            return Cause(number, None, argument, split) if split.all_axes() else None
        if isinstance(value, ir.BlockArgument):
            return None
        operation = ir.OpResult(value).owner
        mark = self.constraint_mark(operation)
        if mark is None:
            return None
        return Cause(mark, self.program.origins[mark], None, self.split_of(value))

    def _cause_of_value(self, value: Value) -> Cause | None:
        """Return what splits a value: the nearest constraint or argument that it depends on."""
        return self._nearest([value], _operands_of)

    def _cause_of_use(self, operation: ir.Operation, value: Value) -> Cause | None:
        """Return what splits the other values of an operation: its results', else its operands'."""
        results = list(operation.results)
        later = self._nearest(results, _results_of_uses)
        if later is not None:
            return later
        return self._nearest([v for v in operation.operands if v != value], _operands_of)

    def _nearest(
        self, start: Values, following: Callable[[Value], Iterable[Value]]
    ) -> Cause | None:
        waiting, seen = deque(start), 0
        known: set[Value] = set()
        while waiting and seen < _FAR:
            value = waiting.popleft()
            if value in known:
                continue
            known.add(value)
            seen += 1
            cause = self._cause(value)
            if cause is not None:
                return cause
            waiting.extend(following(value))
        return None


def _operands_of(value: Value) -> list[Value]:
    """Return the values that a value is computed from, including those of a loop's last step."""
    if not isinstance(value, ir.BlockArgument):
        return list(ir.OpResult(value).owner.operands)
    loop, number = value.owner.owner, value.arg_number
    if loop.name != "stablehlo.while":
        return []
    *_, last = loop.regions[1].blocks[0].operations
    return [loop.operands[number], last.operation.operands[number]]


def _results_of_uses(value: Value) -> list[Value]:
    return [result for use in value.uses for result in use.owner.operation.results]


def _results_of(operation: ir.Operation) -> list[AxisSplit]:
    """Return the splits of an operation's results; there may be fewer splits than results."""
    for name in ("sdy.sharding", "sharding", "out_shardings"):
        if name in operation.attributes:
            return splits_in(operation.attributes[name])
    return []


def _is_made_anywhere(value: Value) -> bool:
    """Return whether each device makes a value on its own, so that any split is free."""
    if isinstance(value, ir.BlockArgument):
        return False
    maker = ir.OpResult(value).owner
    if maker.name in CONSTRAINTS:
        return _is_made_anywhere(maker.operands[0])
    if maker.name == "stablehlo.broadcast_in_dim" and not _rank(maker.operands[0]):
        return True
    return maker.name in _MADE


def _kind(before: AxisSplit, after: AxisSplit) -> Kind | None:
    """Return how devices exchange a value to change its split; None if they need not."""
    pairs = list(zip(before.axes, after.axes, strict=True))
    if all(new[: len(old)] == old for old, new in pairs):
        return None
    return "gather" if all(old[: len(new)] == new for old, new in pairs) else "move"


def _by_factor(
    split: AxisSplit, mapping: Sequence[Sequence[str]], rule: Rule, mesh: dict[str, int]
) -> dict[str, tuple[str, ...]]:
    """Return the axes that split each factor of a value's dimensions.

    A dimension of several factors, as in a reshape, is split along the first factors first.
    """
    found: dict[str, tuple[str, ...]] = {}
    for along, factors in zip(split.axes, mapping, strict=True):
        axes = list(along)
        for factor in factors:
            mine: list[str] = []
            room = rule.sizes.get(factor, 1)
            is_last = factor == factors[-1]
            while axes and (is_last or _size(axes[0], mesh) <= room):
                room //= _size(axes[0], mesh)
                mine.append(axes.pop(0))
            found[factor] = tuple(mine)
    return found


def _size(axis: str, mesh: dict[str, int]) -> int:
    """Return the size of a mesh axis, or of a part of one, such as "x:(2)4"."""
    name, _, part = axis.partition(":")
    return int(part.partition(")")[2]) if part else mesh[name]


def _shard_count(split: AxisSplit, mesh: dict[str, int]) -> int:
    return math.prod(_size(axis, mesh) for axis in split.all_axes())


def _type_of(value: Value) -> ir.RankedTensorType | None:
    try:
        return ir.RankedTensorType(value.type)
    except ValueError:  # A token, or a tuple.
        return None


def _rank(value: Value) -> int:
    kind = _type_of(value)
    return 0 if kind is None else kind.rank


def _type_text(value: Value) -> str:
    kind = _type_of(value)
    assert kind is not None
    element = _COMPLEX.get(str(kind.element_type), str(kind.element_type))
    return f"{element}[{','.join(map(str, kind.shape))}]"


def _byte_count(value: Value) -> int:
    kind = _type_of(value)
    if kind is None:
        return 0
    element = str(kind.element_type)
    bits = re.search(r"\d+", _COMPLEX.get(element, element))
    return math.prod(kind.shape) * (int(bits[0]) if bits else 32) // 8
