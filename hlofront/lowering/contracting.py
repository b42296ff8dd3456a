"""Contractions as StableHLO."""
