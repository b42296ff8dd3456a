"""The search for programs that XLA compiles wrongly: `find_miscompile`, and `jit(f, verify=True)`.

`bounds` says what rounding explains, `bounded_run` runs operation by operation, `parts` and
`trials` find the smallest part that is wrong, `cures` what repairs it, `reproducer` writes files.
"""
