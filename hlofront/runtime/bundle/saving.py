"""save: programs of one function, traced, lowered and compiled, written to one file."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from hlofront.base.boundary import boundary
from hlofront.bridge.client import Device, NamedSharding, Sharding
from hlofront.core.mesh import Mesh
from hlofront.pjrt import cache_file
from hlofront.pjrt.targets import Target, target
from hlofront.runtime.bundle.bundle_file import (
    executable_field,
    export_field,
    literal,
    packed,
)
from hlofront.runtime.bundle.fingerprint import compilation_fields, context_text, function_fields
from hlofront.runtime.compilation.pipeline import compilation_key
from hlofront.runtime.dispatch.jit import Jitted
from hlofront.runtime.dispatch.serialization import fields_of
from hlofront.runtime.dispatch.stages import Compiled, Lowered, Traced, Wrapped
from hlofront.runtime.export.checks import DisabledSafetyCheck
from hlofront.runtime.export.exporting import export_traced
from hlofront.runtime.export.records import JSONObject
from hlofront.runtime.sharding.device_assignment import DeviceAssignment


class Arguments(NamedTuple):
    """The arguments of one call, or ShapeDtypeStructs in the place of its arrays."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def arguments(*args: Any, **kwargs: Any) -> Arguments:
    """Return the arguments of one call, for `save` of a function for calls of several kinds.

    Example:
      A bundle has programs for two kinds of calls::

        save("f.hlob", jax.jit(f), arguments(small), arguments(large, scale=2.0))
    """
    return Arguments(args, kwargs)


@boundary
def save(
    path: str | os.PathLike[str],
    fun: Wrapped | Traced | Lowered | Compiled,
    /,
    *args: Any,
    targets: Sequence[str] = (),
    vjp_order: int = 0,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    **kwargs: Any,
) -> None:
    """Write a function's programs to a file: traced, lowered to StableHLO, and compiled.

    Args:
      path: the file, which is replaced whole if it exists.
      fun: a jitted function; or one of its stages, which has its arguments, and compiler options
        of its own.
      args, kwargs: arguments of a call, or ShapeDtypeStructs in the place of its arrays. For
        several kinds of calls, the positional ones are `arguments(...)` of each.
      targets: the names of the devices to compile for, "cpu", "tpu:v5e:2x2", which need not be
        here; by default that of the arguments. The StableHLO is for all of their platforms.
      vjp_order: how many reverse-mode derivatives of the StableHLO to include, for `grad` of the
        loaded function.
      disabled_checks: as for `export`, which says what can be in StableHLO.

    Raises:
      ValueError: if `fun` is none of these, or a static argument has no Python literal, or a
        container's class is not registered for serialization.
      NotImplementedError: if the function calls Python functions at run time.
      TargetError, PluginError: if there is no such target, or no compiler for it.
      JaxRuntimeError: if XLA refuses a program.

    Example:
      A bundle has the program for one shape::

        save("step.hlob", jax.jit(step), jax.ShapeDtypeStruct((8, 3), "float32"))
    """
    stage = fun if isinstance(fun, Traced | Lowered | Compiled) else None
    if stage is None and not (
        isinstance(fun, Wrapped) and isinstance(getattr(fun, "_jitted", None), Jitted)
    ):
        raise ValueError(
            f"save takes a jitted function, or a stage of one: got {fun!r}. Pass jax.jit(f)."
        )
    jitted: Any = stage._jitted if stage is not None else fun._jitted  # pyright: ignore
    calls = _calls(args, kwargs)
    if stage is not None and (args or kwargs):
        raise ValueError(f"a stage of {jitted.name} has its arguments: pass none with it")
    compiled_for = [target(name) for name in dict.fromkeys(targets)]
    # Before the function is traced, which may change what it refers to.
    function = function_fields(jitted)
    values: dict[str, bytes] = {}
    records: list[JSONObject] = []
    for number, call in enumerate([Arguments((), {})] if stage is not None else calls):
        traced = _traced(stage) if stage is not None else fun.trace(*call.args, **call.kwargs)
        static = [] if stage is not None else _static(jitted, call)
        exported = export_traced(traced, _platforms(traced, compiled_for), disabled_checks)
        values[export_field(number)] = bytes(exported.serialize(vjp_order))
        executables: list[JSONObject] = []
        has_known_sizes = exported.unknown_sizes is None
        for each in (compiled_for or (None,)) if has_known_sizes else ():
            if isinstance(stage, Compiled) and each is None:
                compiled = stage
            elif isinstance(stage, Lowered) and each is None:
                compiled = stage.compile()
            else:
                compiled = _compiled(traced, each)
            data = cache_file.pack(fields_of(compiled))
            values[executable_field(number, len(executables))] = data
            executable = compiled._executable
            key = compilation_key(
                jitted.name,
                executable.where,
                traced._traced.donated,
                jitted.keep_unused,
                jitted.compiler_options,
                layouts=executable.layouts,
            )
            title = each.name if each is not None else executable.device.platform
            executables.append({"target": title, "fields": compilation_fields(key)})
        records.append(
            {
                "signature": _signature(traced, static),
                "context": context_text(),
                "static": static,
                "donated": list(traced._traced.donated),
                "executables": executables,
            }
        )
    plan = jitted.plan
    no_static = stage is not None
    header = {
        "name": jitted.name,
        "function": function,
        "static": [[], []] if no_static else [plan.static_argnums, plan.static_argnames],
        "donated": [[], []] if no_static else [plan.donate_argnums, plan.donate_argnames],
        "parameters": None if no_static else _parameters(jitted),
        "compiler_options": [list(pair) for pair in jitted.compiler_options],
        "keep_unused": jitted.keep_unused,
        "programs": records,
    }
    _write(path, packed(header, values))


def _calls(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Arguments]:
    """Return the arguments of each call that `save` was given."""
    several = [type(arg) is Arguments for arg in args]
    if not any(several):
        return [Arguments(args, kwargs)]
    if not all(several) or kwargs:
        raise ValueError(
            "save takes the arguments of one call, or arguments(...) of each of several: got both"
        )
    return list(args)


def _traced(stage: Traced | Lowered | Compiled) -> Traced:
    return Traced(stage._jitted, stage._traced, stage._where, stage._is_committed, stage._layouts)


def _platforms(traced: Traced, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the platforms of targets as lowering calls them; those of the arguments for none."""
    return tuple(dict.fromkeys(each.platform for each in targets)) or (traced._platform,)


def _compiled(traced: Traced, target: Target | None) -> Compiled:
    """Compile a traced function for a target, or for the devices of its arguments."""
    where = traced._where
    if target is None or (target.is_attached and traced._platform == target.platform):
        return traced.lower().compile()
    devices = target.devices
    if isinstance(where, DeviceAssignment):
        where = _moved(where, devices, target)
    else:
        where = devices[0]
    moved = Traced(traced._jitted, traced._traced, where, True, traced._layouts)
    return moved.lower().compile()


def _moved(where: DeviceAssignment, devices: Sequence[Device], target: Target) -> DeviceAssignment:
    """Return the devices of a target in the place of those of a program for several.

    Raises:
      ValueError: if the target has fewer.
    """
    if len(devices) < where.device_count:
        raise ValueError(
            f"the program is for {where.device_count} devices, and {target.name} has "
            f"{len(devices)}: name a target with as many"
        )
    others = dict(zip(where.devices, devices, strict=False))

    def moved(sharding: Sharding | None) -> Sharding | None:
        if type(sharding) is not NamedSharding:
            return None
        mesh = sharding.mesh
        grid = mesh.devices.copy()
        grid.flat = [others[device] for device in mesh.devices.flat]
        return sharding.update(mesh=Mesh(grid, mesh.axis_names, axis_types=mesh.axis_types))

    return DeviceAssignment(
        tuple(others.values()),
        [moved(sharding) for sharding in where.inputs],
        [moved(sharding) for sharding in where.outputs],
        moved(where.like),
    )


def _static(jitted: Jitted, call: Arguments) -> list[tuple[int | str, str]]:
    """Return the static arguments of a call as literals, with their positions or names."""
    literals: list[tuple[int | str, str]] = []
    for static in jitted.plan.static_values(call.args, call.kwargs):
        text = literal(static.value)
        if text is None:
            raise ValueError(
                f"the static argument {static.where!r} of {jitted.name} is {static.value!r} of "
                f"type {type(static.value).__name__}, which a bundle cannot have: numbers, "
                "strings, booleans, None and tuples of these can be. Bind others with "
                "functools.partial before jit"
            )
        literals.append((static.where, text))
    return literals


def _signature(traced: Traced, static: Sequence[tuple[int | str, str]]) -> str:
    """Return the arguments' types as text, such as `x: f32[8,3], n=2`."""
    info = traced.jaxpr.debug_info
    avals = traced._traced.program.in_avals
    names = info.arg_names if info is not None else map(str, range(len(avals)))
    types = [f"{name}: {aval.str_short()}" for name, aval in zip(names, avals, strict=False)]
    return ", ".join([*types, *(f"{where}={text}" for where, text in static)])


def _parameters(jitted: Jitted) -> list[tuple[str, int]] | None:
    parameters = jitted.plan.signature.parameters
    if parameters is None:
        return None
    return [(name, int(each.kind)) for name, each in parameters.items()]


def _write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that others see all of it or what was there before."""
    whole = pathlib.Path(path)
    part = whole.with_name(f".{whole.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)
