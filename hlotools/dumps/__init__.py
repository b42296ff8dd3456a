"""Folders that XLA dumps: what each pass changed in a program, and the code of its kernels."""
