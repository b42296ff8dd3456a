"""Random bits as StableHLO."""
