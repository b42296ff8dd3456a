"""jax.experimental.pjit: JAX has no public names here since `jit` takes shardings."""
