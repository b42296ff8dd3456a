"""hlofront.numpy: NumPy's functions on arrays of any device, traced, compiled and differentiated."""
from hlofront.numpy import operators
from hlofront.numpy.ufuncs import *
