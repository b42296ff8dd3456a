"""Importing this module opens JAX's names for the rest of the process."""

# pyright: strict

from hlofront.jax_names.import_hook import open_names

open_names()
