"""Kernels that are written as functions of references to blocks of arrays."""
