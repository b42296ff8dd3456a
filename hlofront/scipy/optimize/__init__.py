"""hlofront.scipy.optimize: minima of functions."""

from hlofront.base.lazy import lazy as _lazy
from hlofront.scipy.optimize.minimizing import OptimizeResults as OptimizeResults
from hlofront.scipy.optimize.minimizing import minimize as minimize

__getattr__, __dir__ = _lazy(__name__, ())
