"""Creation, shape and order of arrays."""
