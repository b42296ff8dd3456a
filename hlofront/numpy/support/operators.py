"""The operators and methods of arrays and tracers, and their installation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hlofront.base.elements import all_dtypes, float32, float64, int32, int64
from hlofront.base.typing import ArrayLike
from hlofront.bridge import state
from hlofront.bridge.client import ArrayImpl
from hlofront.bridge.fast_parts import Array
from hlofront.core.operators import plug_in_operators
from hlofront.core.trace import process
from hlofront.numpy.arrays import casting, rearranging, sorting

# The module is imported by its full name: `hlofront.numpy.shape` is also a function.
from hlofront.numpy.arrays.shape import ARRAY_METHODS as _SHAPE_METHODS
from hlofront.numpy.elementwise import bitwise, division, logic, powers, ufuncs
from hlofront.numpy.indexing import choosing, selecting, taking, updating
from hlofront.numpy.indexing import reading as indexing
from hlofront.numpy.products import contraction, matrices
from hlofront.numpy.statistics import cumulative, moments, reductions
from hlofront.numpy.support import members
from hlofront.primitives.elementwise import compare, elementwise
from hlofront.primitives.elementwise.families import COMPLEX, FLOAT, INT, NUMBER, Kinds, accepts
from hlofront.runtime.array.key_array import plug_in_key_operators
from hlofront.runtime.dispatch.operation import deferred, is_operand, operation

if TYPE_CHECKING:
    from hlofront.core.primitive import Primitive

_x64 = state.enable_x64

# ---- binary operators --------------------------------------------------------------------------
# For arrays these are C++ functions, which Python binds as methods. For tracers they are Python
# functions that bind the primitive directly if nothing is promoted, since programs are long.


def _array_operator(function: Callable[..., Array], swapped: bool) -> Callable[..., Array]:
    nested = function.when_traced is function
    raw = function.__wrapped__
    if not swapped:
        return operation(raw, defers=True, nested=nested)

    def reflected(x: ArrayLike, y: ArrayLike) -> Array:
        return (function if nested else raw)(y, x)

    ufuncs.rename(reflected, f"reflected_{raw.__name__}", f"{raw.__name__} of swapped operands.")
    return operation(reflected, defers=True)


def _tracer_operator(
    function: Callable[..., Array], primitive: Primitive | None, kinds: Kinds, swapped: bool
) -> Callable[[Array, object], Array]:
    """Make the method of tracers for an operator.

    Args:
      function: the operation for any operands.
      primitive: the primitive for two operands of equal dtype of these kinds, or None.
      kinds: the dtype kinds of the primitive's operands.
      swapped: whether the tracer is the operand on the right.
    """
    general = function.when_traced
    dtypes = frozenset(dtype for dtype in all_dtypes if kinds and accepts(dtype, kinds))
    with_int, with_float = int32 in dtypes, float32 in dtypes
    params: dict[str, None] = {"out_dtype": None} if primitive is elementwise.mul_p else {}

    def method(self: Array, other: Any) -> Array:
        aval = self.aval
        type_ = type(other)
        if type_ is type(self):
            if other.aval is aval and aval.dtype in dtypes:
                return process(primitive, (other, self) if swapped else (self, other), params)
        elif type_ is float:
            dtype = aval.dtype
            if (
                with_float
                and dtype is (float64 if _x64.value else float32)
                and -3e38 < other < 3e38
            ):
                if not aval.weak_type:  # In a jaxpr the scalar appears in its rounded value.
                    other = dtype.type(other)
                return process(primitive, (other, self) if swapped else (self, other), params)
        elif type_ is int:
            if -0x8000_0000 <= other <= 0x7FFF_FFFF:
                dtype = aval.dtype
                if dtype is (float64 if _x64.value else float32):
                    if with_float:
                        other = float(other)
                        return process(
                            primitive, (other, self) if swapped else (self, other), params
                        )
                elif with_int and dtype is (int64 if _x64.value else int32):
                    return process(primitive, (other, self) if swapped else (self, other), params)
        elif not is_operand(other):
            return deferred(function.__wrapped__.__name__, self, other)
        return general(other, self) if swapped else general(self, other)

    name = function.__wrapped__.__name__
    return ufuncs.rename(method, f"reflected_{name}" if swapped else name, function.__doc__)


_INEXACT = FLOAT + COMPLEX

# name -> the function, its primitive, the dtypes that need no promotion, whether it is reflected.
_BINARY: dict[str, tuple[Callable[..., Array], Primitive | None, Kinds, bool]] = {
    "add": (ufuncs.add, elementwise.add_p, NUMBER, True),
    "sub": (ufuncs.subtract, elementwise.sub_p, NUMBER, True),
    "mul": (ufuncs.multiply, elementwise.mul_p, NUMBER, True),
    "truediv": (ufuncs.divide, elementwise.div_p, _INEXACT, True),
    "floordiv": (division.floor_divide, None, (), True),
    "mod": (division.remainder, None, (), True),
    "divmod": (division.divmod, None, (), True),
    "and": (bitwise.bitwise_and, elementwise.and_p, INT, True),
    "or": (bitwise.bitwise_or, elementwise.or_p, INT, True),
    "xor": (bitwise.bitwise_xor, elementwise.xor_p, INT, True),
    "lshift": (bitwise.left_shift, elementwise.shift_left_p, INT, True),
    "rshift": (bitwise.right_shift, None, (), True),
    "eq": (logic.equal, compare.eq_p, NUMBER, False),
    "ne": (logic.not_equal, compare.ne_p, NUMBER, False),
    "lt": (logic.less, compare.lt_p, INT + FLOAT, False),
    "le": (logic.less_equal, compare.le_p, INT + FLOAT, False),
    "gt": (logic.greater, compare.gt_p, INT + FLOAT, False),
    "ge": (logic.greater_equal, compare.ge_p, INT + FLOAT, False),
}


def _binary_members() -> tuple[dict[str, Callable[..., Array]], dict[str, Callable[..., Array]]]:
    tracers, arrays = {}, {}
    for name, (function, primitive, kinds, reflects) in _BINARY.items():
        for swapped in (False, True) if reflects else (False,):
            member = f"__r{name}__" if swapped else f"__{name}__"
            tracers[member] = _tracer_operator(function, primitive, kinds, swapped)
            arrays[member] = _array_operator(function, swapped)
    return tracers, arrays


# ---- powers ------------------------------------------------------------------------------------

_power = _array_operator(powers.any_power, False)
_reflected_power = _array_operator(powers.any_power, True)


def _array_power(self: Array, other: object) -> Array:
    """Compute the power elementwise; an integer exponent of the host is part of the program."""
    exponent = powers.static_exponent(other)
    return _power(self, other) if exponent is None else powers.integer_power(self, exponent)


def _array_reflected_power(self: Array, other: object) -> Array:
    """Compute the power `other ** self`; the host reads an exponent that is a single integer."""
    exponent = powers.static_exponent(self) if is_operand(other) else None
    if exponent is None:
        return _reflected_power(self, other)
    return powers.integer_power(other, exponent)


def _tracer_power(self: Array, other: object) -> Array:
    """Compute the power `self ** other` elementwise."""
    if not is_operand(other):
        return deferred("power", self, other)
    return powers.any_power.when_traced(self, other)


def _tracer_reflected_power(self: Array, other: object) -> Array:
    """Compute the power `other ** self` elementwise."""
    if not is_operand(other):
        return deferred("power", other, self)
    return powers.any_power.when_traced(other, self)


# ---- unary operators ---------------------------------------------------------------------------

_UNARY = {
    "__neg__": ufuncs.negative,
    "__pos__": ufuncs.positive,
    "__abs__": ufuncs.absolute,
    "__invert__": bitwise.invert,
}


# ---- installation ------------------------------------------------------------------------------

# For each module of methods: name -> an operation, a function, or a property.
_METHODS: tuple[Mapping[str, Callable[..., object] | property], ...] = (
    _UNARY,
    indexing.ARRAY_METHODS,
    updating.ARRAY_METHODS,
    _SHAPE_METHODS,
    rearranging.ARRAY_METHODS,
    casting.ARRAY_METHODS,
    selecting.ARRAY_METHODS,
    choosing.ARRAY_METHODS,
    sorting.ARRAY_METHODS,
    taking.ARRAY_METHODS,
    reductions.ARRAY_METHODS,
    cumulative.ARRAY_METHODS,
    contraction.ARRAY_METHODS,
    matrices.ARRAY_METHODS,
    members.ARRAY_METHODS,
    moments.ARRAY_METHODS,
)


def plug_in() -> None:
    """Install the operators and methods of arrays and tracers."""
    tracers, arrays = _binary_members()
    tracers |= {"__pow__": _tracer_power, "__rpow__": _tracer_reflected_power}
    arrays |= {"__pow__": _array_power, "__rpow__": _array_reflected_power}
    for chapter in _METHODS:
        for name, method in chapter.items():
            arrays[name] = method
            tracers[name] = getattr(method, "when_traced", method)
    tracers |= updating.REFERENCE_METHODS
    tracers["reshape"] = updating.reshape_of(tracers["reshape"])
    plug_in_operators(tracers, (Array, ArrayImpl), arrays)
    plug_in_key_operators(tracers, arrays)


plug_in()
