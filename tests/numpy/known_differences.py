"""Wrong calls of the catalogue for which hlofront does not do what jax does, and why.

Each record says for which calls it holds, what jax does with them and what hlofront does, as
regular expressions. `tests/against_jax/test_catalogue.py` checks that each is met by a call.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True, slots=True)
class KnownDifference:
    """A reason why hlofront answers some wrong calls otherwise than jax does.

    Args:
      functions: the names of the functions of the calls, separated by spaces.
      calls: a pattern that what follows the function's name in the call's name begins with.
      jax: a pattern that is in what jax does.
      hlofront: a pattern that is in what hlofront does.
      reason: why hlofront differs.
    """

    functions: str
    calls: str
    jax: str
    hlofront: str
    reason: str

    def covers(self, call: str, jax_outcome: object, our_outcome: object) -> bool:
        """Return whether this is the reason for the outcomes of a call of the catalogue."""
        function = re.match(r"\w*", call)[0]
        return (
            function in self.functions.split()
            and re.match(self.calls, call[len(function) :]) is not None
            and re.search(self.jax, str(jax_outcome)) is not None
            and re.search(self.hlofront, str(our_outcome)) is not None
        )


AXES = r"TypeError: an axis must be an integer"
NO_SHAPE = r"TypeError: Shapes must be 1D sequences of concrete values of integer type"
NO_ARRAY = r"requires ndarray or scalar arguments|is not a valid (JAX )?array"
NO_INTEGER = r"cannot be interpreted as an integer"
RESULT = r"^\('PyTreeDef"

KNOWN_DIFFERENCES = tuple(
    KnownDifference(*record)
    for record in (
        # ---- errors of jax that tell how jax is made, and nothing of the mistake
        (
            "resize",
            " of",
            "Non-hashable static",
            NO_SHAPE,
            "jax hashes shapes first",
        ),
        (
            "resize",
            " of unsigned",
            "Non-hashable static",
            RESULT,
            "hlofront takes shapes as arrays",
        ),
        (
            "rollaxis swapaxes argpartition partition",
            " of",
            "Non-hashable static",
            AXES,
            "jax hashes axes before it reads them",
        ),
        (
            "argpartition partition",
            r"\(float32\[3\], int32\[2\]",
            "Non-hashable static",
            "ConcretizationTypeError",
            "jax hashes a traced array before it reads it",
        ),
        (
            "put_along_axis",
            " of .* at 3",
            "Non-hashable static|AssertionError",
            f"{AXES}|{NO_INTEGER}|only integer scalar arrays",
            "jax hashes axes before it reads them, and asserts that they are integers",
        ),
        (
            "swapaxes packbits unpackbits",
            "",
            "IndexError: (only integers, slices|too many indices)",
            AXES,
            "jax indexes an array of axes by what it is given as an axis",
        ),
        ("hstack", r"\(\[\]\)", "list index out", "Need at least one array", "jax reads the first"),
        ("vecdot", "", "tuple index out", "must have ndim at least 1", "jax reads the last size"),
        ("pad", r"\(.*reflect_type", "AssertionError", "must be 'even' or 'odd'", "jax asserts it"),
        (
            "reshape",
            r"\(float32\[0\], \(0, -1\)",
            "ZeroDivisionError",
            "cannot reshape array",
            "jax divides by the size",
        ),
        (
            "ravel_multi_index",
            " of .* at 1",
            "AssertionError: len",
            NO_SHAPE,
            "jax asserts the length",
        ),
        (
            "ravel_multi_index",
            " of a boolean at 1",
            r"object of type 'bool' has no len\(\)",
            "AssertionError: len",
            "hlofront takes a boolean for a shape of one axis",
        ),
        (
            "compress extract",
            r"\(bool\[3\]",
            "TracerBoolConversionError",
            "ConcretizationTypeError",
            "hlofront raises the base class of jax's error",
        ),
        (
            "average",
            " of a list| of None|\\(\\[1, 2\\]\\)",
            "TracerArrayConversionError|out of bounds",
            NO_ARRAY,
            "jax reads the axes of what is no array",
        ),
        (
            "swapaxes",
            " of None",
            "setting an array element",
            AXES,
            "jax makes an array of the axes",
        ),
        (
            "split array_split hsplit vsplit dsplit",
            r" of a string|\(float32\[4\], 'a'",
            "invalid literal for int",
            NO_INTEGER,
            "jax reads strings as integers",
        ),
        (
            "split array_split hsplit vsplit dsplit",
            " of a mask",
            "numpy.bool",
            "nonnegative",
            "hlofront takes booleans for integers, as Python does",
        ),
        (
            "split array_split",
            r"\(float32\[4\], -1",
            "Sum of sizes",
            "there must be at least one",
            "hlofront refuses -1 parts as it does none",
        ),
        (
            "einsum einsum_path",
            "",
            "Cannot determine the shape|does not contain the correct number",
            NO_ARRAY,
            "jax looks for a path of contractions before it looks at the operands",
        ),
        ("repeat", " of", "remapped shapes", "must be integers", "jax broadcasts repeats first"),
        (
            "pad",
            " of .* at 1",
            "unsupported shape",
            "must be of integral type",
            "hlofront looks at the dtype of pad_width before its shape",
        ),
        (
            "put_along_axis",
            " of .* at 1",
            "must (have same|be broadcast)",
            "must be of integer type",
            "hlofront looks at the dtype of indices before their shape",
        ),
        (
            "roll",
            r" of None|\(float32\[3\], None",
            "None is not a valid value for jnp.array",
            NO_ARRAY,
            "hlofront raises what it raises for other operands that are no arrays",
        ),
        (
            "roll",
            " of an array of strings",
            "Error interpreting argument",
            "invalid literal for int",
            "hlofront reads concrete shifts as integers",
        ),
        (
            "roll",
            " of of another shape",
            "must be scalars or 1D arrays",
            "0-dimensional arrays",
            "hlofront reads concrete shifts as integers",
        ),
        (
            "piecewise",
            " of a (boolean|complex number|float) at 1",
            r"has no len\(\)",
            RESULT,
            "hlofront takes a scalar for one condition, as NumPy does",
        ),
        (
            "piecewise",
            r"\(float32\[3\], \[\], \[\]\)",
            "argmax of an empty sequence",
            RESULT,
            "without conditions the result is zeros, as NumPy has it",
        ),
        (
            "piecewise",
            " of a string at 1",
            "either 3 or 4 functions",
            NO_ARRAY,
            "jax takes each character for a condition",
        ),
        (
            "piecewise",
            " of an array of strings at 1",
            RESULT,
            NO_ARRAY,
            "jax takes strings for conditions that are true",
        ),
        (
            "piecewise",
            " with",
            "Error interpreting argument",
            RESULT,
            "keywords are for the functions; jax traces them, hlofront hands them on",
        ),
        (
            "arange",
            " of an array of strings",
            "arguments must be scalars",
            NO_ARRAY,
            "hlofront looks at dtypes before shapes",
        ),
        (
            "diag_indices_from",
            " of an array of strings",
            "is not a valid JAX array",
            "at least two axes",
            "hlofront needs the shape alone",
        ),
        (
            "diagonal",
            r"\(float32\[2,2\], 0, 1, 1",
            "isn't a permutation",
            "axis1 and axis2 must differ",
            "hlofront raises ValueError, as NumPy does",
        ),
        (
            "block",
            " of None",
            "None is not a valid value for jnp.array",
            NO_ARRAY,
            "hlofront raises what it raises for other operands that are no arrays",
        ),
        (
            "concatenate",
            r"\(float32\[\]\)",
            "Need at least one array",
            "requires a sequence of arrays",
            "jax takes an array without axes for an empty sequence",
        ),
        (
            "histogram",
            r"\(float32\[3\], bins='auto'",
            "TypeError",
            "NotImplementedError",
            "hlofront says that names of rules are not implemented",
        ),
        (
            "histogram2d",
            " of of another shape",
            "ConcretizationTypeError",
            "an integer or an array of one axis",
            "hlofront knows the shape of what is traced",
        ),
        (
            "choose",
            r"\(",
            "ConcretizationTypeError",
            "sequence of choices|invalid entry",
            "hlofront knows the values of constants inside traces",
        ),
        (
            "ravel_multi_index",
            r"\(\(int64",
            "ConcretizationTypeError",
            "invalid entry",
            "hlofront knows the values of constants inside traces",
        ),
        (
            "compress cross",
            r" with axis=\(0",
            "Inconsistent number of elements|axis 7 is out of bounds",
            AXES,
            "jax takes pairs of axes until it moves them",
        ),
        (
            "partition argpartition",
            " of a complex",
            "NotImplementedError",
            "out of bounds",
            "hlofront partitions complex numbers; the scalar of this call has no axis",
        ),
        (
            "insert",
            " of of another shape at 2",
            "ValueError",
            "TypeError: broadcast_in_dim",
            "hlofront leaves it to broadcast_in_dim to refuse the shape",
        ),
        (
            "insert",
            r"\(float32\[2,3\], 0, float32\[2\]",
            "ValueError",
            "TypeError: broadcast_in_dim",
            "hlofront leaves it to broadcast_in_dim to refuse the shape",
        ),
        # ---- what hlofront takes, and jax does not
        (
            "insert",
            " of a boolean at 1",
            "must be integer typed",
            RESULT,
            "a boolean is an integer",
        ),
        ("swapaxes", " of a boolean", "setting an array", RESULT, "a boolean is an integer"),
        (
            "quantile nanquantile",
            " of (a boolean|a mask|unsigned) at 1",
            "(mul|sub|floor) does not accept dtype",
            RESULT,
            "hlofront takes quantiles of integer dtypes",
        ),
        (
            "partition argpartition",
            " of a mask at 0",
            "neg does not accept dtype bool",
            RESULT,
            "hlofront sorts booleans, as NumPy does",
        ),
        ("ix_", " of a mask", "NotImplementedError", RESULT, "hlofront takes masks, as NumPy does"),
        (
            "array_equiv",
            " of",
            "incompatible shapes",
            RESULT,
            "arrays that do not broadcast are not equivalent: False, as in NumPy",
        ),
        (
            "cumsum cumprod nancumsum nancumprod",
            " of a boolean at 0",
            "axis 0 is out of bounds",
            RESULT,
            "a scalar is as an array of one element, as in NumPy",
        ),
        (
            "put",
            " of a (boolean|complex number|float) at 0",
            "fewer dimensions",
            RESULT,
            "hlofront gives a scalar back",
        ),
        (
            "tensordot",
            " of a boolean at 2",
            "axes argument must be an int",
            RESULT,
            "a boolean is an integer",
        ),
        # ---- what jax takes, by accident
        ("tile", " of a mask", RESULT, NO_SHAPE, "jax makes an array of booleans of a mask"),
        ("tile", r"\(float32\[2\], -1", r"float32\[-2\]", "negative", "jax gives a negative size"),
        ("rot90", r"\(float32\[2,2\], 1.5", RESULT, NO_INTEGER, "there is no half turn"),
        (
            "delete",
            " of a boolean",
            RESULT,
            "boolean indices",
            "NumPy refuses a boolean as an index of delete",
        ),
        (
            "unravel_index",
            " of a mask at 1",
            "int32",
            "int8",
            "jax subtracts 1 from booleans, which makes them integers of another dtype",
        ),
        # ---- weak types
        (
            "var",
            r"\(float32\[3\], dtype=int32",
            r"\['weak float32\[\]'\]",
            r"\['float32\[\]'\]",
            "the variance of an array is not weakly typed",
        ),
    )
)


def covering(call: str, jax_outcome: object, our_outcome: object) -> KnownDifference | None:
    """Return the record that tells why the outcomes of a call differ, or None."""
    return next((d for d in KNOWN_DIFFERENCES if d.covers(call, jax_outcome, our_outcome)), None)
