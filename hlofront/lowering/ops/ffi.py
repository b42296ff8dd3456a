"""Foreign functions as StableHLO: custom calls with typed attributes, layouts and aliases."""

# Attributes of foreign functions are of any type, and jaxlib's stubs leave types out.
# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hlofront.base.hashable import HashableArray
from hlofront.bridge.kernels import load_kernels_of
from hlofront.bridge.mlir import Operation, Value, context, ir
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.rules import lower
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.extension.rules import LoweringRule, LoweringRuleContext
from hlofront.lowering.extension.values import IrValues, flat_values, ir_attribute
from hlofront.primitives.calls.ffi import (
    TYPED_API_VERSION,
    Aliases,
    HashableAttributes,
    LayoutOptions,
    MinorToMajor,
    ffi_call_p,
    hashable_attribute,
)

# Targets of custom calls that XLA's compiler interprets itself without checking operands: if they
# do not fit, it aborts the process. Users' targets have other names.
_OF_XLA = frozenset(
    (
        "CreateBuffer",
        "PadToStatic",
        "Pin",
        "ProductOfElementaryHouseholderReflectors",
        "SliceToDynamic",
        "TopK",
        "Unpin",
    )
)
_PREFIXES_OF_XLA = (
    "__cublas$",
    "__cudnn$conv",
    "__cudnn$fusion",
    "__cudnn$norm",
    "__gpu$TopK",
    "__onednn$",
    "xla.sdy.",
)
# Such targets with one operand.
_OF_ONE_OPERAND = frozenset(
    (
        "Cholesky",
        "Eigh",
        "LayoutConstraint",
        "MoveToDevice",
        "MoveToHost",
        "Qr",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "annotate_device_placement",
    )
)
# Those of one operand that return it.
_OF_SAME_TYPE = frozenset(("LayoutConstraint",))
# The target of Triton kernels, and the values of their configuration that XLA's compiler for GPUs
# reads without a check that they are there.
_TRITON = "__gpu$xla.gpu.triton"
_OF_TRITON: Mapping[str, type[ir.Attribute]] = {
    **dict.fromkeys(("name", "ir"), ir.StringAttr),
    **dict.fromkeys(("grid_x", "grid_y", "grid_z", "num_stages", "num_warps"), ir.IntegerAttr),
}


def check_target(
    name: str,
    operands: Sequence[ir.Type],
    results: Sequence[ir.Type],
    config: ir.Attribute,
    is_guarded: bool,
) -> None:
    """Check that XLA does not misinterpret a custom call, which would abort the process.

    Args:
      name: the target of the custom call.
      operands, results: the types of its operands and results.
      config: its attributes, or a string.
      is_guarded: whether programs are guarded against faults of XLA.

    Raises:
      ValueError: if it would.
    """
    if not is_guarded:
        return
    if name == _TRITON:
        _check_triton(config)
    if name in _OF_XLA or name.startswith(_PREFIXES_OF_XLA):
        raise ValueError(
            f"{name!r} is a name of XLA's own, which it does not look up among registered "
            "functions, and the process ends if operands do not fit: register the function under "
            "another name, or use the function of hlofront.lax for that operation"
        )
    if name in _OF_ONE_OPERAND and len(operands) != 1:
        raise ValueError(
            f"{name!r} is a name of XLA's own for an operation of one operand, and it is called "
            f"with {len(operands)}: register the function under another name"
        )
    if name in _OF_SAME_TYPE and list(results) != list(operands):
        types_of_results = ", ".join(map(str, results))
        raise ValueError(
            f"{name!r} is a name of XLA's own for an operation that returns its operand, and it is "
            f"called with {operands[0]} for {types_of_results or 'nothing'}: register the function "
            "under another name"
        )


def _check_triton(config: ir.Attribute) -> None:
    """Raise ValueError unless the configuration of a Triton kernel is complete."""
    if isinstance(config, ir.StringAttr):
        try:
            # In braces, as MLIR ends the process where it parses an empty text.
            outer = ir.DictAttr(ir.Attribute.parse(f"{{config = {config.value}\n}}", context))
            config = outer["config"]
        except ir.MLIRError:
            config = _dictionary({})
    given = {each.name: each.attr for each in config} if isinstance(config, ir.DictAttr) else {}
    wrong = [key for key, kind in _OF_TRITON.items() if not isinstance(given.get(key), kind)]
    if wrong:
        raise ValueError(
            f"{_TRITON!r} is the name that XLA has for Triton kernels, and it ends the process if "
            f"their configuration is incomplete: {', '.join(wrong)} are missing or of other types. "
            f"Pass {', '.join(_OF_TRITON)} as attributes, or register the function under another "
            "name"
        )


def _attribute(value: object) -> ir.Attribute:
    """Return the MLIR attribute of a value that `hashable_attribute` returned."""
    if isinstance(value, HashableArray):
        return types.dense(value.val)
    if isinstance(value, HashableAttributes):
        return _dictionary(dict(value))
    if isinstance(value, tuple):
        return ir.ArrayAttr.get([_attribute(member) for member in value], context)
    return ir_attribute(value)


def _dictionary(attributes: Mapping[str, object]) -> ir.Attribute:
    return ir.DictAttr.get({name: _attribute(value) for name, value in attributes.items()}, context)


def layouts_attribute(layouts: Sequence[MinorToMajor]) -> ir.Attribute:
    """Return the attribute of a custom call for the layouts of its operands or results."""
    return ir.ArrayAttr.get([_layout(layout) for layout in layouts], context)


def _layout(layout: MinorToMajor) -> ir.Attribute:
    body = f"[{', '.join(map(str, layout))}]" if layout else ""
    return types.attribute(f"dense<{body}> : tensor<{len(layout)}xindex>")


def operand_aliases(aliases: Aliases, result_count: int) -> ir.Attribute:
    """Return the attribute of a custom call by which results reuse operands' buffers."""
    texts = [
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{result if result_count > 1 else ''}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
        for operand, result in aliases
    ]
    return types.attribute(f"[{', '.join(texts)}]")


@lower(ffi_call_p)
def _(
    build: Builder,
    *operands: Value,
    target_name: str,
    attributes: HashableAttributes,
    has_side_effect: bool,
    input_layouts: Sequence[MinorToMajor],
    output_layouts: Sequence[MinorToMajor],
    input_output_aliases: Aliases,
    custom_call_api_version: int,
    legacy_backend_config: str | None,
    **_: object,
) -> list[Value]:
    result_types = [types.aval_type(aval) for aval in build.avals_out]
    operand_types = [x.type for x in operands]
    if custom_call_api_version >= TYPED_API_VERSION:
        settings = _dictionary(dict(attributes))
    else:
        settings = types.string(legacy_backend_config or "")
    is_guarded = build.module.cpu_settings.guards
    check_target(target_name, operand_types, result_types, settings, is_guarded)
    load_kernels_of(target_name)
    return build.ops(
        "stablehlo.custom_call",
        operands,
        build.avals_out,
        call_target_name=types.string(target_name),
        api_version=types.i32(custom_call_api_version),
        has_side_effect=types.boolean(has_side_effect),
        backend_config=settings,
        operand_layouts=layouts_attribute(input_layouts),
        result_layouts=layouts_attribute(output_layouts),
        output_operand_aliases=operand_aliases(input_output_aliases, len(build.avals_out)),
    )


# ---- lowering rules of other packages' primitives ------------------------------------------------


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[LayoutOptions] | None = None,
    result_layouts: Sequence[LayoutOptions] | None = None,
    backend_config: Mapping[str, ir.Attribute] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., ir.Operation]:
    """Return a function that emits the call of a foreign function, for use in lowering rules.

    Args:
      call_target_name: the name under which the foreign function is registered.
      operand_layouts: per operand the order of its axes in memory, the slowest-varying first; None
        is row-major.
      result_layouts: the same per result.
      backend_config: further attributes of the call; for custom calls before version 4, a string.
      skip_ffi_layout_processing: whether the layouts are already in XLA's order, the
        fastest-varying axis first.
      lowering_args: `has_side_effect`, `api_version` (4), and `operand_output_aliases`, a mapping
        from operands to results, all by their indices; and `result_types`, if they are not those of
        the primitive.

    Returns:
      A function (ctx, *operands, **attributes) that takes a LoweringRuleContext and returns the
      operation.
    """
    api_version = int(lowering_args.pop("api_version", TYPED_API_VERSION))
    has_side_effect = bool(lowering_args.pop("has_side_effect", False))
    aliases = lowering_args.pop("operand_output_aliases", None) or {}
    wanted_types = lowering_args.pop("result_types", None)
    if lowering_args:
        raise TypeError(f"a custom call has no options {sorted(lowering_args)}")
    if api_version < TYPED_API_VERSION and isinstance(backend_config, Mapping):
        raise ValueError(
            f"attributes of a custom call are of api_version {TYPED_API_VERSION}: got a mapping "
            f"for {api_version}"
        )

    def lowering(ctx: LoweringRuleContext, *operands: IrValues, **params: object) -> ir.Operation:
        result_types = wanted_types or [types.aval_type(aval) for aval in ctx.avals_out]
        values = flat_values(operands)

        def written(
            layouts: Sequence[LayoutOptions] | None, avals: Sequence[AbstractValue]
        ) -> ir.Attribute:
            chosen = [None] * len(avals) if layouts is None else layouts
            return layouts_attribute(
                [
                    tuple(layout)
                    if layout is not None and skip_ffi_layout_processing
                    else tuple(reversed(range(_rank(aval)) if layout is None else layout))
                    for layout, aval in zip(chosen, avals, strict=True)
                ]
            )

        if api_version >= TYPED_API_VERSION:
            more = backend_config if isinstance(backend_config, Mapping) else {}
            own = {
                name: _attribute(hashable_attribute(name, value)) for name, value in params.items()
            }
            settings: ir.Attribute = ir.DictAttr.get({**more, **own}, context)
        else:
            settings = types.string(str(backend_config or ""))
        check_target(call_target_name, [x.type for x in values], result_types, settings, True)
        load_kernels_of(call_target_name)
        return Operation.create(
            "stablehlo.custom_call",
            result_types,
            values,
            {
                "call_target_name": types.string(call_target_name),
                "api_version": types.i32(api_version),
                "has_side_effect": types.boolean(has_side_effect),
                "backend_config": settings,
                "operand_layouts": written(operand_layouts, ctx.avals_in),
                "result_layouts": written(result_layouts, ctx.avals_out),
                "output_operand_aliases": operand_aliases(
                    tuple(sorted(aliases.items())), len(result_types)
                ),
            },
        )

    return lowering


def _rank(aval: AbstractValue) -> int:
    return aval.ndim if isinstance(aval, ShapedArray) else 0


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[LayoutOptions] | None = None,
    result_layouts: Sequence[LayoutOptions] | None = None,
    backend_config: Mapping[str, ir.Attribute] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> LoweringRule:
    """Return a lowering rule that calls a foreign function.

    The primitive's parameters are the attributes of the call.

    Args:
      call_target_name: the name of the registered foreign function.
      operand_layouts: per operand, its axes from minor to major; None is the default, row-major.
      result_layouts: per result, its axes from minor to major; None is the default, row-major.
      backend_config: further attributes of the call besides the primitive's parameters, or a
        string.
      skip_ffi_layout_processing: whether the layouts are left to the compiler.
      **lowering_args: other arguments of `build_ffi_lowering_function`.

    Returns:
      A lowering rule, for `mlir.register_lowering`.

    Example::

        mlir.register_lowering(norm_p, jax.ffi.ffi_lowering("rms_norm"), platform="cpu")
    """
    emit = build_ffi_lowering_function(
        call_target_name,
        operand_layouts=operand_layouts,
        result_layouts=result_layouts,
        backend_config=backend_config,
        skip_ffi_layout_processing=skip_ffi_layout_processing,
        **lowering_args,
    )

    def rule(ctx: LoweringRuleContext, *operands: IrValues, **params: object) -> list[Value]:
        return list(emit(ctx, *operands, **params).results)

    return rule
