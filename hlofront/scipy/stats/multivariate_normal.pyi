# Written by scripts/write_stubs.py from the running package: do not edit.

from hlofront import Array
from hlofront.typing import ArrayLike

def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array: ...
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array: ...
