"""hlofront.scipy.optimize: minima of functions."""

from hlofront.scipy.optimize.minimizing import OptimizeResults as OptimizeResults
from hlofront.scipy.optimize.minimizing import minimize as minimize
