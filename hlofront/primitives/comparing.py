"""Primitives that compare, and that choose by what was compared."""
