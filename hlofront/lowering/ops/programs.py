"""Lowering rules of operations that hold programs: jit becomes a call, custom rules are inlined."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Sequence
from typing import Any

from hlofront.bridge.mlir import Value, Values, context, ir
from hlofront.core import rules
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.programs.subprograms import Program, called_by, closed, inputs_among
from hlofront.core.rules import lower
from hlofront.higher_order.calls.call_primitive import call_p
from hlofront.higher_order.calls.jit_call import Inline, closed_call_p, jit_p
from hlofront.higher_order.calls.metadata_calls import compute_on_p, xla_metadata_call_p
from hlofront.higher_order.calls.program_order import in_order, program_order_p
from hlofront.higher_order.checkify.checking import check_p
from hlofront.higher_order.checkpoint.checkpoint import remat_p
from hlofront.higher_order.checkpoint.checkpoint_policies import name_p
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp_call_p
from hlofront.higher_order.custom_rules.custom_vjp_call import (
    custom_lin_p,
    custom_vjp_call_p,
    remat_opt_p,
)
from hlofront.higher_order.custom_rules.custom_vmap import custom_vmap_call_p
from hlofront.higher_order.custom_rules.linear_call import linear_call_p
from hlofront.higher_order.custom_rules.linear_solve import custom_linear_solve_p
from hlofront.higher_order.hi_prim.hi_calls import (
    call_hi_primitive_jvp_p,
    call_hi_primitive_linearized_p,
    call_hi_primitive_p,
)
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.frontend_attributes import add
from hlofront.primitives.calls import barriers as b
from hlofront.primitives.calls.metadata import (
    compute_attributes,
    metadata_text,
    xla_metadata_value_p,
)


@lower(jit_p)
def _(
    build: Builder,
    *args: Value,
    jaxpr: ClosedJaxpr,
    name: str,
    inline: bool | Inline,
    **_: object,
) -> list[Value]:
    if inline is Inline.JAX_LATE:
        return build.inline_closed(jaxpr, args, f"jit({name})")
    attributes: dict[str, ir.Attribute] = {}
    if isinstance(inline, Inline):
        attribute = types.attribute(f'{{inlineable = "{inline.value}"}}')
        attributes["mhlo.frontend_attributes"] = attribute
    return build.call(jaxpr, name, args, **attributes)


@lower(
    closed_call_p,
    custom_jvp_call_p,
    custom_vjp_call_p,
    custom_vmap_call_p,
    linear_call_p,
    custom_linear_solve_p,
    remat_opt_p,
)
def _(build: Builder, *args: Value, **_: object) -> list[Value]:
    """Inline the program that the equation calls."""
    call = called_by(build.current)
    if call is None:
        raise TypeError(f"{build.primitive} does not say which program it calls")
    return build.inline_closed(call.closed, inputs_among(call, args))


@lower(call_p)
def _(
    build: Builder,
    *args: Value,
    call_jaxpr: Program,
    name: str = "call",
    **_: object,
) -> list[Value]:
    return build.call(closed(call_jaxpr), name, args)


@lower(custom_lin_p)
def _(build: Builder, *args: Value, **_: object) -> list[Value]:
    raise TypeError(
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function: it has only a backward "
        "rule, and the program that is lowered needs its forward derivative."
    )


@lower(remat_p)
def _(
    build: Builder,
    *args: Value,
    jaxpr: ClosedJaxpr,
    prevent_cse: bool | Sequence[bool],
    differentiated: bool,
    policy: object,
) -> list[Value]:
    if differentiated and not _is_alone_in_loop(build, args):
        # Recomputation depends on the barrier, so that XLA does not reuse the original values.
        fenced = [prevent_cse] * len(args) if isinstance(prevent_cse, bool) else prevent_cse
        chosen = [index for index, is_fenced in enumerate(fenced) if is_fenced]
        if chosen:
            # Use one barrier for all, including cotangents, so that recomputation waits for these.
            barred = build.barrier(
                [args[index] for index in chosen], [build.avals_in[index] for index in chosen]
            )
            new = dict(zip(chosen, barred, strict=True))
            args = tuple(new.get(index, x) for index, x in enumerate(args))
    return build.inline_closed(jaxpr, args, "checkpoint")


def _is_alone_in_loop(build: Builder, args: Values) -> bool:
    """Return whether a loop's body has all operands from its start, and has not read them yet.

    Then no operation of the body computes the original values, and XLA, which does not share values
    between loops, cannot reuse them. A barrier would keep XLA from fusing the rows with the
    recomputation, which would be slower on TPUs.
    """
    block = build.ip.block
    if block.owner.name != "stablehlo.while":
        return False
    return all(_is_from_start(x, block) and _is_unread(x, block) for x in args)


def _is_from_start(x: Value, block: ir.Block) -> bool:
    """Return whether a value comes from outside a block, is its argument, or is a row of either."""
    owner: Any = x.owner
    if isinstance(owner, ir.Block) or owner.operation.block != block:
        return True
    return owner.name in _ROWS and _is_from_start(owner.operands[0], block)


def _is_unread(x: Value, block: ir.Block) -> bool:
    """Return whether no operation of a block has a value as operand."""
    return all(use.owner.operation.block != block for use in x.uses)


# The operations by which the body of a scan reads its rows.
_ROWS = ("stablehlo.dynamic_slice", "stablehlo.slice", "stablehlo.reshape")


@lower(name_p)
def _(build: Builder, x: Value, *, name: str) -> Value:
    return x


@lower(call_hi_primitive_p, call_hi_primitive_jvp_p, call_hi_primitive_linearized_p)
def _(build: Builder, *args: Value, **params: object) -> list[Value]:
    # The class of `_prim` registers these rules, so they exist if the equation does.
    return build.by_tracing(rules.run[build.primitive], args, None, **params)


# ---- metadata ------------------------------------------------------------------------------------


@lower(xla_metadata_value_p)
def _(build: Builder, x: Value, *, xla_metadata_kvs: Sequence[tuple[str, object]]) -> Value:
    owner: ir.OpView | ir.Block = x.owner
    # An argument of the function or of a region has no operation to annotate.
    if not isinstance(owner, ir.Block) and xla_metadata_kvs:
        add(owner.operation, metadata_text(xla_metadata_kvs))
    return x


def _call(
    build: Builder, program: ClosedJaxpr, args: Values, attributes: dict[str, str]
) -> list[Value]:
    values: dict[str, ir.Attribute] = {
        name: ir.StringAttr.get(text, context=context) for name, text in attributes.items()
    }
    metadata = {"mhlo.frontend_attributes": ir.DictAttr.get(values, context=context)}
    return build.call(program, build.primitive.name, args, **metadata)


@lower(xla_metadata_call_p)
def _(build: Builder, *args: Value, jaxpr: ClosedJaxpr, **meta: str) -> list[Value]:
    return _call(build, jaxpr, args, meta)


@lower(compute_on_p)
def _(
    build: Builder,
    *args: Value,
    jaxpr: ClosedJaxpr,
    compute_type: str,
    compiler_options_json: str | None,
) -> list[Value]:
    attributes = compute_attributes(compute_type)
    if compiler_options_json is not None:
        attributes["backend_config"] = compiler_options_json
    return _call(build, jaxpr, args, attributes)


# ---- order of execution --------------------------------------------------------------------------


@lower(b.optimization_barrier_p)
def _(build: Builder, *operands: Value) -> Value | Values:
    if not operands:
        return []
    return build.barrier(operands, build.avals_out)


@lower(b.create_token_p)
def _(build: Builder) -> Value | Values:
    return build.op("stablehlo.create_token", ())


@lower(b.after_all_p)
def _(build: Builder, *tokens: Value) -> Value | Values:
    return build.op("stablehlo.after_all", tokens)


@lower(b.dce_sink_p)
def _(build: Builder, x: Value, *, prevent_mlir_dce: bool) -> Value | Values:
    if prevent_mlir_dce:
        build.ops(
            "stablehlo.custom_call",
            (x,),
            (),
            call_target_name=types.string("dce_sink"),
            # XLA registers the handler under its typed FFI, which is version 4 of the custom call
            # API.
            api_version=types.i32(4),
            backend_config=types.attribute("{}"),
            has_side_effect=types.boolean(True),
        )
    return []


@lower(program_order_p)
def _(
    build: Builder,
    *args: Value,
    call_jaxpr: ClosedJaxpr,
    enforce: bool,
    strict_in: bool,
    strict_out: bool,
    exclude_mask: tuple[bool, ...],
) -> list[Value]:
    program = in_order(call_jaxpr, strict_in, strict_out) if enforce else call_jaxpr
    return build.inline_closed(program, args, "program_order")


@lower(check_p)
def _(
    build: Builder, failed: Value, code: Value, *payload: Value, debug: bool, **_: object
) -> list[Value]:
    if debug:
        return []
    raise ValueError(
        "Cannot compile a checkify.check which was not functionalized: a compiled program cannot "
        "raise an error. Give the function that is jitted, or that has the loop or branch, to "
        "checkify, and look at the error that it returns: "
        "error, result = checkify.checkify(f)(x); error.throw(). For a check that is dropped "
        "otherwise, use checkify.debug_check."
    )
