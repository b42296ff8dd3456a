"""Kernels of Triton and Mosaic GPU that jax made: they pass through ffi and export unharmed.

jax 0.10.2 wrote the files of gpu_kernels/ by make.py there, without a GPU: exports of x + 2 y, by
kernels of two steps.
"""

import pathlib

import numpy as np
import pytest

import hlofront as jax
from hlofront import export, ffi
from hlofront.bridge.mlir import context, ir
from hlofront.bridge.state import jaxlib_version
from hlofront.pjrt import targets
from hlofront.sharding import SingleDeviceSharding

FOLDER = pathlib.Path(__file__).with_name("gpu_kernels")
TARGETS = {"triton": "__gpu$xla.gpu.triton", "mosaic_gpu": "mosaic_gpu_v2"}
X = jax.ShapeDtypeStruct((64, 128), "float32")
kernels = pytest.mark.parametrize("name", TARGETS)


def loaded(name):
    return export.deserialize((FOLDER / f"{name}.export").read_bytes(), trust=True)


def kernel_in(text):
    """The target and the attributes of the only custom call of a module."""
    calls = []

    def visit(operation):
        if operation.name == "stablehlo.custom_call":
            calls.append(operation)
        return ir.WalkResult.ADVANCE

    with context:
        ir.Module.parse(text).operation.walk(visit)
        (call,) = calls
        attributes = call.attributes
        key = "mhlo.backend_config" if "mhlo.backend_config" in attributes else "backend_config"
        values = {each.name: value_of(each.attr) for each in attributes[key]}
        return attributes["call_target_name"].value, values


def value_of(attribute):
    if isinstance(attribute, ir.StringAttr):
        return attribute.value_bytes
    if isinstance(attribute, ir.BoolAttr):
        return attribute.value
    return np.dtype(f"int{attribute.type.width}").type(attribute.value)


def exported_again(name, function):
    """What is read of an export of a function with the kernel."""
    checks = [export.DisabledSafetyCheck.custom_call(TARGETS[name])]
    written = export.export(jax.jit(function), platforms=["cuda"], disabled_checks=checks)(X, X)
    return export.deserialize(written.serialize(), trust=True)


@kernels
def test_an_exported_kernel_is_called_and_exported_again_as_it_is(name):
    program = loaded(name)
    kernel = kernel_in(program.mlir_module())
    assert kernel[0] == TARGETS[name] and b"MLIR" in kernel[1].get("ir", kernel[1].get("module"))
    again = exported_again(name, lambda x, y: program.call(x, y) * 2)
    assert kernel_in(again.mlir_module()) == kernel


@kernels
def test_a_foreign_call_has_the_kernel_as_it_is(name):
    target, attributes = kernel_in(loaded(name).mlir_module())

    def function(x, y):
        return ffi.ffi_call(target, X)(x, y, **attributes)

    assert kernel_in(exported_again(name, function).mlir_module()) == (target, attributes)


def test_a_kernel_of_triton_is_exported_on_request_only():
    program = jax.jit(loaded("triton").call)
    with pytest.raises(ValueError, match="triton"):
        export.export(program, platforms=["cuda"])(X, X)


@kernels
def test_an_untrusted_kernel_is_refused(name):
    program = export.deserialize((FOLDER / f"{name}.export").read_bytes())
    with pytest.raises(ValueError, match=r"is refused: it calls .*code outside of the program"):
        jax.jit(program.call).lower(X, X)


@pytest.mark.slow
@pytest.mark.skipif(
    jaxlib_version >= (0, 11), reason="Triton's bytecode has no versions: jaxlib 0.10 wrote it"
)
@kernels
@pytest.mark.parametrize("through", ["export", "ffi"])
def test_a_kernel_is_compiled_for_an_absent_gpu(name, through):
    missing = targets.install_hint("cuda")
    if missing:
        pytest.skip(missing)
    program = loaded(name)
    target, attributes = kernel_in(program.mlir_module())
    function = program.call
    if through == "ffi":
        function = lambda x, y: ffi.ffi_call(target, X)(x, y, **attributes)
    place = SingleDeviceSharding(jax.target("cuda:h100").devices[0])
    x = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=place)
    compiled = jax.jit(function).lower(x, x).compile()
    assert f'custom_call_target="{target}"' in compiled.as_text()
