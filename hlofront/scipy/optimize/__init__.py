"""hlofront.scipy.optimize: minima of functions."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.scipy.optimize.minimizing": "OptimizeResults minimize",
    },
)
