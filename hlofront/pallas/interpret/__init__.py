"""Kernels as programs of XLA's operations, which every device runs."""
