"""Calls of programs as single operations with frontend attributes, which XLA schedules as units."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any, overload

from hlofront.base import tree
from hlofront.base.boundary import boundary, named_as
from hlofront.base.tree import PyTree
from hlofront.base.tree_prefixes import broadcast_prefix
from hlofront.base.typing import Value
from hlofront.core import rules
from hlofront.core.aval import MemorySpace, typeof
from hlofront.core.jaxpr import ClosedJaxpr
from hlofront.core.primitive import Primitive
from hlofront.higher_order.calls.jit_call import CallRules, split_captured
from hlofront.higher_order.control_flow.bodies import debug_info_of
from hlofront.primitives.calls.metadata import (
    compute_attributes,
    compute_in_block,
    frontend_attributes,
)
from hlofront.primitives.sharding.placing import CopySemantics, device_put
from hlofront.transforms.flatten import stage_tree

# Operands: the arguments. Parameters: `jaxpr`, the program, and the metadata by name.
xla_metadata_call_p = Primitive("xla_metadata_call", multiple_results=True, carries_programs=True)
rules.partial_eval(xla_metadata_call_p)(CallRules(xla_metadata_call_p, "jaxpr").partial_eval)
# Parameters: `jaxpr`, `compute_type`, and `compiler_options_json`, a string or None.
compute_on_p = Primitive("compute_on", multiple_results=True, carries_programs=True)
rules.partial_eval(compute_on_p)(CallRules(compute_on_p, "jaxpr").partial_eval)


def _program_of(
    fun: Callable[..., PyTree], traced_for: str, args: tuple[object, ...], kwargs: dict[str, object]
) -> tuple[ClosedJaxpr, list[Value], tree.PyTreeDef]:
    """Return the program of a call, its operands, and the structure of its result."""
    leaves, structure = tree.tree_flatten((args, kwargs))
    out_tree: tree.PyTreeDef | None = None
    info = debug_info_of(fun, traced_for, tree.tree_structure(args), lambda: out_tree)
    program, out_tree = stage_tree(fun, structure, [typeof(leaf) for leaf in leaves], info, leaves)
    program, captured = split_captured(program)
    return program, [*captured, *leaves], out_tree


@overload
def xla_metadata_call(f: None = None, **meta: object) -> Callable[..., Any]: ...


@overload
def xla_metadata_call(f: Callable[..., PyTree], **meta: object) -> Callable[..., PyTree]: ...


def xla_metadata_call(f: Any = None, **meta: Any) -> Any:
    """Return a function whose calls are single operations with frontend attributes.

    Args:
      f: a function of pytrees of arrays; None to use this as a decorator.
      meta: the attributes, strings by name.

    Raises:
      TypeError: when the function is traced, if an attribute is not a string.
    """
    if f is None:
        return partial(xla_metadata_call, **meta)
    for name, value in meta.items():
        if not isinstance(value, str):
            raise TypeError(
                f"metadata of a call are strings: got {name}={value!r} of type "
                f"{type(value).__name__}"
            )

    @boundary
    def called(*args: object, **kwargs: object) -> PyTree:
        program, operands, out_tree = _program_of(f, "xla_metadata_call", args, kwargs)
        return out_tree.unflatten(xla_metadata_call_p.bind(*operands, jaxpr=program, **meta))

    return named_as(called, f)


def scheduling_group(name: str) -> Callable[[Callable[..., PyTree]], Callable[..., PyTree]]:
    """Return a decorator of functions whose operations XLA schedules together, as one group.

    Args:
      name: the name of the group.
    """
    return xla_metadata_call(scheduling_group=name)


def compute_on2(
    f: Callable[..., PyTree] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: PyTree,
    compiler_options: dict[str, object] | None = None,
) -> Callable[..., PyTree]:
    """Return a function whose calls are computed on a chosen processor, such as the host's.

    Args:
      f: a function of pytrees of arrays; None to use this as a decorator.
      compute_type: the processor, as for `compute_on`: "device_host", "device", "tpu_sparsecore" or
        "gpu_stream:1".
      out_memory_spaces: a MemorySpace, or a prefix of the result with some.
      compiler_options: options for the compiler of that processor, which gets them as JSON.

    Raises:
      ValueError: when the function is called, if there is no such processor, or `out_memory_spaces`
        is not a prefix of the result.
    """
    if f is None:
        return partial(
            compute_on2,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    fun = f
    text = None if compiler_options is None else json.dumps(compiler_options)

    @boundary
    def computed(*args: object, **kwargs: object) -> PyTree:
        with frontend_attributes({**compute_attributes(compute_type)}):
            program, operands, out_tree = _program_of(fun, "compute_on", args, kwargs)
        results = compute_on_p.bind(
            *operands, jaxpr=program, compute_type=compute_type, compiler_options_json=text
        )
        result = out_tree.unflatten(results)
        spaces: list[MemorySpace] = broadcast_prefix(out_memory_spaces, result)
        count = len(results)
        copies = [CopySemantics.REUSE_INPUT] * count
        return out_tree.unflatten(device_put(results, spaces, [None] * count, copies))

    return named_as(computed, fun)


@overload
def compute_on(
    f: None = None,
    *,
    compute_type: str,
    out_memory_spaces: PyTree,
    compiler_options: dict[str, object] | None = None,
) -> Callable[[Callable[..., PyTree]], Callable[..., PyTree]]: ...


@overload
def compute_on(
    f: Callable[..., PyTree],
    *,
    compute_type: str,
    out_memory_spaces: PyTree,
    compiler_options: dict[str, object] | None = None,
) -> Callable[..., PyTree]: ...


@overload
def compute_on(compute_type: str, /) -> frontend_attributes: ...


@overload
def compute_on(*, compute_type: str) -> frontend_attributes: ...


def compute_on(
    f: Any = None,
    *,
    compute_type: Any = None,
    out_memory_spaces: PyTree = None,
    compiler_options: dict[str, object] | None = None,
) -> Any:
    """Return a function whose calls are computed on a chosen processor, such as the host's.

    With only a compute type, as before jax 0.12, it is a context manager and decorator that sets
    the processor for the operations in its block:

        @compute_on("device_host")
        @jax.jit
        def on_host(x):
            return x * 2

    Args:
      f: a function of pytrees of arrays; None to use this as a decorator.
      compute_type: "device_host", the processor of the device's host; "device", the device;
        "tpu_sparsecore"; or "gpu_stream:1", a stream of the GPU. Devices without such a processor
        compute the operations as they compute others.
      out_memory_spaces: a MemorySpace, or a prefix of the result with some.
      compiler_options: options for the compiler of that processor, which gets them as JSON.

    Raises:
      TypeError: if `f` is a function, and `compute_type` or `out_memory_spaces` is missing.
      ValueError: if there is no such compute type; when the function is called, if
        `out_memory_spaces` is not a prefix of the result.
    """
    if not callable(f) and out_memory_spaces is None:
        return compute_in_block(compute_type if f is None else f)
    if compute_type is None or out_memory_spaces is None:
        raise TypeError(
            "compute_on of a function requires compute_type and out_memory_spaces: got "
            f"compute_type={compute_type!r} and out_memory_spaces={out_memory_spaces!r}"
        )
    return compute_on2(
        f,
        compute_type=compute_type,
        out_memory_spaces=out_memory_spaces,
        compiler_options=compiler_options,
    )
