"""The checks of jax_debug_key_reuse, which raise an error where a random key is used twice.

Each program has a signature: which of its keys it uses up, and which of its results alias its
keys. The signature comes from the program's equations. A call checks it against the masks of used
keys of its arguments.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from hlofront.base.errors import KeyReuseError
from hlofront.base.typing import NumPyArray
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal, Var
from hlofront.core.primitive import Primitive
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.programs.subprograms import (
    Program,
    Subprogram,
    inputs_among,
    opened,
    subprograms_of,
)
from hlofront.higher_order.control_flow.while_loop import while_p
from hlofront.primitives.arrays import shaping, slicing
from hlofront.primitives.arrays.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from hlofront.primitives.arrays.gathering import gather_p
from hlofront.primitives.arrays.scattering import scatter_p
from hlofront.primitives.elementwise import compare, converting
from hlofront.primitives.random import keys
from hlofront.primitives.random.keys import is_key
from hlofront.runtime.array.key_array import KeyArray

# Operations that produce no random numbers, or whose use of keys is unknown.
_HARMLESS = frozenset(
    {keys.random_fold_in_p, keys.random_unwrap_p, keys.random_clone_p, keys.random_seed_p}
    | {keys.random_wrap_p, compare.eq_p, compare.ne_p, gather_p, scatter_p}
    | {dynamic_slice_p, dynamic_update_slice_p}
)

# A boolean mask of an array of keys; a scalar for one key.
Mask = NumPyArray | np.bool_


class _Root:
    """The keys that a program takes or creates, with the mask of those used up so far."""

    __slots__ = ("used",)

    def __init__(self, size: int):
        self.used = np.zeros(size, np.bool_)


class _View:
    """The keys of a root at some flat indices, an array of the view's shape."""

    __slots__ = ("indices", "root")

    def __init__(self, root: _Root, indices: NumPyArray):
        self.root = root
        self.indices = indices

    @staticmethod
    def fresh(shape: tuple[int, ...]) -> "_View":
        """Return the view of all keys of a new root, an array of this shape."""
        size = int(np.prod(shape, dtype=np.int64))
        return _View(_Root(size), np.arange(size).reshape(shape))


@dataclasses.dataclass(frozen=True, slots=True)
class KeyOrigin:
    """The origin of a program's result that aliases keys of the program.

    Attributes:
      position: the position of the constant or input that has the keys, constants first.
      indices: the flat indices of the keys in it, an array of the result's shape.
    """

    position: int
    indices: NumPyArray


@dataclasses.dataclass(frozen=True, slots=True)
class KeyReuseSignature:
    """The keys that a program uses up, and those that it returns.

    Attributes:
      used: per constant and input, the boolean mask of the used keys; None for one without keys.
      results: per output, the origin of its keys; None for other results.
    """

    used: Sequence[Mask | None]
    results: Sequence[KeyOrigin | None]


@once_per_program
def signature_of(program: Program) -> KeyReuseSignature:
    """Return the keys that a program uses up and returns.

    Raises:
      KeyReuseError: if the program uses a key twice.
    """
    return _analyze(opened(program))


def _analyze(jaxpr: Jaxpr) -> KeyReuseSignature:
    environment: dict[Var, _View] = {}
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    for var in inputs:
        if is_key(var.aval):
            environment[var] = _View.fresh(var.aval.shape)
    views = [environment.get(var) for var in inputs]
    for equation in jaxpr.eqns:
        _go_through(equation, environment)
    position_of = {id(view.root): i for i, view in enumerate(views) if view is not None}
    results: list[KeyOrigin | None] = []
    for atom in jaxpr.outvars:
        view = None if type(atom) is Literal else environment.get(atom)
        position = None if view is None else position_of.get(id(view.root))
        known = view is not None and position is not None
        results.append(KeyOrigin(position, view.indices) if known else None)
    used = [None if v is None else v.root.used[v.indices] for v in views]
    return KeyReuseSignature(used, results)


def _go_through(equation: Equation, environment: dict[Var, _View]) -> None:
    """Mark the keys that an equation uses as used, and record the views of its results."""
    primitive = equation.primitive
    views = [None if type(a) is Literal else environment.get(a) for a in equation.invars]
    result_views: list[_View | None] = [None] * len(equation.outvars)
    if primitive in _MOVES:
        if views[0] is not None:
            result_views = [
                _View(views[0].root, _MOVES[primitive](views[0].indices, **equation.params))
            ]
    elif primitive is slicing.slice_p:
        if views[0] is not None:
            _use_slice(views[0], **equation.params)
    else:
        parts = [part for part in subprograms_of(equation) if part.operands is not None]
        roles = {part.role for part in parts}
        if "branch" in roles:
            signatures = [_signature(part) for part in parts]
            masks = zip(*(signature.used for signature in signatures), strict=True)
            _use(primitive.name, inputs_among(parts[0], views), [_either(used) for used in masks])
        elif "body" in roles:
            result_views = _go_round(equation, next(p for p in parts if p.role == "body"), views)
        elif parts:
            result_views = _call(equation, parts[0], views)
        elif primitive not in _HARMLESS:
            # Any other operation on keys counts as a use.
            _use(primitive.name, views, [None if v is None else _all(v) for v in views])
    for var, view in zip(equation.outvars, result_views, strict=True):
        if is_key(var.aval):
            environment[var] = _View.fresh(var.aval.shape) if view is None else view


def _at(views: Sequence[_View | None], position: int) -> _View | None:
    """Return the view at a position; None for a negative position, that of a constant."""
    return views[position] if position >= 0 else None


def _all(view: _View) -> NumPyArray:
    """Return the mask of all keys of a view."""
    return np.ones(view.indices.shape, np.bool_)


def _use(name: str, views: Sequence[_View | None], used: Sequence[Mask | None]) -> None:
    """Mark the keys that masks select as used; one operation may take a key twice.

    Args:
      name: the name of the operation.
      views: the keys of each operand; None for an operand without keys.
      used: the mask of each operand's used keys.

    Raises:
      KeyReuseError: if a key was used up before.
    """
    fresh: list[tuple[_Root, NumPyArray]] = []
    for i, (view, which) in enumerate(zip(views, used, strict=True)):
        if view is not None and which is not None and which.any():
            indices = view.indices[which]
            if view.root.used[indices].any():
                raise KeyReuseError(f"In {name}, argument {i} is already consumed.")
            fresh.append((view.root, indices))
    for root, indices in fresh:
        root.used[indices] = True


def _either(used: Sequence[Mask | None]) -> Mask | None:
    """Return the union of several masks, or None if there is no mask."""
    masks = [mask for mask in used if mask is not None]
    return np.logical_or.reduce(masks) if masks else None


def _use_slice(
    view: _View,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None,
) -> None:
    """Mark the keys that a slice takes as used."""
    strides = strides or (1,) * len(start_indices)
    which = np.zeros(view.indices.shape, np.bool_)
    which[tuple(map(slice, start_indices, limit_indices, strides))] = True
    _use("slice", [view], [which])


def _signature(part: Subprogram) -> KeyReuseSignature:
    """Return the key-reuse signature of a subprogram."""
    return signature_of(part.program)


def _call(
    equation: Equation, part: Subprogram, views: Sequence[_View | None]
) -> list[_View | None]:
    """Mark the keys that a called program uses; return a view per result, or None without keys."""
    signature = _signature(part)
    inputs = inputs_among(part, views)
    count = len(part.jaxpr.constvars)
    _use(equation.primitive.name, inputs, signature.used[count:])
    keys: list[_View | None] = [None] * len(equation.outvars)
    for index, result in zip(part.results or (), signature.results, strict=True):
        if result is None:
            continue
        view = _at(inputs, result.position - count)
        if view is not None:
            keys[index] = _View(view.root, view.indices.reshape(-1)[result.indices])
    return keys


def _go_round(
    equation: Equation, body: Subprogram, views: Sequence[_View | None]
) -> list[_View | None]:
    """Mark the keys that a loop uses; return a view per result, or None without keys.

    If the body returns a carry's keys, the next iteration uses them again.
    """
    name = "while_loop" if equation.primitive is while_p else equation.primitive.name
    views = inputs_among(body, views)
    constants, carries = body.carried.start, len(body.carried)
    signature = _signature(body)
    held = len(body.jaxpr.constvars)
    used, results = signature.used[held:], signature.results
    if body.iterations is None or body.iterations > 1:
        again = [i for i in range(constants) if _has_any(used[i])]
        for i in range(carries):
            result = results[i]
            mask = None if result is None else signature.used[result.position]
            if result is not None and mask is not None:
                again += [constants + i] if mask.reshape(-1)[result.indices].any() else []
        if again:
            raise KeyReuseError(
                f"{name} body function leads to key reuse when repeatedly executed: it uses the "
                f"keys of argument {again[0]}, and the next step uses them again"
            )
    # Each iteration sees one row of the scanned operands, and all iterations together every row.
    masks = [
        _all(view) if i in body.sliced and view is not None and _has_any(mask) else mask
        for i, (mask, view) in enumerate(zip(used, views, strict=True))
    ]
    _use(name, views, masks)
    result_views: list[_View | None] = [None] * len(equation.outvars)
    for i in range(carries):
        result = results[i]
        if result is not None and result.position - held == constants + i:
            result_views[i] = views[constants + i]
    return result_views


def _has_any(mask: Mask | None) -> bool:
    """Return whether a mask selects any key."""
    return mask is not None and bool(mask.any())


def _reshaped(
    indices: NumPyArray,
    *,
    new_sizes: tuple[int, ...],
    dimensions: tuple[int, ...] | None,
    **_: object,
) -> NumPyArray:
    """Reshape the flat indices of keys as `reshape` reshapes the keys."""
    if dimensions is not None:
        indices = indices.transpose(dimensions)
    return indices.reshape(new_sizes)


def _broadcast(
    indices: NumPyArray,
    *,
    shape: tuple[int, ...],
    broadcast_dimensions: tuple[int, ...],
    **_: object,
) -> NumPyArray:
    """Broadcast the flat indices of keys as `broadcast_in_dim` broadcasts the keys."""
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, indices.shape, strict=True):
        sizes[axis] = size
    in_order = indices.transpose(np.argsort(broadcast_dimensions))
    return np.broadcast_to(in_order.reshape(sizes), shape)


# Operations that only rearrange keys rearrange the keys' indices identically.
_MOVES: dict[Primitive, Callable[..., NumPyArray]] = {
    shaping.reshape_p: _reshaped,
    shaping.squeeze_p: lambda indices, *, dimensions: np.squeeze(indices, tuple(dimensions)),
    shaping.transpose_p: lambda indices, *, permutation: indices.transpose(permutation),
    shaping.rev_p: lambda indices, *, dimensions: np.flip(indices, dimensions),
    shaping.broadcast_in_dim_p: _broadcast,
    converting.copy_p: lambda indices: indices,
}


# ---- calls ---------------------------------------------------------------------------------------


class RunnableProgram(Protocol):
    """The protocol of an executable for `checked_run`; `dispatch/executable.py` has the class."""

    @property
    def name(self) -> str: ...
    @property
    def program(self) -> ClosedJaxpr: ...
    def run_unchecked(self, args: Sequence[object]) -> list[object]: ...


def checked_run(executable: RunnableProgram, args: Sequence[object]) -> list[object]:
    """Run an executable, and check and record which keys it uses.

    Raises:
      KeyReuseError: if the program uses a key that was used before.
    """
    program = executable.program
    signature = signature_of(program)
    values = [*program.consts, *args]
    name = executable.name
    for i, (x, which) in enumerate(zip(values, signature.used, strict=True)):
        if type(x) is KeyArray and _has_any(which) and x.used[which].any():
            raise KeyReuseError(
                f"Previously-consumed key passed to {name} at index {i - len(program.consts)}"
            )
    results = executable.run_unchecked(args)
    for x, which in zip(values, signature.used, strict=True):
        if type(x) is KeyArray and _has_any(which):
            x.used[which] = True
    for x, result in zip(results, signature.results, strict=True):
        if type(x) is KeyArray and result is not None:
            source = values[result.position]
            if type(source) is KeyArray:
                x.remember(source.used.reshape(-1)[result.indices])
    return results
