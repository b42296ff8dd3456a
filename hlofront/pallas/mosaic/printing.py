"""The Mosaic rule of debug_print: scalars, or one vector, go to the log of the TPU."""

import string
from collections.abc import Sequence

from hlofront.base.tree import PyTreeDef
from hlofront.bridge.mlir import Value
from hlofront.core.references import AbstractRef
from hlofront.lowering.core import types
from hlofront.pallas.mosaic.builder import KernelBuilder
from hlofront.pallas.mosaic.elementwise import kind_of
from hlofront.pallas.mosaic.references import allocated, part_of, store
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.mosaic.shaping import array_attribute
from hlofront.primitives.calls.callbacks import debug_print_p

# How the log writes a float, a signed and an unsigned integer.
_FORMATS = "fsu"


@mosaic(debug_print_p)
def _(
    build: KernelBuilder,
    *operands: Value,
    fmt: str,
    ordered: bool,
    in_tree: PyTreeDef,
    static_args: Sequence[tuple[int, object]],
    has_placeholders: bool,
    **_: object,
) -> list[Value]:
    if ordered:
        build.refuse(
            "debug_print(ordered=True): a kernel prints in the order in which it runs; leave "
            "`ordered` out",
            NotImplementedError,
        )
    _, named = in_tree.unflatten(range(in_tree.num_leaves))
    if named or static_args:
        build.refuse(
            "debug_print of keyword arguments, or of values other than arrays: kernels of TPUs "
            "print positional arrays. Write the other values into the format string"
        )
    avals = build.avals_in
    if not any(aval.shape for aval in avals):
        text = _of_scalars(build, fmt) if has_placeholders else fmt
        build.effect(
            "tpu.log",
            operands,
            tag=types.string(text),
            formatted=types.boolean(has_placeholders),
        )
        return []
    if len(avals) != 1 or not has_placeholders or not fmt.endswith("{}"):
        listed = ", ".join(aval.str_short() for aval in avals)
        build.refuse(
            f"debug_print({fmt!r}) of {listed}: kernels of TPUs print scalars, or one vector at "
            'the end of the text, as in pl.debug_print("x: {}", x). Print each vector by itself'
        )

    def body(inner: KernelBuilder) -> None:
        ref = allocated(inner, AbstractRef(avals[0]))
        store(inner, part_of(inner, ref, ()), operands[0])
        shape = array_attribute(ref.shape, 64)
        inner.effect("tpu.log_buffer", (ref.value,), shape=shape, tag=types.string(fmt[:-2]))
        inner.effect("tpu.yield", ())

    build.with_regions("tpu.region", (), (), ((), body))
    return []


def _of_scalars(build: KernelBuilder, fmt: str) -> str:
    """Return a format string with the placeholders of the log, such as $f0."""
    parts: list[str] = []
    number = 0
    for text, field, spec, conversion in string.Formatter().parse(fmt):
        parts.append(text)
        if field is None:
            continue
        dtype = build.avals_in[number].dtype if number < len(build.avals_in) else None
        is_printed = dtype is not None and kind_of(dtype) < len(_FORMATS) and dtype.itemsize == 4
        if field or spec or conversion or not is_printed:
            build.refuse(
                f"debug_print({fmt!r}) of {[aval.str_short() for aval in build.avals_in]}: kernels "
                "of TPUs print one int32, uint32 or float32 for each `{}`. Convert other scalars, "
                "or leave the placeholders out"
            )
        parts.append(f"${_FORMATS[kind_of(dtype)]}{number}")
        number += 1
    return "".join(parts)
