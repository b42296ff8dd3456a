"""Kernels for TPUs run step by step on the host, on models of memories, copies and semaphores."""
