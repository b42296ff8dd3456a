"""Types for annotations: arrays, shapes, dtypes, axes, and values that stand for them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NewType, Protocol

import numpy as np

from hlofront.base.array_class import Array as Array
from hlofront.base.elements import ExtendedDType
from hlofront.base.elements import NumPyArray as NumPyArray

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class SupportsDType(Protocol):
    """A protocol of values with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


# `Array` is an array on devices, or a tracer of one in a traced function.
# A value that an operation accepts as an array.
if TYPE_CHECKING:
    ArrayLike = Array | NumPyArray | np.bool_ | np.number[Any] | bool | int | float | complex
else:  # Libraries call isinstance(x, jax.typing.ArrayLike), which requires plain classes.
    ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
# The operands of an operation, or its results.
ArrayLikes = Sequence[ArrayLike]
# A dtype, or a value that names one: a string, a scalar type, or an array or object with a dtype.
DTypeLike = str | type[Any] | np.dtype[Any] | ExtendedDType | SupportsDType
# A NumPy dtype, or an extended one, such as that of random keys.
DType = np.dtype[Any] | ExtendedDType
# The sizes of an array's axes.
Shape = tuple[int, ...]
# A shape as users write it: an integer is the size of a single axis.
ShapeLike = int | Sequence[int]
# One axis, counted from the end if negative; each function defines None.
Axis = int | None
# One axis or several; None usually means all of them.
Axes = int | Sequence[int] | None
# One random key or an array of them, typed or as integers, for annotations: `Key(x)` is x.
Key = NewType("Key", Array)
# An operand of an operation, or its result: an array, a scalar, a tracer, a token, a reference,
# or a value of a type that other packages register.
Value = Any
# The parameters of an equation, by name: static attributes of any type.
Params = dict[str, Any]


def is_tuple_or_list(x: object) -> "TypeIs[tuple[Any, ...] | list[Any]]":
    """Return whether a value is a tuple or a list, whose members may be of any type."""
    return isinstance(x, (tuple, list))


def is_tuple(x: object) -> "TypeIs[tuple[Any, ...]]":
    """Return whether a value is a tuple, whose members may be of any type."""
    return isinstance(x, tuple)


def is_numpy_array(x: object) -> "TypeIs[NumPyArray]":
    """Return whether a value is a NumPy array."""
    return isinstance(x, np.ndarray)


def is_numpy_value(x: object) -> "TypeIs[NumPyArray | np.generic[Any]]":
    """Return whether a value is a NumPy array or scalar."""
    return isinstance(x, (np.ndarray, np.generic))
