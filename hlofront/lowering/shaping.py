"""Rearrangements as StableHLO."""
