"""jax.experimental.key_reuse: the checks of the option jax_debug_key_reuse.

JAX has no public names here; the error is `hlofront.errors.KeyReuseError`.
"""
