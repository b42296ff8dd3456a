"""jax.experimental.pallas.ops.tpu: functions that JAX has kernels for TPUs for."""
