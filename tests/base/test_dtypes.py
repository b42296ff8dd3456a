"""Dtypes: canonical ones with x64 off and on, kinds, names, limits, and the promotion table."""

import json
import pathlib
import warnings

import ml_dtypes
import numpy as np
import pytest

import hlofront.dtypes as door
from hlofront.base import config, dtypes
from hlofront.base.elements import ExtendedDType, all_dtypes, extended, float0, prng_key
from hlofront.base.errors import TypePromotionError

TABLE = json.loads(pathlib.Path(__file__).with_name("promotion_table.json").read_text())


def dtype_named(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def is_known(name):
    """Whether there is this dtype: releases of ml_dtypes differ."""
    try:
        return dtype_named(name) in all_dtypes
    except TypeError:
        return False


class KeyDType(ExtendedDType):
    """A random key of some words, as an example of an extended dtype."""

    __slots__ = ("name", "words")
    type = prng_key

    def __init__(self, name, words):
        self.name = name
        self.words = words

    def physical(self, shape):
        return (*shape, self.words), np.dtype("uint32")

    def __eq__(self, other):
        return isinstance(other, KeyDType) and self.name == other.name

    def __hash__(self):
        return hash(self.name)


key = KeyDType("key<fry>", 2)


class Value:
    """Stands for an array: something with a dtype that may be weak."""

    def __init__(self, dtype, weak_type=False):
        self.dtype = np.dtype(dtype)
        self.weak_type = weak_type


# ---- the promotion table -----------------------------------------------------------------------


@pytest.mark.parametrize("name", TABLE["tables"])
def test_all_pairs_and_some_triples_promote_as_in_jax(name):
    mode, width = name.split()
    types = [
        (dtype_named(t.rstrip("*")), t.endswith("*")) if is_known(t.rstrip("*")) else None
        for t in TABLE["types"].split()
    ]
    assert types.count(None) <= 16
    letters = TABLE["letters"]
    kinds = dict(zip(letters, types))

    def outcome(*operands):
        try:
            return letters[types.index(dtypes.as_result(dtypes.lattice_result(operands)))]
        except TypePromotionError:
            return "!"

    with config.enable_x64(width == "x64"), config.numpy_dtype_promotion(mode):
        # What arrays have: with x64 off there are no 64-bit ones.
        types_here = [t and (dtypes.canonicalize_dtype(t[0]), t[1]) for t in types]
        wrong = []
        for i, row in enumerate(TABLE["tables"][name]["pairs"]):
            for j, expected in enumerate(row, i):
                if types[i] is None or types[j] is None:
                    continue
                for pair in ((i, j), (j, i)):
                    found = outcome(*(types_here[k] for k in pair))
                    if found != expected and expected != "?":
                        wrong.append((types[pair[0]], types[pair[1]], kinds.get(found, found)))
        assert not wrong, f"{len(wrong)} pairs differ from jax: {wrong[:5]}"
        triples = TABLE["triples"].split()
        assert len(triples) == len(TABLE["tables"][name]["triples"]) == 300
        for triple, expected in zip(triples, TABLE["tables"][name]["triples"]):
            operands = [types_here[letters.index(letter)] for letter in triple]
            assert outcome(*operands) == expected, [kinds[letter] for letter in triple]


@pytest.mark.parametrize(
    ("operands", "x64", "expected"),
    [
        ((np.zeros(2, np.int8), 1.0), False, ("float32", True)),
        ((np.zeros(2, np.int8), 1.0), True, ("float64", True)),
        ((np.zeros(2), 1), False, ("float32", False)),
        ((np.float64(1),), True, ("float64", False)),
        ((1, True), False, ("int32", True)),
        ((True, np.bool_(False)), False, ("bool", False)),
        ((1,), True, ("int64", True)),
        ((2**70,), False, ("int32", True)),
        (("int8", int), False, ("int8", False)),
        ((bool,), False, ("bool", False)),
        ((None,), False, ("float32", False)),
        ((ml_dtypes.bfloat16, 1j), False, ("complex64", False)),
        ((Value("int32", True), "int8"), False, ("int8", False)),
        ((Value("float16", True),), False, ("float32", True)),
        ((np.zeros((), float0),), False, ("void", False)),
    ],
)
def test_result_type_of_values_and_dtypes(operands, x64, expected):
    with config.enable_x64(x64):
        dtype, weak = dtypes.result_type(*operands, return_weak_type_flag=True)
        assert (dtype.name, weak) == expected
        assert dtypes.result_type(*operands) == dtype


def test_result_type_refuses_what_has_no_dtype():
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()
    with pytest.raises(TypeError, match="list has no dtype"):
        dtypes.result_type([1])
    with pytest.raises(TypeError):
        dtypes.result_type("bogus")
    for array in (np.zeros(2, "O"), np.array(["a"]), np.zeros(2, ">f4")):
        with pytest.raises(TypeError, match="not a valid JAX array type"):
            dtypes.result_type(array)
        with pytest.raises(TypeError, match="only supports number and bool"):
            dtypes.result_type(array.dtype)


@pytest.mark.parametrize(
    ("operands", "text"),
    [
        (("float8_e4m3fn", "float32"), r"float8_e4m3fn, float32 .*8-bit floats .*astype\('float32"),
        (("int4", "int8"), r"int4, int8 .*4-bit integers .*astype\('int32"),
        (("int2", 1.0), r"int2, Python float .*2-bit integers"),
    ],
)
def test_a_refused_promotion_says_why_and_what_to_do(operands, text):
    with pytest.raises(TypePromotionError, match=text):
        dtypes.result_type(*operands)


def test_strict_promotion_names_the_option():
    with config.numpy_dtype_promotion("strict"):
        assert dtypes.result_type(np.int8(1), 1) == np.int8
        with pytest.raises(TypePromotionError, match=r"int8, Python float .*='strict'.*'standard'"):
            dtypes.result_type(np.int8(1), 1.0)


def test_dtypes_that_cannot_meet_others_still_meet_themselves():
    assert dtypes.lattice_result(((key, False), (key, False))) == (key, False)
    assert dtypes.promote_types(key, key) == key
    for other in (np.dtype("float32"), KeyDType("key<rbg>", 4)):
        with pytest.raises(ValueError, match="key<fry> is not a valid dtype"):
            dtypes.lattice_result(((key, False), (other, False)))
    with pytest.raises(ValueError, match=r"float0.* is not a valid dtype"):
        dtypes.lattice_result(((float0, False), (np.dtype("float32"), False)))


@pytest.mark.parametrize(
    ("a", "b", "off", "on"),
    [
        ("int8", "uint8", "int16", "int16"),
        ("int8", "uint32", "int32", "int64"),
        ("int64", "int32", "int64", "int64"),
        ("uint64", "int8", "float64", "float64"),
        (int, "uint8", "uint8", "uint8"),
        (int, float, "float64", "float64"),
        ("int32", None, "float64", "float64"),
        ("float16", ml_dtypes.bfloat16, "float32", "float32"),
        (bool, bool, "bool", "bool"),
    ],
)
def test_promote_types_keeps_64_bits(a, b, off, on):
    for x64, expected in ((False, off), (True, on)):
        with config.enable_x64(x64):
            assert dtypes.promote_types(a, b) == dtypes.promote_types(b, a) == np.dtype(expected)
    with pytest.raises(ValueError, match="not a valid dtype"):
        dtypes.promote_types("O", a)


def test_arrays_of_64_bits_with_x64_off():
    wide, narrow = (np.dtype("float64"), False), (np.dtype("float32"), False)
    integers = ((np.dtype("uint32"), False), (np.dtype("int8"), False))
    assert dtypes.lattice_result((wide, narrow)) == narrow
    with config.options["jax_explicit_x64_dtypes"]("allow"):
        assert dtypes.lattice_result((wide, narrow)) == wide
        assert dtypes.lattice_result(integers) == (np.dtype("int32"), False)
        assert dtypes.lattice_result(((np.dtype("int64"), False), (np.dtype("int32"), True))) == (
            np.dtype("int64"),
            False,
        )
    assert dtypes.lattice_result((wide, narrow)) == narrow


# ---- 64-bit dtypes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "off", "on"),
    [
        ("int64", "int32", "int64"),
        (np.uint64, "uint32", "uint64"),
        (np.dtype("float64"), "float32", "float64"),
        (complex, "complex64", "complex128"),
        (None, "float32", "float64"),
        (int, "int32", "int64"),
        (bool, "bool", "bool"),
        ("int16", "int16", "int16"),
        ("object", "object", "object"),
    ],
)
def test_canonical_dtypes(dtype, off, on):
    for _ in range(2):  # the second time they come out of a cache
        with config.enable_x64(False):
            assert dtypes.canonicalize_dtype(dtype) == np.dtype(off)
        with config.enable_x64(True):
            assert dtypes.canonicalize_dtype(dtype) == np.dtype(on)


def test_canonical_dtypes_of_extended_ones():
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    assert dtypes.canonicalize_dtype(prng_key, allow_extended_dtype=True) is prng_key
    for dtype in (key, prng_key):
        with pytest.raises(ValueError, match="extended dtype"):
            dtypes.canonicalize_dtype(dtype)


@pytest.mark.parametrize("bad", ["bogus", 3, np.floating, np.generic, np.integer])
def test_what_is_no_dtype_is_a_type_error(bad):
    with pytest.raises(TypeError):
        dtypes.canonicalize_dtype(bad)
    with pytest.raises(TypeError):
        dtypes.dtype_of(bad)
    with pytest.raises(TypeError):
        dtypes.check_user_dtype_supported(bad, "zeros")


def test_array_dtype_is_one_that_a_device_has():
    assert dtypes.array_dtype(np.dtype("float64")) == np.float32
    assert dtypes.array_dtype(float0) == float0
    for bad in ("O", "S3", "M8[ns]", "V4", ">f4", np.longdouble):
        with pytest.raises(TypeError, match="not a valid JAX array type"):
            dtypes.array_dtype(np.dtype(bad))


@pytest.mark.parametrize("type_", [bool, int, float, complex])
def test_defaults_of_python_scalars(type_):
    with config.enable_x64(True):
        assert dtypes.python_scalar_dtype(type_) == np.dtype(type_)
        assert dtypes.default_dtype(np.dtype(type_).kind) == np.dtype(type_)
    assert dtypes.python_scalar_dtype(type_) == dtypes.canonicalize_dtype(type_)

    if type_ is not bool:
        subclass = type("Subclass", (type_,), {})
        assert dtypes.python_scalar_dtype(subclass) == dtypes.python_scalar_dtype(type_)
        assert dtypes.dtype_and_weakness(subclass(1)) == (dtypes.python_scalar_dtype(type_), True)


def test_default_unsigned_dtype_and_no_scalar_type():
    assert dtypes.default_dtype("u") == np.uint32
    with config.enable_x64(True):
        assert dtypes.default_dtype("u") == np.uint64
    with pytest.raises(TypeError, match="str is not a type of Python scalars"):
        dtypes.python_scalar_dtype(str)


def test_an_explicit_64_bit_dtype_warns_where_the_user_stands():
    with pytest.warns(
        UserWarning, match=r"requested dtype float64 .* in zeros.*JAX_ENABLE_X64"
    ) as w:
        assert dtypes.check_user_dtype_supported("float64", "zeros") == np.float32
    assert w[0].filename == __file__
    explicit = config.options["jax_explicit_x64_dtypes"]
    with (
        explicit("error"),
        pytest.raises(ValueError, match="dtype int64 is not available in zeros"),
    ):
        dtypes.check_user_dtype_supported(np.int64, "zeros")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with explicit("allow"):
            assert dtypes.check_user_dtype_supported(np.int64) == np.int64
        with config.enable_x64(True):
            assert dtypes.check_user_dtype_supported("complex128") == np.complex128
        for kind in (int, float, complex, bool, None, "int32", float0, key):
            dtypes.check_user_dtype_supported(kind)
    assert dtypes.check_user_dtype_supported(int) == np.int32


@pytest.mark.parametrize("bad", [object, "S3", "M8[ns]", ">f4", [("a", "f4")], np.longdouble])
def test_dtypes_that_no_device_has_are_refused(bad):
    with pytest.raises(TypeError, match=r"only supports number and bool dtypes.* in zeros"):
        dtypes.check_user_dtype_supported(bad, "zeros")


# ---- kinds, names, limits ----------------------------------------------------------------------


def test_short_names():
    names = "bool int4 int64 uint2 uint8 bfloat16 float16 float64 complex64 float8_e4m3b11fnuz"
    shorts = "bool i4 i64 u2 u8 bf16 f16 f64 c64 f8_e4m3b11fnuz"
    for name, short in zip(names.split(), shorts.split(), strict=True):
        assert dtypes.short_name(dtype_named(name)) == short
    assert dtypes.short_name(key) == "key<fry>"
    assert dtypes.short_name(float0) == "float0"
    assert len({dtypes.short_name(dtype) for dtype in all_dtypes}) == len(all_dtypes)


def test_issubdtype_agrees_with_numpy_on_its_dtypes():
    kinds = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact]
    kinds += [np.floating, np.complexfloating, np.bool_, np.float32, int, float, "int64", None]
    for dtype in ("bool", "int8", "uint16", "int64", "float32", "float64", "complex64", "O", "S3"):
        for kind in kinds:
            expected = np.issubdtype(dtype, kind if kind is not None else np.float64)
            assert dtypes.issubdtype(dtype, kind) == expected
            assert dtypes.issubdtype(np.dtype(dtype), kind) == expected


@pytest.mark.parametrize(
    ("dtype", "kinds"),
    [
        (ml_dtypes.bfloat16, {np.floating, np.inexact, np.number, np.generic, "bfloat16"}),
        ("float8_e5m2", {np.floating, np.inexact, np.number, np.generic, ml_dtypes.float8_e5m2}),
        (ml_dtypes.int4, {np.signedinteger, np.integer, np.number, np.generic}),
        (ml_dtypes.uint4, {np.unsignedinteger, np.integer, np.number, np.generic}),
        (key, {key, prng_key, extended, np.generic}),
        (prng_key, {prng_key, extended, np.generic}),
        (float0, {float0, np.void, np.flexible, np.generic}),
        ([("a", "f4")], {np.void, np.flexible, np.generic, float0}),
    ],
)
def test_issubdtype_of_other_dtypes(dtype, kinds):
    every = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact]
    every += [np.floating, np.complexfloating, np.bool_, np.float32, float0, np.void, np.flexible]
    every += [key, KeyDType("key<rbg>", 4), prng_key, extended, "bfloat16", ml_dtypes.float8_e5m2]
    for kind in every:
        assert dtypes.issubdtype(dtype, kind) == (kind in kinds), kind


def test_limits_and_widths_of_every_dtype():
    for dtype in all_dtypes:
        width = dtypes.bit_width(dtype)
        if dtypes.issubdtype(dtype, np.integer):
            info = dtypes.iinfo(dtype)
            assert int(info.max) - int(info.min) == 2**width - 1
            with pytest.raises(ValueError, match="not inexact"):
                dtypes.finfo(dtype)
        elif dtypes.issubdtype(dtype, np.inexact):
            info = dtypes.finfo(dtype)
            parts = 2 if dtypes.issubdtype(dtype, np.complexfloating) else 1
            assert info.bits * parts == width and float(info.max) > 0
            with pytest.raises(ValueError, match="not an integer"):
                dtypes.iinfo(dtype)
        else:
            assert dtype == np.bool_ and width == 8
    assert dtypes.finfo(float).bits == dtypes.bit_width(float) == 64
    for bad in ("S3", float0, "O", None, key):
        with pytest.raises(ValueError):
            dtypes.bit_width(bad)


@pytest.mark.parametrize(
    ("name", "inexact", "numeric", "complex_", "floating"),
    [
        ("bool", "float32", "int32", "complex64", "float32"),
        ("uint8", "float32", "uint8", "complex64", "float32"),
        ("int64", "float64", "int64", "complex128", "float64"),
        ("bfloat16", "bfloat16", "bfloat16", "complex64", "bfloat16"),
        ("float64", "float64", "float64", "complex128", "float64"),
        ("complex64", "complex64", "complex64", "complex64", "float32"),
        ("complex128", "complex128", "complex128", "complex128", "float64"),
    ],
)
def test_nearest_dtypes_of_a_kind(name, inexact, numeric, complex_, floating):
    dtype = dtype_named(name)
    assert dtypes.to_inexact_dtype(dtype) == dtype_named(inexact)
    assert dtypes.to_numeric_dtype(dtype) == dtype_named(numeric)
    assert dtypes.to_complex_dtype(dtype) == dtype_named(complex_)
    assert dtypes.to_floating_dtype(dtype) == dtype_named(floating)


def test_scalar_types_of_values():
    for x, type_ in (
        (True, bool),
        (1, int),
        (1.0, float),
        (1j, complex),
        (np.float64(1), float),
        (np.zeros(2, ml_dtypes.uint4), int),
        (Value("complex64", True), complex),
    ):
        assert dtypes.scalar_type_of(x) is type_
    assert (
        dtypes.scalar_type_of(ml_dtypes.bfloat16) is dtypes.scalar_type_of(np.dtype("f4")) is float
    )
    for bad in ("O", np.zeros(2, "S3"), [1], None, key):
        with pytest.raises(TypeError):
            dtypes.scalar_type_of(bad)


def test_an_extended_dtype_tells_its_size_on_a_device():
    assert key.physical((3,)) == ((3, 2), np.dtype("uint32"))
    assert key.itemsize == 8
    assert repr(key) == str(key) == "key<fry>"


def test_the_door_has_the_names_of_jax_dtypes():
    assert door.itemsize_bits("int4") == 4
    assert door.bfloat16 is ml_dtypes.bfloat16
    assert door.TypePromotionError is TypePromotionError
    assert issubclass(door.prng_key, door.extended)
    assert door.prng_key.__module__ == "hlofront.dtypes"
    assert door.canonicalize_dtype("float64") == door.result_type(1.0) == np.float32
    assert door.scalar_type_of(1.0) is float
    assert door.float0 == float0
