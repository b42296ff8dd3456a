"""Lowering rules that other packages write for JAX, and the helpers that they call.

Rules of this package take a `Builder` that emits operations; JAX's take a `LoweringRuleContext` and
emit with MLIR's bindings at the ambient insertion point. `register_lowering` wraps a JAX rule for
the table of this package's rules.
"""

# Rules of other packages take and return values of any type, and jaxlib's stubs omit types.
# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportReturnType=false

import functools
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Any

from hlofront.base.config import options
from hlofront.bridge.mlir import Operation, context, ir
from hlofront.core.aval import AbstractValue, ShapedArray, token_aval
from hlofront.core.effects import Effect, Effects
from hlofront.core.jaxpr import Equation, Jaxpr
from hlofront.core.names import NameStack, PrintedNameStack
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import Program, closed
from hlofront.core.rules import LoweringRule as BuilderRule
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.mesh_attributes import typed_attribute
from hlofront.lowering.core.module_state import ModuleState
from hlofront.lowering.extension.values import IrValues, flat_values

_with_locations = options["jax_include_debug_info_in_dumps"]

# rule(ctx, *operands, **params) -> a sequence with one entry per result.
LoweringRule = Callable[..., Sequence[IrValues]]


class TokenSet:
    """The tokens of ordered effects, which each operation takes and replaces."""

    __slots__ = ("_tokens",)

    def __init__(self, tokens: dict[Effect, ir.Value] | None = None):
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects: Iterable[Effect]) -> "TokenSet":
        """Return a set with a new token for each effect, emitted at the ambient insertion point."""
        return cls({effect: _new_token() for effect in effects})

    def get(self, effect: Effect) -> ir.Value:
        return self._tokens[effect]

    def effects(self) -> set[Effect]:
        return set(self._tokens)

    def items(self) -> tuple[tuple[Effect, ir.Value], ...]:
        return tuple(self._tokens.items())

    def tokens(self) -> tuple[ir.Value, ...]:
        return tuple(self._tokens.values())

    def subset(self, effects: Effects) -> "TokenSet":
        """Return the set of the tokens of these effects."""
        return TokenSet({effect: self._tokens[effect] for effect in effects})

    def update_tokens(self, tokens: "TokenSet") -> "TokenSet":
        """Return a copy of the set, with the tokens of another set replacing its own."""
        newer = dict(tokens.items())
        return TokenSet({effect: newer.get(effect, token) for effect, token in self.items()})

    def __len__(self) -> int:
        return len(self._tokens)


def _new_token() -> ir.Value:
    return Operation.create("stablehlo.create_token", (types.aval_type(token_aval),)).results[0]


class ModuleContext:
    """The module that a lowering rule emits into, with the attributes of JAX's `ModuleContext`."""

    __slots__ = ("_state", "cached_primitive_lowerings", "symbol_table")

    def __init__(self, state: ModuleState):
        self._state = state
        # The symbols of the module; `insert` renames a function whose name is taken.
        self.symbol_table: ir.SymbolTable = state.share_symbols()
        # A cache in which rules store what they lowered, under their own keys.
        self.cached_primitive_lowerings: dict[object, object] = {}

    @property
    def context(self) -> ir.Context:
        return context

    @property
    def ip(self) -> ir.InsertionPoint:
        """The insertion point at the end of the module, where functions are added."""
        return self._state.ip

    @property
    def module(self) -> ir.Module:
        return self._state.ir_module

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms of the module: "cpu", "cuda", "rocm", "tpu"."""
        return self._state.platforms

    @property
    def keepalives(self) -> list[object]:
        """The objects that the executable must keep alive."""
        return self._state.keepalives

    def add_keepalive(self, keepalive: object) -> None:
        """Keep an object alive with the executable, such as the target of a custom call."""
        self._state.keepalives.append(keepalive)


@dataclass(frozen=True, slots=True)
class LoweringRuleContext:
    """The context of a lowering rule: the equation that it lowers, and the module.

    Attributes:
      module_context: the module, with its platforms and symbols.
      name_stack: the named scopes and transformations around the equation, with the methods
        `extend` and `transform`.
      traceback: the traceback of the user's call that traced the equation.
      primitive: the primitive of the equation.
      avals_in: the avals of the operands.
      avals_out: the avals of the results.
      tokens_in: the tokens of the equation's ordered effects.
      tokens_out: the tokens after the equation, which `set_tokens_out` sets.
      builder: the `Builder` at the equation's position in the module.
      axis_size_env, dim_var_values, const_lowering, jaxpr_eqn_ctx: arguments for `jaxpr_subcomp`
        and `ir_constant`, which ignore them here: empty.
    """

    module_context: ModuleContext
    name_stack: PrintedNameStack
    traceback: object
    primitive: Primitive | None
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    tokens_in: TokenSet
    tokens_out: TokenSet | None
    builder: Builder
    axis_size_env: None = None
    dim_var_values: tuple[ir.Value, ...] = ()
    const_lowering: dict[object, IrValues] = field(default_factory=dict)
    jaxpr_eqn_ctx: None = None
    # The tokens that `set_tokens_out` passes to the wrapper of the rule: at most one set.
    _tokens_set: list[TokenSet] = field(default_factory=list)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms for which the rule is called."""
        return self.module_context.platforms

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Set the tokens after the equation, one per token in `tokens_in`."""
        if tokens_out.effects() != self.tokens_in.effects():
            raise ValueError(
                "a rule must return tokens of the effects whose tokens it was given: got "
                f"{tokens_out.effects()}, expected {self.tokens_in.effects()}"
            )
        self._tokens_set[:] = [tokens_out]

    def replace(self, **changes: object) -> "LoweringRuleContext":
        """Return a copy with some fields replaced, for calling another rule."""
        return replaced(self, **changes)

    def is_forward_compat(self) -> bool:
        """Return False: the module is for this version of XLA, not for older ones."""
        return False


# ---- registering ---------------------------------------------------------------------------------


def register_lowering(
    prim: Primitive,
    rule: LoweringRule,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Register the lowering rule of a primitive, replacing an earlier one.

    Args:
      prim: the primitive.
      rule: `rule(ctx, *operands, **params)` emits operations at the ambient insertion point and
        returns one value, or a sequence of values, per result of the primitive.
      platform: "cpu", "gpu", "cuda", "rocm" or "tpu", for a rule that overrides the general one
        there; None for all platforms.
      inline: whether the operations are emitted instead of the equation. Otherwise they are a
        private function of the module, which equal equations share.
      cacheable: whether equal equations may share what the rule emitted: False for a rule with side
        effects, such as counting its calls. Inlined operations are never shared.

    Raises:
      ValueError: if the platform is unknown.
    """
    adapter = builder_rule(rule, inline or not cacheable)
    # Import hlofront's own rules of the primitive first, because they would replace this one.
    lower.load(prim)
    if platform is None:
        lower[prim] = adapter
    else:
        lower(prim, platform=platform)(adapter)
    # The rule belongs to another package, even if hlofront's `lower_fun` made it.
    lower.foreign.add(prim)
    prim.eager.clear()


def builder_rule(rule: LoweringRule, inline: bool = True) -> BuilderRule:
    """Return a rule (context, *operands, **params) in the form for builders.

    Args:
      inline: whether the operations are emitted instead of the equation.
    """

    def adapter(build: Builder, *operands: object, **params: object) -> Any:
        equation = build.equation
        assert equation is not None
        if inline:
            values = _run_rule(rule, build, equation, operands, params)
        else:
            values = _call_rule(rule, build, equation, operands, params)
        return values if equation.primitive.multiple_results else values[0]

    functools.update_wrapper(adapter, rule)
    return adapter


def rule_context(build: Builder, equation: Equation) -> LoweringRuleContext:
    """Return the context for a rule that lowers an equation at a builder's position."""
    state = build.module
    if state.extension_context is None:
        state.extension_context = ModuleContext(state)
    tokens = {effect: build.tokens[effect] for effect in equation.effects if effect.ordered}
    return LoweringRuleContext(
        state.extension_context,
        PrintedNameStack(build.stack()),
        equation.traceback,
        equation.primitive,
        build.avals_in,
        build.avals_out,
        TokenSet(tokens),
        None,
        build,
    )


def _run_rule(
    rule: LoweringRule,
    build: Builder,
    equation: Equation,
    operands: Sequence[ir.Value],
    params: dict[str, Any],
) -> list[ir.Value]:
    ctx = rule_context(build, equation)
    with context, build.loc, build.ip:
        results = rule(ctx, *operands, **params)
    for tokens in ctx._tokens_set:  # pyright: ignore[reportPrivateUsage]
        build.tokens.update(tokens.items())
    return _checked_results(equation.primitive, results, build.avals_out)


def _call_rule(
    rule: LoweringRule,
    build: Builder,
    equation: Equation,
    operands: Sequence[ir.Value],
    params: dict[str, Any],
) -> list[ir.Value]:
    """Call a function that contains a rule's operations, emitted once per parameters and types."""
    avals_in, avals_out = tuple(build.avals_in), tuple(build.avals_out)

    def body(inner: Builder, *values: ir.Value) -> list[ir.Value]:
        inner.avals_in, inner.avals_out, inner.equation = avals_in, avals_out, equation
        return _run_rule(rule, inner, equation, values, params)

    try:
        key: object = (equation.primitive, avals_in, tuple(sorted(params.items())))
        hash(key)
    except TypeError:  # Parameters that cannot be compared or hashed need a separate function.
        key = equation
    name = equation.primitive.name
    return build.call_function(
        key, name, operands, avals_in, avals_out, body, effects=equation.effects
    )


def _checked_results(
    primitive: Primitive, results: object, avals: Sequence[AbstractValue]
) -> list[ir.Value]:
    """Return a rule's values, one per result; raise TypeError if they do not match the results."""
    if not isinstance(results, Iterable):
        raise TypeError(
            f"the lowering rule of {primitive.name} gave {results!r}: it returns a sequence, with "
            "the value of each result"
        )
    values = flat_values(results)
    expected = [types.aval_type(aval) for aval in avals]
    if [value.type for value in values] != expected:
        raise TypeError(
            f"the lowering rule of {primitive.name} returned values of types "
            f"({', '.join(str(value.type) for value in values)}), expected types "
            f"({', '.join(map(str, expected))})"
        )
    return values


# ---- helpers for rules ---------------------------------------------------------------------------


def lower_fun(fun: Callable[..., object], multiple_results: bool = True) -> LoweringRule:
    """Return a lowering rule that traces a function of arrays and emits its jaxpr.

    Args:
      fun: `fun(*arrays, **params)`, in terms of other primitives.
      multiple_results: whether it returns a sequence of arrays rather than one array.
    """

    def rule(ctx: LoweringRuleContext, *operands: IrValues, **params: object) -> list[ir.Value]:
        build = builder_here(ctx)
        function = fun if multiple_results else lambda *xs, **kwargs: (fun(*xs, **kwargs),)
        return build.by_tracing(function, flat_values(operands), ctx.avals_in, **params)

    return rule


def builder_here(ctx: LoweringRuleContext) -> Builder:
    """Return a builder at the ambient insertion point.

    It may be in a region of the rule's operations, or before one of them.
    """
    build = ctx.builder
    here = ir.InsertionPoint.current
    if here.block == build.ip.block and here.ref_operation is None:
        return build
    inner = Builder(build.module, here, build.prefix, build.hoisted)
    inner.loc, inner.equation, inner.tokens = build.loc, build.equation, build.tokens
    inner.origin, inner.defined_for = build.origin, build.defined_for
    inner.avals_in, inner.avals_out = ctx.avals_in, ctx.avals_out
    return inner


def jaxpr_subcomp(
    ctx: ModuleContext,
    jaxpr: Jaxpr,
    name_stack: NameStack,
    tokens: TokenSet,
    consts_for_constvars: Sequence[IrValues],
    *args: IrValues,
    dim_var_values: Sequence[ir.Value] = (),
    const_lowering: object = None,
    outer_traceback: object = None,
) -> tuple[list[ir.Value], TokenSet]:
    """Emit the equations of a jaxpr at the ambient insertion point.

    Args:
      ctx: the module, the `module_context` of a rule's context.
      jaxpr: the jaxpr.
      name_stack: the scopes around its operations.
      tokens: the tokens of its ordered effects.
      consts_for_constvars: the values of its constants.
      args: the values of its inputs.
      dim_var_values, const_lowering, outer_traceback: ignored, for compatibility with JAX: the
        module knows its sizes and constants, and equations have their own tracebacks.

    Returns:
      The values of its outputs, and the tokens after it.
    """
    build = Builder(ctx._state, ir.InsertionPoint.current, tuple(name_stack), {})  # pyright: ignore[reportPrivateUsage]
    build.tokens = dict(tokens.items())
    results = build.inline(jaxpr, flat_values(consts_for_constvars), flat_values(args))
    return results, TokenSet(build.tokens)


def core_call_lowering(
    ctx: LoweringRuleContext,
    *args: IrValues,
    name: str,
    backend: object = None,
    call_jaxpr: Program,
) -> list[ir.Value]:
    """Emit a call of a jaxpr as a private function of the module.

    Args:
      name: the name of the function.
      backend: ignored, for compatibility with JAX: the module has its platforms already.
      call_jaxpr: the jaxpr.
    """
    return builder_here(ctx).call(closed(call_jaxpr), name, flat_values(args))


def lower_with_sharding_in_types(
    ctx: LoweringRuleContext, op: ir.Value, aval: ShapedArray
) -> ir.Value:
    """Return a value with a sharding constraint to the split in its type by Explicit mesh axes.

    Args:
      ctx: the context of the rule.
      op: the value.
      aval: its type.
    """
    build = builder_here(ctx)
    mesh = aval.mesh
    if mesh is None or not mesh.explicit_axes:
        return op
    attribute = typed_attribute(build.module, mesh, aval)
    return build.op("sdy.sharding_constraint", (op,), aval, sharding=attribute)


def make_ir_context() -> ir.Context:
    """Return the MLIR context of all modules of this package, with the dialects that XLA reads."""
    return context


def module_to_string(module: ir.Module, enable_debug_info: bool | None = None) -> str:
    """Return an MLIR module as text.

    Args:
      module: the module.
      enable_debug_info: whether the text includes locations; by default, the option
        jax_include_debug_info_in_dumps decides.
    """
    if enable_debug_info is None:
        enable_debug_info = _with_locations.value
    return module.operation.get_asm(enable_debug_info=enable_debug_info)


def module_to_bytecode(module: ir.Module) -> bytes:
    """Return an MLIR module as bytecode."""
    output = io.BytesIO()
    module.operation.write_bytecode(output)
    return output.getvalue()
