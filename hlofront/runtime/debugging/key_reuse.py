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
from hlofront.higher_order.cond import cond_p
from hlofront.higher_order.random_gamma import random_gamma_p
from hlofront.higher_order.scan import scan_p
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
    """What a program does with keys.

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
    given = [*jaxpr.constvars, *jaxpr.invars]
    for var in given:
        if is_key(var.aval):
            environment[var] = _View.fresh(var.aval.shape)
    views = [environment.get(var) for var in given]
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
    given: list[_View | None] = [None] * len(equation.outvars)
    if primitive in _MOVES:
        if views[0] is not None:
            given = [_View(views[0].root, _MOVES[primitive](views[0].places, **equation.params))]
    elif primitive is slicing.slice_p:
        if views[0] is not None:
            _use_slice(views[0], **equation.params)
    elif primitive is cond_p:
        signatures = [signature_of(branch) for branch in equation.params["branches"]]
        used = [_either([s.used[i] for s in signatures]) for i in range(len(views) - 1)]
        _use("cond", views[1:], used)
    elif primitive is scan_p or primitive is while_p:
        given = _go_round(equation, views)
    else:
        inner = _inner_program(equation)
        if inner is not None:
            signature = signature_of(inner)
            held = len(signature.used) - len(inner.jaxpr.invars)
            offset = len(inner.jaxpr.invars) - len(views)
            if offset == 0:
                _use(primitive.name, views, signature.used[held:])
                for i, result in enumerate(signature.results):
                    view = None if result is None else _at(views, result[0] - held)
                    if view is not None:
                        given[i] = _View(view.root, view.places.reshape(-1)[result[1]])
        elif primitive not in _HARMLESS:
            # Whatever else is done with keys may use them.
            _use(primitive.name, views, [None if v is None else _all(v) for v in views])
    for var, view in zip(equation.outvars, given, strict=True):
        if is_key(var.aval):
            environment[var] = _View.fresh(var.aval.shape) if view is None else view


def _at(views: Sequence[Any], position: int) -> Any:
    return views[position] if position >= 0 else None


def _all(view: _View) -> np.ndarray:
    return np.ones(view.places.shape, np.bool_)


def _use(name: str, views: Sequence[Any], used: Sequence[Any]) -> None:
    """Use up of these keys those that the masks say. One operation may be given a key twice."""
    found = []
    for i, (view, which) in enumerate(zip(views, used, strict=True)):
        if view is not None and which is not None and which.any():
            places = view.places[which]
            if view.root.used[places].any():
                raise KeyReuseError(f"In {name}, argument {i} is already consumed.")
            found.append((view.root, places))
    for root, places in found:
        root.used[places] = True


def _either(used: Sequence[Any]) -> Any:
    masks = [mask for mask in used if mask is not None]
    return np.logical_or.reduce(masks) if masks else None


def _use_slice(view: _View, start_indices: Any, limit_indices: Any, strides: Any) -> None:
    strides = strides or (1,) * len(start_indices)
    which = np.zeros(view.places.shape, np.bool_)
    which[tuple(map(slice, start_indices, limit_indices, strides))] = True
    _use("slice", [view], [which])


def _inner_program(equation: Equation) -> ClosedJaxpr | None:
    for name in ("jaxpr", "call_jaxpr", "call"):
        found = equation.params.get(name)
        if isinstance(found, ClosedJaxpr):
            return found
        if isinstance(found, Jaxpr) and not found.constvars:
            return ClosedJaxpr(found, ())
    return None


def _go_round(equation: Equation, views: list[Any]) -> list[Any]:
    """What a loop uses; its carries are used again by the next step where it hands them on."""
    params = equation.params
    if equation.primitive is scan_p:
        body, name, times = params["jaxpr"], "scan", params["length"]
        constants, carries = params["num_consts"], params["num_carry"]
    else:
        body, name, times = params["body_jaxpr"], "while_loop", 2
        skipped = params["cond_nconsts"]
        constants = params["body_nconsts"]
        _use(name, views[:skipped], [None] * skipped)
        views = views[skipped:]
        carries = len(views) - constants
    signature = signature_of(body)
    held = len(body.jaxpr.constvars)
    used, results = signature.used[held:], signature.results
    if times > 1:
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
        _all(views[i]) if i >= constants + carries and mask is not None and mask.any() else mask
        for i, mask in enumerate(used)
    ]
    _use(name, views, masks)
    given: list[Any] = [None] * len(equation.outvars)
    for i in range(carries):
        if results[i] is not None and results[i][0] - held == constants + i:
            given[i] = views[constants + i]
    return given


def _reshaped(places: np.ndarray, *, new_sizes: Any, dimensions: Any, **_: Any) -> np.ndarray:
    if dimensions is not None:
        places = places.transpose(dimensions)
    return places.reshape(new_sizes)


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
            position, places = result
            source = values[position]
            if type(source) is KeyArray:
                x.remember(source.used.reshape(-1)[places])
    return results
