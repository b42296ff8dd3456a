"""Programs with extreme parameters, for `python -m tests.xla_faults.sweep`.

A family is a function whose parameters have ordinary defaults, and returns a function with its
arguments: arrays, or types where arrays would be large. `@family` lists the extremes of each
parameter. A program is the call of a family with one or two of them, and is named by its text.
"""
