"""Convolutions as StableHLO."""
