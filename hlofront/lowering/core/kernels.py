"""Calls of kernels of LAPACK, cuSOLVER and similar libraries, with NaN results on failure."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from hlofront.base.config import options
from hlofront.base.dtypes import issubdtype
from hlofront.base.elements import bool_, int32
from hlofront.base.typing import DType
from hlofront.bridge import kernels
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import Avals, ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.lowering.core import types, unknown_sizes
from hlofront.lowering.core.builder import Builder

_use_magma = options["jax_use_magma"]
# The letters of dtypes in LAPACK routine names.
_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# LAPACK routines whose names for complex matrices differ by more than the letter.
_OF_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}


class Library:
    """A library of matrix kernels for one platform, addressed by LAPACK routine names."""

    def __init__(self, platform: str, title: str, solver: str, sparse: str, own: str):
        self.platform = platform
        self.title = title
        # The prefixes of kernel names: of the vendor's libraries, and of XLA's own kernels.
        self.solver = solver
        self.sparse = sparse
        self.own = own

    def __call__(
        self,
        build: Builder,
        routine: str,
        operands: Values,
        results: Avals,
        attributes: Mapping[str, str] | None = None,
        aliases: Mapping[int, int] | None = None,
        by_rows: bool = False,
    ) -> list[Value]:
        """Call the kernel for a LAPACK routine on a batch of matrices, with `call`.

        Raises:
          NotImplementedError: for a dtype that the library does not support.
        """
        dtype = build.avals_in[0].dtype
        self.check(build, dtype)
        target = self.target(routine, dtype)
        return call(build, target, operands, results, attributes, aliases, by_rows=by_rows)

    def factors(
        self,
        build: Builder,
        routine: str,
        operands: Values,
        attributes: Mapping[str, str],
        aliases: Mapping[int, int] | None = None,
    ) -> list[Value]:
        """Call the kernel for a LAPACK routine, whose last result is a status for each matrix.

        The other results are those of the equation, with NaN for matrices that it failed for.
        """
        results = build.avals_out
        declared = (*results, batch_info(build.avals_in[-1]))
        *values, info = self(build, routine, operands, declared, attributes, aliases)
        return nan_where_failed(build, info, values, results)

    def on_host(
        self,
        build: Builder,
        routine: str,
        operands: Values,
        results: Avals,
        attributes: Mapping[str, str],
        aliases: Mapping[int, int] | None = None,
    ) -> list[Value]:
        """Call a kernel that runs a routine of LAPACK on the host, or of MAGMA, with `call`."""
        self.check(build, build.avals_in[0].dtype)
        kernels.load_hybrid_kernels()
        target = f"{self.own}hybrid_{routine}"
        return call(build, target, operands, results, attributes, aliases)

    def target(self, routine: str, dtype: DType) -> str:
        """Return the kernel name for a LAPACK routine."""
        return f"{self.solver}_{routine}_ffi"

    def check(self, build: Builder, dtype: DType) -> None:
        """Raise NotImplementedError for a dtype that the library does not support."""
        if dtype.name not in _LETTERS:
            raise NotImplementedError(  # JAX raises this class.
                f"{build.primitive.name}: {self.title} has no routine for {dtype.name}, "
                f"only for {', '.join(_LETTERS)}: convert with .astype('float32') first"
            )

    def triangle(self, lower: bool) -> dict[str, str]:
        """Return the kernel option for the triangle of a symmetric matrix to read."""
        return {"lower": str(lower).lower()}


class _Lapack(Library):
    """The LAPACK library, with a routine per dtype and characters as options."""

    def target(self, routine: str, dtype: DType) -> str:
        if issubdtype(dtype, np.complexfloating):
            routine = _OF_COMPLEX.get(routine, routine)
        return f"lapack_{_LETTERS[dtype.name]}{routine}_ffi"

    def check(self, build: Builder, dtype: DType) -> None:
        super().check(build, dtype)
        kernels.load_lapack()

    def triangle(self, lower: bool) -> dict[str, str]:
        return {"uplo": character("L" if lower else "U")}


LAPACK = _Lapack("cpu", "LAPACK", "lapack", "lapack", "lapack")
CUDA = Library("cuda", "cuSOLVER", "cusolver", "cusparse", "cu")
ROCM = Library("rocm", "hipSOLVER", "hipsolver", "hipsparse", "hip")
GPUS = (CUDA, ROCM)

Rule = Callable[..., Any]


def by_library(
    *primitives: Primitive, of: Sequence[Library] = (LAPACK, *GPUS)
) -> Callable[[Rule], Rule]:
    """Register `rule(build, library, *values, **params)` for the platform of each library."""

    def register(rule: Rule) -> Rule:
        for library in of:
            lower(*primitives, platform=library.platform)(_with_library(rule, library))
        return rule

    return register


def _with_library(rule: Rule, library: Library) -> Rule:
    @wraps(rule)
    def bound(build: Builder, *values: Value, **params: object) -> Value | list[Value]:
        return rule(build, library, *values, **params)

    return bound


def call(
    build: Builder,
    target: str,
    operands: Values,
    results: Avals,
    attributes: Mapping[str, str] | None = None,
    aliases: Mapping[int, int] | None = None,
    *,
    avals: Avals | None = None,
    batch: int | None = None,
    by_rows: bool = False,
) -> list[Value]:
    """Call a kernel on each element of a batch.

    Args:
      target: the name of the kernel, such as "cusolver_potrf_ffi".
      operands: the operand values.
      results: the avals of the results.
      attributes: the kernel's options, as texts of MLIR attributes.
      aliases: the results that may share a buffer with an operand: result -> operand.
      avals: the avals of the operands; by default those of the equation.
      batch: the number of leading batch axes. Values with two further axes are matrices. By default
        at least one operand is a batch of matrices.
      by_rows: whether matrices are row-major, rather than column-major as for LAPACK.
    """
    avals = build.avals_in if avals is None else avals
    batch = max(aval.ndim for aval in avals) - 2 if batch is None else batch
    listed = ", ".join(f"{key} = {text}" for key, text in sorted((attributes or {}).items()))
    listed_aliases = [
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{result if len(results) > 1 else ''}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
        for result, operand in (aliases or {}).items()
    ]
    shapes, indices = unknown_sizes.result_shapes(build, len(operands), results)
    return build.ops(
        "stablehlo.custom_call",
        (*operands, *[value for value, _ in shapes]),
        results,
        call_target_name=types.string(target),
        api_version=types.i32(4),
        backend_config=types.attribute(f"{{{listed}}}"),
        operand_layouts=_layouts([*avals, *[aval for _, aval in shapes]], batch, by_rows),
        result_layouts=_layouts(results, batch, by_rows),
        output_operand_aliases=types.attribute(f"[{', '.join(listed_aliases)}]"),
        **indices,
        **{"mhlo.frontend_attributes": types.attribute(f'{{num_batch_dims = "{batch}"}}')},
    )


def xla_call(
    build: Builder,
    target: str,
    operands: Values,
    results: Avals,
    settings: str = "",
    api_version: int = 1,
) -> list[Value]:
    """Emit a custom call that an XLA compiler expands by itself, such as `Qr` on TPUs."""
    return build.ops(
        "stablehlo.custom_call",
        operands,
        results,
        call_target_name=types.string(target),
        api_version=types.i32(api_version),
        backend_config=types.string(settings),
    )


def character(text: str) -> str:
    """Return a character option as the text of an attribute."""
    return f"{ord(text)} : ui8"


def flag(value: bool) -> str:
    """Return a boolean option as the text of an attribute."""
    return str(bool(value)).lower()


def magma(use: bool | None) -> str:
    """Return the option that selects MAGMA; None uses the setting `jax_use_magma`."""
    return f'"{_use_magma.value if use is None else "on" if use else "off"}"'


def _layouts(avals: Avals, batch: int, by_rows: bool) -> ir.Attribute:
    texts = [_layout(aval.ndim, batch, by_rows) for aval in avals]
    return types.attribute(f"[{', '.join(texts)}]")


def _layout(rank: int, batch: int, by_rows: bool) -> str:
    order = list(reversed(range(rank)))
    if rank == batch + 2 and not by_rows:
        order[:2] = order[1], order[0]
    body = f"[{', '.join(map(str, order))}]" if rank else ""
    return f"dense<{body}> : tensor<{rank}xindex>"


def batch_info(aval: ShapedArray) -> ShapedArray:
    """Return the aval of a kernel's status codes, one per matrix of a batch."""
    return ShapedArray(aval.shape[:-2], int32)


def nan_where_failed(
    build: Builder, info: Value, values: Values, avals: Avals, least: bool = False
) -> list[Value]:
    """Return the values, with NaN for matrices whose kernel call failed.

    Args:
      info: the status codes, one per matrix of a batch: 0 is success.
      least: whether only codes below 0 are failures.
    """
    report = ShapedArray(avals[0].shape[: ir.ShapedType(info.type).rank], int32)
    fine = build.compare("GE" if least else "EQ", info, build.full(0, report), report)
    results: list[Value] = []
    for value, aval in zip(values, avals, strict=True):
        which = build.broadcast(fine, aval.update(dtype=bool_), range(report.ndim))
        is_complex = issubdtype(aval.dtype, np.complexfloating)
        nan = build.full(complex(np.nan, np.nan) if is_complex else np.nan, aval)
        results.append(build.select(which, value, nan, aval))
    return results
