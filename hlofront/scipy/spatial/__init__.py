"""hlofront.scipy.spatial: rotations in space."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(__name__, submodules="transform")
