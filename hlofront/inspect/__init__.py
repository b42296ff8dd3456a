"""The inspection of programs: reading, comparing and pricing HLO, StableHLO and jaxprs as text."""

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
        "NanReport": "hlofront.inspect.nan.report",
        "Shape": "hlotools.ir.hlo",
        "Comparison": "hlofront.inspect.comparison.compare",
        "Fits": "hlofront.inspect.memory_fit",
        "canonical": "hlotools.ir.canonical_form",
        "compare": "hlofront.inspect.comparison.compare",
        "collectives": "hlofront.inspect.sharding",
        "costs": "hlofront.inspect.cost",
        "diff": "hlofront.inspect.difference",
        "find_nan": "hlofront.inspect.nan.find_nan",
        "fits": "hlofront.inspect.memory_fit",
        "page": "hlofront.inspect.program_page",
        "parse": "hlotools.ir.hlo_parser",
        "styled": "hlotools.ir.styles",
        "write": "hlotools.ir.hlo_printer",
    },
)

__all__ = (
    "Comparison",
    "Computation",
    "Costs",
    "Diff",
    "Fits",
    "HloModule",
    "HloSyntaxError",
    "Instruction",
    "NanReport",
    "Shape",
    "canonical",
    "collectives",
    "compare",
    "costs",
    "diff",
    "find_nan",
    "fits",
    "page",
    "parse",
    "styled",
    "write",
)
