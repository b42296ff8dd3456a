"""Pytrees outside, flat lists inside: how a call's arguments become a program's inputs."""

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hlofront.base import source, tree
from hlofront.base.dtypes import array_dtype, dtype_of
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import AbstractValue, ShapedArray, is_value, register_value_type, typeof
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.partition import PartitionSpec
from hlofront.transforms.stage import stage


class ShapeDtypeStruct:
    """The shape and dtype of an array that need not exist.

    Args:
      shape: sizes of its axes.
      dtype: of its elements.
      sharding: where it would be.
      weak_type: whether its dtype gives way in promotion.

    Raises:
      ValueError: if no dtype is given, or the sharding is none or does not fit the shape.
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")

    def __init__(
        self, shape, dtype, *, sharding=None, weak_type=False, manual_axis_type=None, is_ref=False
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct wants a dtype, got None")
        self.shape = tuple(shape)
        self.dtype = dtype_of(dtype)
        _check_sharding(sharding, self.shape)
        self.sharding = sharding
        self.weak_type = bool(weak_type)

    @classmethod
    def like(cls, x: Any) -> "ShapeDtypeStruct":
        """The description of a value: its shape, dtype and weak type.

        The sharding is that of an array which is committed to where it is, and that of another
        description.

        Raises:
          TypeError: if `x` is neither a value nor has a shape and a dtype.
        """
        aval: Any = abstract(x)
        sharding = getattr(x, "sharding", None) if getattr(x, "committed", True) else None
        return cls(aval.shape, aval.dtype, sharding=sharding, weak_type=aval.weak_type)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return ShapedArray(self.shape, self.dtype).size

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes: Any) -> "ShapeDtypeStruct":
        """Return a copy with another shape, dtype, sharding or weak_type."""
        fields = {name: getattr(self, name) for name in ShapeDtypeStruct.__slots__}
        return ShapeDtypeStruct(**{**fields, **changes})

    def __eq__(self, other):
        return isinstance(other, ShapeDtypeStruct) and all(
            getattr(self, name) == getattr(other, name) for name in ShapeDtypeStruct.__slots__
        )

    def __hash__(self):
        return hash((self.shape, self.dtype, self.sharding, self.weak_type))

    def __repr__(self):
        sharding = "" if self.sharding is None else f", sharding={self.sharding}"
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{sharding}{weak})"


def _check_sharding(sharding: Any, shape: tuple[Any, ...]) -> None:
    """Check that an argument is a sharding, of no more axes than the shape has.

    Raises:
      ValueError: if it is not.
    """
    if sharding is None or isinstance(sharding, PartitionSpec):
        return
    spec = getattr(sharding, "spec", ())
    if len(spec) > len(shape):
        raise ValueError(
            f"Sharding {sharding} is only valid for values of rank at least {len(spec)}, but was "
            f"applied to a value of rank {len(shape)}: leave out the entries of axes that it does "
            "not have"
        )
    # A Format has a layout, beside its sharding.
    if not hasattr(sharding, "check_compatible_aval") and not hasattr(sharding, "layout"):
        raise ValueError(
            "the sharding of a ShapeDtypeStruct is a Sharding, a PartitionSpec or a Format: got "
            f"{sharding!r} of type {type(sharding)}"
        )


def abstract(x: Any) -> AbstractValue:
    """The aval of an operand, or of something that only has a shape and a dtype."""
    if is_value(x):
        return typeof(x)
    if isinstance(x, AbstractValue):
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return _described(x)
    return typeof(x)  # raises, and says what is wrong with x


def _described(x: Any) -> ShapedArray:
    """The aval of what only has a shape and a dtype: of 32 bits unless x64 is on."""
    dtype = dtype_of(x.dtype)
    if isinstance(dtype, np.dtype):
        dtype = array_dtype(dtype)
    return ShapedArray(tuple(x.shape), dtype, getattr(x, "weak_type", False))


# A description may stand among the operands of what is only traced; what runs refuses it.
register_value_type(ShapeDtypeStruct, _described)


_unknown = object()


class Signature:
    """A record of a function's parameters: their names, and its own name in messages.

    It is found out when it is asked for: most calls need none of it.
    """

    __slots__ = ("_parameters", "_where", "fun", "name")

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun
        self.name = source.callable_name(fun)
        self._where: str | None = None
        self._parameters: Any = _unknown

    @property
    def where(self) -> str:
        """The function's name and place, as in "loss at model.py:12"."""
        if self._where is None:
            self._where = source.describe_callable(self.fun)
        return self._where

    def find_where(self) -> str:
        return self.where

    @property
    def parameters(self) -> Any:
        """The parameters by name; None for builtins that have no signature."""
        if self._parameters is _unknown:
            try:
                self._parameters = inspect.signature(self.fun).parameters
            except (TypeError, ValueError):
                self._parameters = None
        return self._parameters

    def positional_names(self) -> list[str]:
        """The names of the parameters that take positional arguments."""
        if self.parameters is None:
            return []
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [name for name, p in self.parameters.items() if p.kind in kinds]

    def argument_names(self, args_and_kwargs: Any, positions: Sequence[int] | None = None):
        """A name per leaf of (args, kwargs): `x`, `params['w']`, `rest[2]`.

        `positions` are those of the arguments in the call, where some were taken out.
        """
        args, kwargs = args_and_kwargs
        positions = range(len(args)) if positions is None else positions
        names = self.positional_names()
        rest = next(
            (
                name
                for name, p in (self.parameters or {}).items()
                if p.kind is inspect.Parameter.VAR_POSITIONAL
            ),
            "args",
        )
        argument_names: list[str] = []
        for position, arg in zip(positions, args, strict=True):
            base = names[position] if position < len(names) else f"{rest}[{position - len(names)}]"
            argument_names += [
                base + tree.keystr(path) for path, _ in tree.tree_leaves_with_path(arg)
            ]
        for name in sorted(kwargs):
            argument_names += [
                name + tree.keystr(path) for path, _ in tree.tree_leaves_with_path(kwargs[name])
            ]
        return tuple(argument_names)

    def names_in(self, in_tree: Any) -> tuple[str, ...]:
        """Return the names of the leaves of positional arguments that have this structure."""
        return self.argument_names((in_tree.unflatten(range(in_tree.num_leaves)), {}))


def check_callable(fun: Any, what: str = "a transformation") -> None:
    """Raise the TypeError for what is given in the place of a function.

    What `staticmethod` and `classmethod` make is for the body of a class, and cannot be traced.
    """
    if isinstance(fun, staticmethod | classmethod):
        kind = type(fun).__name__
        raise TypeError(
            f"{what} wants a function, got the {kind} object {fun!r}: transform the function "
            f"first, and make a {kind} of the result"
        )
    if not callable(fun):
        raise TypeError(
            f"Expected a callable value: {what} wants a function, got "
            f"{source.shortened(repr(fun))} of type {type(fun)}"
        )
    refuse_generators(fun, what)


def refuse_generators(fun: Any, what: str) -> None:
    """Raise TypeError if `fun` is a generator function, whose results are no arrays.

    Args:
      what: the transformation, for the message.
    """
    inner = fun
    while isinstance(inner, functools.partial):
        inner = inner.func
    code = getattr(inner, "__code__", None)
    if isinstance(code, types.CodeType) and code.co_flags & inspect.CO_GENERATOR:
        raise TypeError(
            f"Expected a function, got a generator function: {fun!r}, given to {what}. It returns "
            "an iterator and no arrays: return a list of what it yields."
        )


def result_paths(out_tree: PyTreeDef, prefix: str = "result") -> tuple[str, ...]:
    """A name per output: `result`, `result[0]`, `result['loss']`."""
    numbered = tree.tree_unflatten(out_tree, range(out_tree.num_leaves))
    # What a node makes of itself, as arrays of float0, is no output.
    return tuple(
        prefix + tree.keystr(path)
        for path, number in tree.tree_leaves_with_path(numbered)
        if type(number) is int
    )


def check_outputs(leaves: Sequence[Any], where: str, traced_for: str, out_tree: PyTreeDef) -> None:
    """Every output of a traced function must be a value."""
    for i, leaf in enumerate(leaves):
        if not is_value(leaf):
            path = result_paths(out_tree)[i]
            at = "" if path == "result" else f" at output component {path[len('result') :]}"
            raise TypeError(
                f"function {where} traced for {traced_for} returned a value of type "
                f"{type(leaf)}{at}, which is not a valid JAX type"
            )


# The keyword arguments of a call that has none.
NO_KEYWORDS: Mapping[str, object] = {}


def stage_tree(
    fun: Callable[..., Any],
    in_tree: PyTreeDef,
    in_avals: Sequence[AbstractValue],
    debug_info: DebugInfo,
    operands: Sequence[object] = (),
) -> tuple[ClosedJaxpr, Any]:
    """Write down `fun(*args, **kwargs)` for arguments of this structure.

    `operands` are the values of a call from an enclosing program, for errors. Returns the program
    and the structure of its result.
    """
    out_tree = None

    def flat(*leaves: Any) -> list[Any]:
        nonlocal out_tree
        args, kwargs = tree.tree_unflatten(in_tree, leaves)
        out_leaves, out_tree = tree.tree_flatten(fun(*args, **kwargs))
        check_outputs(out_leaves, debug_info.func_src_info, debug_info.traced_for, out_tree)
        return out_leaves

    return stage(flat, in_avals, debug_info, operands), out_tree
