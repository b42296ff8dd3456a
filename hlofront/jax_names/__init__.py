"""The names of JAX: modules `jax` and `jax.*` whose contents are hlofront's."""
