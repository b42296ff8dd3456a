"""Importing this module opens JAX's names for the rest of the process."""

# pyright: strict

from hlofront.jax_names.window import open_names

open_names()
