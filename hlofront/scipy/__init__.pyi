# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront.scipy import cluster as cluster
from hlofront.scipy import fft as fft
from hlofront.scipy import integrate as integrate
from hlofront.scipy import interpolate as interpolate
from hlofront.scipy import linalg as linalg
from hlofront.scipy import ndimage as ndimage
from hlofront.scipy import optimize as optimize
from hlofront.scipy import signal as signal
from hlofront.scipy import sparse as sparse
from hlofront.scipy import spatial as spatial
from hlofront.scipy import special as special
from hlofront.scipy import stats as stats
