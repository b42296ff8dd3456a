"""Scatters as StableHLO, by mode."""
