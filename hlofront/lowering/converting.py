"""Conversions between dtypes as StableHLO."""
