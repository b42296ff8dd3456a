# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront.scipy.sparse import linalg as linalg
