# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront import Array
from hlofront.typing import ArrayLike

def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array: ...
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array: ...
