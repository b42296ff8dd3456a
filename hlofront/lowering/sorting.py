"""Sorting as StableHLO."""
