"""Checks of derivatives against numerical differences: check_grads, check_jvp, check_vjp."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base import source
from hlofront.base.dtypes import ExtendedDType, finfo, float0, issubdtype
from hlofront.base.elements import NumPyDType
from hlofront.base.tree import PyTree, keystr, tree_flatten, tree_flatten_with_path, tree_structure
from hlofront.base.typing import Array, ArrayLike, DType, NumPyArray, Shape
from hlofront.core.aval import ShapedArray, typeof
from hlofront.core.jaxpr import Value
from hlofront.primitives.elementwise.converting import convert
from hlofront.primitives.sharding.placing import CopySemantics, device_put
from hlofront.transforms.grad import jvp, vjp

# By dtype: the tolerance of a derivative, and the step of the differences. The step balances
# rounding, which dominates for small steps, and curvature, which does for large ones.
_TOLERANCES = {np.float64: 1e-5, np.float32: 2e-3, np.float16: 2e-2}
_STEPS = {np.float64: 1e-4, np.float32: 1e-3, np.float16: 5e-2}
_NARROW_TOLERANCE = 0.1
_NARROW_STEP = 0.1

# A five-point stencil, exact to fourth order: pairs (offset in steps, weight).
_STENCIL = ((1, 2 / 3), (-1, -2 / 3), (2, -1 / 12), (-2, 1 / 12))
# The maximum number of arguments that are varied one at a time to locate a wrong derivative.
_MAX_LEAVES = 32

_MODES = ("fwd", "rev")

Tolerance = float | Mapping[Any, float] | None
# The allowed difference, for all elements or per element.
Bound = float | NumPyArray
# Per leaf its float64 or complex128 array; None where it is not differentiable.
LeafArrays = list[Any]


def check_grads(
    f: Callable[..., PyTree],
    args: Sequence[PyTree],
    order: int,
    modes: Sequence[str] = _MODES,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of a function against numerical differences in random directions.

    Higher orders are checked in each combination of modes, by differences of derivatives.
    Arguments and results may be pytrees; integers and booleans are not varied, complex numbers vary
    in both parts.

    Args:
      f: the function, smooth around `args`.
      args: its arguments.
      order: the highest order of derivatives to check; the first is always checked.
      modes: "fwd" for jvp, "rev" for vjp, or both.
      atol: the absolute tolerance, a number or a dict by dtype, to which the rounding error of
        the differences is added. None: a default for the dtype.
      rtol: the relative tolerance, a number or a dict by dtype. None: a default for the dtype.
      eps: the step of the differences. None: a default for the dtype.

    Raises:
      AssertionError: if a derivative is wrong; the message names the result, the error and the
        arguments that cause it.
      ValueError: for an unknown mode.
    """
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [mode for mode in modes if mode not in _MODES]
    if unknown:
        raise ValueError(f"check_grads has modes 'fwd' and 'rev', not {unknown[0]!r}")
    _check_orders(f, tuple(args), order, modes, (atol, rtol, eps), _name_of(f))


def check_jvp(
    f: Callable[..., PyTree],
    f_jvp: Callable[..., PyTree],
    args: Sequence[PyTree],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Check forward derivatives of a function against numerical differences.

    Args:
      f: the function, smooth around `args`.
      f_jvp: a function of (primals, tangents), both tuples, that returns the results and their
        tangents: usually `functools.partial(jvp, f)`.
      args: the arguments of `f`.
      atol: the absolute tolerance of a tangent; see check_grads.
      rtol: the relative tolerance; see check_grads.
      eps: the step of the differences.
      err_msg: a prefix of the error's message.

    Raises:
      AssertionError: if results or tangents are wrong.
    """
    what = err_msg or f"jvp of {_name_of(f)}"
    point = _Point(args, eps)
    direction = point.direction()
    results, tangents = f_jvp(point.args, point.tangents(direction))
    outputs = _Outputs(f(*point.args), what)
    outputs.check_values(results, (atol, rtol))
    tangents = outputs.tangents(tangents)
    differences, noise = point.differences(f, direction)
    lines: list[str] = []
    for i in outputs.differentiable:
        allowed = _allowed(outputs.dtypes[i], point.dtypes, noise[i], atol, rtol)
        line = _compare(tangents[i], differences[i], *allowed)
        if line:
            lines.append(f"result{outputs.paths[i]}: {line}")
    if not lines:
        return

    def alone(position: int) -> float:
        """Return the largest excess error of the tangents when only one argument varies."""
        direction = point.direction(position)
        derivative = outputs.tangents(f_jvp(point.args, point.tangents(direction))[1])
        expected, noise = point.differences(f, direction)
        return max(
            _excess(
                derivative[i],
                expected[i],
                *_allowed(outputs.dtypes[i], point.dtypes, noise[i], atol, rtol),
            )
            for i in outputs.differentiable
        )

    raise AssertionError(
        f"{what}: tangents differ from numerical differences\n"
        + "\n".join([*lines, *point.blame(alone)])
    )


def check_vjp(
    f: Callable[..., PyTree],
    f_vjp: Callable[..., PyTree],
    args: Sequence[PyTree],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Check reverse derivatives of a function against numerical differences.

    For a random cotangent ct of the results and a random direction v of the arguments, the test
    compares `vdot(f_vjp(ct), v)` with ct times the difference of the results along v.

    Args:
      f: the function, smooth around `args`.
      f_vjp: a function of the arguments of `f` that returns (result, pullback): usually
        `functools.partial(vjp, f)`.
      args: the arguments of `f`.
      atol: the absolute tolerance of the sum over all cotangents; see check_grads.
      rtol: the relative tolerance; see check_grads.
      eps: the step of the differences.
      err_msg: a prefix of the error's message.

    Raises:
      AssertionError: if results or cotangents are wrong, or the shapes and dtypes of cotangents are
        not those of the arguments.
      ValueError: if there is not one cotangent per argument.
    """
    what = err_msg or f"vjp of {_name_of(f)}"
    point = _Point(args, eps)
    results, pull_back = f_vjp(*point.args)
    outputs = _Outputs(f(*point.args), what)
    outputs.check_values(results, (atol, rtol))
    cotangents, cotangent_tree = outputs.cotangents()
    pulled = point.cotangents(pull_back(cotangent_tree), what)

    def compare(direction: LeafArrays) -> tuple[float, float, float, float]:
        """Compare the vjp with numerical differences along a direction.

        Returns:
          The vjp's directional derivative, that of the differences, and the absolute and relative
          tolerances.
        """
        differences, noise = point.differences(f, direction)
        derivative = sum(_dot(pulled[i], direction[i]) for i in point.differentiable)
        expected = sum(_dot(cotangents[i], differences[i]) for i in outputs.differentiable)
        # Rounding errors have random signs, so their squares add up.
        absolute, relative = 0.0, 0.0
        for i in outputs.differentiable:
            own_absolute, own_relative = _allowed(
                outputs.dtypes[i], point.dtypes, noise[i], atol, rtol
            )
            weights = np.abs(cotangents[i])
            absolute = math.hypot(absolute, np.linalg.norm(own_absolute * weights))
            size = weights * np.abs(differences[i])
            relative = math.hypot(relative, own_relative * np.linalg.norm(size))
        return derivative, expected, absolute, relative

    derivative, expected, absolute, relative = compare(point.direction())
    line = _compare(np.asarray(derivative), np.asarray(expected), absolute + relative, 0.0)
    if not line:
        return

    def alone(index: int) -> float:
        derivative, expected, absolute, relative = compare(point.direction(index))
        return _excess(np.asarray(derivative), np.asarray(expected), absolute + relative, 0.0)

    raise AssertionError(
        f"{what}: cotangents, summed up along a direction, differ from numerical differences\n"
        + "\n".join([line, *point.blame(alone)])
    )


# ---- orders --------------------------------------------------------------------------------------


def _check_orders(
    f: Callable[..., PyTree],
    args: tuple[PyTree, ...],
    order: int,
    modes: Sequence[str],
    options: tuple[Tolerance, Tolerance, float | None],
    name: str,
) -> None:
    if "fwd" in modes:
        check_jvp(f, partial(jvp, f), args, *options, err_msg=f"jvp of {name}")
        if order > 1:
            point = _Point(args, None)
            directions = point.tangents(point.direction(seed=order))

            def pushed(*args: object) -> PyTree:
                return jvp(f, args, directions)[1]

            _check_orders(pushed, args, order - 1, modes, options, f"jvp of {name}")
    if "rev" in modes:
        check_vjp(f, partial(vjp, f), args, *options, err_msg=f"vjp of {name}")
        if order > 1:
            cotangents = _Outputs(f(*args), name).cotangents(seed=order)[1]

            def pulled(*args: object) -> PyTree:
                return vjp(f, *args)[1](cotangents)

            _check_orders(pulled, args, order - 1, modes, options, f"vjp of {name}")


def _name_of(f: Callable[..., PyTree]) -> str:
    return source.callable_name(f)


# ---- arguments and their perturbations -----------------------------------------------------------


class _Point:
    """The flattened arguments at which derivatives are checked."""

    def __init__(self, args: Sequence[PyTree], eps: float | None):
        self.args = tuple(args)
        pairs, self.structure = tree_flatten_with_path(self.args)
        self.paths = [f"args{keystr(path)}" for path, _ in pairs]
        self.leaves: list[PyTree] = [leaf for _, leaf in pairs]
        self.avals = [_aval(leaf) for leaf in self.leaves]
        self.differentiable = [i for i, aval in enumerate(self.avals) if _is_inexact(aval.dtype)]
        self.dtypes = [self.avals[i].dtype for i in self.differentiable]
        self.values = {i: _wide(self.leaves[i]) for i in self.differentiable}
        steps = [_STEPS.get(_real_class(dtype), _NARROW_STEP) for dtype in self.dtypes]
        self.step = max(steps, default=1.0) if eps is None else eps

    def direction(self, only: int | None = None, seed: int = 0) -> LeafArrays:
        """Return a random direction: one float64 or complex128 array per leaf of the arguments.

        It has None for leaves that are not differentiable, and zeros for leaves other than `only`.
        Steps along it are exact in the leaf's own dtype, so that rounding does not add an error.
        """
        generator = np.random.default_rng(seed)
        directions: LeafArrays = [None] * len(self.leaves)
        for i, value in self.values.items():
            direction = _random(generator, value)
            if value.dtype.kind == "c":
                rounded = self._rounded(i, value.real, direction.real) + 1j * self._rounded(
                    i, value.imag, direction.imag
                )
            else:
                rounded = self._rounded(i, value, direction)
            directions[i] = rounded if only in (None, i) else np.zeros_like(value)
        return directions

    def _rounded(self, position: int, value: NumPyArray, direction: NumPyArray) -> NumPyArray:
        reached = np.abs(value) + 2 * self.step
        exponent = np.frexp(np.where(np.isfinite(reached), reached, 1.0))[1]
        unit = np.ldexp(float(finfo(self.avals[position].dtype).eps), exponent - 1)
        count = np.rint(self.step * direction / unit)
        return np.where(count == 0, np.sign(direction), count) * unit / self.step

    def tangents(self, direction: LeafArrays) -> tuple[PyTree, ...]:
        """Return a direction as a pytree of tangents like the arguments; None is a float0 zero."""
        leaves = [
            np.zeros(aval.shape, float0) if along is None else _as_array(along, aval.dtype)
            for along, aval in zip(direction, self.avals, strict=True)
        ]
        return self.structure.unflatten(leaves)

    def _moved(self, direction: LeafArrays, steps: int) -> tuple[PyTree, ...]:
        leaves = list(self.leaves)
        for i, value in self.values.items():
            perturbed = value + steps * self.step * direction[i]
            leaf, aval = leaves[i], self.avals[i]
            if isinstance(leaf, float | complex):
                leaves[i] = perturbed.item()
            else:
                array = _as_array(perturbed, aval.dtype)
                leaves[i] = convert(array, aval.dtype, True) if aval.weak_type else array
        return self.structure.unflatten(leaves)

    def differences(
        self, f: Callable[..., PyTree], direction: LeafArrays
    ) -> tuple[LeafArrays, LeafArrays]:
        """Return numerical derivatives of each result along a direction, and rounding errors."""
        slopes: LeafArrays = []
        sizes: LeafArrays = []
        for steps, weight in _STENCIL:
            leaves = tree_flatten(f(*self._moved(direction, steps)))[0]
            outputs = [_wide(x) if _is_inexact(_aval(x).dtype) else None for x in leaves]
            if not slopes:
                slopes = [None if x is None else np.zeros_like(x) for x in outputs]
                sizes = [None if x is None else np.zeros(x.shape) for x in outputs]
            with np.errstate(all="ignore"):
                for i, x in enumerate(outputs):
                    if x is not None:
                        slopes[i] = slopes[i] + x * (weight / self.step)
                        sizes[i] = np.maximum(sizes[i], np.nan_to_num(np.abs(x)))
        return slopes, [None if x is None else 2 * x / self.step for x in sizes]

    def cotangents(self, tree: object, what: str) -> LeafArrays:
        """Return flat float64 or complex128 cotangents of the arguments, None for integer ones.

        Raises:
          ValueError: if the structure is not that of the arguments.
          AssertionError: if a shape or dtype is not that of its argument.
        """
        structure = tree_structure(tree)
        if structure != self.structure:
            raise ValueError(
                f"{what}: cotangents must be a tuple with one entry per argument, in the structure "
                f"of the arguments, {self.structure}; they have {structure}"
            )
        leaves, _ = tree_flatten(tree)
        checked_leaves: LeafArrays = []
        for path, aval, leaf in zip(self.paths, self.avals, leaves, strict=True):
            expected = aval.dtype if _is_inexact(aval.dtype) else float0
            _check_type(f"{what}: the cotangent of {path}", leaf, aval.shape, expected)
            checked_leaves.append(None if expected == float0 else _wide(leaf))
        return checked_leaves

    def blame(self, alone: Callable[[int], float]) -> list[str]:
        """Return message lines about arguments whose derivatives are wrong if only they vary."""
        if len(self.differentiable) > _MAX_LEAVES:
            return [f"({len(self.differentiable)} arguments vary: too many to vary one at a time)"]
        off = {self.paths[i]: alone(i) for i in self.differentiable}
        wrong = [f"  {path}: off by {size:.3g}" for path, size in off.items() if size]
        right = ", ".join(path for path, size in off.items() if not size)
        lines = ["if only one argument varies:", *wrong]
        return [*lines, f"  not off: {right}"] if right else lines


# ---- results -------------------------------------------------------------------------------------


class _Outputs:
    """The flattened results of a function, and the indices of the differentiable ones."""

    def __init__(self, results: object, what: str):
        pairs, self.structure = tree_flatten_with_path(results)
        self.what = what
        self.paths = [keystr(path) for path, _ in pairs]
        self.leaves: list[PyTree] = [leaf for _, leaf in pairs]
        self.avals = [_aval(leaf) for leaf in self.leaves]
        self.dtypes = [aval.dtype for aval in self.avals]
        self.differentiable = [i for i, dtype in enumerate(self.dtypes) if _is_inexact(dtype)]

    def check_values(self, results: object, tolerances: tuple[Tolerance, Tolerance]) -> None:
        """Raise AssertionError if results that come with derivatives differ from the function's."""
        result_leaves = self._leaves(results, "results")
        for i, leaf in enumerate(result_leaves):
            path = f"{self.what}: result{self.paths[i]}"
            _check_type(path, leaf, self.avals[i].shape, self.dtypes[i])
            if i in self.differentiable:
                allowed = _allowed(self.dtypes[i], (), None, *tolerances)
                line = _compare(_wide(leaf), _wide(self.leaves[i]), *allowed)
                if line:
                    raise AssertionError(f"{path} is not that of the function\n{line}")

    def tangents(self, tangents: object) -> LeafArrays:
        """Return flat float64 or complex128 tangents of the results, None for integer results."""
        wide_tangents: LeafArrays = []
        for i, leaf in enumerate(self._leaves(tangents, "tangents")):
            expected = self.dtypes[i] if i in self.differentiable else float0
            where = f"{self.what}: the tangent of result{self.paths[i]}"
            _check_type(where, leaf, self.avals[i].shape, expected)
            wide_tangents.append(_wide(leaf) if i in self.differentiable else None)
        return wide_tangents

    def cotangents(self, seed: int = 0) -> tuple[LeafArrays, PyTree]:
        """Return random cotangents of the results, as flat NumPy arrays and as a pytree."""
        generator = np.random.default_rng(seed)
        wide: LeafArrays = [None] * len(self.leaves)
        arrays: list[ArrayLike] = []
        for i, aval in enumerate(self.avals):
            if i in self.differentiable:
                array = _as_array(_random(generator, _wide(self.leaves[i])), aval.dtype)
                wide[i] = _wide(array)
            else:
                array = np.zeros(aval.shape, float0)
            arrays.append(array)
        return wide, self.structure.unflatten(arrays)

    def _leaves(self, tree: object, name: str) -> list[PyTree]:
        leaves, structure = tree_flatten(tree)
        if structure != self.structure:
            raise ValueError(
                f"{self.what}: {name} must have the structure of the function's results, "
                f"{self.structure}; they have {structure}"
            )
        return leaves


# ---- numbers -------------------------------------------------------------------------------------


def _aval(leaf: ArrayLike) -> ShapedArray:
    return typeof(leaf)


def _is_inexact(dtype: DType) -> bool:
    return not isinstance(dtype, ExtendedDType) and issubdtype(dtype, np.inexact)


def _wide(x: ArrayLike) -> NumPyArray:
    array: NumPyArray = np.asarray(x)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _real_class(dtype: NumPyDType) -> Any:
    """Return the NumPy scalar type of a dtype's real part, such as float32 for complex64."""
    return {np.complex64: np.float32, np.complex128: np.float64}.get(dtype.type, dtype.type)


def _as_array(x: NumPyArray, dtype: NumPyDType) -> Array:
    """Return a device array of a dtype; functions may use methods that NumPy arrays lack."""
    return device_put([x.astype(dtype)], [None], [None], [CopySemantics.ALWAYS_COPY])[0]


def _random(generator: np.random.Generator, like: NumPyArray) -> NumPyArray:
    """Return random numbers of an array's shape, real or complex, with parts of size 0.3 to 1."""

    def part() -> NumPyArray:
        signs = generator.choice([-1.0, 1.0], like.shape)
        shape: Shape = like.shape
        return signs * generator.uniform(0.3, 1.0, shape)

    return part() + 1j * part() if like.dtype.kind == "c" else part()


def _dot(x: NumPyArray, y: NumPyArray) -> float:
    """Return the real part of the sum of elementwise products, without conjugation."""
    with np.errstate(all="ignore"):
        return float(np.sum(x * y).real)


def _allowed(
    dtype: NumPyDType,
    argument_dtypes: Sequence[NumPyDType],
    noise: NumPyArray | None,
    atol: Tolerance,
    rtol: Tolerance,
) -> tuple[Bound, float]:
    """Return the absolute and the relative tolerance of a derivative for these dtypes."""
    default = max(
        _TOLERANCES.get(_real_class(one), _NARROW_TOLERANCE) for one in (dtype, *argument_dtypes)
    )
    absolute: Bound = _of_dtype(atol, dtype, default)
    if noise is not None:
        absolute = absolute + noise * float(finfo(dtype).eps)
    return absolute, _of_dtype(rtol, dtype, default)


def _of_dtype(tolerance: Tolerance, dtype: NumPyDType, default: float) -> float:
    if isinstance(tolerance, Mapping):
        by_dtype = {np.dtype(key): value for key, value in tolerance.items()}
        return by_dtype.get(np.dtype(dtype), default)
    return default if tolerance is None else tolerance


def _off(
    derivative: NumPyArray, expected: NumPyArray, absolute: Bound, relative: float
) -> tuple[NumPyArray, NumPyArray]:
    """Return elementwise distances, and a mask of those above the tolerance."""
    with np.errstate(all="ignore"):
        same = (derivative == expected) | (np.isnan(derivative) & np.isnan(expected))
        distance = np.where(same, 0.0, np.abs(derivative - expected))
        return distance, ~(same | (distance <= absolute + relative * np.abs(expected)))


def _excess(
    derivative: NumPyArray, expected: NumPyArray, absolute: Bound, relative: float
) -> float:
    """Return the largest distance that exceeds the tolerance, or 0.0."""
    distance, wrong = _off(derivative, expected, absolute, relative)
    return float(np.max(np.where(np.isnan(distance), np.inf, distance)[wrong], initial=0.0))


def _compare(derivative: NumPyArray, exact: NumPyArray, absolute: Bound, relative: float) -> str:
    """Return a message about elements that exceed the tolerance, or "" if none does."""
    distance, wrong = _off(derivative, exact, absolute, relative)
    if not wrong.any():
        return ""
    weights = np.where(wrong, np.where(np.isnan(distance), np.inf, distance), -1.0)
    worst = np.unravel_index(np.argmax(weights), wrong.shape)
    allowed = float(np.broadcast_to(absolute, wrong.shape)[worst])
    where = f" at {[int(i) for i in worst]}" if worst else ""
    return (
        f"{int(wrong.sum())} of {wrong.size} elements are off, most{where} by "
        f"{float(distance[worst]):.3g}: got {derivative[worst]:.6g}, expected {exact[worst]:.6g} "
        f"(allowed: {allowed:.3g} and {relative:.3g} of the size)"
    )


def _check_type(where: str, x: Value, shape: tuple[int, ...], dtype: DType) -> None:
    own_shape, own_dtype = np.shape(x), x.dtype if hasattr(x, "dtype") else _aval(x).dtype
    if (own_shape, own_dtype) != (shape, dtype):
        raise AssertionError(
            f"{where} must have shape {shape} and dtype {_named(dtype)}; it has shape {own_shape} "
            f"and dtype {_named(own_dtype)}"
        )


def _named(dtype: DType) -> str:
    return "float0" if dtype == float0 else str(dtype)
