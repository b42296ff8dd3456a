"""Programs to read and compare: HLO, StableHLO and jaxprs, in Python alone."""

from hlofront.base.lazy import lazy as _lazy

# Loaded on first use: reading text needs no compiler, no device and little time.
__getattr__, __dir__ = _lazy(
    __name__,
    (
        "canonical_form",
        "changes",
        "cost",
        "difference",
        "estimates",
        "hlo_graph",
        "hlo_text",
        "stablehlo_text",
        "styles",
    ),
    {
        "Computation": "hlofront.inspect.hlo_graph",
        "Costs": "hlofront.inspect.cost",
        "Diff": "hlofront.inspect.difference",
        "HloModule": "hlofront.inspect.hlo_graph",
        "HloSyntaxError": "hlofront.inspect.hlo_graph",
        "Instruction": "hlofront.inspect.hlo_graph",
        "Shape": "hlofront.inspect.hlo_graph",
        "Comparison": "hlofront.inspect.comparison",
        "Fits": "hlofront.inspect.memory_fit",
        "canonical": "hlofront.inspect.canonical_form",
        "compare": "hlofront.inspect.comparison",
        "costs": "hlofront.inspect.cost",
        "diff": "hlofront.inspect.difference",
        "fits": "hlofront.inspect.memory_fit",
        "parse": "hlofront.inspect.hlo_text",
        "styled": "hlofront.inspect.styles",
        "write": "hlofront.inspect.hlo_text",
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
    "Shape",
    "canonical",
    "compare",
    "costs",
    "diff",
    "fits",
    "parse",
    "styled",
    "write",
)
