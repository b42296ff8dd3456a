"""hlofront.flatten_util: pytrees of arrays as one vector."""

from hlofront.numpy.arrays.raveling import ravel_pytree as ravel_pytree
