# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront import Array
from hlofront.typing import ArrayLike

def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array: ...
def pdf(x: ArrayLike, kappa: ArrayLike) -> Array: ...
