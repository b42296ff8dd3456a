"""A user's pytree class with static data, which exports and bundles can write to files."""

import hlofront as jax
from hlofront import export


@jax.tree_util.register_pytree_node_class
class Scaled:
    """A container with static data."""

    def __init__(self, value, factor):
        self.value = value
        self.factor = factor

    def tree_flatten(self):
        return (self.value,), self.factor

    @classmethod
    def tree_unflatten(cls, factor, children):
        return cls(*children, factor)


export.register_pytree_node_serialization(
    Scaled,
    serialized_name="tests.Scaled",
    serialize_auxdata=lambda factor: str(factor).encode(),
    deserialize_auxdata=lambda data: int(data.decode()),
)
