"""Flattening of calls: from pytrees of arguments to the flat inputs of a program."""

import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, cast

from hlofront.base import source, tree
from hlofront.base.dtypes import array_dtype, check_integer, dtype_of
from hlofront.base.elements import ExtendedDType
from hlofront.base.tree import PyTree
from hlofront.base.typing import DTypeLike
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.core.aval import (
    AbstractValue,
    ShapedArray,
    is_value,
    register_value_type,
    typeof,
)
from hlofront.core.high_types import is_mutable
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Value
from hlofront.core.references import AbstractRef, is_reference
from hlofront.core.sharding.manual_axes import SAME, ManualAxisType
from hlofront.core.sharding.mesh_context import get_abstract_mesh
from hlofront.core.sharding.partition import PartitionSpec, check_rank
from hlofront.core.sharding.requested_shardings import named_sharding, over_devices, split_by
from hlofront.core.trace import Tracer
from hlofront.transforms.stage import stage


class ShapeDtypeStruct:
    """A shape and dtype of an array without data, for tracing and ahead-of-time lowering.

    Args:
      shape: the sizes of its axes.
      dtype: the dtype of its elements.
      sharding: a Sharding, PartitionSpec or Format, or None. If it is a Format, the attribute
          `sharding` is the Format's sharding and `format` the Format; programs are lowered for
          arguments with its layout.
      weak_type: whether the dtype is weak, like that of a Python scalar.
      manual_axis_type: how the array varies along the manual axes of shard_map; None if it does
        not.
      is_ref: whether it describes a mutable reference to such an array.

    Raises:
      ValueError: if the dtype is None, or `sharding` is not a sharding or does not fit the shape.
    """

    __slots__ = (
        "dtype",
        "format",
        "is_ref",
        "manual_axis_type",
        "shape",
        "sharding",
        "weak_type",
    )

    def __init__(
        self,
        shape: Iterable[int],
        dtype: DTypeLike | None,
        *,
        sharding: Any = None,
        weak_type: bool = False,
        manual_axis_type: ManualAxisType | None = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct requires a dtype, got None")
        self.shape = tuple(shape)
        self.dtype = dtype_of(dtype)
        if isinstance(sharding, PartitionSpec):
            sharding = _over_context(sharding)
        _check_sharding(sharding, self.shape)
        # A Format has a layout besides its sharding.
        self.format = sharding if hasattr(sharding, "layout") else None
        self.sharding = sharding if self.format is None else sharding.sharding
        self.weak_type = bool(weak_type)
        self.manual_axis_type = manual_axis_type
        self.is_ref = bool(is_ref)

    @classmethod
    def like(cls, x: object) -> "ShapeDtypeStruct":
        """Return a ShapeDtypeStruct with the shape, dtype, weak type and sharding of a value.

        The sharding of an uncommitted array is left out.

        Raises:
          TypeError: if `x` is not a value and has no shape and dtype.
        """
        aval: Any = abstract(x)
        if isinstance(x, Tracer):
            sharding = aval.sharding if aval.split is not None else None
        else:
            sharding = getattr(x, "sharding", None) if getattr(x, "committed", True) else None
        manual = None if aval.manual_axis_type is SAME else aval.manual_axis_type
        return cls(
            aval.shape,
            aval.dtype,
            sharding=sharding,
            weak_type=aval.weak_type,
            manual_axis_type=manual,
        )

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return ShapedArray(self.shape, self.dtype).size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def update(self, **changes: Any) -> "ShapeDtypeStruct":
        """Return a copy of the struct with changed shape, dtype, sharding or weak_type."""
        fields: dict[str, Any] = {
            "shape": self.shape,
            "dtype": self.dtype,
            "sharding": self.format or self.sharding,
            "weak_type": self.weak_type,
            "manual_axis_type": self.manual_axis_type,
            "is_ref": self.is_ref,
        }
        return ShapeDtypeStruct(**{**fields, **changes})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and all(
            getattr(self, name) == getattr(other, name) for name in ShapeDtypeStruct.__slots__
        )

    def __hash__(self) -> int:
        return hash(tuple([getattr(self, name) for name in ShapeDtypeStruct.__slots__]))

    def __repr__(self) -> str:
        sharding = "" if self.sharding is None else f", sharding={self.sharding}"
        if self.format is not None:
            sharding += f", format={self.format.layout}"
        weak = ", weak_type=True" if self.weak_type else ""
        manual = self.manual_axis_type
        varies = "" if manual is None else f", manual_axis_type={manual}"
        fields = f"shape={self.shape}, dtype={self.dtype.name}{sharding}{weak}{varies}"
        return f"ShapeDtypeStruct({fields})"


def _check_sharding(sharding: object, shape: tuple[object, ...]) -> None:
    """Check that a value is a sharding with at most as many entries as the shape has axes.

    Raises:
      ValueError: if it is not.
    """
    if sharding is None:
        return
    check_rank(sharding, len(getattr(sharding, "spec", ())), len(shape))
    if not hasattr(sharding, "check_compatible_aval") and not hasattr(sharding, "layout"):
        raise ValueError(
            "the sharding of a ShapeDtypeStruct is a Sharding, a PartitionSpec or a Format: got "
            f"{sharding!r} of type {type(sharding)}"
        )


def _over_context(spec: PartitionSpec) -> Any:
    """Return a spec as a NamedSharding over the mesh in context.

    Raises:
      TypeError: if there is no mesh in context.
    """
    mesh = get_abstract_mesh()
    if mesh.empty:
        raise TypeError(
            f"ShapeDtypeStruct was given the PartitionSpec {spec}, and no mesh is in context whose "
            "axes it could name: give it a NamedSharding, or put a mesh in context by jax.set_mesh"
        )
    return over_devices(spec) or named_sharding(mesh, spec)


def abstract(x: Any) -> Any:
    """Return the aval of an array, scalar, aval, or any object with a shape and dtype.

    Raises:
      TypeError: for any other object.
      OverflowError: for a Python integer that the default integer dtype cannot hold.
    """
    if is_value(x):
        if isinstance(x, int):
            check_integer(x)
        return typeof(x)
    if isinstance(x, AbstractValue):
        return x
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return _described(x)
    return typeof(x)  # raises TypeError about x


def _described(x: Any) -> AbstractValue:
    """Return the aval of an object with a shape and dtype; without x64, 64-bit dtypes narrow."""
    dtype = dtype_of(x.dtype)
    if not isinstance(dtype, ExtendedDType):
        dtype = array_dtype(dtype)
    split = split_by(getattr(x, "sharding", None))
    aval = ShapedArray(tuple(x.shape), dtype, getattr(x, "weak_type", False), sharding=split)
    manual = getattr(x, "manual_axis_type", None)
    if isinstance(manual, ManualAxisType):
        aval = aval.update(manual_axis_type=manual)
    return AbstractRef(aval) if getattr(x, "is_ref", False) is True else aval


# A ShapeDtypeStruct may be an operand while tracing; to execute an operation on it is an error.
register_value_type(ShapeDtypeStruct, _described)


def check_callable(fun: object, what: str = "a transformation") -> None:
    """Raise TypeError if `fun` is not callable, or is a generator function or a method object.

    `staticmethod` and `classmethod` objects are refused, because they cannot be traced.
    """
    if issubclass(type(fun), staticmethod | classmethod):
        kind = type(fun).__name__
        raise TypeError(
            f"{what} requires a function, got the {kind} object {fun!r}: transform the function "
            f"first, and make a {kind} of the result"
        )
    if not callable(fun):
        raise TypeError(
            f"Expected a callable value: {what} requires a function, got "
            f"{source.shortened(repr(fun))} of type {type(fun)}"
        )
    refuse_generators(fun, what)


def check_hashable(*functions: object) -> None:
    """Raise TypeError for a function that cannot be hashed: programs are cached by functions."""
    for function in functions:
        try:
            hash(function)
        except TypeError as error:
            raise TypeError(
                f"{error}: programs are cached by the functions that they are traced from. Define "
                "__hash__ as well as __eq__; a dataclass has it with frozen=True or eq=False."
            ) from None


def as_cache_key(fun: Callable[..., object]) -> Callable[..., object]:
    """Return the function, or a wrapper that raises a TypeError if it cannot be a cache key.

    jaxlib looks up executables by a weak reference to the function; if it has none, the process may
    crash.
    """
    try:
        check_hashable(fun)
    except TypeError as error:
        message = str(error)
    else:
        try:
            weakref.ref(fun)
        except TypeError as error:
            message = (
                f"{error}, which jit needs to find what it compiled: give jit a function, or add "
                "'__weakref__' to the __slots__ of the class."
            )
        else:
            return fun

    def refuse(*_: object, **__: object) -> NoReturn:
        raise TypeError(message)

    return functools.update_wrapper(refuse, fun)


def refuse_generators(fun: object, what: str) -> None:
    """Raise TypeError if `fun` is a generator function, whose result is not an array.

    Args:
      fun: a callable; `functools.partial` is looked through.
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


def result_paths(out_tree: PyTreeDef | None, prefix: str = "result") -> tuple[str, ...]:
    """Return a name per leaf of a result, such as `result`, `result[0]` or `result['loss']`.

    There are no names if `out_tree` is None: the function has not returned.
    """
    if out_tree is None:
        return ()
    numbered = tree.tree_unflatten(out_tree, range(out_tree.num_leaves))
    # Values that a pytree node adds on unflattening, such as float0 arrays, are not outputs.
    return tuple(
        prefix + tree.keystr(path)
        for path, number in tree.tree_leaves_with_path(numbered)
        if type(number) is int
    )


def check_outputs(
    leaves: Sequence[object], where: str, traced_for: str, out_tree: PyTreeDef
) -> None:
    """Raise TypeError if an output of a traced function is not a value such as an array."""
    for i, leaf in enumerate(leaves):
        if is_mutable(leaf):
            aval = typeof(cast(Any, leaf))
            raise TypeError(
                f"function {where} traced for {traced_for} returned a value of type "
                f"{aval.str_short()}, which has a state: return the arrays that it holds"
            )
        if not is_value(leaf):
            path = result_paths(out_tree)[i]
            at = "" if path == "result" else f" at output component {path[len('result') :]}"
            raise TypeError(
                f"function {where} traced for {traced_for} returned a value of type "
                f"{type(leaf)}{at}, which is not a valid JAX type"
            )
        if is_reference(getattr(leaf, "aval", None)):
            raise _returned_reference(leaf, i, where, traced_for, out_tree)


def _returned_reference(
    leaf: Any, position: int, where: str, traced_for: str, out_tree: PyTreeDef
) -> ValueError:
    """Return the error for a traced function that returns a mutable reference."""
    path = result_paths(out_tree)[position]
    at = "" if path == "result" else f" at output tree path {path}"
    argument = getattr(leaf, "_origin_argument", "")
    traceback = getattr(leaf, "_origin_traceback", None)
    origin = ""
    if argument:
        origin = f"\n\nThe returned mutable array was passed in as the {argument}."
    elif traceback is not None:
        line = source.summarize(traceback)
        origin = f"\n\nThe returned mutable array was created on line {line}."
    return ValueError(
        f"function {where} traced for {traced_for} returned a mutable array reference of type "
        f"{leaf.aval}{at}, but mutable array references cannot be returned. Return what it holds: "
        f"ref[...].{origin}"
    )


# The keyword arguments of a call without any.
NO_KEYWORDS: Mapping[str, object] = {}


def stage_tree(
    fun: Callable[..., PyTree],
    in_tree: PyTreeDef,
    in_avals: Sequence[AbstractValue],
    debug_info: DebugInfo,
    operands: Sequence[object] = (),
) -> tuple[ClosedJaxpr, PyTreeDef]:
    """Trace `fun(*args, **kwargs)` to a closed jaxpr of flat inputs.

    Args:
      fun: a function of pytrees of arrays.
      in_tree: the structure of (args, kwargs).
      in_avals: the avals of its leaves.
      debug_info: names for messages.
      operands: the values that an enclosing program calls the jaxpr with, for messages.

    Returns:
      The closed jaxpr, and the structure of the result of `fun`.
    """
    out_tree: Any = None

    def flat(*leaves: Value) -> list[Value]:
        nonlocal out_tree
        args, kwargs = tree.tree_unflatten(in_tree, leaves)
        out_leaves, out_tree = tree.tree_flatten(fun(*args, **kwargs))
        check_outputs(out_leaves, debug_info.func_src_info, debug_info.traced_for, out_tree)
        return out_leaves

    return stage(flat, in_avals, debug_info, operands), out_tree
