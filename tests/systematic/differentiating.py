"""Samples as functions to differentiate: points, directions, and programs of derivatives.

Imported by both sides, as trials.py is: the namespace of JAX's functions is handed in.
"""

import zlib
from typing import Any

import ml_dtypes
import numpy as np

from tests.support.cases import Spec
from tests.systematic import trials

# Loops within loops: XLA takes minutes to compile the derivatives of their derivatives.
LONG = {"betainc", "igamma", "igammac", "igamma_grad_a", "polygamma", "random_gamma_grad", "zeta"}
WIDER = {"c": np.complex128, "f": np.float64, "V": np.float64}


def moves(x: Any) -> bool:
    """Whether an array (or a dtype) is of floats or complex numbers, which have tangents."""
    dtype = np.dtype(getattr(x, "dtype", x))
    return dtype.kind in "fc" or (dtype.kind == "V" and dtype.name.startswith(("float", "bfloat")))


def is_candidate(sample: Any) -> bool:
    """Whether a sample has an operand to differentiate by.

    Infinities and NaN are no place for differences: what derivatives are there is compared with
    the reference's.
    """
    arrays = [
        operand
        for operand in sample.operands
        if isinstance(operand, Spec) or trials.is_traced(operand)
    ]
    floats = [operand for operand in arrays if moves(operand)]
    edges = any(
        not np.isfinite(operand.astype(WIDER[operand.dtype.kind])).all()
        for operand in floats
        if not isinstance(operand, Spec)
    )
    return bool(floats) and not edges


def key(sample: Any, alike: bool = False) -> Any:
    """Equal for samples that are one problem once their operands are of wide floats.

    With `alike`, for those too whose operands differ in their sizes alone.
    """
    operands = []
    for operand in sample.operands:
        if isinstance(operand, Spec) and moves(operand):
            shape = tuple(min(n, 2) for n in operand.shape) if alike else operand.shape
            operands.append((operand.dtype.kind == "c", shape))
        elif isinstance(operand, np.ndarray):
            operands.append((operand.dtype.name, operand.shape, operand.tobytes()))
        else:
            operands.append(repr(operand))
    return (sample.function, *operands, repr(sample.keywords))


class Problem:
    """A point, directions and cotangents for the function of a sample.

    `wide` widens floats to 64 bits, so that differences tell much. `variant` numbers points.
    """

    def __init__(self, sample: Any, wide: bool, jax: Any, variant: int = 0):
        self.sample = sample
        self.x64 = wide or sample.needs_x64()
        generator = np.random.default_rng(zlib.crc32(sample.name.encode()) + variant)
        values = sample.operand_values()
        if wide or variant:
            values = [
                _random_values(spec, value, generator, wide)
                for spec, value in zip(sample.operands, values, strict=True)
            ]
        call, self.operands = trials.split(sample, values)
        self.call = lambda *operands: jax.tree_util.tree_leaves(call(*operands))
        self.directions = [_direction(x, generator) for x in self.operands]
        self.seconds = [_direction(x, generator) for x in self.operands]
        with trials.quiet(), jax.enable_x64(self.x64):
            self.results = jax.eval_shape(self.call, *self.operands)
        self.cotangents = [_random_like(x, generator) for x in self.results]
        dtypes = [x.dtype for x in (*self.operands, *self.results) if moves(x)]
        if sample.computes_in:
            dtypes.append(ml_dtypes.finfo(sample.computes_in).dtype)
        # The fewest digits that anything has; it says how large steps must be.
        self.precision = max((float(ml_dtypes.finfo(d).eps) for d in dtypes), default=0.0)

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.operands, self.directions, self.cotangents

    def moved(self, step: float, directions: list[Any]) -> list[Any]:
        """The operands, so far along a direction."""
        return [
            x if d is None else np.asarray(x + step * d).astype(x.dtype)
            for x, d in zip(self.operands, directions, strict=True)
        ]


def make_problem(sample: Any, jax: Any, variant: int = 0) -> Problem:
    """In 64 bits where the function takes them."""
    try:
        return Problem(sample, True, jax, variant)
    except (TypeError, ValueError):
        return Problem(sample, False, jax, variant)


def _random_values(spec: Any, value: Any, generator: np.random.Generator, wide: bool) -> Any:
    if not trials.is_traced(value) or not moves(value):
        return value
    dtype = WIDER[value.dtype.kind] if wide else value.dtype
    if isinstance(spec, Spec):
        return Spec(dtype, spec.shape, spec.low, spec.high).draw(generator)
    return value.astype(dtype)


def _random_like(x: Any, generator: np.random.Generator) -> Any:
    if not moves(x):
        return None
    kind = np.dtype(x.dtype).kind
    values = generator.uniform(-1, 1, x.shape)
    if kind == "c":
        values = values + 1j * generator.uniform(-1, 1, x.shape)
    return np.asarray(values).astype(x.dtype)


def _direction(x: np.ndarray, generator: np.random.Generator) -> Any:
    """Slower where x is small, because functions may bend more there."""
    random = _random_like(x, generator)
    if random is None:
        return None
    size = np.abs(x.astype(WIDER[x.dtype.kind]))
    return np.asarray(random * np.where((size > 0) & (size < 1), size, 1)).astype(x.dtype)


# ---- programs of derivatives ---------------------------------------------------------------------


def with_float0(leaves: list[Any], like: list[Any], jax: Any) -> list[Any]:
    """Tangents of operands or results, where those that hold nothing are None."""
    return [
        np.zeros(np.shape(one), jax.float0) if leaf is None else leaf
        for leaf, one in zip(leaves, like, strict=True)
    ]


def without_float0(leaves: Any, like: Any, jax: Any) -> list[Any]:
    """Tangents of `like`, None where they hold nothing; each must be of the right type."""
    found = []
    for leaf, one in zip(leaves, like, strict=True):
        dtype = one.dtype if moves(one) else jax.float0
        assert leaf.dtype == dtype, f"a tangent of {leaf.dtype}, not of {dtype}"
        assert leaf.shape == np.shape(one), f"a tangent of {leaf.shape}, not {np.shape(one)}"
        found.append(leaf if moves(one) else None)
    return found


def forward(call: Any, operands: list[Any], directions: list[Any], jax: Any) -> Any:
    """The results, and their tangents."""
    tangents = with_float0(directions, operands, jax)
    results, pushed = jax.jvp(call, list(operands), tangents)
    return results, without_float0(pushed, results, jax)


def backward(call: Any, operands: list[Any], cotangents: list[Any], jax: Any) -> Any:
    """The results, and the cotangents of the operands."""
    results, pull_back = jax.vjp(call, *operands)
    pulled = pull_back(with_float0(cotangents, results, jax))
    return results, without_float0(pulled, operands, jax)


def first_order(problem: Problem, jax: Any) -> Any:
    """A function of the problem's arguments: results, tangents, and cotangents."""

    def derivatives(operands, directions, cotangents):
        results, pushed = forward(problem.call, operands, directions, jax)
        if "vjp" in problem.sample.refused:
            return results, pushed, [], []
        again, pulled = backward(problem.call, operands, cotangents, jax)
        return results, pushed, again, pulled

    return derivatives


def second_order(problem: Problem, jax: Any) -> Any:
    """A function of the arguments and second directions: each mode over each mode."""
    places = [i for i, direction in enumerate(problem.directions) if direction is not None]

    def derivatives(operands, directions, cotangents, seconds):
        def on_moving(derivative):
            def function(*moving):
                whole = list(operands)
                for place, value in zip(places, moving, strict=True):
                    whole[place] = value
                return [leaf for leaf in derivative(whole) if leaf is not None]

            return function

        pushed = on_moving(lambda x: forward(problem.call, x, directions, jax)[1])
        pulled = on_moving(lambda x: backward(problem.call, x, cotangents, jax)[1])
        point = [operands[i] for i in places]
        second = [seconds[i] for i in places]
        first = [directions[i] for i in places]
        weights = [c for c in cotangents if c is not None]
        return (
            forward(pushed, point, second, jax)[1],
            forward(pulled, point, second, jax)[1],
            backward(pushed, point, weights, jax)[1],
            backward(pulled, point, first, jax)[1],
        )

    return derivatives


def derivatives_of_batches(problem: Problem, jax: Any) -> Any:
    """A function of stacked arguments: derivatives of the vmapped, and vmapped derivatives.

    The last are cotangents where the first operand alone is mapped.
    """
    first = [0, *[None] * (len(problem.operands) - 1)]

    def derivatives(operands, directions, cotangents):
        mapped = jax.vmap(problem.call)
        pushed = lambda x, d: forward(problem.call, x, d, jax)[1]
        pulled = lambda x, c: backward(problem.call, x, c, jax)[1]
        point = [x if i == 0 else x[0] for i, x in enumerate(operands)]
        of_first = jax.vmap(problem.call, in_axes=first)
        return (
            forward(mapped, operands, directions, jax)[1],
            jax.vmap(pushed)(operands, directions),
            backward(mapped, operands, cotangents, jax)[1],
            jax.vmap(pulled)(operands, cotangents),
            backward(of_first, point, cotangents, jax)[1],
        )

    return derivatives
