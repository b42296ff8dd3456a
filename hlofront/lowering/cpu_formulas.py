"""The registration of lowering rules for CPUs that replace slow operations of XLA by formulas."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlofront.base.dtypes import issubdtype
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.mlir import Value
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import LoweringCondition, LoweringRule, lower
from hlofront.lowering.builder import Builder, in_function
from hlofront.lowering.types import NumPyDType

# Threads that lower may import modules with rules of one primitive at once.
_lock = threading.Lock()


class Candidate(NamedTuple):
    """An equation that a formula can compute: the types of its operands and results, its params."""

    avals_in: Sequence[ShapedArray]
    avals_out: Sequence[ShapedArray]
    params: Mapping[str, Any]


def formula_on_cpu(
    *primitives: Primitive,
    when: Callable[[Candidate], bool],
    stored: bool = False,
    elementwise: bool = False,
    in_place: bool = False,
) -> Callable[[LoweringRule], LoweringRule]:
    """Return a decorator that registers a rule for the equations on CPUs which meet a condition.

    The option `hlofront_cpu_formulas` switches all these rules off. They have barriers and loops,
    which the regions of reductions and scatters cannot hold, so these keep XLA's operations.

    Args:
      when: the condition, which says for which equations the formula is the faster one.
      stored: whether the rule's results are behind barriers, so that the equations of modules
        whose barriers may be dropped keep XLA's operation.
      elementwise: whether the formula is split over devices without communication, as XLA's
        operation is, and holds for any sizes. Others are for one device and known sizes: XLA splits
        the other axes of a sort, but of gathers it may collect the operands.
      in_place: whether the rule emits its operations where the equation is. Others emit them into a
        private function, which is called there.
    """

    def pays(build: Builder) -> bool:
        if not build.module.cpu_settings.formulas or build.module.is_scalar_region:
            return False
        if stored and not build.module.keeps_barriers:
            return False
        if not elementwise and not build.is_undivided:
            return False
        return when(candidate(build))

    def register(rule: LoweringRule) -> LoweringRule:
        for primitive in primitives:
            with _lock:
                _register(primitive, rule if in_place else in_function(rule), pays)
        return rule

    return register


def _register(primitive: Primitive, rule: LoweringRule, pays: LoweringCondition) -> None:
    """Register a rule for CPUs in addition to one for other equations, if there is one already."""
    other = lower.on_platform.get((primitive, "cpu"))
    if other is None:
        lower(primitive, platform="cpu", when=pays)(rule)
        return
    other_pays = lower.conditions[primitive, "cpu"]

    def either_pays(build: Builder) -> bool:
        return pays(build) or other_pays(build)

    @lower(primitive, platform="cpu", when=either_pays)
    def _(build: Builder, *operands: Value, **params: Any) -> Any:
        return (rule if pays(build) else other)(build, *operands, **params)


def candidate(build: Builder) -> Candidate:
    """Return the equation that is being lowered."""
    return Candidate(build.avals_in, build.avals_out, build.current.params)


def is_narrow_float(dtype: NumPyDType) -> bool:
    """Return whether a dtype is one of real floats of at most 32 bits."""
    return issubdtype(dtype, np.floating) and dtype.itemsize <= np.dtype(np.float32).itemsize
