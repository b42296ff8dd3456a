"""Primitives that call back into Python: pure_callback, io_callback and debug callbacks."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.tree import PyTree, PyTreeDef
from hlofront.base.typing import ArrayLike, ArrayLikes, Params
from hlofront.core.aval import AbstractValue, Avals, ShapedArray, typeof
from hlofront.core.effects import Effect, Effects, OwnEffect
from hlofront.core.primitive import Primitive
from hlofront.core.programs.subprograms import no_subprograms
from hlofront.core.rules import batch, effects, infer, jvp, subprograms, transpose
from hlofront.core.symbolic_zeros import (
    BatchAxes,
    BatchAxis,
    Cotangent,
    Cotangents,
    Duals,
    Operand,
    Tangents,
    Zero,
)
from hlofront.core.trace import process
from hlofront.primitives.arrays.slicing import index_in_dim
from hlofront.primitives.rules.batching import batch_size
from hlofront.primitives.rules.derivatives import is_linear

# ---- effects of callbacks ------------------------------------------------------------------------


class HostEffect(OwnEffect):
    """The effect of calling Python while the program runs; instances of a class are equal."""

    __slots__ = ()
    on_host = True

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class IOEffect(HostEffect):
    """The effect of an io_callback that is not ordered."""

    __slots__ = ()
    in_checkpoint = False
    repeatable = False

    def __str__(self) -> str:
        return "IO"


class OrderedIOEffect(IOEffect):
    """The effect of an ordered io_callback: such callbacks run in program order."""

    __slots__ = ()
    ordered = True

    def __str__(self) -> str:
        return "OrderedIO"


class DebugEffect(HostEffect):
    """The effect of a debug callback, which transformations may drop, repeat and move."""

    __slots__ = ()

    def __str__(self) -> str:
        return "Debug"


class OrderedDebugEffect(DebugEffect):
    """The effect of an ordered debug callback: such callbacks run in program order."""

    __slots__ = ()
    ordered = True

    def __str__(self) -> str:
        return "OrderedDebug"


io_effect = IOEffect()
ordered_io_effect = OrderedIOEffect()
debug_effect = DebugEffect()
ordered_debug_effect = OrderedDebugEffect()


# ---- pure_callback, io_callback ------------------------------------------------------------------
#
# Their parameters hold functions, so results of infer rules are not cached for them.

pure_callback_p = Primitive("pure_callback", multiple_results=True, carries_programs=True)
io_callback_p = Primitive("io_callback", multiple_results=True, carries_programs=True)
subprograms(pure_callback_p, io_callback_p)(no_subprograms)


# How vmap may call a function that expects unbatched arrays: once per example, or once for all.
VMAP_METHODS = (
    "sequential",
    "sequential_unrolled",
    "expand_dims",
    "broadcast_all",
    "legacy_vectorized",
    None,
)


def check_vmap_method(vmap_method: object) -> None:
    """Raise ValueError unless `vmap_method` is the name of a method of vmap, or None."""
    if vmap_method not in VMAP_METHODS:
        raise ValueError(
            f"vmap_method must be one of the allowed methods {list(VMAP_METHODS)}, but got: "
            f"{vmap_method}"
        )


class FlatCallback:
    """A user's function of pytrees as a function of flat leaves that returns a flat list."""

    __slots__ = ("callback_func", "in_tree")

    def __init__(self, callback_func: Callable[..., PyTree], in_tree: PyTreeDef):
        self.callback_func = callback_func
        # The tree definition of (args, kwargs).
        self.in_tree = in_tree

    def __call__(self, *leaves: object) -> list[object]:
        args, kwargs = tree.tree_unflatten(self.in_tree, leaves)
        return tree.tree_leaves(self.callback_func(*args, **kwargs))

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is FlatCallback
            and other.callback_func is self.callback_func
            and other.in_tree == self.in_tree
        )

    def __hash__(self) -> int:
        return hash((id(self.callback_func), self.in_tree))

    def __repr__(self) -> str:
        # This is the form that JAX prints.
        return f"_FlatCallback(callback_func={self.callback_func!r}, in_tree={self.in_tree})"


@infer(pure_callback_p)
def _(*operands: ShapedArray, result_avals: Avals, **_: object) -> list[ShapedArray]:
    return list(result_avals)


@infer(io_callback_p)
def _(*operands: ShapedArray, result_avals: Avals, **_: object) -> list[ShapedArray]:
    return list(result_avals)


@effects(io_callback_p)
def _(*operands: AbstractValue, ordered: bool, **_: object) -> Effects:
    return frozenset({ordered_io_effect if ordered else io_effect})


@jvp(pure_callback_p)
def _(primals: ArrayLikes, tangents: Tangents, **_: object) -> Duals:
    raise ValueError(
        "Pure callbacks do not support JVP: nothing is known of the derivative of a Python "
        "function. Give it one with `custom_jvp` or `custom_vjp` around the pure_callback, or keep "
        "gradients out of it with stop_gradient on its arguments."
    )


@transpose(pure_callback_p)
def _(cotangents: Sequence[Cotangent], *operands: Operand, **_: object) -> Cotangents:
    raise ValueError(
        "Pure callbacks do not support transpose: a Python function cannot be run backwards. Use "
        "`custom_vjp`, or custom_linear_solve, to say what its transpose is."
    )


@jvp(io_callback_p)
def _(primals: ArrayLikes, tangents: Tangents, **_: object) -> Duals:
    raise ValueError(
        "IO callbacks do not support JVP: nothing is known of the derivative of a Python function. "
        "Keep gradients out of it with stop_gradient on its arguments."
    )


@transpose(io_callback_p)
def _(cotangents: Sequence[Cotangent], *operands: Operand, **_: object) -> Cotangents:
    raise ValueError(
        "IO callbacks do not support transpose: a Python function cannot be run backwards."
    )


# ---- debug callbacks -----------------------------------------------------------------------------

debug_callback_p = Primitive("debug_callback", multiple_results=True, carries_programs=True)
debug_print_p = Primitive("debug_print", multiple_results=True, carries_programs=True)
subprograms(debug_callback_p, debug_print_p)(no_subprograms)


class FlatDebugCallback:
    """A user's function of any arguments as a function of only the arrays, which returns ()."""

    __slots__ = ("arguments", "callback")

    def __init__(self, callback: Callable[..., PyTree], arguments: "CallbackArguments"):
        self.callback = callback
        self.arguments = arguments

    def __call__(self, *values: ArrayLike) -> tuple[()]:
        args, kwargs = self.arguments.restored(values)
        self.callback(*args, **kwargs)
        return ()

    def __repr__(self) -> str:
        # This is the form that JAX prints.
        name = "debug_callback.<locals>._debug_callback.<locals>._flat_callback"
        return f"<function {name} at {id(self):#x}>"


class CallbackArguments:
    """The tree definition and the static leaves of a call's (args, kwargs), without its arrays."""

    __slots__ = ("static", "structure")

    def __init__(self, structure: PyTreeDef, static: Sequence[tuple[int, object]]):
        self.structure = structure
        # Pairs (index, leaf) of the leaves that are not arrays.
        self.static = tuple(static)

    @staticmethod
    def split(
        args: tuple[PyTree, ...], kwargs: dict[str, PyTree]
    ) -> "tuple[CallbackArguments, list[ArrayLike]]":
        """Return the CallbackArguments of a call, and the list of the arrays among its leaves."""
        leaves, structure = tree.tree_flatten((args, kwargs))
        static: list[tuple[int, object]] = []
        values: list[ArrayLike] = []
        for index, leaf in enumerate(leaves):
            try:
                typeof(leaf)
            except (TypeError, ValueError):
                static.append((index, leaf))
            else:
                values.append(leaf)
        return CallbackArguments(structure, static), values

    def restored(self, values: ArrayLikes) -> tuple[tuple[PyTree, ...], dict[str, PyTree]]:
        """Return (args, kwargs) with `values` for the arrays."""
        leaves: list[object] = list(values)
        for index, leaf in self.static:
            leaves.insert(index, leaf)
        return tree.tree_unflatten(self.structure, leaves)


def debug_callback(
    callback: Callable[..., PyTree],
    args: tuple[PyTree, ...],
    kwargs: dict[str, PyTree],
    ordered: bool,
    partitioned: bool,
) -> None:
    """Bind a debug_callback equation, which calls `callback` for its side effects."""
    arguments, values = CallbackArguments.split(args, kwargs)
    params = {
        "callback": FlatDebugCallback(callback, arguments),
        "effect": ordered_debug_effect if ordered else debug_effect,
        "partitioned": partitioned,
    }
    process(debug_callback_p, tuple(values), params)


def debug_print(
    fmt: str,
    args: tuple[PyTree, ...],
    kwargs: dict[str, PyTree],
    has_placeholders: bool,
    ordered: bool,
    partitioned: bool,
    logging_record: logging.LogRecord | None = None,
) -> None:
    """Bind a debug_print equation, which prints a format string with arguments, or logs it."""
    arguments, values = CallbackArguments.split(args, kwargs)
    params = {
        "fmt": fmt,
        "ordered": ordered,
        "partitioned": partitioned,
        "in_tree": arguments.structure,
        "static_args": arguments.static,
        # The options at the call: they may differ by the time the program runs.
        "np_printoptions": tuple(np.get_printoptions().items()),
        "has_placeholders": has_placeholders,
        "logging_record": logging_record,
    }
    process(debug_print_p, tuple(values), params)


def print_now(
    *values: ArrayLike,
    fmt: str,
    in_tree: PyTreeDef,
    static_args: Sequence[tuple[int, object]],
    np_printoptions: Sequence[tuple[str, Any]],
    has_placeholders: bool,
    logging_record: logging.LogRecord | None,
    **_: object,
) -> tuple[()]:
    """Print or log, on the host, the text of a debug_print with these operands and parameters."""
    args, kwargs = CallbackArguments(in_tree, static_args).restored(values)
    with np.printoptions(**dict(np_printoptions)):
        text = fmt.format(*args, **kwargs)
        if not has_placeholders:
            text = " ".join([text, *map(str, args), *(f"{k}={v}" for k, v in kwargs.items())])
    if logging_record is None:
        print(text)
    else:
        _log(logging_record, text)
    return ()


def _log(like: logging.LogRecord, text: str) -> None:
    # Handlers decide what is shown: as in JAX, the logger's own level drops no record.
    logger = logging.getLogger(like.name)
    logger.handle(
        logger.makeRecord(
            like.name,
            like.levelno,
            like.pathname,
            like.lineno,
            msg=text,
            args=(),
            exc_info=None,
            func=like.funcName,
        )
    )


@infer(debug_callback_p, debug_print_p)
def _(*operands: ShapedArray, **_: object) -> list[ShapedArray]:
    return []


@effects(debug_callback_p)
def _(*operands: AbstractValue, effect: Effect, **_: object) -> Effects:
    return frozenset({effect})


@effects(debug_print_p)
def _(*operands: AbstractValue, ordered: bool, **_: object) -> Effects:
    return frozenset({ordered_debug_effect if ordered else debug_effect})


# Tangents are ignored: only the primals are shown, once.
@jvp(debug_callback_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    return process(debug_callback_p, tuple(primals), params), []


@jvp(debug_print_p)
def _(primals: ArrayLikes, tangents: Tangents, **params: object) -> Duals:
    return process(debug_print_p, tuple(primals), params), []


@transpose(debug_callback_p, debug_print_p)
def _(cotangents: Sequence[Cotangent], *operands: Operand, **_: object) -> Cotangents:
    return [Zero(x.aval) if is_linear(x) else None for x in operands]


@batch(debug_callback_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> tuple[ArrayLikes, BatchAxes]:
    return _each_example(debug_callback_p, values, axes, params)


@batch(debug_print_p)
def _(values: ArrayLikes, axes: BatchAxes, **params: object) -> tuple[ArrayLikes, BatchAxes]:
    return _each_example(debug_print_p, values, axes, params)


def _each_example(
    primitive: Primitive, values: ArrayLikes, axes: Sequence[int | None], params: Params
) -> tuple[list[ArrayLike], list[BatchAxis]]:
    """Bind a debug primitive once per example of a batch, in order; return no results."""
    for i in range(batch_size(values, axes)):
        operands = tuple(
            x if axis is None else index_in_dim(x, i, axis, keepdims=False)
            for x, axis in zip(values, axes, strict=True)
        )
        process(primitive, operands, params)
    return [], []
