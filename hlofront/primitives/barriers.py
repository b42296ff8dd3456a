"""Primitives that hold the optimizer back: optimization_barrier, tokens."""
