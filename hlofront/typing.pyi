# Written by scripts/write_stubs.py from the running package: do not edit.

from typing import Any, TypeAlias

import numpy as np

from hlofront import Array
from hlofront.base.typing import SupportsDType

ArrayLike: TypeAlias = (
    Array | np.ndarray[Any, Any] | np.bool_ | np.number[Any] | bool | int | float | complex
)
DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any] | SupportsDType
