"""Elementwise functions, and ufuncs."""
