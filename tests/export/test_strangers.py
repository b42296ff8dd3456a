"""Untrusted files: allowed contents are read and run, and all others raise the documented error.

`python -m tests.export.mutants` tries thousands of changed files; some are tried here.
"""

import copy
import io
import json
import struct
import tempfile

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import bundle, export
from hlofront.bridge import (
    custom_call_checks,
    foreign,
    mlir,
    module_checks,
    worker_process,
    worker_script,
)
from hlofront.bridge.custom_call_checks import CustomCall, CustomCallError
from hlofront.experimental.serialize_executable import deserialize_and_load, serialize
from hlofront.lax import linalg
from hlofront.pjrt import cache_file
from hlofront.runtime.bundle import bundle_file, loading
from hlofront.runtime.compilation import foreign_programs
from hlofront.runtime.export import exported as exported_programs
from hlofront.runtime.export import flatbuffers, jax_format, reading
from hlofront.runtime.export.checks import STABLE_TARGETS
from tests.export import mutants

X = np.arange(3, dtype=np.float32)


@pytest.fixture(autouse=True)
def is_another_process(monkeypatch):
    """Forget what this process has serialized, which it reads with trust."""
    monkeypatch.setattr(exported_programs, "_own_modules", type("Nothing", (set,), {"add": id})())


class Code:
    """What a pickle could make another process call."""

    def __reduce__(self):
        return print, ("code of a stranger",)


def test_an_answer_of_the_process_that_reads_a_file_runs_no_code(monkeypatch, capsys):
    made = io.BytesIO()
    worker_script.write(made, {"module": Code()})
    made.seek(0)
    process = worker_process.WorkerProcess({})
    try:
        process.ask({"do": "nothing"}, None)
        with monkeypatch.context() as patch:
            patch.setattr(process, "_answers", made)
            with pytest.raises(worker_process.WorkerEnded, match=r"has builtins\.print"):
                process.ask({"do": "nothing"}, None)
    finally:
        process.end()
    assert not capsys.readouterr().out


def forged(text, inputs=(X,), outputs=(X,)):
    """Return an export of functions of these types whose module is a text."""
    made = export.export(
        jax.jit(lambda *_: [jnp.zeros(x.shape, x.dtype) for x in outputs], keep_unused=True)
    )(*inputs)
    with mlir.context:
        module = mlir.ir.Module.parse(text)
    fields = cache_file.unpack(bytes(made.serialize()))
    return cache_file.pack({**fields, "module": mlir.portable_artifact(module, None, True)})


def call(target, results="tensor<3xf32>", options="index = 7 : ui64"):
    return (
        f"stablehlo.custom_call @{target}(%x) {{api_version = 4 : i32, backend_config = "
        f"{{{options}}}}} : (tensor<3xf32>) -> {results}"
    )


PLAIN = """
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = {}
  return %0 : tensor<3xf32>
}}"""
CALLED = """
func.func private @inner(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = {}
  return %0 : tensor<3xf32>
}}
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %t = stablehlo.constant dense<true> : tensor<i1>
  %0 = "stablehlo.if"(%t) ({{
    %1 = func.call @inner(%x) : (tensor<3xf32>) -> tensor<3xf32>
    stablehlo.return %1 : tensor<3xf32>
  }}, {{
    stablehlo.return %x : tensor<3xf32>
  }}) : (tensor<i1>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}}"""
UNUSED = """
func.func private @inner(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = {}
  return %0 : tensor<3xf32>
}}
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.composite "a.b" %x {{decomposition = @inner}} : (tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}}"""


@pytest.mark.parametrize("place", [PLAIN, CALLED, UNUSED])
@pytest.mark.parametrize(
    "target",
    [
        "xla_ffi_python_cpu_callback",
        "xla_ffi_partitioned_python_cpu_callback",
        "xla_buffer_python_cpu_callback",
        "xla_ffi_python_gpu_callback",
        "xla_python_cpu_callback",
        "TopK",
        "SliceToDynamic",
        "tpu_custom_call",
        "mosaic_gpu_v2",
        "tf.call_tf_function",
        "AllocateBuffer",
        "lapack_spotrf",
    ],
)
def test_code_outside_of_the_program_is_not_called(target, place):
    loaded = export.deserialize(forged(place.format(call(target))))
    for use in (lambda: loaded.call(X), loaded.mlir_module):
        with pytest.raises(ValueError, match=f"is refused: it calls '{target}', which is code"):
            use()


def test_the_user_decides_which_code_is_called(monkeypatch):
    blob = forged(PLAIN.format(call("mine")))
    with pytest.raises(ValueError, match="it calls 'mine'"):
        export.deserialize(blob).mlir_module()
    assert "@mine" in export.deserialize(blob, trust=True).mlir_module()
    monkeypatch.setattr("hlofront.bridge.ffi.registered_targets", {"mine"})
    assert "@mine" in export.deserialize(blob).mlir_module()


SORTED = """
func.func public @main(%x: tensor<500xf32>) -> tensor<500xf32> {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %t = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %t : tensor<i1>
  }) {dimension = 0 : i64, is_stable = false} : (tensor<500xf32>) -> tensor<500xf32>
  return %0 : tensor<500xf32>
}"""


def test_a_comparator_that_orders_nothing_does_no_harm():
    """A sort that need not be stable leaves its array, or never ends."""
    ones = np.ones(500, np.float32)
    (result,) = export.deserialize(forged(SORTED, [ones], [ones])).call(ones)
    np.testing.assert_array_equal(result, ones)


CONVOLUTION = """
func.func public @main(%x: tensor<{x}>, %k: tensor<{k}>) -> tensor<{y}> {{
  %0 = stablehlo.convolution(%x, %k) dim_numbers = {numbers},
    window = {{stride = [1, 1], pad = {pads}, lhs_dilate = {steps}, rhs_dilate = [1, 1]}}
    {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}}
    : (tensor<{x}>, tensor<{k}>) -> tensor<{y}>
  return %0 : tensor<{y}>
}}"""


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16"])
@pytest.mark.parametrize("pads", [((2, -3), (0, 0)), ((-2, 3), (1, -1)), ((-2, 1), (0, 2))])
@pytest.mark.parametrize("steps", [(1, 1), (2, 3)])
def test_convolutions_that_xla_runs_outside_of_their_input_are_right(pads, steps, dtype):
    """Without other code for the padding, one of them ends this process."""
    numbers = np.random.default_rng(0)
    x, kernel = (
        numbers.integers(-4, 5, shape).astype(jnp.dtype(dtype))
        for shape in ((1, 8, 2, 6), (136, 1, 1, 3))
    )
    expected = jax.lax.conv_general_dilated(x, kernel, (1, 1), pads, steps, feature_group_count=8)
    kind = {"float32": "f32", "int32": "i32", "bfloat16": "bf16"}[dtype]
    types = {
        name: "x".join([*map(str, array.shape), kind])
        for name, array in (("x", x), ("k", kernel), ("y", expected))
    }
    text = CONVOLUTION.format(
        **types,
        numbers="[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]",
        pads=list(map(list, pads)),
        steps=list(steps),
        groups=8,
    )
    loaded = export.deserialize(forged(text, [x, kernel], [expected]))
    (result,) = loaded.call(x, kernel)
    np.testing.assert_array_equal(result, expected)


DOUBLING = "".join(
    f"""
func.func private @f{i + 1}(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = func.call @f{i}(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %1 = func.call @f{i}(%0) : (tensor<3xf32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}}"""
    for i in range(60)
)
RETURNED = "(%x: tensor<3xf32>) -> tensor<3xf32> {\n  return %x : tensor<3xf32>\n}\n"
CALL_OF = "func.call @{}(%x) : (tensor<3xf32>) -> tensor<3xf32>"
REFUSED = {
    "has the operation stablehlo.infeed": """
func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = "stablehlo.infeed"(%t) {infeed_config = ""}
    : (!stablehlo.token) -> (tensor<3xf32>, !stablehlo.token)
  return %0#0 : tensor<3xf32>
}""",
    "its function 'main' calls itself": PLAIN.format(CALL_OF.format("main")),
    "operations when inlined": PLAIN.format(CALL_OF.format("f60"))
    + DOUBLING
    + f"func.func private @f0{RETURNED}",
    "has no function main": f"func.func public @other{RETURNED}",
    "its function 'other' has no body": PLAIN.format(CALL_OF.format("other"))
    + "func.func private @other(tensor<3xf32>) -> tensor<3xf32>",
    "it is for 1 devices": PLAIN.format(
        '"stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 5]]> : '
        "tensor<1x2xi64>} : (tensor<3xf32>) -> tensor<3xf32>"
    ),
    "its header says": f"func.func public @main{RETURNED}".replace("3xf32", "4xf32"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_programs_that_no_export_is_are_refused(reason):
    loaded = export.deserialize(forged(REFUSED[reason]))
    with pytest.raises(ValueError, match=reason):
        loaded.call(X)


# ---- custom calls that fit -----------------------------------------------------------------------

_A = jax.ShapeDtypeStruct
FACTORIZATIONS = {
    "cholesky": lambda d: (linalg.cholesky, _A((2, 3, 3), d)),
    "lu": lambda d: (linalg.lu, _A((2, 5, 3), d)),
    "qr": lambda d: (linalg.qr, _A((3, 5), d)),
    "qr with pivots": lambda d: (lambda a: linalg.qr(a, pivoting=True), _A((5, 3), d)),
    "eigh": lambda d: (linalg.eigh, _A((2, 3, 3), d)),
    "eig": lambda d: (linalg.eig, _A((3, 3), d)),
    "svd": lambda d: (lambda a: linalg.svd(a, full_matrices=True), _A((2, 3, 5), d)),
    "small svd": lambda d: (lambda a: linalg.svd(a, full_matrices=False), _A((5, 3), d)),
    "singular values": lambda d: (lambda a: linalg.svd(a, compute_uv=False), _A((5, 3), d)),
    "svd by QR": lambda d: (
        lambda a: linalg.svd(a, algorithm=linalg.SvdAlgorithm.QR),
        _A((5, 3), d),
    ),
    "schur": lambda d: (linalg.schur, _A((3, 3), d)),
    "hessenberg": lambda d: (linalg.hessenberg, _A((3, 3), d)),
    "tridiagonal": lambda d: (linalg.tridiagonal, _A((3, 3), d)),
    "tridiagonal_solve": lambda d: (
        linalg.tridiagonal_solve,
        *[_A((4, 3), d)] * 3,
        _A((4, 3, 2), d),
    ),
    "triangular_solve": lambda d: (
        lambda a, b: linalg.triangular_solve(a, b, left_side=True),
        _A((3, 3), d),
        _A((3, 2), d),
    ),
    "ormqr": lambda d: (linalg.ormqr, _A((5, 3), d), _A((3,), d), _A((5, 2), d)),
}
DTYPES = ["float32", "float64", "complex64", "complex128"]


def calls_of(module):
    """Return the custom calls of LAPACK in a module as their checks see them."""
    found = []

    def visited(operation):
        if operation.name == "stablehlo.custom_call":
            each = operation.operation
            sides = [
                [custom_call_checks._type(value.type) for value in side]
                for side in (each.operands, each.results)
            ]
            options = custom_call_checks._options(each.attributes["backend_config"])
            name = mlir.ir.StringAttr(each.attributes["call_target_name"]).value
            found.append(CustomCall(name, *sides, options))
        return mlir.ir.WalkResult.ADVANCE

    module.operation.walk(visited)
    return found


def changed(call):
    """Yield a custom call with one size or dtype of one value changed, dropped, or repeated."""
    for side in ("operands", "results"):
        values = list(getattr(call, side))
        for index, value in enumerate(values):
            others = [value._replace(element="i32" if value.element != "i32" else "f32")]
            others.append(value._replace(shape=(*value.shape, 1)))
            for axis, size in enumerate(value.shape):
                for more in (-1, 1, 1000):
                    shape = (*value.shape[:axis], size + more, *value.shape[axis + 1 :])
                    others.append(value._replace(shape=shape))
            for other in others:
                yield call._replace(**{side: [*values[:index], other, *values[index + 1 :]]})
            yield call._replace(**{side: [*values[:index], *values[index + 1 :]]})
            yield call._replace(**{side: [*values[:index], value, *values[index:]]})


def has_other_reflections(call, other):
    """Return whether calls differ in the number of reflections, of which a product has any."""
    if call.target[8:] not in ("orgqr_ffi", "ungqr_ffi") or len(other.operands) != 2:
        return False
    (matrix, scales), rest = other.operands, call._replace(operands=())
    return (
        other._replace(operands=()) == rest
        and matrix == call.operands[0]
        and scales.element == matrix.element
        and len(scales.shape) == len(matrix.shape) - 1
        and scales.shape[-1] <= matrix.shape[-1]
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FACTORIZATIONS)
def test_lapack_is_called_with_values_that_fit_only(name, dtype):
    with jax.enable_x64(True):
        function, *arguments = FACTORIZATIONS[name](dtype)
        module = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
        calls = calls_of(module)
        assert calls
        module_checks.check_module(module, frozenset(), 1)
        for each in calls:
            check = custom_call_checks._TARGETS[each.target]
            check(each)
            for other in changed(each):
                if has_other_reflections(each, other):
                    continue
                with pytest.raises(CustomCallError, match=each.target):
                    check(other)


def test_options_that_ask_for_more_than_there_is_are_refused():
    square = custom_call_checks.ValueType((3, 3), "f32")
    row, one = square._replace(shape=(3,)), custom_call_checks.ValueType((), "i32")
    few = square._replace(shape=(2,))
    wrong = {
        "lapack_sgees_ffi": ([square, square, row, row, one, one], {"mode": 78, "sort": 83}),
        "lapack_sgesdd_ffi": ([square, row, square, square, one], {"mode": ord("O")}),
        "lapack_sgehrd_ffi": ([square, few, one], {"low": 1, "high": 4}),
        "cusolver_geev_ffi": ([square, row, square, square, one], {"left": True, "right": True}),
    }
    for target, (results, options) in wrong.items():
        with pytest.raises(CustomCallError, match=target):
            custom_call_checks._TARGETS[target](CustomCall(target, [square], results, options))


@pytest.mark.parametrize("routine", ["gesdd", "gesvd", "geev", "gees", "sytrd", "geqp3"])
def test_kernels_that_allocate_for_nothing_are_not_called(routine):
    kernels = {**custom_call_checks._LAPACK, **custom_call_checks._LAPACK_OF_REAL}
    kernel = kernels[routine]
    sides = [side.split() for side in kernel.types[0].split("->")]
    operands, results = (
        [
            custom_call_checks.ValueType(
                (0,) * len(text.partition(":")[0].replace("-", "")),
                custom_call_checks._element(text.partition(":")[2], "f32"),
            )
            for text in side
        ]
        for side in sides
    )
    target = f"lapack_s{routine}_ffi"
    options = {name: values[-1] for name, values in kernel.options.items()}
    with pytest.raises(CustomCallError, match="has matrices without elements"):
        custom_call_checks._TARGETS[target](CustomCall(target, operands, results, options))


def test_each_target_that_is_exported_has_a_check_but_code_of_kernels():
    of_kernels = {"tf.call_tf_function", "tpu_custom_call", "AllocateBuffer", "mosaic_gpu_v2"}
    assert STABLE_TARGETS - set(custom_call_checks._TARGETS) == of_kernels


def test_what_may_be_called_is(monkeypatch):
    """Programs of LAPACK, sorts and loops are compiled apart, to the same values."""
    apart = []
    compiled_by_worker = foreign_programs.compiled_by_worker
    monkeypatch.setattr(
        foreign_programs,
        "compiled_by_worker",
        lambda *args: apart.append(args[0]) or compiled_by_worker(*args),
    )

    def function(a, b):
        top = jax.lax.top_k(b, 2)
        return jnp.linalg.solve(a, b), jnp.linalg.svd(a)[1], jnp.sort(b), top, jnp.fft.fft(b)

    a, b = np.eye(3, dtype=np.float32) + 2, X[::-1].copy()
    blob = export.export(jax.jit(function))(a, b).serialize(vjp_order=0)
    loaded = export.deserialize(blob)
    for one, other in zip(
        jax.tree.leaves(loaded.call(a, b)), jax.tree.leaves(function(a, b)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    doubled = jax.jit(lambda a, b: loaded.call(a, b * 2)[0])
    np.testing.assert_allclose(doubled(a, b), function(a, b * 2)[0], rtol=1e-5)
    assert len(apart) == 2


def test_unknown_sizes_are_found_apart():
    (n,) = export.symbolic_shape("n")
    made = export.export(jax.jit(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0]))))(
        jax.ShapeDtypeStruct((n, n), "float32")
    )
    x = np.eye(4, dtype=np.float32)
    loaded = export.deserialize(made.serialize())
    np.testing.assert_allclose(loaded.call(x), np.sqrt(2) * x, rtol=1e-6)


# ---- trust ---------------------------------------------------------------------------------------


def test_trusted_programs_ask_no_other_process(monkeypatch, tmp_path):
    made = export.export(jax.jit(lambda x: x + 1))(X)
    blob = bytes(made.serialize())
    path = tmp_path / "f.hlob"
    bundle.save(path, jax.jit(lambda x: x + 2), X)
    monkeypatch.setattr(foreign.worker, "_running", lambda: pytest.fail("a process was started"))
    np.testing.assert_array_equal(export.deserialize(blob, trust=True).call(X), X + 1)
    np.testing.assert_array_equal(made.call(X), X + 1)
    np.testing.assert_array_equal(bundle.load(path, trust=True)(X), X + 2)
    # What this process has serialized is its own.
    monkeypatch.setattr(exported_programs, "_own_modules", set())
    blob = made.serialize()
    np.testing.assert_array_equal(export.deserialize(blob).call(X), X + 1)


def test_programs_of_strangers_need_another_process(monkeypatch):
    blob = export.export(jax.jit(lambda x: x + 3))(X).serialize()
    monkeypatch.setattr(foreign.worker, "process", None)
    monkeypatch.setattr("hlofront.bridge.worker_process.sys.executable", "")
    with pytest.raises(ValueError, match=r"cannot be started .* trust=True"):
        export.deserialize(blob).call(X)
    np.testing.assert_array_equal(export.deserialize(blob, trust=True).call(X), X + 3)


@pytest.mark.parametrize("is_late", [True, False])
def test_the_end_of_the_other_process_is_a_refusal(monkeypatch, is_late):
    """It is ended when it takes too long; or it ends itself, here for lack of a stack."""
    blob = export.export(jax.jit(lambda x: x * 5))(X).serialize()
    if is_late:
        monkeypatch.setattr(foreign, "READING", foreign.Limits(0.0, 0.0))
        monkeypatch.setattr(foreign.worker, "process", None)
    else:
        monkeypatch.setattr(foreign, "_STACK", 1 << 15)
    with pytest.raises(ValueError, match="ends the process that reads"):
        export.deserialize(blob).call(X)
    monkeypatch.undo()
    np.testing.assert_array_equal(export.deserialize(blob).call(X), X * 5)


def test_memory_is_limited(monkeypatch):
    values = np.random.default_rng(0).uniform(size=1 << 22).astype(np.float32)
    blob = export.export(jax.jit(lambda x: x + values))(X[0]).serialize()
    monkeypatch.setattr(foreign, "_MEMORY", 1 << 20)
    monkeypatch.setattr(foreign, "_MEMORY_PER_BYTE", 0)
    with pytest.raises(ValueError, match=r"is refused: it (takes more memory|ends the process)"):
        export.deserialize(blob).call(X[0])


def test_a_stranger_sets_no_options_that_name_files(tmp_path):
    options = {"xla_dump_to": str(tmp_path / "dumps"), "xla_dump_hlo_as_text": True}
    path = tmp_path / "f.hlob"
    bundle.save(path, jax.jit(lambda x: x + 4, compiler_options=options), X)
    with pytest.raises(bundle.BundleError, match="its compiler option xla_dump_"):
        bundle.load(path)
    assert bundle.load(path, trust=True)(X)[0] == 4


def test_static_arguments_that_take_hours_to_read_are_refused(tmp_path):
    """The hashes of these integers are equal: a set of them takes the square of their number."""
    path = tmp_path / "f.hlob"
    bundle.save(path, jax.jit(lambda x, n: x * n, static_argnums=1), X, 2)
    fields = cache_file.unpack(path.read_bytes())
    header = json.loads(fields["header"])
    header["programs"][0]["static"] = [[1, "({" + "0," * 9 + str(2**61 - 1) + "},)"]]
    path.write_bytes(cache_file.pack({**fields, "header": json.dumps(header).encode()}))
    with pytest.raises(bundle.BundleError, match="static argument that is a set"):
        bundle.load(path)


# ---- mutants -------------------------------------------------------------------------------------


def test_mutants_are_read_or_refused():
    with tempfile.TemporaryDirectory() as folder:
        for number, name, data in mutants.mutants_from(0, 150, seed=41):
            said = mutants.outcome(name, data, folder)
            assert said.startswith(("accepted", "refused")), (number, name, said)


def read_executable(data):
    """Read the header of a serialized executable, which is machine code otherwise."""
    tree = jax.tree.structure(((0,), {}))
    return deserialize_and_load(data, tree, jax.tree.structure(0))


@pytest.fixture(scope="module")
def readers(tmp_path_factory):
    """Return a file of each kind, with the function that reads it and the error that it raises."""
    path = tmp_path_factory.mktemp("bundles") / "f.hlob"
    jitted = jax.jit(lambda x: {"a": x})
    bundle.save(path, jitted, X)
    executable, *_ = serialize(jax.jit(lambda x: x * 2).lower(X).compile())
    blob = bytes(export.export(jitted)(X).serialize())
    return {
        "export": (blob, lambda data: reading.read(data, trust=False), ValueError),
        "bundle": (
            path.read_bytes(),
            lambda data: loading._bundled(bundle_file.parsed(data, "f.hlob"), False, None, False),
            bundle.BundleError,
        ),
        "executable": (executable, read_executable, (ValueError, RuntimeError)),
    }


@pytest.mark.parametrize("kind", ["export", "bundle", "executable"])
@pytest.mark.parametrize("value", mutants._VALUES, ids=range(len(mutants._VALUES)))
def test_every_value_of_a_header_is_checked(readers, kind, value):
    blob, read, error = readers[kind]
    fields = cache_file.unpack(blob)
    header = json.loads(fields["header"])
    refused = 0
    for path in filter(None, list(mutants.paths_in(header))):
        other = copy.deepcopy(header)
        mutants._at(other, path[:-1])[path[-1]] = value
        data = mutants.encoded(other)
        try:
            read(cache_file.pack({**fields, "header": data}))
        except error:
            refused += 1
    assert refused


def doubled_tables(depth):
    """Return a FlatBuffer of a structure whose tables each have the next one twice as a child."""
    buffer = bytearray(4)
    tables = []
    for level in range(depth):
        vtable = len(buffer)
        fields = (8, 4) if level + 1 < depth else (8, 0)
        buffer += struct.pack("<HHHH", 8, 12, *fields)
        tables.append(len(buffer))
        # The vector of children follows, and then the next table, behind its vtable.
        buffer += struct.pack("<iIB3x", 8, 8, 2)
        start = len(buffer)
        following = start + 12 + 8
        buffer += struct.pack("<III", 2, following - start - 4, following - start - 8)
        assert vtable + 8 == tables[-1]
    struct.pack_into("<I", buffer, 0, tables[0])
    return bytes(buffer) + bytes(64)


def test_what_is_read_grows_with_the_file_only():
    """Tables of JAX's format that refer to each other twice are not read a million times."""
    with pytest.raises(flatbuffers.DamagedBuffer, match="the same bytes again and again"):
        jax_format._structure(flatbuffers.TableView.root(doubled_tables(40)))
    small = jax_format._structure(flatbuffers.TableView.root(doubled_tables(3)))
    assert str(small) == "PyTreeDef((((), ()), ((), ())))"
