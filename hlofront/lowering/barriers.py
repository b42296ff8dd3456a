"""Barriers and tokens as StableHLO."""
