"""Faults planted between lowering and compilation: StableHLO is edited before XLA compiles it.

An edit needs operations that only the program as a whole has next to each other, as the faults of
a fusion do, so that an operation compiled by itself is right.
"""

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.bridge import client as bridge
from hlofront.bridge.mlir import ir


class Fault(NamedTuple):
    """A fault of XLA's compiler: a program, and the edit of the StableHLO that is compiled.

    The line of the program with the comment `# here` has the operation that the edit changes.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    needs: tuple[str, ...]
    """Texts that the module has to have."""
    pattern: str
    replacement: str
    primitive: str
    """The operation that is changed."""


@contextlib.contextmanager
def planted(fault: Fault) -> Iterator[list[str]]:
    """Compile with the fault; yields the edited modules."""
    compile_and_load = bridge.compile_and_load
    edited: list[str] = []

    def compile_edited(client, module, devices, options, callbacks):
        text = module.operation.get_asm(enable_debug_info=True)
        if all(need in text for need in fault.needs):
            changed = re.sub(fault.pattern, fault.replacement, text, count=1)
            if changed != text:
                edited.append(changed)
                with module.context:
                    module = ir.Module.parse(changed)
        return compile_and_load(client, module, devices, options, callbacks)

    bridge.compile_and_load = compile_edited
    try:
        yield edited
    finally:
        bridge.compile_and_load = compile_and_load


numbers = np.random.default_rng(0)
square = numbers.normal(size=(5, 5)).astype(np.float32)
vector = numbers.normal(size=7).astype(np.float32)
integers = numbers.integers(-9, 9, 7).astype(np.int32)


def wrong_constant(x):
    y = jnp.cos(x)
    z = y * 2.5  # here
    return jnp.tanh(z)


def swapped_operands(x):
    y = jnp.sqrt(abs(x))
    return (x - y) * 3  # here


def dropped_select(x):
    y = lax.exp(x)
    z = lax.select(x > 0, y, x)  # here
    return z + 1


def changed_comparison(x):
    y = lax.tanh(x)
    small = lax.lt(y, x)  # here
    return lax.select(small, y, x)


def wrong_axis(x):
    y = lax.exp(x)
    return y.sum(1) + 1  # here


def wrong_transpose(x):
    y = lax.tanh(x[None] * jnp.ones((5, 1, 1), x.dtype))
    z = lax.transpose(y, (0, 2, 1))  # here
    return z + 1


def minimum_of_rows(x):
    y = lax.sin(x)
    return lax.reduce_max(y, (1,)) * 2  # here


def other_contraction(x):
    y = lax.tanh(x)
    return lax.dot(y, x) + 1  # here


def shifted_slice(x):
    y = lax.exp(x)
    return lax.slice(y, (1,), (4,)) * 2  # here


def padded_elsewhere(x):
    y = lax.exp(x)
    return lax.pad(y, np.float32(0), [(2, 1, 0)]) + 1  # here


def other_iota(x):
    rows = lax.broadcasted_iota(np.int32, (5, 5), 1)  # here
    return lax.exp(x) * rows


def swapped_parts(x):
    y = lax.sin(x)
    z = lax.concatenate([x, y], 0)  # here
    return lax.cos(z)


def not_reversed(x):
    y = lax.exp(x)
    return lax.rev(y, (1,)) + 1  # here


def rounded_up(x):
    y = lax.tanh(x) * 3
    return lax.floor(y) + x  # here


def other_bits(x):
    y = x * 3
    z = lax.bitwise_and(y, x)  # here
    return z + 1


def other_shift(x):
    y = x * 77
    return lax.shift_right_arithmetic(y, np.int32(1)) + 1  # here


def wrong_clamp(x):
    y = lax.sin(x)
    return lax.clamp(np.float32(-0.2), y, np.float32(0.5)) * 2  # here


def descending(x):
    y = lax.exp(x)
    return lax.sort(y) + 1  # here


def in_a_scan(x):
    def step(carry, row):
        moved = lax.tanh(carry)
        carry = moved - row  # here
        return carry, carry * 2

    return lax.scan(step, x[0], x)


def in_a_loop(x):
    def step(i, carry):
        y = lax.sin(carry)
        return y + carry * 0.5  # here

    return lax.fori_loop(0, 4, step, x)


def in_a_branch(x):
    def positive(x):
        y = lax.exp(x)
        return lax.max(y, x * 2)  # here

    return lax.cond(x.sum() > -1e9, positive, lax.neg, x)


def random_bits(x):
    bits = jax.random.bits(jax.random.key(3), (7,), np.uint32)
    y = bits ^ np.uint32(5)  # here
    return y + x.astype(np.uint32)


def in_a_gradient(x):
    def loss(x):
        return (lax.tanh(x) ** 3).sum()  # here

    return jax.grad(loss)(x)


def in_a_called_function(x):
    @jax.jit
    def called(x):
        y = lax.log1p(abs(x))
        return y / 3  # here

    return {"a": [called(x) + 1], "b": x}


def op(name: str, a: str = r"(%\w+)", b: str = r"(%\w+)") -> str:
    return rf"stablehlo\.{name} {a}, {b}"


TANH, EXP, SINE, COSINE = (f"stablehlo.{n}" for n in ("tanh", "exponential", "sine", "cosine"))
FAULTS = (
    Fault("wrong constant", wrong_constant, (vector,), ("2.500000e+00", "stablehlo.multiply"),
          r"dense<2.500000e\+00>", "dense<2.000000e+00>", "mul"),
    Fault("swapped operands", swapped_operands, (vector,), ("stablehlo.sqrt", "subtract"),
          op("subtract"), r"stablehlo.subtract \2, \1", "sub"),
    Fault("dropped select", dropped_select, (vector,), (EXP, "stablehlo.select"),
          r"stablehlo\.select (%\w+), (%\w+), (%\w+)", r"stablehlo.select \1, \2, \2", "select_n"),
    Fault("changed comparison", changed_comparison, (vector,), ("compare", TANH),
          r"compare +LT", "compare GT", "lt"),
    Fault("wrong axis", wrong_axis, (square,), (EXP, "stablehlo.reduce"),
          r"across dimensions = \[1\]", "across dimensions = [0]", "reduce_sum"),
    Fault("wrong transpose", wrong_transpose, (square,), (TANH, "transpose"),
          r"stablehlo.transpose (%\w+), dims = \[0, 2, 1\]",
          r"stablehlo.transpose \1, dims = [1, 2, 0]", "transpose"),
    Fault("minimum of rows", minimum_of_rows, (square,), ("stablehlo.maximum", "multiply"),
          r"applies stablehlo.maximum", "applies stablehlo.minimum", "reduce_max"),
    Fault("other contraction", other_contraction, (square,), (TANH, "dot_general"),
          r"contracting_dims = \[1\] x \[0\]", "contracting_dims = [1] x [1]", "dot_general"),
    Fault("shifted slice", shifted_slice, (vector,), (EXP, "stablehlo.slice"),
          r"\[1:4\]", "[2:5]", "slice"),
    Fault("padded elsewhere", padded_elsewhere, (vector,), (EXP, "stablehlo.pad"),
          r"low = \[2\], high = \[1\]", "low = [1], high = [2]", "pad"),
    Fault("other iota", other_iota, (square,), (EXP, "stablehlo.iota"),
          r"iota dim = 1", "iota dim = 0", "iota"),
    Fault("swapped parts", swapped_parts, (vector,), ("concatenate", "cos"),
          op("concatenate"), r"stablehlo.concatenate \2, \1", "concatenate"),
    Fault("not reversed", not_reversed, (square,), (EXP, "stablehlo.reverse"),
          r"stablehlo.reverse (%\w+), dims = \[1\]", r"stablehlo.reverse \1, dims = [0]", "rev"),
    Fault("rounded up", rounded_up, (vector,), (TANH, "floor"),
          "stablehlo.floor", "stablehlo.ceil", "floor"),
    Fault("other bits", other_bits, (integers,), ("multiply", "stablehlo.and"),
          "stablehlo.and", "stablehlo.or", "and"),
    Fault("other shift", other_shift, (integers,), ("multiply", "shift_right_arithmetic"),
          "shift_right_arithmetic", "shift_left", "shift_right_arithmetic"),
    Fault("wrong clamp", wrong_clamp, (vector,), ("clamp", "sine", "-2.000000e-01"),
          r"dense<-2.000000e-01>", "dense<-1.000000e-01>", "clamp"),
    Fault("descending", descending, (vector,), (EXP, "sort"),
          r"compare +LT", "compare GT", "sort"),
    Fault("in a scan", in_a_scan, (square,), (TANH, "subtract"),
          op("subtract"), r"stablehlo.add \1, \2", "sub"),
    Fault("in a loop", in_a_loop, (vector,), ("sin", "5.000000e-01"),
          r"dense<5.000000e-01>", "dense<2.500000e-01>", "mul"),
    Fault("in a branch", in_a_branch, (vector,), (EXP, "stablehlo.maximum"),
          "stablehlo.maximum", "stablehlo.minimum", "max"),
    Fault("random bits", random_bits, (integers,), ("dense<5> : tensor<ui32>", "stablehlo.xor"),
          r"dense<5> : tensor<ui32>", "dense<4> : tensor<ui32>", "xor"),
    Fault("in a gradient", in_a_gradient, (vector,), (TANH, "3.000000e+00"),
          r"dense<3.000000e\+00>", "dense<2.000000e+00>", "mul"),
    Fault("in a called function", in_a_called_function, (vector,), ("log_plus_one", "divide"),
          op("divide"), r"stablehlo.divide \2, \1", "div"),
)  # fmt: skip
