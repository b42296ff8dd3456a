"""jax.experimental.pallas: attention for TPUs; hlofront does not compile hand-written kernels."""
