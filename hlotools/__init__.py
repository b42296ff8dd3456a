"""Tools that read, compare and price HLO, StableHLO and jaxprs as text, in Python alone."""
