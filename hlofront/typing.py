"""Re-exports: types for annotations, from base/typing.py."""

from hlofront.base.typing import ArrayLike as ArrayLike
from hlofront.base.typing import DTypeLike as DTypeLike
