"""jax.experimental.pallas: attention for TPUs; hlofront compiles no kernels written by hand."""
