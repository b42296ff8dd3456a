"""Values of functions of many numbers: for tests of lowering rules which are for large arrays."""

import numpy as np

from hlofront import lax

ENOUGH = 70_000  # On CPUs smaller arrays keep the operations of XLA.


def computed(name: str, x: np.ndarray, enough: int = ENOUGH) -> np.ndarray:
    """Return the values at fewer numbers than a rule is for, which are computed for so many."""
    return np.asarray(getattr(lax, name)(np.resize(x, enough)))[: len(x)]
