"""Padding of arrays, in every mode."""
