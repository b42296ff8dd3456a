"""jax.ffi: functions of compiled libraries, called by programs."""

import ctypes
import pathlib
import shutil
import subprocess
import textwrap

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import ffi
from hlofront.core import Primitive
from hlofront.interpreters import mlir

MATRIX = jax.ShapeDtypeStruct((3, 3), jnp.float32)
INFO = jax.ShapeDtypeStruct((), jnp.int32)

# y = factor * x + sum of the offsets; over all elements, so that a batch needs no loop.
SOURCE = """
    #include <cstdint>
    #include "xla/ffi/api/ffi.h"
    namespace ffi = xla::ffi;

    static ffi::Error Scale(float factor, ffi::Span<const int64_t> offsets,
                            ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
      float offset = 0;
      for (int64_t each : offsets) offset += each;
      if (factor < 0) return ffi::Error::InvalidArgument("a negative factor");
      for (size_t i = 0; i < x.element_count(); ++i)
        y->typed_data()[i] = factor * x.typed_data()[i] + offset;
      return ffi::Error::Success();
    }
    XLA_FFI_DEFINE_HANDLER_SYMBOL(
        ScaleHandler, Scale,
        ffi::Ffi::Bind().Attr<float>("factor").Attr<ffi::Span<const int64_t>>("offsets")
            .Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());
"""


@pytest.fixture(scope="module")
def scale_target(tmp_path_factory):
    """Compile a foreign function and register it; return its name."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler is here")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "scale.cc").write_text(textwrap.dedent(SOURCE))
    command = [compiler, "-std=c++17", "-O0", "-fPIC", "-shared", f"-I{ffi.include_dir()}"]
    subprocess.run([*command, "scale.cc", "-o", "scale.so"], cwd=folder, check=True)
    library = ctypes.cdll.LoadLibrary(str(folder / "scale.so"))
    ffi.register_ffi_target("hlofront_test_scale", ffi.pycapsule(library.ScaleHandler))
    return "hlofront_test_scale"


def scaled_by(target, factor, vmap_method="broadcast_all", offsets=(1, 2)):
    def scale(x):
        result = jax.ShapeDtypeStruct(x.shape, x.dtype)
        call = ffi.ffi_call(target, result, vmap_method=vmap_method)
        return call(x, factor=np.float32(factor), offsets=np.array(offsets, np.int64))

    return scale


@pytest.mark.slow
def test_a_function_of_a_library_is_called(scale_target):
    x = jnp.arange(3.0)
    scale = scaled_by(scale_target, 2.0)
    np.testing.assert_array_equal(scale(x), [3.0, 5.0, 7.0])
    np.testing.assert_array_equal(jax.jit(scale)(x), [3.0, 5.0, 7.0])
    assert isinstance(jax.jit(scale).lower(x).as_text(), str)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]
)
def test_a_batch_is_computed_by_each_method(scale_target, method):
    x = jnp.arange(6.0).reshape(2, 3)
    batched = jax.vmap(scaled_by(scale_target, 2.0, method))
    np.testing.assert_array_equal(batched(x), 2 * x + 3)


@pytest.mark.slow
def test_a_custom_derivative_around_a_foreign_function(scale_target):
    @jax.custom_vjp
    def scale(x):
        return scaled_by(scale_target, 2.0)(x)

    scale.defvjp(lambda x: (scale(x), None), lambda _, ct: (scaled_by(scale_target, 2.0)(ct) - 3,))
    np.testing.assert_array_equal(jax.grad(lambda x: scale(x).sum())(jnp.ones(3)), [2.0] * 3)


@pytest.mark.slow
def test_an_error_of_a_foreign_function_is_raised(scale_target):
    with pytest.raises(Exception, match="a negative factor"):
        jax.block_until_ready(scaled_by(scale_target, -1.0)(jnp.ones(2)))


@pytest.mark.slow
def test_a_primitive_whose_lowering_is_a_foreign_function(scale_target):
    p = Primitive("scale_by_library")
    p.def_abstract_eval(lambda x, **_: x)

    def lower(ctx, x, *, factor, offset):
        offsets = np.array([offset], np.int64)
        return ffi.ffi_lowering(scale_target)(ctx, x, factor=factor, offsets=offsets)

    mlir.register_lowering(p, lower, platform="cpu")
    f = jax.jit(lambda x: p.bind(x, factor=np.float32(3), offset=1))
    np.testing.assert_array_equal(f(jnp.ones(2)), [4.0, 4.0])


# ---- what is written down ------------------------------------------------------------------------


def equation_of(call, *args):
    return jax.make_jaxpr(call)(*args).eqns[0]


def test_the_equation_says_all_of_the_call():
    call = ffi.ffi_call("lapack_spotrf_ffi", (MATRIX, INFO))
    equation = equation_of(lambda x: call(x, uplo=np.uint8(76)), jnp.eye(3))
    params = equation.params
    assert params["attributes"] == (("uplo", np.uint8(76)),)
    assert params["input_layouts"] == ((1, 0),) and params["output_layouts"] == ((1, 0), ())
    assert [aval.shape for aval in params["result_avals"]] == [(3, 3), ()]


def test_one_result_or_a_list():
    assert jax.eval_shape(ffi.ffi_call("f", MATRIX), jnp.eye(3)).shape == (3, 3)
    assert isinstance(jax.eval_shape(ffi.ffi_call("f", [MATRIX]), jnp.eye(3)), list)


def test_attributes_layouts_and_aliases_in_the_module():
    call = ffi.ffi_call(
        "f",
        MATRIX,
        has_side_effect=True,
        input_layouts=[(1, 0)],
        output_layouts=(1, 0),
        input_output_aliases={0: 0},
    )
    text = (
        jax.jit(
            lambda x: call(
                x, a=1, b=2.5, c="s", d=np.float32(1), e=True, f=np.array([1, 2]), g={"h": 1}
            )
        )
        .lower(jnp.eye(3))
        .as_text()
    )
    for part in (
        "a = 1 : i64",
        "b = 2.5",
        'c = "s"',
        "e = true",
        "f = dense<[1, 2]> : tensor<2xi64>",
        "g = {h = 1 : i64}",
        "has_side_effect = true",
        "operand_layouts = [dense<[0, 1]> : tensor<2xindex>]",
        "output_operand_alias<output_tuple_indices = [], operand_index = 0",
    ):
        assert part in text, part


def attribute_text(value):
    """Return the attribute `a` of a call as its module has it."""
    call = ffi.ffi_call("f", MATRIX)
    text = jax.jit(lambda x: call(x, a=value)).lower(jnp.eye(3)).as_text()
    return text.split("backend_config = {a = ")[1].split("}, operand_layouts")[0]


# What jax 0.10.2 writes; of lists, for which it has no attributes, what it writes for their arrays.
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (np.uint8(76), "76 : ui8"),
        (np.uint64(2**64 - 1), "18446744073709551615 : ui64"),
        (np.int16(-3), "-3 : i16"),
        (-(2**63), "-9223372036854775808 : i64"),
        (jnp.bfloat16.dtype.type(1.5), "1.500000e+00 : bf16"),
        (np.float16("inf"), "0x7C00 : f16"),
        (np.array([3, 255], np.uint8), "dense<[3, 255]> : tensor<2xui8>"),
        (np.array([1, 2], np.float16), "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf16>"),
        (np.array([1, 0], jnp.bfloat16), "dense<[1.000000e+00, 0.000000e+00]> : tensor<2xbf16>"),
        (np.array([1, 2], jnp.int4), "dense<[1, 2]> : tensor<2xi4>"),
        (np.array([True, False]), "dense<[true, false]> : tensor<2xi1>"),
        (np.array([[1j]]), "dense<(0.000000e+00,1.000000e+00)> : tensor<1x1xcomplex<f64>>"),
        (np.array([], np.int8), "dense<> : tensor<0xi8>"),
        ([1, 2], "dense<[1, 2]> : tensor<2xi64>"),
        ((1, 2.5), "dense<[1.000000e+00, 2.500000e+00]> : tensor<2xf64>"),
        ((), "[]"),
        (["a", {"b": [1, 2]}], '["a", {b = dense<[1, 2]> : tensor<2xi64>}]'),
        (np.dtype("int32"), "i32"),
        (b"ab", '"ab"'),
    ],
)
def test_attributes_of_every_dtype(value, text):
    assert attribute_text(value) == text


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (None, TypeError),
        ({"inner": None}, TypeError),
        ([None], TypeError),
        ({1, 2}, TypeError),
        (1j, TypeError),
        (object(), TypeError),
        (jax.ShapeDtypeStruct((), "int32"), TypeError),
        (2**63, OverflowError),
        ([1, 2**64], OverflowError),
    ],
)
def test_attributes_that_there_are_not(value, error):
    with pytest.raises(error):
        attribute_text(value)


def test_a_call_with_a_side_effect_stays_without_results():
    kept = jax.make_jaxpr(jax.jit(lambda x: (ffi.ffi_call("f", (), has_side_effect=True)(x), x)[1]))
    assert "ffi_call" in str(kept(1.0))
    text = jax.jit(lambda x: (ffi.ffi_call("f", MATRIX)(x), x)[1]).lower(1.0).as_text()
    assert "custom_call" not in text


def test_legacy_calls_have_a_text():
    call = ffi.ffi_call("f", MATRIX, custom_call_api_version=2, legacy_backend_config="abc")
    text = jax.jit(call).lower(jnp.eye(3)).as_text()
    assert "api_version = 2" in text and 'backend_config = "abc"' in text
    with pytest.raises(ValueError, match="at least 4"):
        jax.make_jaxpr(lambda x: call(x, a=1))(jnp.eye(3))
    with pytest.raises(ValueError, match="requires custom_call_api_version < 4"):
        ffi.ffi_call("f", MATRIX, legacy_backend_config="abc")


def test_layouts_of_a_batch():
    x, y = jnp.ones((2, 3, 3)), jnp.ones(4)

    def batched(method):
        call = ffi.ffi_call("f", MATRIX, vmap_method=method)
        return jax.make_jaxpr(jax.vmap(call, in_axes=(0, None)))(x, y).eqns[-1].params

    assert batched("expand_dims")["input_layouts"] == ((2, 1, 0), (1, 0))
    assert batched("legacy_vectorized")["input_layouts"] == ((2, 1, 0), (0,))
    assert batched("broadcast_all")["output_layouts"] == ((2, 1, 0),)
    with pytest.raises(NotImplementedError, match="ffi_call"):
        batched(None)
    with pytest.raises(ValueError, match="vmap_method"):
        ffi.ffi_call("f", MATRIX, vmap_method="somehow")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_output_aliases": {3: 0}}, "input index 3"),
        ({"input_output_aliases": {0: 1}}, "output index 1"),
        ({"input_layouts": [(0, 1), (0,)]}, "number of input"),
        ({"input_layouts": [(0, 1, 2)]}, "orders the 2 axes"),
        ({"input_layouts": [(1, 0)], "input_output_aliases": {0: 0}}, "different layout"),
    ],
)
def test_options_that_do_not_fit(options, message):
    with pytest.raises(ValueError, match=message):
        jax.make_jaxpr(ffi.ffi_call("f", MATRIX, **options))(jnp.eye(3))


def test_more_that_does_not_fit():
    with pytest.raises(ValueError, match="'shape' and 'dtype'"):
        ffi.ffi_call("f", None)
    with pytest.raises(ValueError, match="number of outputs"):
        ffi.ffi_call("f", [MATRIX], output_layouts=[(0, 1), (0, 1)])
    with pytest.raises(ValueError, match="different abstract value"):
        jax.make_jaxpr(ffi.ffi_call("f", MATRIX, input_output_aliases={0: 0}))(jnp.ones(3))
    with pytest.raises(TypeError, match="attribute 'a'"):
        jax.make_jaxpr(lambda x: ffi.ffi_call("f", MATRIX)(x, a={1, 2}))(jnp.eye(3))
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.grad(lambda x: ffi.ffi_call("f", MATRIX)(x).sum())(jnp.eye(3))


def test_the_headers_are_there():
    assert (pathlib.Path(ffi.include_dir()) / "xla" / "ffi" / "api" / "ffi.h").exists()
