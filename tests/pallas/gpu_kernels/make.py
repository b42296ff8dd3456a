"""Writes the exports of test_gpu_kernels.py, with jax 0.10.2 and absl-py: python make.py FOLDER."""

import pathlib
import sys
from importlib import import_module

jax, export = import_module("jax"), import_module("jax.export")
pl = import_module("jax.experimental.pallas")
mosaic_gpu = import_module("jax.experimental.pallas.mosaic_gpu")
triton = import_module("jax.experimental.pallas.triton")
X = jax.ShapeDtypeStruct((64, 128), "float32")
ROWS = pl.BlockSpec((32, 128), lambda i: (i, 0))


def add(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...] * 2


def write(name, params):
    def function(x, y):
        specs = {"in_specs": [ROWS, ROWS], "out_specs": ROWS}
        return pl.pallas_call(add, X, grid=(2,), compiler_params=params, **specs)(x, y)

    checks = [export.DisabledSafetyCheck.custom_call("__gpu$xla.gpu.triton")]
    exported = export.export(jax.jit(function), platforms=["cuda"], disabled_checks=checks)(X, X)
    pathlib.Path(sys.argv[1], f"{name}.export").write_bytes(exported.serialize())


write("triton", triton.CompilerParams(num_warps=4))
write("mosaic_gpu", mosaic_gpu.CompilerParams())
