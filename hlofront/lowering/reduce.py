"""Reductions with a user's function as StableHLO."""
