"""The order of dtypes for promotion: two dtypes promote to their least upper bound."""

import functools

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

# Only weak dtypes promote, and only to dtypes that hold their values.
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
