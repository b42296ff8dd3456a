"""save: programs of one function, traced, lowered and compiled, written to one file."""

import os
import pathlib
from collections.abc import Sequence
from typing import Any

from hlofront.base.boundary import boundary
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge.client import Device, NamedSharding, Sharding
from hlofront.core.sharding.mesh import Mesh
from hlofront.pjrt import cache_file
from hlofront.pjrt.targets import Target, target
from hlofront.runtime.bundle.bundle_file import (
    executable_field,
    export_field,
    literal,
    packed,
)
from hlofront.runtime.bundle.fingerprint import compilation_fields, context_text, function_fields
from hlofront.runtime.compilation.pipeline import CompilationRequest, compilation_request
from hlofront.runtime.dispatch.jit import Jitted
from hlofront.runtime.dispatch.stages import Compiled, Lowered, Traced, Wrapped
from hlofront.runtime.export.checks import DisabledSafetyCheck
from hlofront.runtime.export.exporting import export_traced
from hlofront.runtime.export.records import JSONObject
from hlofront.runtime.export.serialization import fields_of
from hlofront.runtime.sharding.device_assignment import DeviceAssignment


class Arguments(NamedTuple):
    """The arguments of one call, or ShapeDtypeStructs instead of its arrays."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def arguments(*args: object, **kwargs: object) -> Arguments:
    """Return the arguments of one call, to `save` a function for several kinds of calls.

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
    *args: object,
    targets: Sequence[str] = (),
    vjp_order: int = 0,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    **kwargs: object,
) -> None:
    """Write a function's programs to a file: traced, lowered to StableHLO, and compiled.

    Args:
      path: the file, which is replaced if it exists.
      fun: a jitted function; or one of its stages, which has arguments and its own compiler
        options.
      args, kwargs: arguments of a call, or ShapeDtypeStructs instead of its arrays. For several
        kinds of calls, the positional ones are `arguments(...)` of each.
      targets: the names of the devices to compile for, "cpu", "tpu:v5e:2x2", which need not be
        here; by default that of the arguments. The StableHLO is for all of their platforms.
      vjp_order: how many reverse-mode derivatives of the StableHLO to include, for `grad` of the
        loaded function.
      disabled_checks: as for `export`, which describes what StableHLO may contain.

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
    jitted = _jitted_of(fun)
    programs = _Programs(jitted, targets, vjp_order, disabled_checks)
    # Before the function is traced, which may change what it refers to.
    function = function_fields(jitted)
    header: JSONObject = {
        "name": jitted.name,
        "function": function,
        "static": [[], []],
        "donated": [[], []],
        "parameters": None,
        "compiler_options": [list(pair) for pair in jitted.compiler_options],
        "keep_unused": jitted.keep_unused,
    }
    if isinstance(fun, Traced | Lowered | Compiled):
        if args or kwargs:
            raise ValueError(f"a stage of {jitted.name} has its arguments: pass none with it")
        programs.add(_traced(fun), (), fun)
    else:
        plan = jitted.plan
        header["static"] = [plan.static_argnums, plan.static_argnames]
        header["donated"] = [plan.donate_argnums, plan.donate_argnames]
        header["parameters"] = _parameters(jitted)
        for call in _calls(args, kwargs):
            traced = fun.trace(*call.args, **call.kwargs)
            programs.add(traced, _static(jitted, call), traced)
    _write(path, packed({**header, "programs": programs.records}, programs.values))


def _jitted_of(fun: object) -> Jitted:
    """Return the `Jitted` of a jitted function or a stage; raise a ValueError for anything else."""
    jitted = getattr(fun, "_jitted", None)
    if isinstance(fun, Wrapped | Traced | Lowered | Compiled) and isinstance(jitted, Jitted):
        return jitted
    raise ValueError(
        f"save takes a jitted function, or a stage of one: got {fun!r}. Pass jax.jit(f)."
    )


class _Programs:
    """The programs of a bundle that is being written.

    Args:
      jitted: the function.
      targets: the names of the devices to compile for; those of the arguments if there are none.
      vjp_order: how many derivatives of the StableHLO to include.
      disabled: the checks of exports to disable.

    Attributes:
      records: the entry of each program in the header.
      values: the exported programs and the executables, by the names of their fields.
    """

    def __init__(
        self,
        jitted: Jitted,
        targets: Sequence[str],
        vjp_order: int,
        disabled: Sequence[DisabledSafetyCheck],
    ):
        self._jitted = jitted
        self._targets = [target(name) for name in dict.fromkeys(targets)]
        self._vjp_order = vjp_order
        self._disabled = disabled
        self.records: list[JSONObject] = []
        self.values: dict[str, bytes] = {}

    def add(
        self,
        traced: Traced,
        static: Sequence[tuple[int | str, str]],
        stage: Traced | Lowered | Compiled,
    ) -> None:
        """Export and compile a program, and add it.

        Args:
          traced: the traced function.
          static: its static arguments, each with its position or name, as literals.
          stage: the furthest stage that the program is at.
        """
        number = len(self.records)
        exported = export_traced(traced, _platforms(traced, self._targets), self._disabled)
        self.values[export_field(number)] = bytes(exported.serialize(self._vjp_order))
        executables: list[JSONObject] = []
        # Programs with symbolic sizes are compiled where they are called.
        for chosen in (self._targets or (None,)) if exported.unknown_sizes is None else ():
            compiled = _compiled(traced, stage, chosen)
            field = executable_field(number, len(executables))
            self.values[field] = cache_file.pack(fields_of(compiled))
            name = compiled._executable.device.platform if chosen is None else chosen.name
            fields = compilation_fields(self._request_of(traced, compiled))
            executables.append({"target": name, "fields": fields})
        self.records.append(
            {
                "signature": _signature(traced, static),
                "context": context_text(),
                "static": static,
                "donated": list(traced._traced.donated),
                "executables": executables,
            }
        )

    def _request_of(self, traced: Traced, compiled: Compiled) -> CompilationRequest:
        jitted, executable = self._jitted, compiled._executable
        return compilation_request(
            jitted.name,
            executable.where,
            traced._traced.donated,
            jitted.keep_unused,
            jitted.compiler_options,
            layouts=executable.layouts,
        )


def _calls(args: tuple[object, ...], kwargs: dict[str, Any]) -> list[Arguments]:
    """Return the arguments of each call, from those of `save`."""
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
    """Return the lowering platforms of targets; without targets, those of the arguments."""
    return tuple(dict.fromkeys(target.platform for target in targets)) or (traced._platform,)


def _compiled(
    traced: Traced, stage: Traced | Lowered | Compiled, target: Target | None
) -> Compiled:
    """Compile a program for a target, or for the devices of its arguments, from its stage on."""
    where = traced._where
    if target is None and not isinstance(stage, Traced):
        return stage if isinstance(stage, Compiled) else stage.compile()
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
    """Return the devices of a target that replace those of a program for several.

    Raises:
      ValueError: if the target has fewer.
    """
    if len(devices) < where.device_count:
        raise ValueError(
            f"the program is for {where.device_count} devices, and {target.name} has "
            f"{len(devices)}: name a target with as many"
        )
    target_device = dict(zip(where.devices, devices, strict=False))

    def moved(sharding: Sharding | None) -> Sharding | None:
        if type(sharding) is not NamedSharding:
            return None
        mesh = sharding.mesh
        grid = mesh.devices.copy()
        grid.flat = [target_device[device] for device in mesh.devices.flat]
        return sharding.update(mesh=Mesh(grid, mesh.axis_names, axis_types=mesh.axis_types))

    return DeviceAssignment(
        tuple(target_device.values()),
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
    """Write a file atomically: others see either the old or the new content."""
    whole = pathlib.Path(path)
    part = whole.with_name(f".{whole.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)
