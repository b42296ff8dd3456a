"""Lowering rules of operations that the host partitions or inspects while XLA compiles."""

# The stubs of jaxlib do not name the types of all arguments and results.
# pyright: reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base.typing import Params
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.bridge.partitioning import INSPECTED, PARTITIONED
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.rules import lower
from hlofront.higher_order.shard_map.custom_partitioning import custom_partitioning_p
from hlofront.higher_order.shard_map.sharding_rule import (
    SdyShardingRule,
    SizedShardingRule,
    sharding_rule_of,
)
from hlofront.lowering.core import types
from hlofront.lowering.core.builder import Builder
from hlofront.lowering.core.extended import physical
from hlofront.lowering.core.partitioned_call import PartitionedCall
from hlofront.primitives.sharding.placing import inspect_sharding_p

# The order of factor kinds in the text of a rule, with their names there.
_KINDS = {
    "reduction_factors": "reduction",
    "need_replication_factors": "need_replication",
    "permutation_factors": "permutation",
}
# Shardy's names of factors: i to z, then z_1, z_2, ...
_LETTERS = "ijklmnopqrstuvwxyz"


@lower(custom_partitioning_p)
def _(build: Builder, *operands: Value, **params: Any) -> list[Value]:
    call: ClosedJaxpr = params["call"]
    manual = build.module.manual
    if not build.module.several_devices or (manual is not None and manual.is_whole):
        return build.inline_closed(call, operands)
    rule = _rule_of(build, params)
    avals_in = [physical(aval) for aval in build.avals_in]
    avals_out = [physical(aval) for aval in build.avals_out]
    attributes: dict[str, ir.Attribute] = {}
    if rule is not None:
        sized = rule.sized([x.shape for x in avals_in], [x.shape for x in avals_out])
        attributes["sdy.sharding_rule"] = types.attribute(rule_text(sized))
    return _emit(build, operands, avals_out, PARTITIONED, 2, params, attributes)


def _rule_of(build: Builder, params: Params) -> SdyShardingRule | None:
    """Return the sharding rule of an equation; if it is a function, return its result.

    Raises:
      NotImplementedError: if there are GSPMD callbacks but no rule.
      ValueError: if the function does not return a rule.
    """
    rule = params["sharding_rule"]
    if rule is None:
        if params["infer_sharding_from_operands"] or params["propagate_user_sharding"]:
            raise NotImplementedError(  # JAX raises this class.
                "infer_sharding_from_operands and propagate_user_sharding are callbacks of XLA's "
                "former partitioner, GSPMD. Shardy partitions this program, by rules: give "
                "def_partition a sharding_rule, such as 'i k, k j -> i j'"
            )
        return None
    if isinstance(rule, SdyShardingRule):
        return rule
    typed = [[types.aval_type(x) for x in avals] for avals in (build.avals_in, build.avals_out)]
    made = rule(*params["static_args"], build.module.mesh, *typed)
    if isinstance(made, str):
        return sharding_rule_of(made)
    if not isinstance(made, SdyShardingRule):
        raise ValueError(
            "a function as sharding_rule returns an SdyShardingRule or the text of one: got "
            f"{made!r} of type {type(made).__name__}"
        )
    return made


@lower(inspect_sharding_p)
def _(build: Builder, x: Value, **params: object) -> list[Value]:
    if build.module.several_devices and build.module.manual is None:
        _emit(build, (x,), [_NO_RESULT], INSPECTED, 1, params, {}, has_side_effect=True)
    else:
        _record(build, params)
    return []


def inspect_value(
    build: Builder, x: Value, aval: ShapedArray, callback: Callable[[object], None]
) -> None:
    """Emit a call that passes the sharding of a value of this aval to a callback."""
    before = build.avals_in, build.avals_out
    build.avals_in, build.avals_out = (aval,), ()
    params = {"callback": callback}
    _emit(build, (x,), [_NO_RESULT], INSPECTED, 1, params, {}, has_side_effect=True)
    build.avals_in, build.avals_out = before


# A result for a call that has none, because XLA partitions calls by their results.
_NO_RESULT = ShapedArray((), np.dtype(np.int32))


def _emit(
    build: Builder,
    operands: Values,
    avals_out: Avals,
    target: str,
    api_version: int,
    params: Params,
    attributes: dict[str, ir.Attribute],
    has_side_effect: bool = False,
) -> list[Value]:
    """Emit a custom call that the host partitions, and record it for compilation."""
    return build.ops(
        "stablehlo.custom_call",
        operands,
        avals_out,
        call_target_name=types.string(target),
        api_version=types.i32(api_version),
        backend_config=types.string(str(_record(build, params))),
        has_side_effect=types.boolean(has_side_effect),
        **attributes,
    )


def _record(build: Builder, params: Params) -> int:
    """Record the current equation for compilation, and return its number in the module."""
    calls = build.module.partitioned_calls
    is_manual = build.module.manual is not None
    calls.append(PartitionedCall(params, build.avals_in, build.avals_out, is_manual))
    return len(calls) - 1


def rule_text(rule: SizedShardingRule) -> str:
    """Return a rule as Shardy's attribute.

    `"i (j k) -> i"` of shapes (8, 6) and (8,), with k=2, is
    `#sdy.op_sharding_rule<([i, jk])->([i]) {i=8, j=3, k=2}, custom>`.
    """
    letters = dict(zip(rule.sizes, map(_letter, range(len(rule.sizes)))))

    def values(sides: Sequence[Sequence[tuple[str, ...]]]) -> str:
        return ", ".join(
            f"[{', '.join(''.join(map(letters.__getitem__, factors)) for factors in axes)}]"
            for axes in sides
        )

    sizes = ", ".join(f"{letters[factor]}={size}" for factor, size in rule.sizes.items())
    special = "".join(
        f" {name}={{{', '.join(sorted(map(letters.__getitem__, factors), key=_by_number))}}}"
        for kind, name in _KINDS.items()
        if (factors := rule.special[kind])
    )
    shown = f" {{{sizes}}}{special}" if sizes else ""
    return (
        f"#sdy.op_sharding_rule<({values(rule.operands)})->({values(rule.results)}){shown}, custom>"
    )


def _letter(number: int) -> str:
    return _LETTERS[number] if number < len(_LETTERS) else f"z_{number - len(_LETTERS) + 1}"


def _by_number(letter: str) -> tuple[int, str]:
    return len(letter), letter
