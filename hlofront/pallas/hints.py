"""Operations of kernels that compute nothing: delay, touch and trace_value."""

from hlofront.base import tree
from hlofront.base.elements import float32, int32
from hlofront.base.tree import PyTree
from hlofront.base.typing import ArrayLike
from hlofront.core import rules
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.effects import OwnEffect
from hlofront.core.jaxpr import Equation
from hlofront.core.primitive import Primitive
from hlofront.core.references import read_effect, write_effect
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.references.references import indexed
from hlofront.primitives.references.rules import Discharged
from hlofront.primitives.rules.derivatives import no_derivative

# The operand is a number of nanoseconds.
delay_p = Primitive("delay", multiple_results=True)
# The operand is a reference.
touch_p = Primitive("add_dependency", multiple_results=True)
touch_p.ref_primitive = True
# The operand is a scalar, which profiles show under the name in the parameter `label`.
trace_value_p = Primitive("trace_value", multiple_results=True)

for _primitive in (delay_p, trace_value_p):
    rules.lower.modules[_primitive.name] = ["hlofront.pallas.interpret.operations"]


class KernelEffect(OwnEffect):
    """An effect that keeps an operation of a kernel from being removed; calls do not have it.

    Attributes:
      name: its name, as in jaxprs.
    """

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


_delay_effect, _trace_effect = KernelEffect("Delay"), KernelEffect("Trace")
rules.effects(delay_p)(lambda *_, **__: frozenset((_delay_effect,)))
rules.effects(trace_value_p)(lambda *_, **__: frozenset((_trace_effect,)))
rules.effects(touch_p)(lambda *_, **__: frozenset((read_effect, write_effect)))


def delay(nanos: ArrayLike) -> None:
    """Make the core wait for some time; interpreted kernels do not wait.

    Args:
      nanos: the number of nanoseconds: a scalar of integers.
    """
    delay_p.bind(convert(nanos, int32, False))


@rules.infer(delay_p)
def _(nanos: ShapedArray) -> list[ShapedArray]:
    if nanos.shape:
        raise ValueError(f"delay takes a number of nanoseconds, got an array {nanos.str_short()}")
    return []


def touch(ref: PyTree) -> None:
    """Make the compiler assume that references are read and written here.

    Args:
      ref: a pytree of references, or of views `ref.at[...]`.

    Raises:
      ValueError: if one is not a reference.
    """
    for each in tree.tree_leaves(ref):
        touch_p.bind(indexed(each, None, "touch")[0])


@rules.infer(touch_p)
def _(ref: AbstractValue) -> list[ShapedArray]:
    return []


@rules.discharge(touch_p)
def _(equation: Equation, operands: object) -> Discharged:
    return [None], []


def trace_value(label: str, value: ArrayLike) -> None:
    """Show a scalar of a kernel in profiles of a TPU.

    Args:
      label: the name under which it is shown.
      value: a scalar of int32 or float32.

    Raises:
      ValueError: if `value` is anything else.
    """
    trace_value_p.bind(value, label=str(label))


@rules.infer(trace_value_p)
def _(value: ShapedArray, *, label: str) -> list[ShapedArray]:
    if value.shape or value.dtype not in (int32, float32):
        raise ValueError(
            f"trace_value requires a scalar of i32 or f32, got {value.str_short()} for {label!r}: "
            "convert it by .astype(jnp.float32), or reduce it"
        )
    return []


no_derivative(delay_p, touch_p, trace_value_p)
