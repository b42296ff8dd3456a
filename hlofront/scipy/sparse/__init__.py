"""hlofront.scipy.sparse: linear systems whose matrix is a function."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, ("linalg",))
