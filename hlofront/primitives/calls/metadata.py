"""Frontend attributes of operations: annotations for XLA's passes and plugins."""

import functools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import ParamSpec, TypeVar

from hlofront.base import tree
from hlofront.base.option import fold_thread, unset
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike, ArrayLikes
from hlofront.core.aval import ShapedArray
from hlofront.core.names import (
    FrontendAttributes,
    current_name_stack,
    frontend_attributes_of,
    transformed,
)
from hlofront.core.primitive import Primitive
from hlofront.core.rules import batch, infer, jvp, transpose
from hlofront.core.symbolic_zeros import BatchAxes, Batched, Cotangent, Dual, Operand, Tangents
from hlofront.core.trace import process
from hlofront.primitives.sharding.families import split_as_first_operand

P = ParamSpec("P")
R = TypeVar("R")


class frontend_attributes:
    """A context manager and decorator that adds frontend attributes to operations.

    Programs used inside have the attributes even if they were traced outside before.

    Args:
      attributes: the values by name; None removes the attribute of an outer block.
    """

    __slots__ = ("_attributes", "_entered")

    def __init__(self, attributes: dict[str, str | None]):
        self._attributes = attributes
        self._entered: list[ExitStack] = []

    def __enter__(self) -> None:
        stack = ExitStack()
        stack.callback(_fold)
        stack.enter_context(transformed(FrontendAttributes(self._attributes.items())))
        _fold()
        self._entered.append(stack)

    def __exit__(self, *exception: object) -> None:
        self._entered.pop().close()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        attributes = self._attributes

        @functools.wraps(function)
        def within(*args: P.args, **kwargs: P.kwargs) -> R:
            # A new block per call: calls may overlap in several threads.
            with frontend_attributes(attributes):
                return function(*args, **kwargs)

        return within


def _fold() -> None:
    """Make the current attributes part of the cache keys of programs."""
    current = tuple(frontend_attributes_of(current_name_stack()).items())
    fold_thread("frontend_attributes", current or unset)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- attributes of XLA's passes and plugins ------------------------------------------------------

xla_metadata_value_p = Primitive("xla_metadata_value")
split_as_first_operand(xla_metadata_value_p)


def set_xla_metadata(x: PyTree = None, **kwargs: object) -> PyTree:
    """Add frontend attributes, named texts that passes and plugins read, to operations.

    Without `x` this is a context manager and decorator for the operations inside. With `x` it
    annotates the operations that compute the leaves of `x`:

        with set_xla_metadata(pass_name="mine"):
            y = jnp.sin(x)
        z = set_xla_metadata(jnp.cos(y), priority=2)

    Args:
      x: None, or a pytree of arrays.
      kwargs: the values by name, of any type that can be printed. In a block, None removes the
        attribute of an outer block.

    Returns:
      A context manager, or the pytree `x` with equal arrays.
    """
    if x is None:
        attributes = {n: None if v is None else _text(v) for n, v in kwargs.items()}
        return frontend_attributes(attributes)
    pairs = tuple(sorted(kwargs.items()))

    def marked(leaf: ArrayLike) -> Array:
        return process(xla_metadata_value_p, (leaf,), {"xla_metadata_kvs": pairs})

    return tree.tree_map(marked, x)


def metadata_text(pairs: Sequence[tuple[str, object]]) -> dict[str, str]:
    """Return (name, value) pairs from an equation's parameters as frontend attributes."""
    return {name: _text(value) for name, value in pairs}


@infer(xla_metadata_value_p)
def _(x: ShapedArray, *, xla_metadata_kvs: object) -> ShapedArray:
    return x


@jvp(xla_metadata_value_p)
def _(primals: ArrayLikes, tangents: Tangents, *, xla_metadata_kvs: object) -> Dual:
    marked = process(xla_metadata_value_p, tuple(primals), {"xla_metadata_kvs": xla_metadata_kvs})
    return marked, tangents[0]


@transpose(xla_metadata_value_p)
def _(cotangent: Cotangent, x: Operand, *, xla_metadata_kvs: object) -> Sequence[Cotangent]:
    return [cotangent]


@batch(xla_metadata_value_p)
def _(values: ArrayLikes, axes: BatchAxes, *, xla_metadata_kvs: object) -> Batched:
    marked = process(xla_metadata_value_p, tuple(values), {"xla_metadata_kvs": xla_metadata_kvs})
    return marked, axes[0]


# ---- the processor of operations -----------------------------------------------------------------

_COMPUTE_TYPES = {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}
_STREAM = "gpu_stream:"


def compute_attributes(compute_type: str) -> dict[str, str]:
    """Return the frontend attributes that say which processor computes operations.

    Raises:
      ValueError: if there is no such compute type.
    """
    if isinstance(compute_type, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        if compute_type.startswith(_STREAM):
            stream = compute_type.removeprefix(_STREAM)
            return {"_xla_stream_annotation": stream, "inlineable": "false"}
        if compute_type in _COMPUTE_TYPES:
            return {"_xla_compute_type": _COMPUTE_TYPES[compute_type]}
    raise ValueError(
        f"Invalid compute type {compute_type!r}: operations are computed on 'device_host', "
        "'device', 'tpu_sparsecore', or 'gpu_stream:#' with the number of a stream."
    )


def compute_in_block(compute_type: str) -> frontend_attributes:
    """Return a context manager and decorator that says which processor computes operations.

    Raises:
      ValueError: if there is no such compute type.
    """
    attributes: dict[str, str | None] = {**compute_attributes(compute_type)}
    return frontend_attributes(attributes)
