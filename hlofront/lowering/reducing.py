"""Reductions as StableHLO."""
