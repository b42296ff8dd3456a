"""The types that annotations name: arrays, shapes, dtypes and axes, and what stands for them."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from hlofront.base.array_class import Array as Array
from hlofront.base.elements import ExtendedDType


class SupportsDType(Protocol):
    """A value that has a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


# `Array` is an array on devices, or the tracer that stands for one in a traced function.
NumPyArray = np.ndarray[Any, Any]
# A value that an operation accepts as an array.
ArrayLike = Array | NumPyArray | np.bool_ | np.number[Any] | bool | int | float | complex
# What stands for a dtype: its name, a scalar type, a dtype, an array or other thing that has one.
DTypeLike = str | type[Any] | np.dtype[Any] | SupportsDType
# A dtype of NumPy, or one that NumPy does not know, such as the dtype of random keys.
DType = np.dtype[Any] | ExtendedDType
# The sizes of an array's axes.
Shape = tuple[int, ...]
# A shape as users write it: an integer is the size of the only axis.
ShapeLike = int | Sequence[int]
# One axis, counted from the end where it is negative; each function says what None means.
Axis = int | None
# One axis or several; None usually means all of them.
Axes = int | Sequence[int] | None
# The parameters of an equation, by name: static attributes of any type.
Params = dict[str, Any]
