"""Shardy's rules for custom operations: which axes of operands and results are split together."""

# pyright: strict

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Shape

# The marker of leading axes in an ArrayMapping: "..." in the text of a rule.
BATCHING = "…"

_ELLIPSIS = "..."
_FACTOR = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TOKEN = re.compile(r"\s*(?:(\.\.\.\w*)|([A-Za-z]\w*)|([()]))", re.ASCII)


class CompoundFactor(tuple[str, ...]):
    """The factors whose product is the size of one axis, the slowest first.

    Example::

        CompoundFactor("rows", "columns")  # "(rows columns)" in the text of a rule

    Args:
      *factors: the names of two factors or more.

    Raises:
      ValueError: if there are fewer than two, or one is not the name of a factor.
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> Self:
        if len(factors) < 2:
            raise ValueError(f"a compound factor has at least two factors: got {factors}")
        for factor in factors:
            _check_name(factor, "a compound factor")
        return super().__new__(cls, factors)


class ArrayMapping(tuple[str | CompoundFactor, ...]):
    """The factors of an operand or a result, one entry per axis.

    Example::

        ArrayMapping(BATCHING, "i", CompoundFactor("j", "k"))  # "... i (j k)"

    Args:
      *dim_mappings: for each axis the name of a factor or a CompoundFactor. The first may be
        BATCHING, or BATCHING and a name, for any number of leading axes.

    Raises:
      ValueError: if an entry is none of these.
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: str | CompoundFactor) -> Self:
        for position, entry in enumerate(dim_mappings):
            if isinstance(entry, CompoundFactor):
                continue
            if isinstance(entry, str) and entry.startswith(BATCHING):  # pyright: ignore[reportUnnecessaryIsInstance]
                if position:
                    raise ValueError(
                        f"leading axes come first in an ArrayMapping: got {dim_mappings}"
                    )
            else:
                _check_name(entry, "an ArrayMapping, which also takes CompoundFactors")
        return super().__new__(cls, dim_mappings)


def _check_name(name: object, owner: str) -> None:
    if not isinstance(name, str) or not _FACTOR.fullmatch(name):
        raise ValueError(
            f"the entries of {owner} are names of factors, which consist of letters, digits and "
            f"underscores and begin with a letter: got {name!r}"
        )


class SdyShardingRule:
    """A rule by which Shardy propagates shardings between an operation's operands and results.

    A factor has the same size wherever it occurs, and all axes that have it are split the same way.

    Example, the rule of a matrix product, `"i k, k j -> i j"` with `reduction_factors=("k",)`::

        SdyShardingRule(
            (ArrayMapping("i", "k"), ArrayMapping("k", "j")),
            (ArrayMapping("i", "j"),),
            reduction_factors=("k",),
        )

    Args:
      operand_mappings: an ArrayMapping per operand.
      result_mappings: an ArrayMapping per result.
      reduction_factors: the factors that the operation sums or otherwise reduces over, so that its
          shards must be combined.
      need_replication_factors: the factors along which the operation cannot be split.
      permutation_factors: the factors along which the operation exchanges data between shards.
      **factor_sizes: the sizes of the factors that occur only in compound factors.

    Raises:
      TypeError: if a size is not an integer.
      ValueError: if a factor that is an axis has a size, a factor that is not an axis lacks one, or
          a factor is not in the rule or of two kinds.
    """

    __slots__ = (
        "factor_sizes",
        "need_replication_factors",
        "operand_mappings",
        "permutation_factors",
        "reduction_factors",
        "result_mappings",
    )

    def __init__(
        self,
        operand_mappings: tuple[ArrayMapping, ...],
        result_mappings: tuple[ArrayMapping, ...],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ):
        self.operand_mappings = tuple(operand_mappings)
        self.result_mappings = tuple(result_mappings)
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        self.factor_sizes = factor_sizes
        _check_sizes((*self.operand_mappings, *self.result_mappings), factor_sizes)
        self._check_special_factors()

    def _check_special_factors(self) -> None:
        factors = {f for m in (*self.operand_mappings, *self.result_mappings) for f in _factors(m)}
        kinds: dict[str, str] = {}
        for kind in _SPECIAL:
            names: object = getattr(self, kind)
            if not isinstance(names, tuple):
                raise ValueError(f"{kind} is a tuple of names of factors: got {names!r}")
            for name in getattr(self, kind):
                if name not in factors:
                    raise ValueError(
                        f"{kind} has {name!r}, which is not a factor of the rule: it has "
                        f"{sorted(factors)}"
                    )
                if name in kinds:
                    raise ValueError(
                        f"the factor {name!r} is in {kinds[name]} and again in {kind}: it can be "
                        "in one of them, once"
                    )
                kinds[name] = kind

    def __str__(self) -> str:
        special = [f" {kind}={names}" for kind in _SPECIAL if (names := getattr(self, kind))]
        return (
            f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, "
            f"{self.factor_sizes}{''.join(special)})"
        )

    def sized(
        self, operand_shapes: Sequence[Shape], result_shapes: Sequence[Shape]
    ) -> "SizedShardingRule":
        """Return the rule for operands and results of these shapes.

        Raises:
          ValueError: if the numbers of operands, results or axes are not those of the rule, if the
            size of a compound factor is not that of its axis, or if a reduced factor is in a
            result.
        """
        sizing = _Sizing(self.factor_sizes)
        mappings = self.operand_mappings, self.result_mappings
        shapes_of_values = operand_shapes, result_shapes
        for what, own, shapes in zip(
            ("operand", "result"), mappings, shapes_of_values, strict=True
        ):
            if len(own) != len(shapes):
                raise ValueError(
                    f"the sharding rule has {len(own)} {what}s, but the operation has "
                    f"{len(shapes)} {what}s"
                )
        values = [
            _SizedValue(f"{what} {number}", mapping, shape)
            for what, own, shapes in zip(
                ("operand", "result"), mappings, shapes_of_values, strict=True
            )
            for number, (mapping, shape) in enumerate(zip(own, shapes, strict=True))
        ]
        for value in values:
            sizing.read(value)
        for value in values:
            sizing.check(value)
        axes = [sizing.factors_of(value) for value in values]
        count = len(operand_shapes)
        left = {factor for value in axes[count:] for factors in value for factor in factors}
        if wrong := sorted(left.intersection(self.reduction_factors)):
            raise ValueError(
                f"the sharding rule reduces over {wrong[0]!r}, which is a factor of a result: "
                "results keep no factor of reduction_factors"
            )
        return SizedShardingRule(
            axes[:count],
            axes[count:],
            sizing.in_order(axes),
            {kind: getattr(self, kind) for kind in _SPECIAL},
        )


_SPECIAL = ("reduction_factors", "need_replication_factors", "permutation_factors")


class SizedShardingRule(NamedTuple):
    """A sharding rule for operands and results of known shapes.

    Attributes:
      operands, results: per value and axis, the names of the axis's factors.
      sizes: the size of each factor, in the order in which they occur.
      special: the factors of each special kind, by the name of the kind.
    """

    operands: list[list[tuple[str, ...]]]
    results: list[list[tuple[str, ...]]]
    sizes: dict[str, int]
    special: dict[str, tuple[str, ...]]


class _SizedValue(NamedTuple):
    """An operand or a result: its name for messages, its mapping and its shape."""

    name: str
    mapping: ArrayMapping
    shape: Shape

    @property
    def group(self) -> str | None:
        """The marker of its leading axes, or None if the mapping has none."""
        first = self.mapping[0] if self.mapping else None
        return first if isinstance(first, str) and first.startswith(BATCHING) else None

    @property
    def leading(self) -> int:
        """The number of its leading axes."""
        return len(self.shape) - len(self.mapping) + 1 if self.group is not None else 0


class _Sizing:
    """The sizes of a rule's factors and groups of leading axes, read from its values."""

    def __init__(self, sizes: Mapping[str, int]):
        self._sizes = dict(sizes)
        # The number of axes of each group of leading axes.
        self._leading: dict[str, int] = {}

    def read(self, value: _SizedValue) -> None:
        """Read the sizes of a value's axes; a factor has the smallest size of its axes."""
        explicit = len(value.mapping) - (value.group is not None)
        rank = len(value.shape)
        if rank < explicit or (value.group is None and rank > explicit):
            raise ValueError(
                f"{value.name} of the sharding rule has {explicit} axes, but that of the operation "
                f"has {rank}: its shape is {value.shape}"
            )
        if value.group is not None:
            known = self._leading.setdefault(value.group, value.leading)
            if known != value.leading:
                raise ValueError(
                    f"'...' stands for {known} leading axes, but {value.name} of shape "
                    f"{value.shape} has {value.leading}: give the groups different names, as in "
                    "'...a i, ...b j -> i j'"
                )
        for factors, size in zip(self.factors_of(value), value.shape, strict=True):
            if len(factors) == 1:
                self._sizes[factors[0]] = min(size, self._sizes.get(factors[0], size))

    def factors_of(self, value: _SizedValue) -> list[tuple[str, ...]]:
        """Return the factors of each axis of a value."""
        leading = [f"{value.group}:{axis}" for axis in range(value.leading)]
        entries = [*leading, *value.mapping[value.group is not None :]]
        return [tuple(e) if isinstance(e, CompoundFactor) else (e,) for e in entries]

    def in_order(self, axes: Sequence[Sequence[tuple[str, ...]]]) -> dict[str, int]:
        """Return the sizes of factors in the order in which they occur in the values' axes.

        A factor that occurs in no value has no size.
        """
        used = dict.fromkeys(f for value in axes for factors in value for f in factors)
        return {factor: self._sizes[factor] for factor in used}

    def check(self, value: _SizedValue) -> None:
        """Raise ValueError if a factor occurs twice, or an axis is not its factors' product."""
        used = [factor for factors in self.factors_of(value) for factor in factors]
        if len(set(used)) < len(used):
            raise ValueError(
                f"{value.name} of the sharding rule has a factor twice: give its axes, "
                f"{value.mapping}, different ones"
            )
        for factors, size in zip(self.factors_of(value), value.shape, strict=True):
            product = math.prod(self._sizes[factor] for factor in factors)
            if len(factors) > 1 and product != size:
                raise ValueError(
                    f"an axis of {value.name} has size {size}, but the sizes of its factors, "
                    f"{' and '.join(f'{f}={self._sizes[f]}' for f in factors)}, make {product}"
                )


def _factors(mapping: ArrayMapping) -> Iterator[str]:
    """Yield the names of the factors in a mapping, without the markers of leading axes."""
    for entry in mapping:
        if isinstance(entry, CompoundFactor):
            yield from entry
        elif not entry.startswith(BATCHING):
            yield entry


def _check_sizes(mappings: Sequence[ArrayMapping], sizes: Mapping[str, object]) -> None:
    if not all(isinstance(size, int) for size in sizes.values()):
        raise TypeError(f"the sizes of factors are integers: got {dict(sizes)}")
    whole = {entry for mapping in mappings for entry in mapping if isinstance(entry, str)}
    used = {factor for mapping in mappings for factor in _factors(mapping)}
    for factor in sizes:
        if factor in whole:
            raise ValueError(
                f"the factor {factor!r} is an axis of its own, which has the size: leave "
                f"{factor}={sizes[factor]} out"
            )
        if factor not in used:
            raise ValueError(
                f"{factor}={sizes[factor]} is the size of no factor: the rule has {sorted(used)}"
            )
    unsized = sorted(used - whole - set(sizes))
    if unsized:
        raise ValueError(
            f"the factor {unsized[0]!r} occurs only in compound factors, so its size is required, "
            f"as in {unsized[0]}=2"
        )


# ---- rules as text -------------------------------------------------------------------------------


def sharding_rule_of(text: object, **options: Any) -> SdyShardingRule:
    """Parse the text of a rule, such as "... i k, ... k j -> ... i j".

    Operands are on the left of the arrow, results on the right, separated by commas. An entry is
    the name of a factor; two or more of them in parentheses for an axis that is their product; or,
    as the first entry, "..." for any number of leading axes, whose dots a name may follow.

    Args:
      text: the rule.
      **options: the other arguments of SdyShardingRule.

    Raises:
      TypeError: if the rule is not a string.
      ValueError: if the text is not a rule.
    """
    if not isinstance(text, str):
        raise TypeError(
            f"a sharding rule is a text such as 'i j -> i' or an SdyShardingRule: got {text!r} of "
            f"type {type(text).__name__}"
        )
    if BATCHING in text:
        raise ValueError(f"leading axes are '...' in the text of a rule: got {text!r}")
    sides = text.split("->")
    if len(sides) != 2:
        raise ValueError(f"a sharding rule has one '->', as in 'i j -> i': got {text!r}")
    operands, results = (tuple(map(_mapping, side.split(","))) for side in sides)
    return SdyShardingRule(operands, results, **options)


def _mapping(text: str) -> ArrayMapping:
    """Parse the mapping of one value, such as "... i (j k)"."""
    entries: list[str | CompoundFactor] = []
    compound: list[str] | None = None
    position = 0
    rest = text.rstrip()
    while position < len(rest):
        token = _TOKEN.match(rest, position)
        if token is None:
            raise ValueError(
                f"{rest[position:].strip()!r} is not a factor of the sharding rule: factors begin "
                "with a letter, and '...' has three dots"
            )
        position = token.end()
        dots, name, parenthesis = token.groups()
        if dots is not None:
            if entries or compound is not None:
                raise ValueError(f"'...' comes first among the axes of a value: got {text!r}")
            entries.append(BATCHING + dots.removeprefix(_ELLIPSIS))
        elif name is not None:
            (entries if compound is None else compound).append(name)
        elif parenthesis == "(":
            if compound is not None:
                raise ValueError(f"parentheses do not nest in a sharding rule: got {text!r}")
            compound = []
        else:
            if compound is None:
                raise ValueError(f"a ')' has no '(' in the sharding rule: got {text!r}")
            entries.append(CompoundFactor(*compound))
            compound = None
    if compound is not None:
        raise ValueError(f"a '(' has no ')' in the sharding rule: got {text!r}")
    return ArrayMapping(*entries)
