"""jax.experimental.pallas.triton: imported by libraries for GPUs; hlofront has no such kernels."""
