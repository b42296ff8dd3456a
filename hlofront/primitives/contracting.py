"""Sums of products: dot_general and its kin."""
