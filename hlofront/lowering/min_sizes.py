"""The smallest sizes for which replacements of XLA's operations are profitable.

`python benchmarks/calibrate.py` measures and writes them: from these sizes on, a replacement is at
least twice as fast as XLA's operation, and makes up for its longer compile time within 100 calls.

By primitive, and by the dtype or the form of the replacement: numbers of elements of the result, of
products of two numbers in `dot_general` and convolutions, of operands in reductions and sorts.
"""

MIN_SIZES: dict[str, dict[str, int]] = {
    "acos": {"float32": 4_096, "float64": 4_096},
    "acosh": {"float64": 4_096},
    "argmax": {"packed": 16_384, "line of blocks": 32_768, "slices": 65_536},
    "asin": {"float32": 4_096, "float64": 4_096},
    "asinh": {"float64": 4_096},
    "atan": {"float32": 16_384, "float64": 32_768},
    "atan2": {"float32": 4_096, "float64": 4_096},
    "atanh": {"float64": 4_096},
    "bessel_i0e": {"float32": 4_096, "float64": 4_096},
    "bessel_i1e": {"float32": 4_096, "float64": 4_096},
    "cbrt": {"float32": 8_192, "float64": 8_192},
    "conv_general_dilated": {
        "depthwise": 32_768,
        "groups of a batch": 256,
        "dilated inputs": 1 << 18,
    },
    "cos": {"float32": 16_384, "float64": 8_192},
    "cosh": {"float64": 4_096},
    "cumsum": {"all": 1_024},
    "digamma": {"float32": 4_096, "float64": 4_096},
    "div": {"integers": 4_096},
    "dot_general": {
        "small": 1 << 14,
        "vectors": 1 << 16,
        "bytes": 1 << 18,
        "shifted": 1 << 20,
        "batch": 1 << 12,
    },
    "erf": {"float64": 4_096},
    "erf_inv": {"float64": 4_096},
    "exp": {"complex64": 8_192, "complex128": 4_096},
    "exp2": {"float32": 65_536, "float64": 32_768},
    "expm1": {"float64": 65_536, "complex64": 16_384, "complex128": 4_096},
    "lgamma": {"float32": 4_096, "float64": 4_096},
    "log": {"float64": 32_768, "complex64": 4_096, "complex128": 4_096},
    "log1p": {"float64": 16_384, "complex64": 4_096, "complex128": 4_096},
    "polygamma": {"float32": 16_384, "float64": 16_384},
    "pow": {"float32": 32_768, "float64": 16_384},
    "reduce": {"integers": 4_096, "floats": 4_096},
    "reduce_window": {"all": 16_384},
    "rem": {"float32": 32_768, "float64": 4_096, "integers": 4_096},
    "rsqrt": {"complex64": 4_096, "complex128": 4_096},
    "sin": {"float32": 16_384, "float64": 8_192},
    "sinh": {"float32": 4_096, "float64": 4_096},
    "sort": {"packed": 1_000},
    "sqrt": {"complex64": 4_096, "complex128": 4_096},
    "tan": {"float32": 8_192, "float64": 16_384},
    "threefry2x32": {"all": 64},
    "zeta": {"float32": 16_384, "float64": 16_384},
}

# How many times as fast replacements are than XLA's operations at a size of 2**20, and how many
# milliseconds longer they take to compile.
GAINS: dict[str, dict[str, tuple[float, int]]] = {}
