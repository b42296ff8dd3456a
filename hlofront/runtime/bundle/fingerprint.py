"""A bundle's record of a function and of a machine, with which changes of either are detected."""

import re
import sys
from collections.abc import Mapping, Sequence

import numpy as np

from hlofront.base.version import __version__
from hlofront.bridge import state
from hlofront.bridge.client import Device, NamedSharding, Sharding
from hlofront.pjrt.cache_key import machine_fields, options_text
from hlofront.pjrt.clients import plugin_source
from hlofront.runtime.bundle.function_digest import function_digest
from hlofront.runtime.compilation.pipeline import CompilationRequest, settings_of
from hlofront.runtime.dispatch.jit import Jitted
from hlofront.runtime.sharding.device_assignment import DeviceAssignment, ProgramDevices

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
Fields = Mapping[str, str]


def function_fields(jitted: Jitted) -> dict[str, str]:
    """Return what the programs of a jitted function depend on, by name."""
    plan, shardings, layouts = jitted.plan, jitted.jit_shardings, jitted.jit_layouts
    requested = shardings and (shardings.inputs, shardings.outputs)
    options = {
        "static": (plan.static_argnums, plan.static_argnames),
        "donated": (plan.donate_argnums, plan.donate_argnames),
        "keep_unused": jitted.keep_unused,
        "compiler_options": options_text(dict(jitted.compiler_options)),
        "device": jitted.device or jitted.backend,
        "shardings": requested,
        "layouts": layouts and layouts.requested,
    }
    return {
        "hlofront": __version__,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "numpy": np.__version__,
        "jit": _ADDRESS.sub("", str(options)),
        "source": function_digest(jitted.fun),
    }


def context_text() -> str:
    """Return the options that affect tracing and are not at their defaults, as text."""
    values = dict(zip(state.trace_context_fields, state.trace_context(), strict=True))
    return " ".join(
        f"{name}={_ADDRESS.sub('', str(value))}" for name, value in values.items() if value
    )


def compilation_fields(request: CompilationRequest) -> dict[str, str]:
    """Return what must be unchanged for an executable to be used, by name."""
    return {
        **settings_of(request),
        "compiler options": options_text(dict(request.compiler_options)),
        **fields_of_devices(devices_of(request.device)),
    }


def fields_of_devices(devices: Sequence[Device]) -> dict[str, str]:
    """Return what must be unchanged for machine code to run on devices, by name."""
    fields = machine_fields(devices)
    if fields["platform"] == "gpu":
        # Clients of absent GPUs have no version; all GPU plugins of a version are built together.
        fields["platform version"] = plugin_source(devices[0])
    return fields


def devices_of(where: ProgramDevices) -> Sequence[Device]:
    return where.devices if isinstance(where, DeviceAssignment) else (where,)


def differing(before: Fields, now: Fields) -> str:
    """Return the fields that differ, as text; "" if none do.

    If the platform differs, it is the only field listed, as others depend on it.
    """
    names = [*before, *(name for name in now if name not in before)]
    if before.get("platform") != now.get("platform"):
        names = ["platform"]
    return "; ".join(
        f"{name} was {_shown(before.get(name))} and is {_shown(now.get(name))}"
        for name in names
        if before.get(name) != now.get(name)
    )


def _shown(value: str | None) -> str:
    return " ".join(value.split()) if value else "nothing"


def differing_shardings(
    record: Sequence[Sequence[NamedSharding]] | None,
    taken_inputs: Sequence[int],
    where: ProgramDevices,
    ranks: Sequence[Sequence[int]],
) -> str:
    """Return how the shardings of an executable differ from those of a call; "" if they do not.

    Args:
      record: the shardings of the inputs that it takes, and of its outputs; None for one device.
      taken_inputs: the positions of these inputs among all.
      where: the devices of the call.
      ranks: the number of axes of these inputs, and of the outputs.
    """
    if not isinstance(where, DeviceAssignment):
        return "" if record is None else "it is for several devices, and the call is for one"
    if record is None:
        return "it is for one device, and the call is for several"
    outputs = where.outputs or (None,) * len(record[1])
    expected = [where.inputs[position] for position in taken_inputs], outputs
    for name, made, requested, counts in zip(
        ("input", "output"), record, expected, ranks, strict=True
    ):
        for number, (one, other, ndim) in enumerate(zip(made, requested, counts, strict=True)):
            if not _same(one, other, ndim):
                return f"the sharding of {name} {number} was {one} and is {other}"
    return ""


def _same(made: Sharding, requested: Sharding | None, ndim: int) -> bool:
    return requested is None or made == requested or made.is_equivalent_to(requested, ndim)
