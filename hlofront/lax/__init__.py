"""jax.lax: the operations of XLA under their own names, strict about dtypes and shapes."""

# ---- elementwise
# ---- comparing
# ---- converting
# ---- creating
# ---- special
# ---- shaping
# ---- slicing
# ---- gathering
# ---- scattering
# ---- reducing
# ---- cumulative
# ---- windowed
# ---- contracting
# ---- convolving
# ---- sorting
# ---- random_bits
# ---- barriers
# ---- higher_order
