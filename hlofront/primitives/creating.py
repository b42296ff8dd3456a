"""Primitives that make arrays from nothing: iota, full, empty."""
