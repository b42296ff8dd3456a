"""jax.experimental.pallas.ops.tpu: functions for which JAX has TPU kernels."""
