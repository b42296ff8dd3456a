"""The smallest sizes for which replacements of XLA's operations are profitable.

`python benchmarks/calibrate.py` measures them and writes them here: from these sizes on, a
replacement is at least twice as fast as the program without it, or compiles faster, and 100 calls
make up for its compilation. Replacements more exact than XLA's operation need not be twice as fast.

By primitive, and by the dtype or the form of the replacement: the number of elements of the result;
of products of two numbers in `dot_general` and convolutions; of elements of all windows in
`reduce_window`; of elements of operands in reductions and sorts.
"""

MIN_SIZES: dict[str, dict[str, int]] = {
    "acos": {"float32": 16_384, "float64": 16_384},
    "acosh": {"float64": 262_144},
    "argmax": {"packed": 1_048_576, "line of blocks": 1_048_576, "slices": 1_048_576},
    "asin": {"float32": 16_384, "float64": 16_384},
    "atan": {"float32": 32_768, "float64": 524_288},
    "atan2": {"float32": 8_192, "float64": 131_072},
    "atanh": {"float64": 131_072},
    "cbrt": {"float32": 32_768, "float64": 65_536},
    "conv_general_dilated": {
        "depthwise": 262_144,
        "groups of a batch": 32_768,
        "dilated inputs": 4_194_304,
    },
    "cos": {"float32": 131_072, "float64": 262_144},
    "cosh": {"float64": 524_288},
    "cumsum": {"all": 65_536},
    "digamma": {"float32": 131_072, "float64": 32_768},
    "div": {"integers": 262_144},
    "dot_general": {
        "small": 65_536,
        "vectors": 262_144,
        "bytes": 1_048_576,
        "shifted": 4_194_304,
        "batch": 4_096,
    },
    "erf": {"float64": 131_072},
    "erf_inv": {"float64": 65_536},
    "exp": {"complex64": 524_288, "complex128": 262_144},
    "exp2": {"float32": 131_072, "float64": 262_144},
    "expm1": {"float64": 262_144, "complex64": 524_288, "complex128": 262_144},
    "lgamma": {"float32": 131_072, "float64": 32_768},
    "log": {"float64": 131_072, "complex64": 65_536, "complex128": 65_536},
    "log1p": {"float64": 131_072, "complex64": 32_768, "complex128": 32_768},
    "reduce": {"integers": 1_048_576, "floats": 32_768},
    "reduce_window": {"windows": 4_194_304, "gradients": 16_384},
    "rem": {"float32": 262_144, "float64": 262_144, "integers": 32_768},
    "rsqrt": {"complex64": 65_536, "complex128": 32_768},
    "sin": {"float32": 131_072, "float64": 524_288},
    "sinh": {"float64": 32_768},
    "sort": {"packed": 8_192},
    "sqrt": {"complex128": 32_768},
    "tan": {"float32": 16_384, "float64": 262_144},
    "threefry2x32": {"all": 64},
}

# The speedups of replacements at the largest size that calibrate.py measures, and the additional
# milliseconds to compile them, on an AMD EPYC with AVX2. Maxima of floats (`reduce`) are those of
# jaxlib 0.12: under 0.10 they are XLA's.
GAINS: dict[str, dict[str, tuple[float, int]]] = {
    "acos": {"float32": (19.4, 13), "float64": (10.3, 21)},
    "acosh": {"float64": (2.1, 20)},
    "argmax": {"packed": (3.9, 66), "line of blocks": (18.7, 102), "slices": (5.6, 96)},
    "asin": {"float32": (12.5, 8), "float64": (8.8, 10)},
    "atan": {"float32": (6.3, 13), "float64": (2.3, 24)},
    "atan2": {"float32": (12.2, 10), "float64": (4.0, 25)},
    "atanh": {"float64": (3.2, 32)},
    "cbrt": {"float32": (11.1, 9), "float64": (5.2, 28)},
    "conv_general_dilated": {
        "depthwise": (8.1, 38),
        "groups of a batch": (1651.7, 126),
        "dilated inputs": (12.0, -23),
    },
    "cos": {"float32": (3.9, 10), "float64": (5.5, 186)},
    "cosh": {"float64": (2.1, 9)},
    "cumsum": {"all": (8.7, 86)},
    "digamma": {"float32": (2.8, 56), "float64": (7.1, 37)},
    "div": {"integers": (3.9, -7)},
    "dot_general": {
        "small": (19.8, 34),
        "vectors": (12.4, -55),
        "bytes": (15.4, 13),
        "shifted": (15.5, 69),
    },
    "erf": {"float64": (3.5, 28)},
    "erf_inv": {"float64": (1.8, 24)},
    "exp": {"complex64": (2.4, 30), "complex128": (4.5, 214)},
    "exp2": {"float32": (9.5, 2), "float64": (4.8, 8)},
    "expm1": {"float64": (2.2, 5), "complex64": (2.1, 34), "complex128": (4.2, 218)},
    "lgamma": {"float32": (1.6, 40), "float64": (5.1, 55)},
    "log": {"float64": (2.1, 8), "complex64": (5.4, 15), "complex128": (3.7, 44)},
    "log1p": {"float64": (6.6, 13), "complex64": (5.4, 23), "complex128": (5.0, 58)},
    "reduce": {"integers": (4.7, 5), "floats": (7.8, -42)},
    "reduce_window": {"windows": (4.0, 41), "gradients": (7.2, -231)},
    "rem": {"float32": (19.6, 168), "float64": (11.6, 169), "integers": (4.2, -5)},
    "rsqrt": {"complex64": (5.8, 17), "complex128": (6.9, 51)},
    "sin": {"float32": (3.8, 11), "float64": (5.7, 233)},
    "sinh": {"float64": (4.9, 9)},
    "sort": {"packed": (5.6, 47)},
    "sqrt": {"complex128": (3.3, -60)},
    "tan": {"float32": (4.4, 14), "float64": (5.0, 182)},
    "threefry2x32": {"all": (2.1, -248)},
}
