"""Primitives that fold axes away: sum, max, argmax, and."""
