"""Lowering rules as other packages write them for JAX, and the helpers that they call.

Our own rules take a `Builder` that emits operations; JAX's take a `LoweringRuleContext` and emit
with MLIR's bindings at the ambient insertion point. `register_lowering` puts a rule of the second
kind into the same table, wrapped in a rule of the first kind.
"""

# Rules of other packages take and return values of any type, and jaxlib's stubs leave types out.
# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportReturnType=false

import functools
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Any

import numpy as np

from hlofront.bridge.mlir import Operation, context, ir
from hlofront.core.aval import AbstractValue, token_aval, typeof
from hlofront.core.effects import Effect, Effects
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr
from hlofront.core.names import NameStack
from hlofront.core.primitive import Primitive
from hlofront.core.rules import LoweringRule as BuilderRule
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.lowering.builder import Builder
from hlofront.lowering.module import symbol_name
from hlofront.lowering.module_state import ModuleState

# A value of MLIR, or the values that stand for one value of a jaxpr.
IrValues = ir.Value | Sequence[ir.Value]
IrTypes = ir.Type | Sequence[ir.Type]
# rule(ctx, *operands, **params) -> a sequence with an entry per result.
LoweringRule = Callable[..., Sequence[IrValues]]


class TokenSet:
    """The tokens of ordered effects: each operation takes the latest of its effect."""

    __slots__ = ("_tokens",)

    def __init__(self, tokens: dict[Effect, ir.Value] | None = None):
        self._tokens = dict(tokens or {})

    @classmethod
    def create(cls, effects: Iterable[Effect]) -> "TokenSet":
        """Return a set with a new token for each effect, made at the ambient insertion point."""
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
        """Return the tokens of some of the effects."""
        return TokenSet({effect: self._tokens[effect] for effect in effects})

    def update_tokens(self, tokens: "TokenSet") -> "TokenSet":
        """Return these tokens, with those of another set in the place of older ones."""
        return TokenSet({**self._tokens, **dict(tokens.items())})

    def __len__(self) -> int:
        return len(self._tokens)


def _new_token() -> ir.Value:
    return Operation.create("stablehlo.create_token", (types.aval_type(token_aval),)).results[0]


class ModuleContext:
    """The module that a rule emits into, under the names of JAX's `ModuleContext`."""

    __slots__ = ("_state", "_symbols", "cached_primitive_lowerings")

    def __init__(self, state: ModuleState):
        self._state = state
        self._symbols: ir.SymbolTable | None = None
        # For rules that keep what they lowered, by keys of their own.
        self.cached_primitive_lowerings: dict[object, object] = {}

    @property
    def context(self) -> ir.Context:
        return context

    @property
    def ip(self) -> ir.InsertionPoint:
        """The end of the module, where functions go."""
        return self._state.ip

    @property
    def module(self) -> ir.Module:
        return self._state.ir_module

    @property
    def symbol_table(self) -> ir.SymbolTable:
        """The symbols of the module; `insert` gives a function a name that is free."""
        if self._symbols is None:
            self._symbols = ir.SymbolTable(self._state.ir_module.operation)
        return self._symbols

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that are lowered for here: "cpu", "cuda", "rocm", "tpu"."""
        return self._state.platforms

    @property
    def keepalives(self) -> list[object]:
        """The objects that must live as long as the executable does."""
        return self._state.keepalives

    def add_keepalive(self, keepalive: object) -> None:
        """Have the executable hold an object, such as the target of a custom call."""
        self._state.keepalives.append(keepalive)


@dataclass(frozen=True, slots=True)
class LoweringRuleContext:
    """What a lowering rule knows of the equation that it lowers.

    Attributes:
      module_context: the module, with its platforms and symbols.
      name_stack: the named scopes and transformations around the equation.
      traceback: of the user's call that made the equation.
      primitive: the operation.
      avals_in: the types of the operands.
      avals_out: the types of the results.
      tokens_in: the tokens of the equation's ordered effects.
      tokens_out: their tokens after it, which `set_tokens_out` sets.
      builder: our own builder, at the same place in the module.
    """

    module_context: ModuleContext
    name_stack: NameStack
    traceback: object
    primitive: Primitive | None
    avals_in: Sequence[Any]
    avals_out: Sequence[Any]
    tokens_in: TokenSet
    tokens_out: TokenSet | None
    builder: Builder
    # Where `set_tokens_out` leaves the tokens for the wrapper of the rule: at most one set.
    _tokens_set: list[TokenSet] = field(default_factory=list)

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that this call of the rule is for."""
        return self.module_context.platforms

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Say which tokens the equation leaves behind, one per token in `tokens_in`."""
        if tokens_out.effects() != self.tokens_in.effects():
            raise ValueError(
                "the tokens that a rule leaves are of the effects that it was given tokens of: got "
                f"{tokens_out.effects()}, wanted {self.tokens_in.effects()}"
            )
        self._tokens_set[:] = [tokens_out]

    def replace(self, **changes: Any) -> "LoweringRuleContext":
        """Return a copy with other values for some fields, to call another rule with."""
        return replaced(self, **changes)

    def is_forward_compat(self) -> bool:
        """Return whether the module is for older versions of XLA: it is for the one at hand."""
        return False


# ---- registering ---------------------------------------------------------------------------------


def register_lowering(
    prim: Primitive,
    rule: LoweringRule,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> None:
    """Say how a primitive is lowered, in the place of what was said before.

    Args:
      prim: the primitive.
      rule: `rule(ctx, *operands, **params)` emits operations at the ambient insertion point and
        returns one value, or a sequence of values, per result of the primitive.
      platform: "cpu", "gpu", "cuda", "rocm" or "tpu", where the rule is for it alone. It goes
        before the rule for all.
      inline: whether the operations stand where the equation stands. Otherwise they are a private
        function of the module, which equal equations share.
      cacheable: whether equal equations may share what the rule emitted: a rule that does something
        beside, such as counting its calls, says no. Operations that are inlined are never shared.

    Raises:
      ValueError: if there is no such platform.
    """
    adapter = _as_builder_rule(rule, inline or not cacheable)
    if platform is None:
        lower[prim] = adapter
    else:
        lower(prim, platform=platform)(adapter)
    # Also where the rule is one that `lower_fun` made here, of a function that is not ours.
    lower.foreign.add(prim)
    prim.eager.clear()


def _as_builder_rule(rule: LoweringRule, inline: bool) -> BuilderRule:
    def adapter(build: Builder, *operands: Any, **params: Any) -> Any:
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
    """Return the context for a rule that lowers an equation at the place of a builder."""
    state = build.module
    if state.extension_context is None:
        state.extension_context = ModuleContext(state)
    tokens = {effect: build.tokens[effect] for effect in equation.effects if effect.ordered}
    return LoweringRuleContext(
        state.extension_context,
        build.stack(),
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
    """Call a function of the module that a rule filled, made once per parameters and types."""
    avals_in, avals_out = tuple(build.avals_in), tuple(build.avals_out)

    def body(inner: Builder, *values: ir.Value) -> list[ir.Value]:
        inner.avals_in, inner.avals_out, inner.equation = avals_in, avals_out, equation
        return _run_rule(rule, inner, equation, values, params)

    try:
        key: object = (equation.primitive, avals_in, tuple(sorted(params.items())))
        hash(key)
    except TypeError:  # Parameters that cannot be compared or hashed: a function of its own.
        key = equation
    name = symbol_name(equation.primitive.name)
    return build.call_function(
        key, name, operands, avals_in, avals_out, body, effects=equation.effects
    )


def _checked_results(
    primitive: Primitive, results: object, avals: Sequence[AbstractValue]
) -> list[ir.Value]:
    """Return the values that a rule gave, one per result; a TypeError where they do not fit."""
    if not isinstance(results, Iterable):
        raise TypeError(
            f"the lowering rule of {primitive.name} gave {results!r}: it returns a sequence, with "
            "the value of each result"
        )
    values = flatten_ir_values(results)
    wanted = [types.aval_type(aval) for aval in avals]
    if [value.type for value in values] != wanted:
        raise TypeError(
            f"the lowering rule of {primitive.name} gave values of types "
            f"({', '.join(str(value.type) for value in values)}), where its results are of types "
            f"({', '.join(map(str, wanted))})"
        )
    return values


# ---- what rules call -----------------------------------------------------------------------------


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweringRule:
    """Return the rule that traces a function of arrays and emits what it does.

    Args:
      fun: `fun(*arrays, **params)`, in terms of other primitives.
      multiple_results: whether it returns a sequence of arrays, and not one array.
    """

    def rule(ctx: LoweringRuleContext, *operands: IrValues, **params: Any) -> list[ir.Value]:
        build = _builder_here(ctx)
        function = fun if multiple_results else lambda *xs, **kwargs: (fun(*xs, **kwargs),)
        return build.by_tracing(function, flatten_ir_values(operands), ctx.avals_in, **params)

    return rule


def _builder_here(ctx: LoweringRuleContext) -> Builder:
    """Return a builder at the ambient insertion point, which may be in a region of the rule's."""
    build = ctx.builder
    here = ir.InsertionPoint.current
    if here.block == build.ip.block:
        return build
    inner = Builder(build.module, here, build.prefix, build.hoisted)
    inner.loc, inner.equation, inner.tokens = build.loc, build.equation, build.tokens
    inner.avals_in, inner.avals_out = ctx.avals_in, ctx.avals_out
    return inner


def jaxpr_subcomp(
    ctx: LoweringRuleContext, jaxpr: Jaxpr, consts: Sequence[Any], *args: IrValues
) -> list[ir.Value]:
    """Emit the equations of a program at the ambient insertion point, and return its outputs."""
    return _builder_here(ctx).inline(jaxpr, consts, flatten_ir_values(args))


def core_call_lowering(
    ctx: LoweringRuleContext,
    *args: IrValues,
    name: str,
    backend: object = None,
    call_jaxpr: ClosedJaxpr | Jaxpr,
) -> list[ir.Value]:
    """Emit a call of a program, which is a private function of the module.

    Args:
      name: of the function.
      backend: accepted for JAX's sake; a module is for one platform or a set of platforms.
      call_jaxpr: the program.
    """
    program = call_jaxpr if isinstance(call_jaxpr, ClosedJaxpr) else ClosedJaxpr(call_jaxpr)
    return _builder_here(ctx).call(program, symbol_name(name), flatten_ir_values(args))


def ir_constant(
    val: Any, *, const_lowering: object = None, aval: AbstractValue | None = None
) -> ir.Value:
    """Emit a constant at the ambient insertion point.

    Args:
      val: an array of NumPy's, an array on a device, or a scalar.
      const_lowering: accepted for JAX's sake.
      aval: its type, where a Python scalar would have another.
    """
    aval = typeof(val) if aval is None else aval
    array = np.asarray(val, getattr(aval, "dtype", None))
    return Operation.create(
        "stablehlo.constant", (types.aval_type(aval),), (), {"value": types.dense(array)}
    ).results[0]


def ir_constants(
    val: Any, *, const_lowering: object = None, aval: AbstractValue | None = None
) -> tuple[ir.Value, ...]:
    """Emit a constant, as `ir_constant` does, and return the values that stand for it."""
    return (ir_constant(val, aval=aval),)


def aval_to_ir_type(aval: AbstractValue) -> ir.Type:
    """Return the MLIR type of a value of this aval."""
    return types.aval_type(aval)


def aval_to_ir_types(aval: AbstractValue) -> tuple[ir.Type, ...]:
    """Return the MLIR types of the values that stand for one of this aval: one."""
    return (types.aval_type(aval),)


def dtype_to_ir_type(dtype: Any) -> ir.Type:
    """Return the MLIR element type of a dtype.

    Raises:
      TypeError: if no device has it.
    """
    return types.element_type(np.dtype(dtype))


def ir_attribute(val: Any) -> ir.Attribute:
    """Return a value of Python or NumPy as an MLIR attribute.

    Booleans become `i1`, integers `i64`, floats `f64` attributes; NumPy's scalars keep their width
    and arrays are dense; strings, sequences and dictionaries become attributes of their kinds.

    Raises:
      TypeError: if there is no attribute for such a value.
    """
    if isinstance(val, ir.Attribute):
        return val
    if isinstance(val, bool | np.bool_):
        return ir.BoolAttr.get(bool(val), context)
    if isinstance(val, np.integer):
        width = ir.IntegerType.get_signless(val.dtype.itemsize * 8, context)
        return ir.IntegerAttr.get(width, int(val))
    if isinstance(val, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), val)
    if isinstance(val, np.floating):
        return ir.FloatAttr.get(types.element_type(val.dtype), float(val), types.unknown)
    if isinstance(val, float):
        return ir.FloatAttr.get(ir.F64Type.get(context), val, types.unknown)
    if isinstance(val, str | bytes):
        return ir.StringAttr.get(val, context)
    if isinstance(val, np.ndarray):
        return types.dense(val)
    if isinstance(val, dict):
        return ir.DictAttr.get({name: ir_attribute(v) for name, v in val.items()}, context)
    if isinstance(val, tuple | list):
        return ir.ArrayAttr.get([ir_attribute(v) for v in val], context)
    raise TypeError(f"{val!r} of type {type(val)} is no MLIR attribute")


def i32_attr(i: int) -> ir.IntegerAttr:
    """Return an integer as an attribute of 32 bits."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(32, context), i)


def i64_attr(i: int) -> ir.IntegerAttr:
    """Return an integer as an attribute of 64 bits."""
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), i)


def dense_int_array(xs: Sequence[int]) -> ir.Attribute:
    """Return integers as an array attribute of 64 bits, as StableHLO has lists of dimensions."""
    return types.i64_array(xs)


def dense_int_elements(xs: Sequence[int]) -> ir.DenseElementsAttr:
    """Return integers as a dense attribute: a tensor of one axis, of 64 bits."""
    return types.dense(np.asarray(xs, np.int64))


def shape_tensor(ctx: LoweringRuleContext, sizes: Sequence[int | ir.Value]) -> ir.Value:
    """Emit a shape as an int32 array of one axis, from integers and scalar values of int32."""
    int32 = np.dtype(np.int32)
    whole = types.tensor_type((len(sizes),), int32)
    if all(isinstance(size, int) for size in sizes):
        return ir_constant(np.asarray(sizes, int32))
    one = types.tensor_type((1,), int32)
    parts: list[ir.Value] = []
    for size in sizes:
        value = ir_constant(np.int32(size)) if isinstance(size, int) else size
        parts.append(Operation.create("stablehlo.reshape", (one,), (value,)).results[0])
    dimension = {"dimension": i64_attr(0)}
    return Operation.create("stablehlo.concatenate", (whole,), parts, dimension).results[0]


def token_type() -> ir.Type:
    """Return the MLIR type of tokens."""
    return types.aval_type(token_aval)


def flatten_ir_values(xs: Iterable[Any]) -> list[ir.Value]:
    """Return the values of a sequence whose entries are values or sequences of values."""
    flat: list[ir.Value] = []
    for x in xs:
        if isinstance(x, ir.Value):
            flat.append(x)
        else:
            flat.extend(x)
    return flat


def flatten_ir_types(xs: Iterable[Any]) -> list[ir.Type]:
    """Return the types of a sequence whose entries are types or sequences of types."""
    flat: list[ir.Type] = []
    for x in xs:
        if isinstance(x, ir.Type):
            flat.append(x)
        else:
            flat.extend(x)
    return flat


def unflatten_ir_values_like_types(xs: Iterable[ir.Value], ys: Sequence[IrTypes]) -> list[IrValues]:
    """Return values grouped as types are: one for a type, a tuple for a sequence of types.

    Raises:
      ValueError: if there are more or fewer values than types.
    """
    values = list(xs)
    if len(values) != len(flatten_ir_types(ys)):
        raise ValueError(f"{len(values)} values do not fit {len(flatten_ir_types(ys))} types")
    rest = iter(values)
    return [next(rest) if isinstance(y, ir.Type) else tuple([next(rest) for _ in y]) for y in ys]


def make_ir_context() -> ir.Context:
    """Return the MLIR context that all modules here are of, with the dialects that XLA reads."""
    return context


def module_to_string(module: ir.Module, enable_debug_info: bool | None = None) -> str:
    """Return a module as text, with or without its locations."""
    return module.operation.get_asm(enable_debug_info=bool(enable_debug_info))


def module_to_bytecode(module: ir.Module) -> bytes:
    """Return a module as MLIR bytecode."""
    output = io.BytesIO()
    module.operation.write_bytecode(output)
    return output.getvalue()
