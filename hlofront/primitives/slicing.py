"""Primitives that cut and join: slice, pad, concatenate, and slices at run-time offsets."""
