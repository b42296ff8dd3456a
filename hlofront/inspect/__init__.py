"""The inspection of programs: what XLA makes of a function, what it costs, where it goes wrong.

- What it is: `page`, `styled`, `collectives`, `kernels`, and `dumped` for XLA's passes, whose
  times are those of `compile_times`.
- What it costs: `costs` and `profile` by source line, `memory_use`, `fits`, `tpu_kernels`, `tune`.
- What differs: `diff` of two programs, `compare` and `bisect` of jaxlibs, devices and revisions.
- Where numbers go wrong: `find_nan`, `find_error`.
- Files and texts: `parse`, `write`, `canonical`, `profiles_in`; of dumps: `dump_folder`,
  `dumped_modules`, `timeline`.

They take results of `jit(f).lower(x).compile()`, of `lower` or `trace`, and text. Notebooks show
most results as HTML. Read next: help(hlofront.inspect.costs), and `python -m hlofront`, which does
the same at a shell.
"""

from hlofront.base.lazy import lazy as _lazy

# The names are imported on first use: reading text needs no compiler and no device.
__getattr__, __dir__ = _lazy(
    __name__,
    ("cost", "difference"),
    {
        "Computation": "hlotools.ir.hlo",
        "Costs": "hlotools.cost.costs",
        "Diff": "hlotools.matching.difference",
        "HloModule": "hlotools.ir.hlo",
        "HloSyntaxError": "hlotools.ir.hlo",
        "Instruction": "hlotools.ir.hlo",
        "DumpedModule": "hlotools.dumps.dump_files",
        "Kernel": "hlotools.dumps.kernels",
        "MemoryUse": "hlotools.cost.memory_use",
        "NanReport": "hlofront.inspect.nan.report",
        "Profile": "hlotools.profiles.profile",
        "Shape": "hlotools.ir.hlo",
        "Timeline": "hlotools.dumps.timeline",
        "TpuKernel": "hlotools.dumps.tpu_kernels",
        "TpuKernels": "hlotools.dumps.tpu_kernels",
        "Tuning": "hlofront.inspect.tuning",
        "TuningCandidate": "hlofront.inspect.tuning",
        "Comparison": "hlofront.inspect.comparison.compare",
        "CompileTimes": "hlotools.profiles.compile_times",
        "Bisection": "hlofront.inspect.bisection",
        "ErrorReport": "hlofront.inspect.error.report",
        "Fits": "hlofront.inspect.memory_fit",
        "bisect": "hlofront.inspect.bisection",
        "canonical": "hlotools.ir.canonical_form",
        "compare": "hlofront.inspect.comparison.compare",
        "collectives": "hlofront.inspect.sharding",
        "compile_times": "hlofront.inspect.pass_times",
        "costs": "hlofront.inspect.cost",
        "diff": "hlofront.inspect.difference",
        "find_error": "hlofront.inspect.error.find_error",
        "dumped": "hlofront.inspect.dumps",
        "dump_folder": "hlotools.dumps.dump_folder",
        "dumped_modules": "hlotools.dumps.dump_files",
        "find_nan": "hlofront.inspect.nan.find_nan",
        "fits": "hlofront.inspect.memory_fit",
        "kernels": "hlotools.dumps.kernels",
        "memory_use": "hlofront.inspect.cost",
        "page": "hlofront.inspect.program_page",
        "parse": "hlofront.inspect.kernel_decoding",
        "profile": "hlofront.inspect.profiling",
        "profiles_in": "hlofront.inspect.profiling",
        "styled": "hlotools.ir.styles",
        "timeline": "hlotools.dumps.timeline",
        "tpu_kernels": "hlofront.inspect.dumps",
        "tune": "hlofront.inspect.tuning",
        "write": "hlotools.ir.hlo_printer",
    },
)

__all__ = (
    "Bisection",
    "Comparison",
    "CompileTimes",
    "Computation",
    "Costs",
    "Diff",
    "ErrorReport",
    "DumpedModule",
    "Fits",
    "HloModule",
    "HloSyntaxError",
    "Instruction",
    "Kernel",
    "MemoryUse",
    "NanReport",
    "Profile",
    "Shape",
    "Timeline",
    "TpuKernel",
    "TpuKernels",
    "Tuning",
    "TuningCandidate",
    "bisect",
    "canonical",
    "collectives",
    "compile_times",
    "compare",
    "costs",
    "diff",
    "find_error",
    "dumped",
    "dump_folder",
    "dumped_modules",
    "find_nan",
    "fits",
    "kernels",
    "memory_use",
    "page",
    "parse",
    "profile",
    "profiles_in",
    "styled",
    "timeline",
    "tpu_kernels",
    "tune",
    "write",
)
