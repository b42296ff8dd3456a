"""Primitives that change the dtype of elements, or how their bits are read."""
