"""Gathers as StableHLO, by mode."""
