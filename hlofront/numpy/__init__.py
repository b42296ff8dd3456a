"""hlofront.numpy: NumPy's functions on arrays of any device, traced, compiled and differentiated."""

# ruff: noqa: A004  (names of NumPy stand for Python's)
from hlofront.bridge.fast_parts import Array as ndarray
from hlofront.numpy import operators as _operators  # noqa: F401  (plugs in x + y and x.sum())

# ---- ufuncs, logic, bitwise, complex (numpy helper 1)
from hlofront.numpy.bitwise import *
from hlofront.numpy.complex import *
from hlofront.numpy.constants import *
from hlofront.numpy.creation import *
from hlofront.numpy.division import *
from hlofront.numpy.floats import *
from hlofront.numpy.logic import *
from hlofront.numpy.matrices import *
from hlofront.numpy.powers import *
from hlofront.numpy.ranges import *
from hlofront.numpy.rounding import *
from hlofront.numpy.scalars import *
from hlofront.numpy.ufuncs import *
