"""Mosaic rules of random bits, delays, values for profiles, and questions about memories."""

from hlofront.base.elements import bool_
from hlofront.bridge.mlir import Value
from hlofront.higher_order.checkify.checking import check_p
from hlofront.lowering.core.types import attribute, string
from hlofront.pallas.debug_checks import makes_checks, message_of
from hlofront.pallas.hints import delay_p, touch_p, trace_value_p
from hlofront.pallas.memory import TpuMemorySpace
from hlofront.pallas.memory_hints import has_memory_space_p
from hlofront.pallas.mosaic.builder import KernelBuilder, KernelRef, Operand
from hlofront.pallas.mosaic.rules import mosaic
from hlofront.pallas.prng import prng_random_bits_p, prng_seed_p, threefry
from hlofront.primitives.random.bits import threefry2x32_p


@mosaic(delay_p)
def _(build: KernelBuilder, nanos: Value) -> list[Value]:
    build.effect("tpu.delay", (nanos,))
    return []


@mosaic(touch_p)
def _(build: KernelBuilder, ref: KernelRef) -> list[Value]:
    return []


@mosaic(trace_value_p)
def _(build: KernelBuilder, value: Value, *, label: str) -> list[Value]:
    build.effect("tpu.trace_value", (value,), label=string(label))
    return []


@mosaic(has_memory_space_p)
def _(build: KernelBuilder, ref: KernelRef, *, memory_space: TpuMemorySpace) -> Value:
    build.require("tpu.memref_memory_space_is", "give the BlockSpec its memory")
    space = attribute(f"#tpu.memory_space<{memory_space}>")
    return build.op("tpu.memref_memory_space_is", (ref.value,), memory_space=space)


@mosaic(prng_seed_p)
def _(build: KernelBuilder, state: KernelRef, *seeds: Value) -> list[Value]:
    # The state is that of the core, rather than the reference's.
    build.effect("tpu.prng_set_seed_32", seeds)
    return []


@mosaic(prng_random_bits_p)
def _(build: KernelBuilder, state: KernelRef, *, shape: tuple[int, ...]) -> Value:
    if len(shape) < 2:
        build.refuse(
            f"prng_random_bits({shape}): random_bits only supports rank>=2 outputs. Draw bits of "
            f"shape {(1, *shape) if shape else (8, 128)}, and read a row",
            NotImplementedError,
        )
    return build.op("tpu.prng_random_bits", ())


@mosaic(threefry2x32_p)
def _(build: KernelBuilder, *words: Value) -> list[Operand]:
    encrypted = lambda key1, key2, x, y: threefry((key1, key2), x, y)
    return build.by_tracing(encrypted, build.avals_in, words)[0]


@mosaic(check_p)
def _(
    build: KernelBuilder, failed: Value, code: Value, *_: Value, debug: bool, **__: object
) -> list[Value]:
    if not debug:
        build.refuse(
            "Non-debug checks are not supported by the Mosaic backend: use pl.debug_check",
            NotImplementedError,
        )
    if makes_checks():
        holds = build.op("arith.xori", (failed, build.constant(True, bool_)), failed.type)
        build.effect("cf.assert", (holds,), msg=string(message_of(build.equation)))
    return []
