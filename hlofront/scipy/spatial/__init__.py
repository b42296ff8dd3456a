"""hlofront.scipy.spatial: rotations in space."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, ("transform",))
