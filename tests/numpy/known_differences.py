"""Where ours may do otherwise with a wrong call of the catalogue than jax does, and why."""

import re
from typing import Any

# Where ours may do otherwise with a wrong call: what the call's name and jax's answer begin with or
# hold, as regular expressions, and why.
OTHERWISE = (
    # Errors that come from how jax is made, of classes that tell a user nothing.
    (r".", "Non-hashable static arguments", "there arguments are hashed before they are looked at"),
    (r".", "IndexError: only integers, slices", "there axes index an array of places"),
    (r".", "IndexError: (too many indices|tuple index|list index)", "there it is found too late"),
    (r".", "(AssertionError|ZeroDivisionError)", "there it is found too late"),
    (r"(compress|extract)\(", "TracerBool", "ours: its base class"),
    (r".", "TracerArrayConversionError", "there what is no array is found too late"),
    (r"swapaxes of (None|a boolean)", "setting an array element", "there axes index an array"),
    (r"(array_|.)?split(\(| of a string)", "invalid literal for int", "ours: no integer"),
    (r"(array_|.)?split of a mask", "numpy.bool", "ours: indices must ascend"),
    (r"(array_)?split\(float32\[4\], -1", "Sum of sizes", "ours: as for no parts"),
    (r"einsum|einsum_path", "Cannot determine|correct number|not contain", "there a path is found"),
    (r"reshape of", "cannot reshape array of size", "there NumPy reshapes NumPy's arrays"),
    (r"repeat of", "remapped shapes", "ours: no integers"),
    (r"pad of", "unsupported shape", "ours looks at the dtype first"),
    (r"roll of", ".", "ours: no integers"),
    (r"roll\(float32\[3\], None", "None is not a valid", "ours: no array"),
    (r"put_along_axis of", "must (have same|be broadcast)", "ours looks at the dtype first"),
    (r"take_along_axis of a boolean", "integer type", "ours looks at the shape first"),
    (r"piecewise( of|\()", ".", "there condlist is asked for its length"),
    (r"piecewise with|fromfunction with", ".", "there keywords are arguments of the function"),
    (r"average of None", "out of bounds", "there None has no axes"),
    (r"(arange|reshape|full_like|diag_indices_from|cov|corrcoef) (of|with)", ".", "class"),
    (r"diagonal|trace", "isn't a permutation", "ours: ValueError, as NumPy"),
    (r"permute_dims|block of None|concatenate\(float32\[\]\)", ".", "ours: no such axis, no array"),
    (r"histogram", "TypeError|ConcretizationTypeError", "ours says that names of rules are none"),
    (r"choose\(|ravel_multi_index", "Concretization", "ours knows the constant"),
    (r"ravel_multi_index of", ".", "ours looks at the shape first"),
    (r"compress with axis|cross with axis", ".", "there axes may be tuples until used"),
    (r"(arg)?partition of a complex", "NotImplementedError", "ours sorts complex numbers"),
    (r"insert", "ValueError", "ours: TypeError where shapes do not broadcast"),
    # What ours takes, and jax does not.
    (r"quantile|nanquantile|percentile|nanpercentile", "(mul|sub|floor) does not", "whole q's"),
    (r"(arg)?partition of a mask", "neg does not accept", "ours sorts booleans"),
    (r"ix_ of a mask", "NotImplementedError", "masks"),
    (r"array_equiv", "incompatible shapes", "ours: False, as NumPy"),
    (r"(nan)?cum(sum|prod) of a boolean", "out of bounds", "scalars are as arrays of one element"),
    (r"put of", "fewer dimensions", "ours gives scalars back"),
    (r"tensordot of a boolean", "TypeError", "a boolean is an integer"),
    (r"insert of a boolean", "integer typed", "a boolean is an integer"),
    (r"bincount of", ".", "booleans are counted"),
    # What jax takes by accident.
    (r"tile(\(| of a mask)|rot90\(|delete of a boolean|put of a mask", ".", "nonsense"),
    (r"unravel_index of a mask", ".", "there a boolean size less one is an integer"),
    (r"broadcast_shapes of", ".", "there sizes stay what they are"),
    (r"size of unsigned", ".", "ours looks at each axis"),
    # Weak types of results of Python scalars.
    (r"unique.* of a float|insert of a (float|complex)", "weak", "weak types"),
    (r"(intersect1d|union1d|setdiff1d|setxor1d) of a float", "weak", "weak types"),
    (r"choose of a list|var\(float32\[3\], dtype=int32\)", ".", "weak types"),
    (r"logical_(and|or|xor) of", "bool", "weak types"),
)


def expected(name: str, wanted: Any) -> bool:
    """Whether ours may well do otherwise with a wrong call."""
    return any(
        re.match(pattern, name) and re.search(answer, str(wanted))
        for pattern, answer, _ in OTHERWISE
    )
