"""Primitives of special functions: gamma, error function, Bessel, zeta."""
