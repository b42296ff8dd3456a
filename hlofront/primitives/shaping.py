"""Primitives that rearrange: broadcast, reshape, transpose, squeeze, reverse."""
