"""Cutting and joining as StableHLO."""
