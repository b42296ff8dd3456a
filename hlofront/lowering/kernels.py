"""Calls of LAPACK's routines, and what becomes of their results where they report failure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hlofront.bridge import kernels
from hlofront.core.aval import ShapedArray
from hlofront.lowering import types

_int32 = np.dtype(np.int32)
_bool = np.dtype(np.bool_)
_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def letter(build: Any, dtype: Any) -> str:
    """The letter of a dtype in LAPACK's names; NotImplementedError for others."""
    found = _LETTERS.get(dtype.name)
    if found is None:
        raise NotImplementedError(  # the class that JAX raises
            f"{build.equation.primitive.name}: LAPACK has no routine for {dtype.name}, only for "
            f"{', '.join(_LETTERS)}: convert with .astype('float32') first"
        )
    return found


def call(
    build: Any,
    routine: str,
    operands: Sequence[Any],
    avals: Sequence[ShapedArray],
    results: Sequence[ShapedArray],
    batch: int,
    attributes: Mapping[str, str] | None = None,
    aliases: Mapping[int, int] | None = None,
) -> list[Any]:
    """Call a routine on each element of a batch.

    Args:
      routine: its name, such as "spotrf".
      operands: values, of these avals.
      results: the avals of what it returns.
      batch: how many leading axes are batch axes. What has two more is a matrix: LAPACK's are
        stored by columns.
      attributes: the routine's options, each as the text of an MLIR attribute.
      aliases: which result may lie where an operand lies: result -> operand.

    Raises:
      NotImplementedError: where the program is not for CPUs.
    """
    platform = build.module.platform
    if platform != "cpu":
        raise NotImplementedError(  # the class that JAX raises
            f"{build.equation.primitive.name} is there for CPUs only: there is no kernel for "
            f"{platform} yet. Put its operands on a CPU: "
            "hlofront.device_put(x, hlofront.devices('cpu')[0])."
        )
    kernels.load_lapack()
    options = ", ".join(f"{key} = {text}" for key, text in sorted((attributes or {}).items()))
    places = [
        "#stablehlo.output_operand_alias<output_tuple_indices = "
        f"[{result if len(results) > 1 else ''}], operand_index = {operand}, "
        "operand_tuple_indices = []>"
        for result, operand in (aliases or {}).items()
    ]
    return build.ops(
        "stablehlo.custom_call",
        operands,
        results,
        call_target_name=types.string(
            routine if routine.endswith("_ffi") else f"lapack_{routine}_ffi"
        ),
        api_version=types.i32(4),
        backend_config=types.attribute(f"{{{options}}}"),
        operand_layouts=_layouts(avals, batch),
        result_layouts=_layouts(results, batch),
        output_operand_aliases=types.attribute(f"[{', '.join(places)}]"),
        **{"mhlo.frontend_attributes": types.attribute(f'{{num_batch_dims = "{batch}"}}')},
    )


def character(text: str) -> str:
    """An option that is a character, as the text of an attribute."""
    return f"{ord(text)} : ui8"


def _layouts(avals: Sequence[ShapedArray], batch: int) -> Any:
    return types.attribute(f"[{', '.join(_layout(aval.ndim, batch) for aval in avals)}]")


def _layout(rank: int, batch: int) -> str:
    order = list(reversed(range(rank)))
    if rank == batch + 2:
        order[:2] = order[1], order[0]
    body = f"[{', '.join(map(str, order))}]" if rank else ""
    return f"dense<{body}> : tensor<{rank}xindex>"


def batch_info(aval: ShapedArray, batch: int) -> ShapedArray:
    """The aval of LAPACK's reports, one for each element of the batch."""
    return ShapedArray(aval.shape[:batch], _int32)


def nan_where_failed(
    build: Any, info: Any, values: Sequence[Any], avals: Sequence[ShapedArray], least: bool = False
) -> list[Any]:
    """The values, or NaN where LAPACK reported failure: anything but 0, or with `least` below 0."""
    batch = avals[0].shape[: len(info.type.shape)]
    report = ShapedArray(tuple(batch), _int32)
    fine = build.compare("GE" if least else "EQ", info, build.full(0, report), report)
    found = []
    for value, aval in zip(values, avals, strict=True):
        which = build.broadcast(fine, aval.update(dtype=_bool), range(len(batch)))
        found.append(build.op("stablehlo.select", (which, value, build.full(np.nan, aval)), aval))
    return found
