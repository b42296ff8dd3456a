"""The measured times of compiled programs, from files of XLA's profiler."""
