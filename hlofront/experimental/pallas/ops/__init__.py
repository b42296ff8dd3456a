"""jax.experimental.pallas.ops: functions that JAX has kernels for."""
