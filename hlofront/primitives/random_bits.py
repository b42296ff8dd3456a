"""Primitives that make random bits."""
