"""hlofront.scipy.cluster: clustering of points by vector quantization."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(__name__, submodules="vq")
