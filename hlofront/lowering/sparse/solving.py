"""Lowering rules of spsolve: SciPy on the host for CPUs, cuSOLVER on NVIDIA GPUs."""

import numpy as np

from hlofront.base.typing import Array, NumPyArray
from hlofront.bridge.mlir import Value
from hlofront.core.aval import typeof
from hlofront.core.rules import lower
from hlofront.lowering.core import kernels
from hlofront.lowering.core.builder import Builder
from hlofront.primitives.calls.callbacks import pure_callback_p
from hlofront.primitives.sparse.solving import solve_on_host, spsolve_p


@lower(spsolve_p, platform="cpu")
def _(build: Builder, *operands: Value, **_: object) -> Value:
    def solve(*operands: Array) -> Array:
        aval = typeof(operands[3])

        def on_host(
            data: NumPyArray, indices: NumPyArray, indptr: NumPyArray, b: NumPyArray
        ) -> list[NumPyArray]:
            return [solve_on_host(data, indices, indptr, b, aval.dtype)]

        (x,) = pure_callback_p.bind(
            *operands, callback=on_host, result_avals=(aval,), sharding=None, vmap_method=None
        )
        return x

    return build.by_tracing(solve, operands)[0]


@lower(spsolve_p, platform="cuda")
def _(build: Builder, *operands: Value, tol: float, reorder: int) -> Value:
    # MLIR's floats have a decimal point, even before an exponent.
    tolerance = np.format_float_scientific(tol, trim="0")
    attributes = {"tol": f"{tolerance} : f64", "reorder": f"{reorder} : i32"}
    target = "cusolver_csrlsvqr_ffi"
    return kernels.call(
        build, target, operands, build.avals_out, attributes, batch=0, by_rows=True
    )[0]
