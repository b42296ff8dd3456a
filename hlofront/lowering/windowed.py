"""Windowed reductions as StableHLO."""
