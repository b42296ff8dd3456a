# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront.scipy.spatial import transform as transform
