"""hlofront.flatten_util: pytrees of arrays as one vector."""

from hlofront.numpy.raveling import ravel_pytree as ravel_pytree
