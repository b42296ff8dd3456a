"""Running reductions as StableHLO."""
