"""Programs on which XLA ends the process, or never ends itself: they are right, or errors."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.bridge import state
from hlofront.bridge.xla_faults import FAULTS
from hlofront.lowering.ops import conv, dot_general, shaping

SIZES, PADDING, WINDOWS, CALLS, TRITON = (
    "sizes before a size of zero",
    "padding beyond the sizes of arrays",
    "windows of padding",
    "custom calls with names of XLA's own",
    "Triton kernels without configuration",
)


def test_the_faults_are_in_the_table():
    assert {SIZES, PADDING, WINDOWS, CALLS, TRITON} == {
        each.name for each in FAULTS if each.refused_in
    }


@pytest.mark.parametrize(
    "program",
    [
        lambda: jnp.broadcast_to(jnp.zeros(0), (2**40, 2**40, 0)),
        lambda: jnp.zeros((2**62, 2**62, 0)),
        lambda: jnp.zeros((2**62, 0)) + 1,
        lambda: jnp.zeros((0, 2**62, 2**62)).transpose(1, 2, 0),
    ],
)
def test_arrays_without_elements_that_xla_cannot_represent_are_refused(program):
    with pytest.raises(ValueError, match="has no elements, but XLA cannot represent"):
        jax.jit(program)()


def test_other_arrays_without_elements_are_made():
    assert jax.jit(lambda: jnp.zeros((0, 2**62, 2**62)))().shape == (0, 2**62, 2**62)
    assert jax.jit(lambda: jnp.zeros((2**40, 0)) + 1)().shape == (2**40, 0)


@pytest.mark.parametrize(
    ("combine", "start"), [(lax.add, 0.0), (lax.max, -np.inf), (lambda a, b: a * b + a, 1.0)]
)
@pytest.mark.parametrize("size", [2**31, 2**62])
def test_windows_of_padding_are_refused(combine, start, size):
    x = jnp.ones((4, 4))
    with pytest.raises(ValueError, match=r"a window of [\d,]+ elements"):
        jax.jit(lambda x: lax.reduce_window(x, start, combine, (size, 1), (1, 1), "SAME"))(x)


@pytest.mark.parametrize(
    "name",
    [
        "CreateBuffer",
        "PadToStatic",
        "Pin",
        "ProductOfElementaryHouseholderReflectors",
        "SliceToDynamic",
        "TopK",
        "Unpin",
        "__cublas$lt$matmul",
        "__cudnn$convForward",
        "__cudnn$fusion",
        "__cudnn$norm",
        "__gpu$TopK",
        "__onednn$matmul",
        "xla.sdy.FuncResultSharding",
        "xla.sdy.GlobalToLocalShape",
    ],
)
def test_names_of_xla_are_refused(name):
    x = jnp.ones(3)
    with pytest.raises(ValueError, match="is a name of XLA's own"):
        jax.jit(jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((3,), jnp.float32))).lower(x)


KERNEL = {"name": "k", "ir": ""} | dict.fromkeys(
    ("grid_x", "grid_y", "grid_z", "num_stages", "num_warps"), np.int32(1)
)


def of_triton(**options):
    name, types = "__gpu$xla.gpu.triton", jax.ShapeDtypeStruct((3,), jnp.float32)
    call = jax.ffi.ffi_call(name, types, **options)
    return lambda **config: jax.jit(lambda x: call(x, **config)).lower(jnp.ones(3))


@pytest.mark.parametrize("missing", [*KERNEL, tuple(KERNEL)], ids=str)
def test_triton_kernels_without_their_configuration_are_refused(missing):
    config = {key: value for key, value in KERNEL.items() if key not in missing}
    names = missing if isinstance(missing, str) else ", ".join(missing)
    with pytest.raises(ValueError, match=f"incomplete: {names} are missing or of other types"):
        of_triton()(**config)


@pytest.mark.parametrize("text", ["", "x", "{}", '{"name": "k"}', "{name = 1 : i32}", "\x00"])
def test_triton_kernels_with_another_configuration_as_text_are_refused(text):
    with pytest.raises(ValueError, match="incomplete: name, ir, grid_x"):
        of_triton(custom_call_api_version=1, legacy_backend_config=text)()


def test_triton_kernels_with_their_configuration_are_lowered():
    assert "@__gpu$xla.gpu.triton(" in of_triton()(**KERNEL).as_text()
    numbers = ", ".join(f"{key} = 1 : i32" for key in KERNEL if "_" in key)
    text = f'{{name = "k", ir = "", {numbers}}}'
    lowered = of_triton(custom_call_api_version=1, legacy_backend_config=text)()
    assert "@__gpu$xla.gpu.triton(" in lowered.as_text()


@pytest.mark.parametrize("name", ["Sharding", "SPMDFullToShardShape", "Eigh", "Qr"])
@pytest.mark.parametrize("count", [0, 2])
def test_names_of_xla_are_refused_with_other_numbers_of_operands(name, count):
    call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((3,), jnp.float32))
    with pytest.raises(ValueError, match=f"of one operand, and it is called with {count}"):
        jax.jit(call).lower(*[jnp.ones(3)] * count)


@pytest.mark.parametrize("version", [-1, 5, 2**62])
def test_versions_of_custom_calls_that_xla_lacks_are_refused(version):
    with pytest.raises(ValueError, match=f"is at most 4, the typed version .*: got {version}"):
        jax.ffi.ffi_call("f", (), custom_call_api_version=version)


@pytest.mark.parametrize("name", ["Sharding", "LayoutConstraint"])
def test_a_call_that_fits_is_made(name):
    call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct((3,), jnp.float32))
    assert jax.jit(call)(jnp.arange(3.0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("results", [[(3, 3)], [(4,)], [(3,), (3,)]])
def test_a_constraint_on_the_layout_of_an_operand_returns_it(results):
    types = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in results]
    with pytest.raises(ValueError, match="for an operation that returns its operand"):
        jax.jit(jax.ffi.ffi_call("LayoutConstraint", types)).lower(jnp.ones(3))


def test_windows_with_gaps_beyond_64_bits_are_refused():
    x = jnp.ones(3)
    with pytest.raises(ValueError, match="extends over 9,223,372,036,854,775,808 elements"):
        jax.jit(
            lambda x: lax.reduce_window(
                x, 0.0, lax.add, (2,), (1,), "VALID", window_dilation=(2**63 - 1,)
            )
        )(x)


@pytest.mark.parametrize("bits", [2**31, 2**62])
def test_more_bits_than_a_dtype_has_are_all_of_them(bits):
    x = np.float32([1.1, 3e38, 1e-38])
    for exponent, mantissa in ((bits, bits), (8, bits), (bits, 23)):
        rounded = jax.jit(lambda x, e=exponent, m=mantissa: lax.reduce_precision(x, e, m))(x)
        np.testing.assert_array_equal(rounded, x)


@pytest.mark.slow
def test_without_guards_xla_ends_the_process():
    code = (
        "import hlofront as jax, hlofront.numpy as jnp;"
        "call = jax.ffi.ffi_call('TopK', jax.ShapeDtypeStruct((3,), jnp.float32));"
        "jax.jit(call)(jnp.ones(3))"
    )
    environment = {**os.environ, "HLOFRONT_XLA_GUARDS": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.returncode < 0


@pytest.mark.parametrize(
    ("low", "high", "between", "expected"),
    [
        (2**62, -(2**62), 0, [9, 9, 9]),
        (-(2**62), 2**62, 0, [9, 9, 9]),
        (-(2**40), 2**40 - 1, 0, [9, 9]),
        (0, -(2**61), 2**60, [1, 9, 9]),
    ],
)
def test_padding_beyond_the_sizes_of_arrays_is_right(low, high, between, expected):
    x, stop = np.arange(1.0, 4), 3 + 2 * between + low + high
    high += len(expected) - stop
    config = [(low, high, between)]
    assert jax.jit(lambda x: lax.pad(x, 9.0, config))(x).tolist() == expected


def window_sums(x, edges, step):
    return lax.reduce_window(x, 0.0, lax.add, (1,), (1,), (edges,), (step,))


def convolution(x, edges, step):
    kernel = np.ones((1, 1, 2), np.float32)
    return lax.conv_general_dilated(x[None, None], kernel, (1,), (edges,), (step,))


@pytest.mark.parametrize("function", [window_sums, convolution])
@pytest.mark.parametrize(
    ("edges", "step"), [((2**62, -(2**62)), 1), ((-(2**62), 2**62), 1), ((0, 1 - 2**62), 2**61)]
)
def test_padding_of_windows_beyond_the_sizes_of_arrays_is_refused(function, edges, step):
    with pytest.raises(ValueError, match="more than any device can address"):
        jax.jit(lambda x: function(x, edges, step))(np.ones(3, np.float32))


EDGES = list(itertools.product((-7, -3, 0, 2, 8), (-7, -2, 0, 8), (0, 1, 3)))


@pytest.mark.parametrize("edges", [each for each in EDGES if 5 + 4 * each[2] + sum(each[:2]) >= 0])
def test_padding_by_parts_is_padding(edges, monkeypatch):
    def padded(x):
        return lax.pad(x, np.float32(9), [edges, (0, 1, 0)])

    x = np.arange(1, 11, dtype=np.float32).reshape(5, 2)
    expected = jax.jit(padded)(x)
    monkeypatch.setattr(shaping, "_LARGEST_EDGE", -1)
    np.testing.assert_array_equal(jax.jit(lambda x: padded(x))(x), expected)


ROWS = [
    ("i,ij->j", (3,), (3, 5)),
    ("ai,ij->aj", (1, 3), (3, 5)),
    ("bai,bij->baj", (2, 1, 3), (2, 3, 5)),
    ("i,ijk->jk", (3,), (3, 5, 4)),
]


@pytest.mark.parametrize(("spec", "a", "b"), ROWS, ids=str)
def test_products_with_exchanged_operands_are_products(spec, a, b, monkeypatch):
    numbers = np.random.default_rng(0)
    a, b = (numbers.integers(-4, 5, shape).astype(np.float32) for shape in (a, b))
    monkeypatch.setattr(dot_general, "_LONG_ROW", 4)
    lowered = jax.jit(lambda a, b: jnp.einsum(spec, a, b)).lower(a, b)
    assert "stablehlo.transpose" in lowered.as_text()
    np.testing.assert_array_equal(lowered.compile()(a, b), np.einsum(spec, a, b))


def test_products_of_several_rows_are_as_they_were_written(monkeypatch):
    monkeypatch.setattr(dot_general, "_LONG_ROW", 4)
    text = jax.jit(lambda a, b: a @ b).lower(jnp.ones((2, 3)), jnp.ones((3, 5))).as_text()
    assert "stablehlo.transpose" not in text


WINDOWS_OF_ONE = """
import numpy as np
import hlofront as jax
from hlofront import lax

def sums(x, padding, stride=(1, 1)):
    return lax.reduce_window(x, np.float32(0), lax.add, (1, 1), stride, padding)

x = np.arange(12, dtype=np.float32).reshape(3, 4)
np.testing.assert_array_equal(jax.jit(lambda x: sums(x, [(0, 0), (-2, 0)]))(x), x[:, 2:])
np.testing.assert_array_equal(jax.jit(lambda x: sums(x, [(-1, 0), (0, -1)]))(x), x[1:, :3])
found = jax.jit(lambda x: sums(x, [(1, -1), (0, 0)], (1, 2)))(x)
np.testing.assert_array_equal(found, np.pad(x, [(1, 0), (0, 0)])[:3, ::2])
"""


@pytest.mark.parametrize("guards", ["1", "0"])
def test_cut_windows_of_one_element_end_the_process_without_the_guard(guards):
    fault = next(each for each in FAULTS if each.name == "cut windows of one element")
    environment = {**os.environ, "HLOFRONT_XLA_GUARDS": guards}
    command = [sys.executable, "-c", WINDOWS_OF_ONE]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    dies = guards == "0" and fault.is_in(state.jaxlib_version)
    assert done.returncode == 0 if not dies else done.returncode < 0, done.stderr


CONVOLUTIONS = {
    "convolutions of nothing but padding": """
x, kernel = np.ones((1, 8, 2, 6), np.float32), np.ones((136, 1, 1, 3), np.float32)
result = jax.jit(lambda x, k: convolved(x, k, [(2, -3), (0, 0)], (1, 1), 8))(x, kernel)
np.testing.assert_array_equal(result, np.zeros((1, 136, 1, 4)))
""",
    "convolutions with long kernels of dilated inputs": """
x, kernel = np.ones((1, 1, 2, 3), np.float32), np.ones((1, 1, 3, 2), np.float32)
result = jax.jit(lambda x, k: convolved(x, k, [(1, 1), (0, 0)], (1, 2), 1))(x, kernel)
np.testing.assert_array_equal(result, np.full((1, 1, 2, 4), 2))
""",
}
CONVOLVED = """
import numpy as np
import hlofront as jax
from hlofront import lax

def convolved(x, kernel, padding, dilation, groups):
    return lax.conv_general_dilated(
        x, kernel, (1, 1), padding, dilation, feature_group_count=groups
    )
"""


@pytest.mark.parametrize("guards", ["1", "0"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_some_convolutions_end_the_process_without_the_guard(name, guards):
    fault = next(each for each in FAULTS if each.name == name)
    environment = {**os.environ, "HLOFRONT_XLA_GUARDS": guards}
    command = [sys.executable, "-c", CONVOLVED + CONVOLUTIONS[name]]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    dies = guards == "0" and fault.is_in(state.jaxlib_version)
    assert done.returncode == 0 if not dies else done.returncode < 0, done.stderr


GAPS = "convolutions of inputs with long gaps"


def dilated(x, kernel, step, edges=((0, 0),)):
    return lax.conv_general_dilated(x, kernel, (1,), edges, lhs_dilation=(step,))


NWC = ("NWC", "WIO", "NWC")


@pytest.mark.parametrize("numbers", [None, NWC])
def test_inputs_with_long_gaps_are_padded_first(numbers):
    assert GAPS in {each.name for each in FAULTS if each.is_rare}
    shapes = ((1, 8, 2), (2, 2, 3)) if numbers else ((1, 2, 8), (3, 2, 2))
    x, kernel = (jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes)
    lowered = jax.jit(
        lambda x, k: lax.conv_general_dilated(
            x, k, (1,), ((2, 1),), lhs_dilation=(2**31 - 1,), dimension_numbers=numbers
        )
    ).lower(x, kernel)
    assert "lhs_dilate = [1]" in lowered.as_text()
    lowered.compile()


@pytest.mark.parametrize("edges", [(0, 0), (2, 1), (-1, 3), (3, -2)])
def test_inputs_that_are_padded_first_have_the_same_products(edges, monkeypatch):
    numbers = np.random.default_rng(0)
    x, kernel = (numbers.integers(-4, 5, n).astype(np.float32) for n in ((2, 3, 5), (4, 3, 2)))
    expected = jax.jit(lambda x, k: dilated(x, k, 3, (edges,)))(x, kernel)
    monkeypatch.setattr(conv, "_MANY_POSITIONS", 1)
    found = jax.jit(lambda x, k: dilated(x, k, 3, (edges,)))(x, kernel)
    np.testing.assert_array_equal(found, expected)


LONG_ROW = """
import numpy as np
import hlofront as jax

shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((2,), (2, 2**31))]
jax.jit(lambda a, b: a @ b).lower(*shapes).compile()
"""


@pytest.mark.parametrize("guards", ["1", "0"])
def test_rows_of_many_columns_end_the_process_without_the_guard(guards):
    fault = next(each for each in FAULTS if each.name == "products of a row with 2**31 columns")
    environment = {**os.environ, "HLOFRONT_XLA_GUARDS": guards}
    command = [sys.executable, "-c", LONG_ROW]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    dies = guards == "0" and fault.is_in(state.jaxlib_version)
    assert (done.returncode < 0) == dies, done.stderr


TWO_BITS = """
import numpy as np
import hlofront as jax
import hlofront.numpy as jnp

for dtype in ("int2", "uint2"):
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(jnp.dtype(dtype))
    for axis in (0, 1):
        whole = jax.jit(lambda x: jnp.concatenate([x, x], axis))(x)
        assert whole.dtype == dtype
        assert (np.asarray(whole) == np.concatenate([x, x], axis)).all()
    assert (np.asarray(jax.jit(lambda x: jnp.stack([x, x]))(x)) == x).all()
"""


@pytest.mark.parametrize("guards", ["1", "0"])
def test_concatenations_of_two_bit_integers_end_the_process_without_the_guard(guards):
    fault = next(each for each in FAULTS if each.name == "concatenations of two-bit integers")
    environment = {**os.environ, "HLOFRONT_XLA_GUARDS": guards}
    command = [sys.executable, "-c", TWO_BITS]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=300)
    dies = guards == "0" and fault.is_in(state.jaxlib_version)
    assert done.returncode == 0 if not dies else done.returncode < 0, done.stderr
