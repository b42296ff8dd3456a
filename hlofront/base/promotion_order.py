"""The order of dtypes for promotion: two dtypes promote to their least upper bound."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import ml_dtypes

from hlofront.base.elements import (
    ExtendedDType,
    NumPyDType,
    all_dtypes,
    bool_,
    complexes,
    floats,
    narrow_floats,
    narrow_integers,
    signed_integers,
    unsigned_integers,
)
from hlofront.base.errors import TypePromotionError

# Dtypes form a partial order, in which operands promote to the least upper bound. The three kinds
# of weak dtypes are nodes of the order too, written as the Python types int, float and complex.
# An entry lists the immediate successors of a node.

_i8, _i16, _i32, _i64 = signed_integers
_u8, _u16, _u32, _u64 = unsigned_integers
_bf16, _f16, _f32, _f64 = floats
_c64, _c128 = complexes

# A NumPy dtype, or the Python type that stands for a weak dtype.
Node = NumPyDType | ExtendedDType | type

_STANDARD: dict[Node, tuple[Node, ...]] = {
    bool_: (int,),
    int: (_u8, _i8, *narrow_integers),
    **dict.fromkeys(narrow_integers, ()),
    _u8: (_i16, _u16),
    _u16: (_i32, _u32),
    _u32: (_i64, _u64),
    _u64: (float,),
    _i8: (_i16,),
    _i16: (_i32,),
    _i32: (_i64,),
    _i64: (float,),
    float: (*narrow_floats, _bf16, _f16, complex),
    **dict.fromkeys(narrow_floats, ()),
    _bf16: (_f32,),
    _f16: (_f32,),
    _f32: (_f64, _c64),
    _f64: (_c128,),
    complex: (_c64,),
    _c64: (_c128,),
    _c128: (),
}

# In strict mode, only weak dtypes promote, and only to dtypes that hold their values.
_STRICT: dict[Node, tuple[Node, ...]] = {
    **dict.fromkeys(all_dtypes, ()),
    int: (*narrow_integers, *signed_integers, *unsigned_integers, float),
    float: (*narrow_floats, *floats, complex),
    complex: complexes,
}


@functools.cache
def nodes_above(mode: str) -> dict[Node, frozenset[Node]]:
    """Return, per node of the promotion order, the node and all nodes above it."""
    after = _STRICT if mode == "strict" else _STANDARD
    above: dict[Node, frozenset[Node]] = {}

    def find(node: Node) -> frozenset[Node]:
        if node not in above:
            above[node] = frozenset({node}).union(*map(find, after[node]))
        return above[node]

    for node in after:
        find(node)
    return above


def least_above(nodes: Iterable[Node], mode: str) -> Node:
    """Return the least upper bound of nodes in the promotion order of a mode.

    Raises:
      TypePromotionError: if there is none.
      ValueError: if a node is not in the order.
    """
    above = nodes_above(mode)
    nodes = list(nodes)
    for node in nodes:
        if node not in above:
            raise ValueError(f"dtype {node} is not a valid dtype for JAX type promotion")
    first, *others = (above[node] for node in nodes)
    common = first.intersection(*others)
    for node in common:
        if above[node] == common:
            return node
    raise TypePromotionError(_no_promotion(nodes, mode))


def _no_promotion(nodes: Sequence[Node], mode: str) -> str:
    shown = [f"Python {p.__name__}" if isinstance(p, type) else str(p) for p in nodes]
    text = f"{', '.join(dict.fromkeys(shown))} have no available implicit dtype promotion path"
    floats_here = [node for node in nodes if node in narrow_floats]
    if mode == "strict":
        return (
            f"{text} under jax_numpy_dtype_promotion='strict'. Convert them to one dtype with "
            "x.astype(dtype), or use the option's value 'standard'."
        )
    integers_here = [node for node in nodes if node in narrow_integers]
    # pyrefly: ignore[bad-assignment]
    families: list[tuple[list[Node], Callable[[Node], Any], str, str]] = [
        (floats_here, ml_dtypes.finfo, "floats", "float32"),
        (integers_here, ml_dtypes.iinfo, "integers", "int32"),
    ]
    for narrow, limits, family, example in families:
        if narrow:
            return (
                f"{text}: {limits(narrow[0]).bits}-bit {family} are never promoted implicitly. "
                f"Convert them explicitly, e.g. x.astype('{example}')."
            )
    return f"{text}. Convert them to one dtype with x.astype(dtype)."
