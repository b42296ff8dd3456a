"""Drawn programs that differ from jax 0.10.2, by seed, and why the difference stays."""

# What has a cause that others share is in shrinking.py, as a text of jax's or of the program.
# A seed draws another program after each change of what is drawn: then these are asked again.
SEEDS: dict[int, str] = {
    820685: "a known loop of a checkpoint: jax moves what is the same in all steps out of it, and "
    "drops unread results of the custom_vjp call in it; XLA does both",
    822783: "a Python number that a checkpoint returns is a Python float, not jax's TypedFloat",
    824497: "under debug_infs jax's nan_to_num raises for its own constant, infinity",
    824641: "the sign of the determinant of a NaN matrix is NaN; jax has 1 for some sizes",
}
