"""Primitives that order: sort of one or many operands, top_k."""
