"""hlofront.numpy.linalg: linear algebra of matrices and of batches of matrices."""

from hlofront.base.lazy import lazy as _lazy
from hlofront.numpy.linalg.decompositions import cholesky as cholesky
from hlofront.numpy.linalg.decompositions import eig as eig
from hlofront.numpy.linalg.decompositions import eigh as eigh
from hlofront.numpy.linalg.decompositions import eigvals as eigvals
from hlofront.numpy.linalg.decompositions import eigvalsh as eigvalsh
from hlofront.numpy.linalg.decompositions import qr as qr
from hlofront.numpy.linalg.decompositions import svd as svd
from hlofront.numpy.linalg.decompositions import svdvals as svdvals
from hlofront.numpy.linalg.determinants import det as det
from hlofront.numpy.linalg.determinants import slogdet as slogdet
from hlofront.numpy.linalg.norms import cond as cond
from hlofront.numpy.linalg.norms import matrix_norm as matrix_norm
from hlofront.numpy.linalg.norms import matrix_rank as matrix_rank
from hlofront.numpy.linalg.norms import norm as norm
from hlofront.numpy.linalg.norms import vector_norm as vector_norm
from hlofront.numpy.linalg.products import cross as cross
from hlofront.numpy.linalg.products import diagonal as diagonal
from hlofront.numpy.linalg.products import matmul as matmul
from hlofront.numpy.linalg.products import matrix_power as matrix_power
from hlofront.numpy.linalg.products import matrix_transpose as matrix_transpose
from hlofront.numpy.linalg.products import multi_dot as multi_dot
from hlofront.numpy.linalg.products import outer as outer
from hlofront.numpy.linalg.products import tensordot as tensordot
from hlofront.numpy.linalg.products import trace as trace
from hlofront.numpy.linalg.products import vecdot as vecdot
from hlofront.numpy.linalg.systems import inv as inv
from hlofront.numpy.linalg.systems import lstsq as lstsq
from hlofront.numpy.linalg.systems import pinv as pinv
from hlofront.numpy.linalg.systems import solve as solve
from hlofront.numpy.linalg.systems import tensorinv as tensorinv
from hlofront.numpy.linalg.systems import tensorsolve as tensorsolve

__getattr__, __dir__ = _lazy(__name__, ())
