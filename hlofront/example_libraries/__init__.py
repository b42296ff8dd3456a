"""jax.example_libraries: small optimizers and layers, to learn from and for experiments."""
