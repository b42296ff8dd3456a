"""Pure Python tools that read, compare and price HLO, StableHLO and jaxprs as text.

The tools need neither hlofront nor jaxlib, and work with jax, too:

    import hlotools

    compiled = jax.jit(step).lower(x).compile()
    print(hlotools.diff("step.before.hlo", compiled.as_text()))
    print(hlotools.costs(compiled.as_text()).text(by="line"))
    open("step.html", "w").write(hlotools.page(compiled.as_text()))
"""

from hlotools.cost.collectives import Collectives as Collectives
from hlotools.cost.collectives import collectives as collectives
from hlotools.cost.costs import Costs as Costs
from hlotools.cost.costs import costs as costs
from hlotools.cost.memory_use import MemoryUse as MemoryUse
from hlotools.cost.memory_use import memory_use as memory_use
from hlotools.dumps.dump_files import DumpedModule as DumpedModule
from hlotools.dumps.dump_files import dumped_modules as dumped_modules
from hlotools.dumps.dump_folder import DumpFolder as DumpFolder
from hlotools.dumps.dump_folder import dump_folder as dump_folder
from hlotools.dumps.gpu_kernels import GpuKernel as GpuKernel
from hlotools.dumps.gpu_kernels import GpuKernels as GpuKernels
from hlotools.dumps.gpu_kernels import gpu_kernels as gpu_kernels
from hlotools.dumps.kernels import Kernel as Kernel
from hlotools.dumps.kernels import kernels as kernels
from hlotools.dumps.timeline import Timeline as Timeline
from hlotools.dumps.timeline import timeline as timeline
from hlotools.dumps.tpu_kernels import TpuKernel as TpuKernel
from hlotools.dumps.tpu_kernels import TpuKernels as TpuKernels
from hlotools.dumps.tpu_kernels import tpu_kernels as tpu_kernels
from hlotools.html.program_page import page as page
from hlotools.ir.canonical_form import canonical as canonical
from hlotools.ir.hlo import Computation as Computation
from hlotools.ir.hlo import HloModule as HloModule
from hlotools.ir.hlo import HloSyntaxError as HloSyntaxError
from hlotools.ir.hlo import Instruction as Instruction
from hlotools.ir.hlo import Shape as Shape
from hlotools.ir.hlo_parser import parse as parse
from hlotools.ir.hlo_printer import write as write
from hlotools.ir.styles import styled as styled
from hlotools.matching.difference import Diff as Diff
from hlotools.matching.difference import diff as diff
from hlotools.profiles.comparison import ProfileDiff as ProfileDiff
from hlotools.profiles.comparison import compare_profiles as compare_profiles
from hlotools.profiles.profile import Profile as Profile
from hlotools.profiles.profile import profile as profile

__all__ = (
    "Collectives",
    "Computation",
    "Costs",
    "Diff",
    "DumpFolder",
    "DumpedModule",
    "GpuKernel",
    "GpuKernels",
    "HloModule",
    "HloSyntaxError",
    "Instruction",
    "Kernel",
    "MemoryUse",
    "Profile",
    "ProfileDiff",
    "Shape",
    "Timeline",
    "TpuKernel",
    "TpuKernels",
    "canonical",
    "collectives",
    "compare_profiles",
    "costs",
    "diff",
    "dump_folder",
    "dumped_modules",
    "gpu_kernels",
    "kernels",
    "memory_use",
    "page",
    "parse",
    "profile",
    "styled",
    "timeline",
    "tpu_kernels",
    "write",
)
