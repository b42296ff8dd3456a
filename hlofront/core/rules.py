"""The rule tables: one mapping per question that an interpreter asks of a primitive."""

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from hlofront.base.errors import NoRuleError, missing_rule


class Primitive(Hashable, Protocol):
    """What the tables need of a primitive, whose class refers to them."""

    name: str


class RuleTable(dict[Primitive, Callable[..., Any]]):
    """One rule per primitive: `@jvp(sin_p)` registers, `jvp[sin_p]` finds."""

    def __init__(self, name: str, home: str, question: str, kind: str = ""):
        super().__init__()
        self.name = name
        self.home = home
        # What JAX calls such a rule where one is missing.
        self.kind = kind or f"The {name} rule"
        self.__doc__ = question
        # Those whose rule is not ours: nothing is known of when it changes.
        self.foreign: set[Primitive] = set()

    def __setitem__(self, primitive: Primitive, rule: Callable[..., Any]) -> None:
        if not getattr(rule, "__module__", "").startswith("hlofront."):
            self.foreign.add(primitive)
        super().__setitem__(primitive, rule)

    def __call__(self, *primitives: Primitive) -> Callable[[Callable[..., Any]], Any]:
        def register(rule: Callable[..., Any]) -> Callable[..., Any]:
            # Rules are written `def _`; tracebacks read `in cumsum_batch`.
            if rule.__name__ == "_":
                name = f"{primitives[0].name}_{self.name}"
                rule.__name__ = name
                rule.__code__ = rule.__code__.replace(co_name=name, co_qualname=name)
            for primitive in primitives:
                if primitive in self:
                    raise ValueError(f"the {self.name} rule of {primitive} is given twice")
                self[primitive] = rule
            return rule

        return register

    def __missing__(self, primitive: Primitive) -> Callable[..., Any]:
        raise missing_rule(primitive.name, self.name, self.home, self.kind)

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return id(self)


class LoweringTable(RuleTable):
    """The same, where a rule may be for one platform: `@lower(sin_p, platform="tpu")`.

    Those in `on_platform` go before the general ones. A general rule that asks which platform it
    is for says `platform="each"`: programs for several platforms are then told apart before it.
    """

    def __init__(self, name: str, home: str, question: str, kind: str = ""):
        super().__init__(name, home, question, kind)
        self.on_platform: dict[tuple[Primitive, str], Callable[..., Any]] = {}
        # Those that have rules for one platform.
        self.on_some: set[Primitive] = set()
        # Those whose general rule asks for the platform.
        self.on_each: set[Primitive] = set()

    def __call__(
        self, *primitives: Primitive, platform: str | None = None
    ) -> Callable[[Callable[..., Any]], Any]:
        if platform == "each":
            self.on_each.update(primitives)
        if platform in (None, "each"):
            return super().__call__(*primitives)
        if platform not in _PLATFORMS:
            raise ValueError(
                f"a rule is for one of the platforms {', '.join(_PLATFORMS)}, or for each: got "
                f"{platform!r}"
            )

        def register(rule: Callable[..., Any]) -> Callable[..., Any]:
            self.on_some.update(primitives)
            for primitive in primitives:
                for name in _PLATFORMS[platform]:
                    self.on_platform[primitive, name] = rule
                if not getattr(rule, "__module__", "").startswith("hlofront."):
                    self.foreign.add(primitive)
            return rule

        return register

    def for_platform(self, primitive: Primitive, platform: str) -> Callable[..., Any]:
        """The rule of a primitive for a platform, or its general one.

        Raises:
          NoRuleError: if there is neither.
        """
        rule = self.on_platform.get((primitive, platform)) or self.get(primitive)
        if rule is None and primitive in self.on_some:
            there = sorted(name for each, name in self.on_platform if each is primitive)
            raise NoRuleError(
                f"{primitive} cannot be lowered for {platform}, only for {', '.join(there)}: "
                "compute it there, as on the operands that hlofront.device_put(x, "
                f"hlofront.devices({there[0]!r})[0]) gives, or add @{self.name}({primitive}_p, "
                f"platform={platform!r}) in {self.home}"
            )
        return rule or self[primitive]

    def for_platforms(
        self, primitive: Primitive, platforms: tuple[str, ...]
    ) -> list[tuple[Callable[..., Any], tuple[str, ...]]]:
        """The rules for these platforms, each with those that it is lowered for at once.

        The general rule is for all that have none of their own, unless it asks which one it is.
        """
        if primitive not in self.on_some and primitive not in self.on_each:
            return [(self[primitive], platforms)]
        groups: list[tuple[Callable[..., Any], tuple[str, ...]]] = []
        general: list[str] = []
        for platform in platforms:
            rule = self.for_platform(primitive, platform)
            if primitive in self.on_each or (primitive, platform) in self.on_platform:
                groups.append((rule, (platform,)))
            else:
                general.append(platform)
        if general:
            groups.append((self[primitive], tuple(general)))
        return groups


class AxisNameRules:
    """Registers batch rules that take the size and the name of the axis as arguments of their own.

    `table[primitive] = rule` makes `rule(axis_size, axis_name, None, values, axes, **params)` the
    rule of the primitive. JAX had the type of the interpreter in the third place.
    """

    def __init__(self, table: RuleTable):
        self._table = table

    def __setitem__(self, primitive: Primitive, rule: Callable[..., Any]) -> None:
        def with_axis_data(axis: Any, values: Any, axes: Any, **params: Any) -> Any:
            return rule(axis.size, axis.name, None, values, axes, **params)

        self._table[primitive] = with_axis_data
        self._table.foreign.add(primitive)

    def __delitem__(self, primitive: Primitive) -> None:
        del self._table[primitive]

    def __contains__(self, primitive: Primitive) -> bool:
        return primitive in self._table


# What programs can be lowered for; a rule for "gpu" is for both of its kinds.
_PLATFORMS = {
    **{name: (name,) for name in ("cpu", "cuda", "rocm", "tpu", "oneapi")},
    "gpu": ("cuda", "rocm"),
}
_PRIMITIVES = "the file of hlofront/primitives that defines it"

infer = RuleTable(
    "infer",
    _PRIMITIVES,
    "(*avals, **params) -> aval, or list of avals",
    "Abstract evaluation",
)
jvp = RuleTable(
    "jvp",
    _PRIMITIVES,
    "(primals, tangents, **params) -> primal, tangent",
    "Differentiation rule",
)
transpose = RuleTable(
    "transpose",
    _PRIMITIVES,
    "(cotangent, *inputs, **params) -> cotangents",
    "Transpose rule (for reverse-mode differentiation)",
)
batch = RuleTable("batch", _PRIMITIVES, "(values, axes, **params) -> value, axis", "Batching rule")
batch_with_axis = RuleTable(
    "batch_with_axis",
    "hlofront/higher_order",
    "(axis data, values, axes, **params) -> values, axes; of operations that hold programs",
    "Batching rule",
)
batch_with_axis_name = AxisNameRules(batch_with_axis)
batch_with_trace = RuleTable(
    "batch_with_trace",
    "hlofront/higher_order",
    "(batch trace, values, axes, **params) -> values, axes; of calls of functions, which may close "
    "over batched values",
    "Batching rule",
)
partial_eval = RuleTable(
    "partial_eval",
    "hlofront/higher_order",
    "(unknown inputs, equation) -> known equation, unknown equation, unknown outputs, residuals",
)
lower = LoweringTable(
    "lower",
    "hlofront/lowering",
    "(build, *values, **params) -> value or values",
    "MLIR translation rule",
)
effects = RuleTable("effects", _PRIMITIVES, "(*avals, **params) -> the effects it has")
staged = RuleTable(
    "staged", "hlofront/higher_order", "(trace, *args, **params) -> results, written down"
)
run = RuleTable(
    "run",
    "hlofront/runtime",
    "(*values, **params) -> values, where not compiled",
    "Evaluation rule",
)
show = RuleTable("show", "hlofront/core/print.py", "(equation, context) -> its text")
simplify = RuleTable(
    "simplify", "hlofront/higher_order", "(used outputs, equation) -> used inputs, equation"
)


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """The transpose rule of a primitive; NoRuleError if it has none."""
    return transpose[p]
