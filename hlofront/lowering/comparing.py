"""Comparisons and selection as StableHLO."""
