"""The rule tables of primitives: one table per question, such as batch, jvp and lower."""

import importlib
import inspect
from collections.abc import Callable, Hashable, Sequence
from types import FunctionType
from typing import Any, Concatenate, Generic, Protocol, TypeVar, cast

from hlofront.base.dtypes import full_name
from hlofront.base.errors import NoRuleError, missing_rule
from hlofront.base.module_names import home_of
from hlofront.base.typing import ArrayLike, ArrayLikes
from hlofront.core.aval import AbstractValue, Avals
from hlofront.core.axes import AxisData
from hlofront.core.effects import Effects
from hlofront.core.sharding.manual_axes import ManualAxisType
from hlofront.core.symbolic_zeros import BatchAxes, BatchAxis, Cotangents, Series, Tangent, Tangents


class PrimitiveLike(Hashable, Protocol):
    """A protocol of the attributes of a primitive that rule tables use.

    The class Primitive itself refers to the tables.
    """

    name: str


# ---- types of rules; `...` is the operation's parameters -----------------------------------------

# The result of an operation, or a sequence of several results.
Results = ArrayLike | ArrayLikes
# The result of a jvp rule: that of the operation, and its tangent, or those of several results.
JvpResult = tuple[Results, Tangent | Tangents]

InferRule = Callable[..., AbstractValue | Sequence[AbstractValue]]
# Per axis of an array, the names of the mesh axes that split it, outermost first.
Entries = tuple[tuple[Hashable, ...], ...]
# The first two arguments are the avals of the operands and of the results, those without a split.
ShardingRule = Callable[Concatenate[Avals, Avals, ...], Sequence[Entries]]
VaryingRule = Callable[Concatenate[Avals, ...], Sequence[ManualAxisType]]
EffectsRule = Callable[..., Effects]
JvpRule = Callable[Concatenate[ArrayLikes, Tangents, ...], JvpResult]
# The first argument is the cotangent of the result, or a list of cotangents of the results.
TransposeRule = Callable[Concatenate[Any, ...], Cotangents]
TaylorRule = Callable[
    Concatenate[ArrayLikes, Sequence[Series], ...],
    tuple[Results, Series | Sequence[Series]],
]
# A value and its batch axis, or sequences of both if the operation has several results.
BatchResult = tuple[Results, BatchAxis | BatchAxes]
# The batch axes of the operands are BatchAxes, or Sequence[int] in a rule of one operand.
AnyBatchAxes = Sequence[Any]
BatchRule = Callable[Concatenate[ArrayLikes, AnyBatchAxes, ...], BatchResult]
BatchRuleWithAxis = Callable[Concatenate[AxisData, ArrayLikes, AnyBatchAxes, ...], BatchResult]
# The first argument is a trace, whose class cannot be imported here.
BatchRuleWithTrace = Callable[Concatenate[Any, ArrayLikes, AnyBatchAxes, ...], BatchResult]
StagedRule = Callable[Concatenate[Any, ...], Results]
PartialEvalRule = Callable[[list[bool], Any], tuple[Any, Any, Sequence[bool], Sequence[Any]]]
SimplifyRule = Callable[[list[bool], Any], tuple[Sequence[bool], Any]]
# The results are Subprograms, of core/programs/subprograms.py, which imports this module.
SubprogramsRule = Callable[..., Sequence[Any]]
# The first argument is an Equation, of core/jaxpr.py.
DischargeRule = Callable[[Any, Sequence[Any]], tuple[Sequence[Any], Any]]
ShowRule = Callable[[Any, Any], Any]
# The first argument is the builder of the module, the others are MLIR values.
LoweringRule = Callable[Concatenate[Any, ...], Any]
# The argument is the builder, with the equation and its avals; the result is the equation's rule.
LoweringMatch = Callable[[Any], LoweringRule | None]
RunRule = Callable[..., Any]

Rule = TypeVar("Rule", bound=Callable[..., Any])


def _is_ours(rule: object) -> bool:
    return home_of(rule).startswith("hlofront.")


class RuleTable(dict[PrimitiveLike, Rule], Generic[Rule]):
    """A table of one rule per primitive: `@jvp(sin_p)` registers, `jvp[sin_p]` looks up."""

    def __init__(self, name: str, home: str, question: str, kind: str = ""):
        super().__init__()
        self.name = name
        self.home = home
        # JAX's name of such a rule, for the error message if one is missing.
        self.kind = kind or f"The {name} rule"
        self.__doc__ = question
        # The primitives whose rule another package registered, and may change at any time.
        self.foreign: set[PrimitiveLike] = set()

    def __setitem__(self, primitive: PrimitiveLike, rule: Rule) -> None:
        if not _is_ours(rule):
            self.foreign.add(primitive)
        super().__setitem__(primitive, rule)

    def __call__(self, *primitives: PrimitiveLike) -> Callable[[Rule], Rule]:
        def register(rule: Rule) -> Rule:
            function = cast(FunctionType, rule)
            # Rules are written `def _`; tracebacks show names such as `in cumsum_batch`.
            if function.__name__ == "_":
                name = f"{primitives[0].name}_{self.name}"
                function.__name__ = name
                function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)
            for primitive in primitives:
                self.add(primitive, rule)
            return rule

        return register

    def add(self, primitive: PrimitiveLike, rule: Rule) -> None:
        """Give a primitive its rule.

        Raises:
          ValueError: if it has one.
        """
        if primitive in self:
            raise ValueError(f"the {self.name} rule of {primitive} is given twice")
        self[primitive] = rule

    def __missing__(self, primitive: PrimitiveLike) -> Rule:
        is_foreign = primitive not in infer or primitive in infer.foreign
        by_others = _BY_OTHERS.get(self.name, "").format(primitive.name) if is_foreign else ""
        raise missing_rule(primitive.name, self.name, self.home, self.kind, by_others)

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return id(self)


class LoweringTable(RuleTable[LoweringRule]):
    """A rule table in which a rule may be for one platform: `@lower(sin_p, platform="tpu")`.

    The rules in `on_platform` precede the general ones. Where the rule depends on the equation,
    `@lower.match(sin_p, platform="cpu")` registers a function of the builder that returns a rule,
    or None to leave the equation to the other rules. A general rule that reads the platform is
    registered with `platform="each"`: a program for several platforms calls it once for each.

    The modules with rules of a primitive are imported when one of them is looked up, and before
    another package gives one, which then stands next to them or replaces them. `in` and iteration
    see what has been imported. An equation imports the modules that it needs: a module in a
    platform's folder, or whose name ends in a platform's, has rules only for that platform, and a
    module in `dtypes` only for results of its dtypes.
    """

    def __init__(self, name: str, home: str, question: str, kind: str = ""):
        super().__init__(name, home, question, kind)
        self.on_platform: dict[tuple[PrimitiveLike, str], LoweringRule] = {}
        # Asked in this order, before `on_platform`.
        self.matches: dict[tuple[PrimitiveLike, str], list[LoweringMatch]] = {}
        # The primitives that have rules for one platform.
        self.on_some: set[PrimitiveLike] = set()
        # The primitives whose general rule reads the platform.
        self.on_each: set[PrimitiveLike] = set()
        # The modules with rules that are still to be imported, by the names of primitives.
        self.modules: dict[str, list[str]] = {}
        # The names of dtypes, by modules with rules only for results of these dtypes.
        self.dtypes: dict[str, frozenset[str]] = {}
        # The names of primitives, platforms and dtypes whose modules have all been imported.
        self._loaded: set[tuple[str, tuple[str, ...], object]] = set()

    def load(self, primitive: PrimitiveLike) -> None:
        """Import the modules with rules of a primitive."""
        for module in self.modules.get(primitive.name, ()):
            importlib.import_module(module)
        self.modules.pop(primitive.name, None)

    def load_for(
        self, primitive: PrimitiveLike, platforms: tuple[str, ...], result: AbstractValue | None
    ) -> None:
        """Import the modules with rules of a primitive that concern an equation.

        Args:
          primitive: the primitive of the equation.
          platforms: the platforms for which it is lowered.
          result: the aval of its first result; None if it has none.
        """
        dtype = getattr(result, "dtype", None)
        key = primitive.name, platforms, dtype
        modules = self.modules.get(primitive.name)
        if modules is None or key in self._loaded:
            return
        name = None if dtype is None else full_name(dtype)
        left: list[str] = []
        for module in modules:
            if self._concerns(module, platforms, name):
                importlib.import_module(module)
            else:
                left.append(module)
        if left:
            self.modules[primitive.name] = left
            self._loaded.add(key)
        else:
            # Another thread may have imported them all in the meantime.
            self.modules.pop(primitive.name, None)

    def _concerns(self, module: str, platforms: tuple[str, ...], dtype: str | None) -> bool:
        """Return whether a module may have a rule for some platforms and results of a dtype."""
        folder, _, name = module.rpartition(".")
        platforms_of_module = _PLATFORMS.get(folder.rpartition(".")[2]) or _PLATFORMS.get(
            name.rpartition("_")[2]
        )
        if platforms_of_module is not None and not any(
            platform in platforms_of_module for platform in platforms
        ):
            return False
        return dtype is None or dtype in self.dtypes.get(module, (dtype,))

    def add(self, primitive: PrimitiveLike, rule: LoweringRule) -> None:
        self._load_before(primitive, rule)
        super().add(primitive, rule)

    def __setitem__(self, primitive: PrimitiveLike, rule: LoweringRule) -> None:
        self._load_before(primitive, rule)
        super().__setitem__(primitive, rule)

    def _load_before(self, primitive: PrimitiveLike, rule: LoweringRule) -> None:
        """Import the rules of a primitive before another package's one, which they would replace.

        Rules of our own are registered while they are imported.
        """
        if not _is_ours(rule):
            self.load(primitive)

    def __missing__(self, primitive: PrimitiveLike) -> LoweringRule:
        self.load(primitive)
        return self[primitive] if primitive in self else super().__missing__(primitive)

    def __call__(
        self,
        *primitives: PrimitiveLike,
        platform: str | None = None,
    ) -> Callable[[LoweringRule], LoweringRule]:
        if platform == "each":
            self.on_each.update(primitives)
        if platform in (None, "each"):
            return super().__call__(*primitives)
        names = _platforms_of(platform)

        def register(rule: LoweringRule) -> LoweringRule:
            for primitive in primitives:
                self._load_before(primitive, rule)
                self.on_some.add(primitive)
                for name in names:
                    self.on_platform[primitive, name] = rule
                if not _is_ours(rule):
                    self.foreign.add(primitive)
                    for name in names:
                        self.matches.pop((primitive, name), None)
            return rule

        return register

    def match(
        self, *primitives: PrimitiveLike, platform: str, first: bool = False
    ) -> Callable[[LoweringMatch], LoweringMatch]:
        """Return a decorator of a function that chooses the rule of an equation on a platform.

        The functions are called with the builder until one returns a rule; those registered as
        `first` come before the others. If all return None, the platform's rule or the general one
        applies.
        """
        names = _platforms_of(platform)

        def register(match: LoweringMatch) -> LoweringMatch:
            for primitive in primitives:
                self.on_some.add(primitive)
                for name in names:
                    matches = self.matches.setdefault((primitive, name), [])
                    matches.insert(0 if first else len(matches), match)
            return match

        return register

    def for_platform(
        self, primitive: PrimitiveLike, platform: str, builder: object
    ) -> LoweringRule:
        """Return the lowering rule for a platform of the builder's equation, or the general one.

        The modules with its rules are imported, see `load_for`.

        Raises:
          NoRuleError: if there is neither.
        """
        if primitive.name in self.modules:
            self.load_for(primitive, (platform,), _result_of(builder))
        if primitive not in self.on_some:
            return self[primitive]
        rule = self._own_rule(primitive, platform, builder) or self.get(primitive)
        if rule is None:
            platforms = sorted(name for each, name in self.on_platform if each is primitive)
            raise NoRuleError(
                f"{primitive} cannot be lowered for {platform}, only for {', '.join(platforms)}: "
                "compute it there, as on the operands that hlofront.device_put(x, "
                f"hlofront.devices({platforms[0]!r})[0]) gives, or add @{self.name}({primitive}_p, "
                f"platform={platform!r}) in {self.home}"
            )
        return rule

    def _own_rule(
        self, primitive: PrimitiveLike, platform: str, builder: object
    ) -> LoweringRule | None:
        """Return the rule that is only for this platform; None if the general rule applies."""
        for match in self.matches.get((primitive, platform), ()):
            rule = match(builder)
            if rule is not None:
                return rule
        return self.on_platform.get((primitive, platform))

    def for_platforms(
        self, primitive: PrimitiveLike, platforms: tuple[str, ...], builder: object
    ) -> list[tuple[LoweringRule, tuple[str, ...]]]:
        """Return pairs of a lowering rule and the platforms that it lowers in one call.

        The general rule is called once for all platforms without their own rule, unless it is
        registered to be called for each platform. The modules with its rules are imported, see
        `load_for`.
        """
        if primitive.name in self.modules:
            self.load_for(primitive, platforms, _result_of(builder))
        if primitive not in self.on_some and primitive not in self.on_each:
            return [(self[primitive], platforms)]
        groups: list[tuple[LoweringRule, tuple[str, ...]]] = []
        general: list[str] = []
        for platform in platforms:
            rule = self.for_platform(primitive, platform, builder)
            if rule is self.get(primitive) and primitive not in self.on_each:
                general.append(platform)
            else:
                groups.append((rule, (platform,)))
        if general:
            groups.append((self[primitive], tuple(general)))
        return groups


def _platforms_of(platform: str) -> tuple[str, ...]:
    """Return the names of the platforms that a rule for `platform` is for.

    Raises:
      ValueError: if it is not the name of one.
    """
    if platform not in _PLATFORMS:
        raise ValueError(
            f"a rule is for one of the platforms {', '.join(_PLATFORMS)}, or for each: got "
            f"{platform!r}"
        )
    return _PLATFORMS[platform]


def _result_of(builder: object) -> AbstractValue | None:
    """Return the aval of the first result of a builder's equation, or None if it has none."""
    results: Sequence[AbstractValue] = getattr(builder, "avals_out", ())
    return results[0] if results else None


class AxisNameRules:
    """A table of batch rules that take the size and the name of the axis as separate arguments.

    `table[primitive] = rule` makes `rule(axis_size, axis_name, None, values, axes, **params)` the
    rule of the primitive. In JAX the third argument was the type of the interpreter.
    """

    def __init__(self, table: RuleTable[BatchRuleWithAxis]):
        self._table = table

    def __setitem__(self, primitive: PrimitiveLike, rule: Callable[..., Any]) -> None:
        def with_axis_data(
            axis: AxisData, values: ArrayLikes, axes: AnyBatchAxes, **params: object
        ) -> BatchResult:
            return rule(axis.size, axis.name, None, values, axes, **params)

        self._table[primitive] = with_axis_data
        self._table.foreign.add(primitive)

    def __delitem__(self, primitive: PrimitiveLike) -> None:
        del self._table[primitive]

    def __contains__(self, primitive: PrimitiveLike) -> bool:
        return primitive in self._table


class _SimplifyTable(RuleTable[SimplifyRule]):
    """The table of dead-code rules, which other packages also write with jax 0.12's signature."""

    def __setitem__(self, primitive: PrimitiveLike, rule: Callable[..., Any]) -> None:
        if _is_ours(rule) or len(inspect.signature(rule).parameters) != 3:
            return super().__setitem__(primitive, rule)

        def with_live_inputs(used: list[bool], *live_and_equation: Any) -> tuple[Any, Any]:
            *live, equation = live_and_equation
            # It is unknown whether a reference is read later, so assume that it is.
            return rule(used, *(live or [[True] * len(equation.invars)]), equation)

        super().__setitem__(primitive, with_live_inputs)
        self.foreign.add(primitive)
        return None


def _everything_saveable(*_: object, **__: object) -> bool:
    return True


class SavingRules:
    """A table of partial evaluation rules in JAX's form, which are called with a saving policy.

    `table[primitive] = rule` makes `rule(saveable, unknown, instantiated, equation)` the rule that
    splits equations of the primitive in jaxprs, with known operands that are all instantiated and
    results that may all be saved. It returns the known equation, the equation of the unknown part,
    per result whether it is unknown and whether that equation computes it, and the residuals.
    """

    def __init__(self, table: RuleTable[PartialEvalRule]):
        self._table = table
        self._given: dict[PrimitiveLike, Callable[..., Any]] = {}

    def __setitem__(self, primitive: PrimitiveLike, rule: Callable[..., Any]) -> None:
        def split(
            unknown: list[bool], equation: Any
        ) -> tuple[Any, Any, Sequence[bool], Sequence[Any]]:
            instantiated = [True] * len(unknown)
            known, unknown_equation, unknown_out, _, residuals = rule(
                _everything_saveable, list(unknown), instantiated, equation
            )
            return known, unknown_equation, unknown_out, residuals

        self._given[primitive] = rule
        self._table[primitive] = split
        self._table.foreign.add(primitive)

    def __getitem__(self, primitive: PrimitiveLike) -> Callable[..., Any]:
        if primitive in self._given:
            return self._given[primitive]
        split = self._table[primitive]

        def rule(
            saveable: object, unknown: list[bool], instantiated: Sequence[bool], equation: object
        ) -> tuple[Any, Any, Sequence[bool], Sequence[bool], Sequence[Any]]:
            known, unknown_equation, unknown_out, residuals = split(unknown, equation)
            return known, unknown_equation, unknown_out, list(unknown_out), residuals

        return rule

    def __delitem__(self, primitive: PrimitiveLike) -> None:
        del self._table[primitive]
        self._table.foreign.discard(primitive)
        self._given.pop(primitive, None)

    def __contains__(self, primitive: PrimitiveLike) -> bool:
        return primitive in self._table


# The platforms that programs are lowered for; "gpu" means both kinds of GPU.
_PLATFORMS = {
    **{name: (name,) for name in ("cpu", "cuda", "rocm", "tpu", "oneapi")},
    "gpu": ("cuda", "rocm"),
}
_PRIMITIVES = "the file of hlofront/primitives that defines it"
# How packages other than hlofront give their primitive a rule, by the name of the table.
_BY_OTHERS = {
    "batch": "hlofront.interpreters.batching.primitive_batchers[{}_p] = rule",
    "infer": "{}_p.def_abstract_eval(rule)",
    "jvp": "hlofront.interpreters.ad.primitive_jvps[{}_p] = rule",
    "lower": "hlofront.interpreters.mlir.register_lowering({}_p, rule)",
    "transpose": "hlofront.interpreters.ad.primitive_transposes[{}_p] = rule",
}

infer: RuleTable[InferRule] = RuleTable(
    "infer",
    _PRIMITIVES,
    "(*avals, **params) -> aval, or list of avals",
    "Abstract evaluation",
)
sharding: RuleTable[ShardingRule] = RuleTable(
    "sharding",
    _PRIMITIVES,
    "(avals, result avals, **params) -> per result and axis, the explicit mesh axes that split it",
    "Sharding rule",
)
# The primitives whose infer rule gives whole types: it sees how operands are split and along which
# manual axes they vary, and says so of the results.
infers_whole_types: set[PrimitiveLike] = set()
varying: RuleTable[VaryingRule] = RuleTable(
    "varying",
    _PRIMITIVES,
    "(avals, **params) -> the ManualAxisType of each result; without one, that of all operands",
    "Varying manual axes rule",
)
jvp: RuleTable[JvpRule] = RuleTable(
    "jvp",
    _PRIMITIVES,
    "(primals, tangents, **params) -> primal, tangent",
    "Differentiation rule",
)
transpose: RuleTable[TransposeRule] = RuleTable(
    "transpose",
    _PRIMITIVES,
    "(cotangent, *inputs, **params) -> cotangents",
    "Transpose rule (for reverse-mode differentiation)",
)
taylor: RuleTable[TaylorRule] = RuleTable(
    "taylor",
    _PRIMITIVES,
    "(primals, series, **params) -> primal, series; without one, the jvp rule is expanded",
    "Taylor rule",
)
batch: RuleTable[BatchRule] = RuleTable(
    "batch", _PRIMITIVES, "(values, axes, **params) -> value, axis", "Batching rule"
)
batch_with_axis: RuleTable[BatchRuleWithAxis] = RuleTable(
    "batch_with_axis",
    "hlofront/higher_order",
    "(axis data, values, axes, **params) -> values, axes; of operations that hold programs",
    "Batching rule",
)
batch_with_axis_name = AxisNameRules(batch_with_axis)
batch_with_trace: RuleTable[BatchRuleWithTrace] = RuleTable(
    "batch_with_trace",
    "hlofront/higher_order",
    "(batch trace, values, axes, **params) -> values, axes; of calls of functions, which may close "
    "over batched values",
    "Batching rule",
)
partial_eval: RuleTable[PartialEvalRule] = RuleTable(
    "partial_eval",
    "hlofront/higher_order",
    "(unknown inputs, equation) -> known equation, unknown equation, unknown outputs, residuals",
)
partial_eval_with_policy = SavingRules(partial_eval)
discharge: RuleTable[DischargeRule] = RuleTable(
    "discharge",
    _PRIMITIVES,
    "(equation, operands) -> per operand the new array of a reference or None, and the results; "
    "operands that are references are given as the arrays that they hold",
    "State discharge rule",
)
lower = LoweringTable(
    "lower",
    "hlofront/lowering",
    "(build, *values, **params) -> value or values",
    "MLIR translation rule",
)
effects: RuleTable[EffectsRule] = RuleTable(
    "effects", _PRIMITIVES, "(*avals, **params) -> the effects it has"
)
staged: RuleTable[StagedRule] = RuleTable(
    "staged", "hlofront/higher_order", "(trace, *args, **params) -> staged results"
)
run: RuleTable[RunRule] = RuleTable(
    "run",
    "hlofront/runtime",
    "(*values, **params) -> values, where not compiled",
    "Evaluation rule",
)
show: RuleTable[ShowRule] = RuleTable(
    "show", "hlofront/core/programs/print.py", "(equation, context) -> its text"
)
simplify = _SimplifyTable(
    "simplify", "hlofront/higher_order", "(used outputs, equation) -> used inputs, equation"
)
subprograms: RuleTable[SubprogramsRule] = RuleTable(
    "subprograms",
    "hlofront/higher_order",
    "(**params) -> the Subprograms that it holds; makers: core/programs/subprograms.py",
)


def get_primitive_transpose(p: PrimitiveLike) -> TransposeRule:
    """Return the transpose rule of a primitive.

    Raises:
      NoRuleError: if it has none.
    """
    return transpose[p]
