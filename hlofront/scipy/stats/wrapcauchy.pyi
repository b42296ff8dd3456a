# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront import Array
from hlofront.typing import ArrayLike

def logpdf(x: ArrayLike, c: ArrayLike) -> Array: ...
def pdf(x: ArrayLike, c: ArrayLike) -> Array: ...
