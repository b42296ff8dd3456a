"""hlofront.scipy.sparse: linear systems whose matrix may be a function."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(__name__, submodules="linalg")
