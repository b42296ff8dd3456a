"""The inspection of programs: what XLA makes of a function, what it costs, where it goes wrong.

- What it is: `page`, `styled`, `kernels`, `collectives` and `reshards` of several devices, and
  `dumped` for the passes of XLA, whose times are those of `compile_times`.
- What it costs: `costs` and `profile` by source line, `memory_use`, `fits`, `tpu_kernels`,
  `gpu_kernels`, `tune`; `array_owners` of the arrays that are alive.
- What differs: `diff` of two programs, `compare` and `bisect` of jaxlibs, devices and revisions.
- Where numbers go wrong: `find_nan`, `find_error`; what XLA compiles wrongly: `find_miscompile`.
- Files and texts: `parse`, `write`, `canonical`, `profiles_in`; of dumps: `dump_folder`,
  `dumped_modules`, `timeline`.

They take results of `jit(f).lower(x).compile()`, of `lower` or `trace`, and text. Notebooks show
most results as HTML. Read next: help(hlofront.inspect.costs), and `python -m hlofront`, which does
the same at a shell.
"""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    later={
        "hlofront.inspect.bisection": "Bisection bisect",
        "hlofront.inspect.comparison.compare": "Comparison compare",
        "hlofront.inspect.cost": "costs memory_use",
        "hlofront.inspect.difference": "diff",
        "hlofront.inspect.dumps": "dumped gpu_kernels tpu_kernels",
        "hlofront.inspect.error.find_error": "find_error",
        "hlofront.inspect.error.report": "ErrorReport",
        "hlofront.inspect.kernel_decoding": "parse",
        "hlofront.inspect.memory_fit": "Fits fits",
        "hlofront.inspect.miscompile.find_miscompile": "find_miscompile",
        "hlofront.inspect.miscompile.report": "MiscompileReport",
        "hlofront.inspect.miscompile.verify": "MiscompileError",
        "hlofront.inspect.nan.find_nan": "find_nan",
        "hlofront.inspect.nan.report": "NanReport",
        "hlofront.inspect.pass_times": "compile_times",
        "hlofront.inspect.profiling": "profile profiles_in",
        "hlofront.inspect.program_page": "page",
        "hlofront.inspect.resharding.report": "Reshards",
        "hlofront.inspect.resharding.reshards": "reshards",
        "hlofront.inspect.sharding": "collectives",
        "hlofront.inspect.tuning": "Tuning TuningCandidate tune",
        "hlofront.runtime.array.owners": "ArrayOwner array_owners",
        "hlotools.cost.costs": "Costs",
        "hlotools.cost.memory_use": "MemoryUse",
        "hlotools.dumps.dump_files": "DumpedModule dumped_modules",
        "hlotools.dumps.dump_folder": "dump_folder",
        "hlotools.dumps.gpu_kernels": "GpuKernel GpuKernels",
        "hlotools.dumps.kernels": "Kernel kernels",
        "hlotools.dumps.timeline": "Timeline timeline",
        "hlotools.dumps.tpu_kernels": "TpuKernel TpuKernels",
        "hlotools.ir.canonical_form": "canonical",
        "hlotools.ir.hlo": "Computation HloModule HloSyntaxError Instruction Shape",
        "hlotools.ir.hlo_printer": "write",
        "hlotools.ir.styles": "styled",
        "hlotools.matching.difference": "Diff",
        "hlotools.profiles.compile_times": "CompileTimes",
        "hlotools.profiles.comparison": "ProfileDiff",
        "hlotools.profiles.profile": "Profile",
    },
)
