"""Types for annotations: what functions of arrays take."""

from typing import Any, Protocol

import numpy as np

from hlofront.bridge import state


class SupportsDType(Protocol):
    """Whatever has a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


# What is made an array where one is wanted.
ArrayLike = state.Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
# What stands for a dtype: its name, a scalar type, a dtype, an array or other thing that has one.
DTypeLike = str | type[Any] | np.dtype | SupportsDType
