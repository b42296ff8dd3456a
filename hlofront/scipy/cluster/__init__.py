"""hlofront.scipy.cluster: clustering of points by vector quantization."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, ("vq",))
