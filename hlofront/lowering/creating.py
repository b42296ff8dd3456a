"""Arrays made from nothing as StableHLO."""
