"""jax.experimental.sparse.linalg: eigenvectors and linear systems of sparse matrices."""

from hlofront.primitives.sparse.solving import spsolve_p as spsolve_p
from hlofront.sparse.linalg import lobpcg_standard as lobpcg_standard
from hlofront.sparse.linalg import spsolve as spsolve
