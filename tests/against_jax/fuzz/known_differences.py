"""Drawn programs that differ from jax 0.10.2, by seed, and why the difference stays."""

# What has a cause that others share is in shrinking.py, as a text of jax's or of the program.
# A seed draws another program after each change of what is drawn: then these are asked again.
SEEDS: dict[int, str] = {}
