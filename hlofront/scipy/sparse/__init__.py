"""hlofront.scipy.sparse: linear systems whose matrix may be a function."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, ("linalg",))
