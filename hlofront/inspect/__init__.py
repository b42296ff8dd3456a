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
        "canonical": "hlofront.inspect.canonical_form",
        "costs": "hlofront.inspect.cost",
        "diff": "hlofront.inspect.difference",
        "parse": "hlofront.inspect.hlo_text",
        "styled": "hlofront.inspect.styles",
        "write": "hlofront.inspect.hlo_text",
    },
)

__all__ = (
    "Computation",
    "Costs",
    "Diff",
    "HloModule",
    "HloSyntaxError",
    "Instruction",
    "Shape",
    "canonical",
    "costs",
    "diff",
    "parse",
    "styled",
    "write",
)
