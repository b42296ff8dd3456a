"""The smallest sizes for which replacements of XLA's operations are profitable.

`python benchmarks/calibrate.py` measures them and writes them here: from these sizes on, a
replacement is at least twice as fast as the program without it, or compiles faster, and 100 calls
make up for its compilation. Replacements more exact than XLA's operation need not be twice as fast.

By primitive, and by the dtype or the form of the replacement: numbers of elements of the result, of
products of two numbers in `dot_general` and convolutions, of elements of all windows in
`select_and_scatter_add`, of operands in reductions and sorts.
"""

MIN_SIZES: dict[str, dict[str, int]] = {
    "acos": {"float32": 16_384, "float64": 16_384},
    "asin": {"float32": 16_384, "float64": 16_384},
    "atan": {"float32": 32_768},
    "atan2": {"float32": 8_192, "float64": 131_072},
    "atanh": {"float64": 131_072},
    "cbrt": {"float32": 32_768, "float64": 65_536},
    "conv_general_dilated": {
        "depthwise": 262_144,
        "groups of a batch": 32_768,
        "dilated inputs": 4_194_304,
    },
    "cos": {"float32": 131_072},
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
    "erf_inv": {"float64": 65_536},
    "exp2": {"float32": 131_072, "float64": 262_144},
    "lgamma": {"float32": 131_072, "float64": 32_768},
    "log1p": {"float64": 131_072},
    "reduce": {"integers": 1_048_576, "floats": 32_768},
    "rem": {"integers": 32_768},
    "select_and_scatter_add": {"windows": 16_384},
    "sin": {"float32": 131_072},
    "sinh": {"float64": 32_768},
    "sort": {"packed": 8_192},
    "tan": {"float32": 16_384},
    "threefry2x32": {"all": 64},
}

# The speedups of replacements at the largest size that calibrate.py measures, and the additional
# milliseconds to compile them, on an AMD EPYC with AVX2. Maxima of floats (`reduce`) are those of
# jaxlib 0.12: under 0.10 they are XLA's.
GAINS: dict[str, dict[str, tuple[float, int]]] = {
    "acos": {"float32": (19.4, 13), "float64": (10.3, 21)},
    "asin": {"float32": (12.5, 8), "float64": (8.8, 10)},
    "atan": {"float32": (6.3, 13)},
    "atan2": {"float32": (12.2, 10), "float64": (4.0, 25)},
    "atanh": {"float64": (3.2, 32)},
    "cbrt": {"float32": (11.1, 9), "float64": (5.2, 28)},
    "conv_general_dilated": {
        "depthwise": (8.1, 38),
        "groups of a batch": (1651.7, 126),
        "dilated inputs": (12.0, -23),
    },
    "cos": {"float32": (3.9, 10)},
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
    "erf_inv": {"float64": (1.8, 24)},
    "exp2": {"float32": (9.5, 2), "float64": (4.8, 8)},
    "lgamma": {"float32": (1.6, 40), "float64": (5.1, 55)},
    "log1p": {"float64": (6.6, 13)},
    "reduce": {"integers": (4.7, 5), "floats": (7.8, -42)},
    "rem": {"integers": (4.2, -5)},
    "select_and_scatter_add": {"windows": (7.2, -231)},
    "sin": {"float32": (3.8, 11)},
    "sinh": {"float64": (4.9, 9)},
    "sort": {"packed": (5.6, 47)},
    "tan": {"float32": (4.4, 14)},
    "threefry2x32": {"all": (2.1, -248)},
}
