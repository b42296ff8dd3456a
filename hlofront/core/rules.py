"""The rule tables: one mapping per question that an interpreter asks of a primitive."""

from collections.abc import Callable
from typing import Any

from hlofront.base.errors import NoRuleError
from hlofront.core.primitive import Primitive


class RuleTable(dict[Primitive, Callable[..., Any]]):
    """One rule per primitive: `@jvp(sin_p)` registers, `jvp[sin_p]` finds."""

    def __init__(self, name: str, home: str, question: str):
        super().__init__()
        self.name = name
        self.home = home
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
        raise NoRuleError(
            f"primitive '{primitive}' has no {self.name} rule: "
            f"add @{self.name}({primitive}_p) in {self.home}"
        )

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return id(self)


class LoweringTable(RuleTable):
    """The same, where a rule may be for one platform: `@lower(sin_p, platform="tpu")`.

    Those in `on_platform` go before the general ones.
    """

    def __init__(self, name: str, home: str, question: str):
        super().__init__(name, home, question)
        self.on_platform: dict[tuple[Primitive, str], Callable[..., Any]] = {}

    def __call__(
        self, *primitives: Primitive, platform: str | None = None
    ) -> Callable[[Callable[..., Any]], Any]:
        if platform is None:
            return super().__call__(*primitives)
        if platform not in _PLATFORMS:
            raise ValueError(
                f"a rule is for one of the platforms {', '.join(_PLATFORMS)}: got {platform!r}"
            )

        def register(rule: Callable[..., Any]) -> Callable[..., Any]:
            for primitive in primitives:
                for name in _PLATFORMS[platform]:
                    self.on_platform[primitive, name] = rule
                if not getattr(rule, "__module__", "").startswith("hlofront."):
                    self.foreign.add(primitive)
            return rule

        return register

    def for_platform(self, primitive: Primitive, platform: str) -> Callable[..., Any]:
        """The rule of a primitive for a platform, or its general one."""
        return self.on_platform.get((primitive, platform)) or self[primitive]


# What programs can be lowered for; a rule for "gpu" is for both of its kinds.
_PLATFORMS = {
    **{name: (name,) for name in ("cpu", "cuda", "rocm", "tpu", "oneapi")},
    "gpu": ("cuda", "rocm"),
}
_PRIMITIVES = "the file of hlofront/primitives that defines it"

infer = RuleTable("infer", _PRIMITIVES, "(*avals, **params) -> aval, or list of avals")
jvp = RuleTable("jvp", _PRIMITIVES, "(primals, tangents, **params) -> primal, tangent")
transpose = RuleTable("transpose", _PRIMITIVES, "(cotangent, *inputs, **params) -> cotangents")
batch = RuleTable("batch", _PRIMITIVES, "(values, axes, **params) -> value, axis")
batch_with_axis = RuleTable(
    "batch_with_axis",
    "hlofront/higher_order",
    "(axis data, values, axes, **params) -> values, axes; of operations that hold programs",
)
partial_eval = RuleTable(
    "partial_eval",
    "hlofront/higher_order",
    "(unknown inputs, equation) -> known equation, unknown equation, unknown outputs, residuals",
)
lower = LoweringTable("lower", "hlofront/lowering", "(build, *values, **params) -> value or values")
effects = RuleTable("effects", _PRIMITIVES, "(*avals, **params) -> the effects it has")
staged = RuleTable(
    "staged", "hlofront/higher_order", "(trace, *args, **params) -> results, written down"
)
run = RuleTable("run", "hlofront/runtime", "(*values, **params) -> values, where not compiled")
show = RuleTable("show", "hlofront/core/print.py", "(equation, context) -> its text")
simplify = RuleTable(
    "simplify", "hlofront/higher_order", "(used outputs, equation) -> used inputs, equation"
)


def get_primitive_transpose(p: Primitive) -> Callable[..., Any]:
    """The transpose rule of a primitive; NoRuleError if it has none."""
    return transpose[p]
