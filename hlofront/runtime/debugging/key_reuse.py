"""jax_debug_key_reuse: an error where a random key is used that was used before.

Each program says which of its keys it uses up, and which of its results are its keys again. That is
found by going through its equations, and checked against what the keys of a call remember.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlofront.base.errors import KeyReuseError
from hlofront.core.derived import once_per_program
from hlofront.core.jaxpr import ClosedJaxpr, Equation, Jaxpr, Literal
from hlofront.core.primitive import Primitive
from hlofront.core.subprograms import Subprogram, inputs_among, subprograms_of
from hlofront.higher_order.random_gamma import random_gamma_p
from hlofront.higher_order.while_loop import while_p
from hlofront.primitives import comparing, converting, keys, shaping, slicing
from hlofront.primitives.dynamic_slicing import dynamic_slice_p, dynamic_update_slice_p
from hlofront.primitives.gathering import gather_p
from hlofront.primitives.keys import is_key
from hlofront.primitives.scattering import scatter_p
from hlofront.runtime.array.key_array import KeyArray

_USES = frozenset({keys.random_split_p, keys.random_bits_p, random_gamma_p})
# They give no random numbers; or it is not known which keys they take.
_HARMLESS = frozenset(
    {keys.random_fold_in_p, keys.random_unwrap_p, keys.random_clone_p, keys.random_seed_p}
    | {keys.random_wrap_p, comparing.eq_p, comparing.ne_p, gather_p, scatter_p}
    | {dynamic_slice_p, dynamic_update_slice_p}
)


class _Root:
    """Keys that a program is given or makes, and which of them are used up so far."""

    __slots__ = ("used",)

    def __init__(self, size: int):
        self.used = np.zeros(size, np.bool_)


class _View:
    """Keys that are those of a root at these places."""

    __slots__ = ("places", "root")

    def __init__(self, root: _Root, places: np.ndarray):
        self.root = root
        self.places = places

    @staticmethod
    def fresh(shape: tuple[int, ...]) -> "_View":
        size = int(np.prod(shape, dtype=np.int64))
        return _View(_Root(size), np.arange(size).reshape(shape))


class KeyReuseSignature:
    """The keys that a program uses up, and those that it returns.

    Attributes:
      used: per constant and input, which keys it uses up; None for what are no keys.
      results: per output, the position among constants and inputs of the keys that it is, and their
        places; None for other results.
    """

    __slots__ = ("results", "used")

    def __init__(self, used: list[Any], results: list[Any]):
        self.used = used
        self.results = results


@once_per_program
def signature_of(program: ClosedJaxpr) -> KeyReuseSignature:
    """Return what a program does with keys.

    Raises:
      KeyReuseError: if it uses one twice.
    """
    return _analyze(program.jaxpr)


def _analyze(jaxpr: Jaxpr) -> KeyReuseSignature:
    environment: dict[Any, _View] = {}
    inputs = [*jaxpr.constvars, *jaxpr.invars]
    for var in inputs:
        if is_key(var.aval):
            environment[var] = _View.fresh(var.aval.shape)
    views = [environment.get(var) for var in inputs]
    for equation in jaxpr.eqns:
        _go_through(equation, environment)
    position_of = {id(view.root): i for i, view in enumerate(views) if view is not None}
    results = []
    for atom in jaxpr.outvars:
        view = None if type(atom) is Literal else environment.get(atom)
        position = None if view is None else position_of.get(id(view.root))
        results.append(None if position is None else (position, view.places))
    used = [None if v is None else v.root.used[v.places] for v in views]
    return KeyReuseSignature(used, results)


def _go_through(equation: Equation, environment: dict[Any, _View]) -> None:
    primitive = equation.primitive
    views = [None if type(a) is Literal else environment.get(a) for a in equation.invars]
    result_views: list[_View | None] = [None] * len(equation.outvars)
    if primitive in _MOVES:
        if views[0] is not None:
            result_views = [
                _View(views[0].root, _MOVES[primitive](views[0].places, **equation.params))
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
            # Whatever else is done with keys may use them.
            _use(primitive.name, views, [None if v is None else _all(v) for v in views])
    for var, view in zip(equation.outvars, result_views, strict=True):
        if is_key(var.aval):
            environment[var] = _View.fresh(var.aval.shape) if view is None else view


def _at(views: Sequence[Any], position: int) -> Any:
    return views[position] if position >= 0 else None


def _all(view: _View) -> np.ndarray:
    return np.ones(view.places.shape, np.bool_)


def _use(name: str, views: Sequence[Any], used: Sequence[Any]) -> None:
    """Use up of these keys those that the masks say. One operation may be given a key twice."""
    fresh = []
    for i, (view, which) in enumerate(zip(views, used, strict=True)):
        if view is not None and which is not None and which.any():
            indices = view.places[which]
            if view.root.used[indices].any():
                raise KeyReuseError(f"In {name}, argument {i} is already consumed.")
            fresh.append((view.root, indices))
    for root, indices in fresh:
        root.used[indices] = True


def _either(used: Sequence[Any]) -> Any:
    masks = [mask for mask in used if mask is not None]
    return np.logical_or.reduce(masks) if masks else None


def _use_slice(view: _View, start_indices: Any, limit_indices: Any, strides: Any) -> None:
    strides = strides or (1,) * len(start_indices)
    which = np.zeros(view.places.shape, np.bool_)
    which[tuple(map(slice, start_indices, limit_indices, strides))] = True
    _use("slice", [view], [which])


def _signature(part: Subprogram) -> KeyReuseSignature:
    """Return what a program inside an equation does with keys."""
    program = part.program
    return signature_of(program) if isinstance(program, ClosedJaxpr) else _analyze(program)


def _call(
    equation: Equation, part: Subprogram, views: Sequence[_View | None]
) -> list[_View | None]:
    """Use the keys that a called program uses; return the keys among its results."""
    signature = _signature(part)
    inputs = inputs_among(part, views)
    count = len(part.jaxpr.constvars)
    _use(equation.primitive.name, inputs, signature.used[count:])
    keys: list[_View | None] = [None] * len(equation.outvars)
    for index, result in zip(part.results or (), signature.results, strict=True):
        view = None if result is None else _at(inputs, result[0] - count)
        if view is not None:
            keys[index] = _View(view.root, view.places.reshape(-1)[result[1]])
    return keys


def _go_round(
    equation: Equation, body: Subprogram, views: Sequence[_View | None]
) -> list[_View | None]:
    """Use the keys that a loop uses; return the keys among its results.

    A loop's carries are used again by the next iteration where the body hands them on.
    """
    name = "while_loop" if equation.primitive is while_p else equation.primitive.name
    views = inputs_among(body, views)
    constants, carries = body.carried.start, len(body.carried)
    signature = _signature(body)
    held = len(body.jaxpr.constvars)
    used, results = signature.used[held:], signature.results
    if body.iterations is None or body.iterations > 1:
        again = [i for i in range(constants) if used[i] is not None and used[i].any()]
        for i in range(carries):
            result = results[i]
            if result is not None:
                mask = signature.used[result[0]].reshape(-1)
                again += [constants + i] if mask[result[1]].any() else []
        if again:
            raise KeyReuseError(
                f"{name} body function leads to key reuse when repeatedly executed: it uses the "
                f"keys of argument {again[0]}, and the next step uses them again"
            )
    # Of what is scanned over, a step sees one row.
    masks = [
        _all(views[i]) if i in body.sliced and mask is not None and mask.any() else mask
        for i, mask in enumerate(used)
    ]
    _use(name, views, masks)
    result_views: list[Any] = [None] * len(equation.outvars)
    for i in range(carries):
        if results[i] is not None and results[i][0] - held == constants + i:
            result_views[i] = views[constants + i]
    return result_views


def _reshaped(indices: np.ndarray, *, new_sizes: Any, dimensions: Any, **_: Any) -> np.ndarray:
    if dimensions is not None:
        indices = indices.transpose(dimensions)
    return indices.reshape(new_sizes)


def _broadcast(
    places: np.ndarray, *, shape: Any, broadcast_dimensions: Any, **_: Any
) -> np.ndarray:
    sizes = [1] * len(shape)
    for axis, size in zip(broadcast_dimensions, places.shape, strict=True):
        sizes[axis] = size
    in_order = places.transpose(np.argsort(broadcast_dimensions))
    return np.broadcast_to(in_order.reshape(sizes), shape)


# What only moves all keys about: the numbers of their places move as they do.
_MOVES: dict[Primitive, Any] = {
    shaping.reshape_p: _reshaped,
    shaping.squeeze_p: lambda places, *, dimensions: np.squeeze(places, tuple(dimensions)),
    shaping.transpose_p: lambda places, *, permutation: places.transpose(permutation),
    shaping.rev_p: lambda places, *, dimensions: np.flip(places, dimensions),
    shaping.broadcast_in_dim_p: _broadcast,
    converting.copy_p: lambda places: places,
}


# ---- calls ---------------------------------------------------------------------------------------


def checked_run(executable: Any, args: Sequence[Any]) -> list[Any]:
    """Run an executable, and check and remember which keys it uses."""
    program = executable.program
    signature = signature_of(program)
    values = [*program.consts, *args]
    name = executable.name
    for i, (x, which) in enumerate(zip(values, signature.used, strict=True)):
        if type(x) is KeyArray and which is not None and which.any() and x.used[which].any():
            raise KeyReuseError(
                f"Previously-consumed key passed to {name} at index {i - len(program.consts)}"
            )
    results = executable.run_unchecked(args)
    for x, which in zip(values, signature.used, strict=True):
        if type(x) is KeyArray and which is not None and which.any():
            x.used[which] = True
    for x, result in zip(results, signature.results, strict=True):
        if type(x) is KeyArray and result is not None:
            position, indices = result
            source = values[position]
            if type(source) is KeyArray:
                x.remember(source.used.reshape(-1)[indices])
    return results
