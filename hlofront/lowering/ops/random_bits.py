"""Lowering rules of random bits and of random keys."""

from collections.abc import Callable, Sequence

import numpy as np

from hlofront.base.config import options, threefry_partitionable
from hlofront.base.elements import float32, int32, uint32, uint64
from hlofront.base.typing import Array, Shape
from hlofront.bridge.mlir import Value, Values, ir
from hlofront.core.aval import ShapedArray
from hlofront.core.primitive import Primitive
from hlofront.core.rules import lower
from hlofront.core.sizes.symbolic import has_symbolic_size
from hlofront.higher_order import random_gamma
from hlofront.lowering.core import kernels, types, unknown_sizes
from hlofront.lowering.core.builder import Builder, in_function
from hlofront.lowering.core.extended import physical
from hlofront.lowering.core.kernels import GPUS, Library, by_library
from hlofront.lowering.min_sizes import MIN_SIZES
from hlofront.lowering.replacements import Candidate, Emit, is_large, replaces
from hlofront.primitives.random import bits as r
from hlofront.primitives.random import keys as k
from hlofront.transforms.vmap import vmap

_state = ShapedArray((2,), uint64)
_halves = ShapedArray((2, 2), uint32)
_has_kernel = options["jax_threefry_gpu_kernel_lowering"]


@lower(r.rng_bit_generator_p)
def _(build: Builder, key: Value, *, algorithm: r.RandomAlgorithm, **_: Value) -> list[Value]:
    (key_aval,), (new_key_aval, bits_aval) = build.avals_in, build.avals_out
    # The operation's state consists of 64-bit words.
    in_halves = key_aval.dtype == uint32
    if in_halves:
        key = build.op("stablehlo.bitcast_convert", (build.reshape(key, _halves),), _state)
    name = algorithm.name.removeprefix("RNG_")
    algorithm_attribute = types.attribute(f"#stablehlo<rng_algorithm {name}>")
    if has_symbolic_size(bits_aval.shape):
        new_key, bits = build.ops(
            "stablehlo.custom_call",
            (key, unknown_sizes.vector(build, bits_aval.shape)),
            (_state, bits_aval),
            call_target_name=types.string("stablehlo.dynamic_rng_bit_generator"),
            rng_algorithm=algorithm_attribute,
            api_version=types.i32(2),
        )
    else:
        new_key, bits = build.ops(
            "stablehlo.rng_bit_generator",
            (key,),
            (_state, bits_aval),
            rng_algorithm=algorithm_attribute,
        )
    if in_halves:
        new_key = build.op("stablehlo.bitcast_convert", (new_key,), _halves)
        new_key = build.reshape(new_key, new_key_aval)
    return [new_key, bits]


@lower(r.rng_uniform_p)
def _(build: Builder, a: Value, b: Value, *, shape: Sequence[int]) -> Value:
    return _uniform(build, a, b, build.avals_out[0])


def _uniform(build: Builder, a: Value, b: Value, result: ShapedArray) -> Value:
    sizes = build.constant(np.array(result.shape, np.int64))
    return build.op(
        "stablehlo.rng",
        (a, b, sizes),
        result,
        rng_distribution=types.attribute("#stablehlo<rng_distribution UNIFORM>"),
    )


@lower(r.rng_uniform_p, platform="tpu")
def _(build: Builder, a: Value, b: Value, *, shape: Sequence[int]) -> Value:
    (aval, _), (result,) = build.avals_in, build.avals_out
    if result.dtype.itemsize > 2:
        return _uniform(build, a, b, result)
    # XLA's TPU compiler aborts the process for narrower floats: round them from wider ones.
    wide = result.update(dtype=float32)
    start, end = (build.convert(x, aval.update(dtype=wide.dtype)) for x in (a, b))
    numbers = build.convert(_uniform(build, start, end, wide), result)
    lowest, end = (build.broadcast(x, result, ()) for x in (a, b))
    # Replace values rounded up to the end, which is exclusive, by the start.
    inside = build.compare("LT", numbers, end, result)
    return build.select(inside, numbers, lowest, result)


# ---- threefry ------------------------------------------------------------------------------------

_counter = ShapedArray((), int32)


class _Words:
    """Arithmetic on 32-bit words of equal shape; scalars are broadcast."""

    def __init__(self, build: Builder, shape: Shape):
        self.build = build
        self.aval = ShapedArray(shape, uint32)

    def do(self, name: str, x: Value, y: Value) -> Value:
        return self.build.op("stablehlo." + name, (x, y), self.aval)

    def broadcast(self, x: Value) -> Value:
        """Return a scalar, or an array of the words' shape, broadcast to that shape."""
        is_scalar = self.aval.shape and not ir.ShapedType(x.type).shape
        return self.build.broadcast(x, self.aval, ()) if is_scalar else x

    def rounds(self, x: Value, y: Value, rotations: Values) -> tuple[Value, Value]:
        """Return the words x and y after four rounds; `rotations` are scalars of uint32."""
        one = _Words(self.build, ())
        for left in rotations:
            x = self.do("add", x, y)
            right = one.do("subtract", self.build.constant(32, uint32), left)
            rotated = self.do(
                "or",
                self.do("shift_left", y, self.broadcast(left)),
                self.do("shift_right_logical", y, self.broadcast(right)),
            )
            y = self.do("xor", x, rotated)
        return x, y


_scalar = ShapedArray((), uint32)


# (builder, words of the keys, words of the counts, both keys, both counts) -> the bits.
Encrypt = Callable[[Builder, _Words, _Words, Value, Value, Value, Value], list[Value]]


def _threefry(encrypt: Encrypt) -> Callable[..., list[Value]]:
    def rule(build: Builder, *words: Value) -> list[Value]:
        result = build.avals_out[0]
        # Keys stay scalars, because usually one key is used for all counts.
        shared = all(not aval.shape for aval in build.avals_in[:2])
        key_shape: Shape = () if shared else result.shape
        shapes = [key_shape, key_shape, result.shape, result.shape]
        avals = [ShapedArray(shape, uint32) for shape in shapes]

        def body(inner: Builder, first: Value, second: Value, x: Value, y: Value) -> list[Value]:
            keys, counts = _Words(inner, key_shape), _Words(inner, result.shape)
            return encrypt(inner, keys, counts, first, second, x, y)

        return build.call_function(
            ("threefry2x32", encrypt, shared, result.shape),
            "threefry2x32",
            list(map(build.broadcast_to, words, build.avals_in, avals)),
            avals,
            build.avals_out,
            body,
        )

    return rule


def _schedule(words: _Words, first: Value, second: Value) -> list[Value]:
    """Return the three words of the key schedule, which are added in turn between rounds."""
    parity = words.broadcast(words.build.constant(r.THREEFRY_PARITY, uint32))
    return [first, second, words.do("xor", words.do("xor", first, second), parity)]


def _unrolled(
    build: Builder, keys: _Words, words: _Words, first: Value, second: Value, x: Value, y: Value
) -> list[Value]:
    schedule = list(map(words.broadcast, _schedule(keys, first, second)))
    x, y = words.do("add", x, schedule[0]), words.do("add", y, schedule[1])
    for step in range(5):
        rotations = [build.constant(left, uint32) for left in r.THREEFRY_ROTATIONS[step % 2]]
        x, y = words.rounds(x, y, rotations)
        number = words.broadcast(build.constant(step + 1, uint32))
        x = words.do("add", x, schedule[(step + 1) % 3])
        y = words.do("add", words.do("add", y, schedule[(step + 2) % 3]), number)
    return [x, y]


def _rolled(
    build: Builder, keys: _Words, words: _Words, first: Value, second: Value, x: Value, y: Value
) -> list[Value]:
    """Encrypt in a loop of five steps, which reads and writes the words in each.

    Without the loop, XLA's fusion for CPUs copies each round into all operations that read it, such
    as the following rounds.
    """
    schedule = _schedule(keys, first, second)
    x = words.do("add", x, words.broadcast(first))
    y = words.do("add", y, words.broadcast(second))
    tables = [build.constant(np.array(row, np.uint32)) for row in r.THREEFRY_ROTATIONS]
    rows = ShapedArray((4,), uint32)

    def go_on(inner: Builder, step: Value, *_: Value) -> Value:
        return inner.compare("LT", step, inner.constant(5, np.int32), _counter)

    def body(
        inner: Builder,
        step: Value,
        x: Value,
        y: Value,
        now: Value,
        after: Value,
        last: Value,
        these: Value,
        those: Value,
    ) -> Values:
        own = _Words(inner, words.aval.shape)
        x, y = own.rounds(x, y, [_entry(inner, these, i) for i in range(4)])
        step = inner.op("stablehlo.add", (step, inner.constant(1, np.int32)), _counter)
        number = own.broadcast(inner.convert(step, _scalar))
        x = own.do("add", x, own.broadcast(after))
        y = own.do("add", own.do("add", y, own.broadcast(last)), number)
        return step, x, y, after, last, now, those, these

    results = build.while_loop(
        go_on,
        body,
        [build.constant(0, np.int32), x, y, *schedule, *tables],
        [_counter, words.aval, words.aval, *[keys.aval] * 3, rows, rows],
    )
    return results[1:3]


_unrolled_rule, _rolled_rule = _threefry(_unrolled), _threefry(_rolled)
lower(r.threefry2x32_p)(_unrolled_rule)


# XLA compiles the loop of steps once for all small results, which most keys are.
lower(r.threefry2x32_p, platform="cpu")(_rolled_rule)


@replaces(r.threefry2x32_p, needs_barriers=True, splits=True, in_place=True)
def _(equation: Candidate) -> Emit | None:
    """All rounds in one loop over the results."""
    is_one_loop = is_large(equation.avals_out[0], MIN_SIZES["threefry2x32"]["all"])
    return _in_one_loop if is_one_loop else None


def _in_one_loop(build: Builder, *words: Value) -> list[Value]:
    # Without a barrier XLA would repeat the code that derives the keys in each loop that uses them.
    keys = build.barrier(words[:2], build.avals_in[:2])
    return _unrolled_rule(build, *keys, *words[2:])


@by_library(r.threefry2x32_p, of=GPUS)
def _(build: Builder, library: Library, *words: Value) -> list[Value]:
    aval = build.avals_out[0]
    if not _has_kernel.value or not aval.size:
        return lower[r.threefry2x32_p](build, *words)
    target = f"{library.own}_threefry2x32_ffi"
    # The kernel takes a flat list of words, of any shape.
    return kernels.call(
        build,
        target,
        operands=build.broadcast_operands(*words),
        avals=[aval] * 4,
        results=build.avals_out,
        batch=aval.ndim,
    )


def _entry(build: Builder, table: Value, i: int) -> Value:
    part = build.slice(table, (i,), (i + 1,), result=ShapedArray((1,), uint32))
    return build.reshape(part, _scalar)


# ---- keys ----------------------------------------------------------------------------------------


def _over(function: Callable[..., Array], rank: int) -> Callable[..., Array]:
    """Map a function of a single key over the axes of an array of keys of this rank."""
    for _ in range(rank):
        function = vmap(function)
    return function


def _lower_by_generator(
    primitive: Primitive, function_of: Callable[..., Callable[..., Array]]
) -> None:
    """Register the rule that calls `function_of(generator, **params)` with the bits of each key."""

    @lower(primitive)
    @in_function
    def _(build: Builder, *operands: Value, partitionable: bool = True, **params: object) -> Value:
        aval = next(filter(k.is_key, (*build.avals_in, *build.avals_out)))
        function = _over(function_of(aval.dtype.generator, **params), build.avals_in[0].ndim)
        avals = list(map(physical, build.avals_in))
        with threefry_partitionable(partitionable):
            return build.by_tracing(function, operands, avals)[0]


def _seed(generator: k.Generator, impl: object) -> Callable[[Array], Array]:
    return generator.seed


def _split(generator: k.Generator, shape: Shape) -> Callable[[Array], Array]:
    def split(key: Array) -> Array:
        return generator.split(key, shape)

    return split


def _random_bits(generator: k.Generator, bit_width: int, shape: Shape) -> Callable[[Array], Array]:
    def random_bits(key: Array) -> Array:
        return generator.random_bits(key, bit_width, shape)

    return random_bits


_lower_by_generator(k.random_seed_p, _seed)
_lower_by_generator(k.random_split_p, _split)
_lower_by_generator(k.random_bits_p, _random_bits)


@replaces(k.random_bits_p, sizes="threefry2x32", needs_barriers=True, splits=True)
def _(equation: Candidate) -> Emit | None:
    """Emit a barrier; otherwise XLA would repeat all rounds in each loop that uses the bits."""
    (result,) = equation.avals_out
    return _stored_bits if is_large(result, MIN_SIZES["threefry2x32"]["all"]) else None


def _stored_bits(build: Builder, keys: Value) -> Value:
    bits = lower[k.random_bits_p](build, keys, **build.current.params)
    return build.barrier([bits], build.avals_out)[0]


@lower(k.random_fold_in_p)
@in_function
def _(build: Builder, keys: Value, data: Value, *, partitionable: bool = True) -> Value:
    keys_aval, data_aval = build.avals_in
    result = build.avals_out[0]
    of_keys: ShapedArray = result.update(dtype=keys_aval.dtype)
    of_data = result.update(dtype=data_aval.dtype)
    operands = [
        build.broadcast_to(keys, keys_aval, of_keys),
        build.broadcast_to(data, data_aval, of_data),
    ]
    function = _over(keys_aval.dtype.generator.fold_in, result.ndim)
    with threefry_partitionable(partitionable):
        return build.by_tracing(function, operands, [physical(of_keys), of_data])[0]


@lower(k.random_wrap_p, k.random_unwrap_p, k.random_clone_p)
def _(build: Builder, x: Value, **_: object) -> Value:
    return x


@lower(random_gamma.random_gamma_p)
@in_function
def _(
    build: Builder, keys: Value, alpha: Value, *, log_space: bool, partitionable: bool = True
) -> Value:
    with threefry_partitionable(partitionable):
        return build.by_tracing(random_gamma.draw, (keys, alpha), log_space=log_space)[0]
