"""Reductions over sliding windows: pooling and its scatter."""
