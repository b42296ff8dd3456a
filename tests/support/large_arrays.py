"""Values of functions of many numbers: for tests of replacements, which are for large arrays."""

import numpy as np

from hlofront import lax

ENOUGH = 5_000  # In tests of lowering, smaller arrays keep the operations of XLA on CPUs.


def computed(name: str, x: np.ndarray) -> np.ndarray:
    """Return the values at fewer numbers than a rule is for, which are computed for so many."""
    return np.asarray(getattr(lax, name)(np.resize(x, max(ENOUGH, len(x)))))[: len(x)]
