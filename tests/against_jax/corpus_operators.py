"""Python operators on traced values: the jaxprs they write, and what they give under jit."""

import operator

import numpy as np

from tests.against_jax.describe import Corpus
from tests.against_jax.inputs import bf16, bools, complexes, floats, ints, unit

ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
COMPARISON = ("eq", "ne", "lt", "le", "gt", "ge")
BITWISE = ("and_", "or_", "xor", "lshift", "rshift")
UNARY = ("neg", "pos", "abs", "invert")


def programs(jax, jnp, lax):
    corpus = Corpus(("jaxpr", "jit"))
    x, y, n, m = floats(2, 3), unit(2, 3) + 0.5, ints(2, 3), np.abs(ints(2, 3)) + 1

    def add(name, function, *args, **options):
        corpus.add(name, function, *args, tolerance=1e-5, **options)

    for name in ARITHMETIC + COMPARISON:
        op = getattr(operator, name)
        add(f"{name}_of_floats", lambda a, b, op=op: op(a, b), unit(2, 3), y)
        add(f"{name}_of_ints", lambda a, b, op=op: op(a, b), n, m)
        add(f"{name}_by_a_float", lambda a, op=op: op(a, 2.5), unit(2, 3))
        add(f"{name}_by_an_int", lambda a, op=op: op(a, 3), n)
        add(f"{name}_float_by_an_int", lambda a, op=op: op(a, 2), x)
        if name != "pow":
            add(f"{name}_int_by_a_float", lambda a, op=op: op(a, 2.0), n)
            add(f"{name}_of_a_float_on_the_left", lambda a, op=op: op(2.0, a), y)
        add(f"{name}_ranks_meet", lambda a, b, op=op: op(a, b), unit(2, 3), unit(3))
        add(f"{name}_kinds_meet", lambda a, b, op=op: op(a, b), m, unit(2, 3))
        add(f"{name}_bf16_and_f32", lambda a, b, op=op: op(a, b), unit(3, dtype=bf16), unit(3))
    for name in BITWISE:
        op = getattr(operator, name)
        add(f"{name}_of_ints", lambda a, b, op=op: op(a, b), n, m)
        add(f"{name}_by_an_int", lambda a, op=op: op(a, 1), n)
        add(f"{name}_on_the_left", lambda a, op=op: op(6, a), m)
        add(
            f"{name}_of_unsigned",
            lambda a, b, op=op: op(a, b),
            n.astype(np.uint8),
            m.astype(np.uint8),
        )
        if name in ("and_", "or_", "xor"):
            add(f"{name}_of_bools", lambda a, b, op=op: op(a, b), bools(3), ints(3) > 0)
    for name in UNARY:
        op = getattr(operator, name)
        if name != "invert":
            add(f"{name}_of_floats", lambda a, op=op: op(a), x)
            add(f"{name}_of_complex", lambda a, op=op: op(a), complexes(3))
        add(f"{name}_of_ints", lambda a, op=op: op(a), n)
    add("invert_of_bools", lambda a: ~a, bools(3))

    add("matmul_of_matrices", lambda a, b: a @ b, floats(2, 3), floats(3, 2))
    add("matmul_of_vectors", lambda a, b: a @ b, floats(3), unit(3))
    add("matmul_of_matrix_and_vector", lambda a, b: (a @ b, b @ a.T), floats(2, 3), unit(3))
    add("matmul_in_batches", lambda a, b: a @ b, floats(2, 2, 3), unit(2, 3, 2))
    add("matmul_of_kinds", lambda a, b: a @ b, ints(2, 3), unit(3, 2))
    add("powers", lambda a: (a**0, a**1, a**2, a**-1, a**3), y)
    add("powers_of_ints", lambda a: (a**2, a**3), n)
    add("power_of_a_square_root", lambda a: a**0.5, y)
    add("reciprocal", lambda a: (1 / a, 1.0 - a, 2 * a, 3 + a), y)
    add("divmod_of_floats", lambda a, b: divmod(a, b), x, y)
    add("divmod_of_ints", lambda a: divmod(a, 3), n)
    add(
        "complex_arithmetic",
        lambda a, b: (a + b, a * b, a / b, a - 1j),
        complexes(3),
        complexes(3) + 1,
    )
    add("scalars_only", lambda a, b: (a + b, a * 2, b / 2), 3, 2.0)
    add("mixed_weak_types", lambda a, b: (a + b, b + a, a * 1.5), ints(2, dtype=np.int8), 3)
    add("bools_as_numbers", lambda p: (p + 1, p * 2.0, p + p), bools(3))
    add("numpy_on_the_left", lambda a: (np.float32(2) * a, np.ones(3, np.float32) - a), floats(3))
    add("chained_comparisons", lambda a: (a > 0) & (a < 1) | (a == -1), x)
    add("in_place", in_place, x, y)
    add(
        "x64_mixed",
        lambda a, b: (a + b, a * 2, b // 2, b % 3),
        np.arange(3.0),
        np.arange(3),
        x64=True,
    )
    return corpus


def in_place(a, b):
    c = a
    c += b
    c *= 2
    c -= a
    return c
