"""Serialized executables: compiled programs as bytes, which another process loads and calls."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hlofront.base.boundary import boundary
from hlofront.base.typing import ArrayLike
from hlofront.bridge import client as bridge
from hlofront.bridge.client import Client, Device, LoadedExecutable, NamedSharding, Sharding
from hlofront.bridge.fast_parts import PyTreeDef
from hlofront.bridge.kernels import load_host_kernels
from hlofront.bridge.plugins import jaxlib_version
from hlofront.core.aval import AbstractValue
from hlofront.core.primitive import Primitive
from hlofront.core.rules import infer, run
from hlofront.core.sharding.layout_modes import LayoutModes
from hlofront.pjrt import cache_file, clients
from hlofront.pjrt.compile import compile_options
from hlofront.pjrt.host_value import host_value
from hlofront.runtime.compilation.disk_cache import NOT_REGISTERED, CompiledProgram, StoredCall
from hlofront.runtime.compilation.traced_program import TracedProgram
from hlofront.runtime.dispatch.executable import Executable, storage_of
from hlofront.runtime.dispatch.executables import sharded_executables
from hlofront.runtime.dispatch.jit import Jitted
from hlofront.runtime.dispatch.stages import Compiled
from hlofront.runtime.export import header_checks
from hlofront.runtime.export.header_checks import HeaderError, reading_of
from hlofront.runtime.export.records import (
    JSONObject,
    aval_as_json,
    aval_of_record,
    placed_sharding_as_json,
    sharding_over,
)
from hlofront.runtime.sharding.device_assignment import DeviceAssignment
from hlofront.runtime.sharding.storage import stored
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.stage import stage

if TYPE_CHECKING:
    from hlofront.runtime.compilation.aot_targets import AbsentExecutable

# The version of the bytes that `serialize` returns.
_FORMAT = 2


# ---- the program of a deserialized executable ----------------------------------------------------


class Deserialized:
    """A deserialized executable as the parameter of the one equation that its program has."""

    __slots__ = ("executable", "name", "out_avals")

    executable: Executable

    def __init__(self, name: str, out_avals: Sequence[AbstractValue]):
        self.name = name
        self.out_avals = list(out_avals)

    def __repr__(self) -> str:
        return self.name


# The call of a deserialized executable, whose own jaxpr is in the process that compiled it.
deserialized_call_p = Primitive("deserialized_call", multiple_results=True)


@infer(deserialized_call_p)
def _(*_: AbstractValue, program: Deserialized) -> list[AbstractValue]:
    return program.out_avals


@run(deserialized_call_p)
def _(*args: ArrayLike, program: Deserialized) -> list[object]:
    return program.executable.run_unchecked(args)


# ---- serialize -----------------------------------------------------------------------------------


@boundary
def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """Serialize a compiled program, for processes with the same jaxlib and kind of devices.

    Args:
      compiled: what `jit(f).lower(...).compile()` returns.

    Returns:
      (serialized, in_tree, out_tree): the executable with the types of its arguments and results,
      and the tree structures of (args, kwargs) and of the result, which are not serialized. Unlike
      a pickle, the bytes are parsed without running code; the executable in them is machine code.

    Raises:
      TypeError: if `compiled` is not a compiled program.
      ValueError: if the program calls back to Python or has other effects, if it is for a target
        that is not attached, or if a value has a dtype or sharding with no serialized form.

    Example:
      >>> compiled = jax.jit(lambda x: x + 1).lower(1.0).compile()
      >>> deserialize_and_load(*serialize(compiled))(2.0)
      Array(3., dtype=float32, weak_type=True)
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            "serialize takes a compiled program, jit(f).lower(...).compile(): got "
            f"{compiled!r} of type {type(compiled).__name__}"
        )
    if not isinstance(compiled._executable, Executable):
        raise ValueError(
            f"{compiled._jitted.name} was compiled for a target that is not attached: compile it "
            "there, or write it with hlofront.bundle.save, whose files have programs of targets"
        )
    return cache_file.pack(fields_of(compiled)), compiled.in_tree, compiled.out_tree


def fields_of(compiled: Compiled) -> dict[str, bytes]:
    """Return a compiled program as the named fields of a file.

    Raises:
      ValueError: if it calls back to Python or has other effects, or a value has a dtype or
        sharding with no serialized form.
    """
    executable, traced, name = compiled._executable, compiled._traced, compiled._jitted.name
    call = executable.call
    keepalives = () if isinstance(call, StoredCall) else call.keepalives
    runs_alone = not isinstance(executable, Executable) or executable.plain
    if not runs_alone or traced.program.effects or call.callbacks or keepalives:
        raise ValueError(
            f"{name} calls back to Python, or has other effects in this process, and cannot be "
            "serialized: leave out debug.print, pure_callback and similar functions."
        )
    devices = device_assignment_of(executable)
    shardings = executable.shardings
    values = [(storage_of(value), aval) for value, aval in call.const_args]
    header = {
        "format": _FORMAT,
        "jaxlib": jaxlib_version(),
        "platform": devices[0].platform,
        "device_kind": devices[0].device_kind,
        "device_ids": [device.id for device in devices],
        "name": name,
        "inputs": list(map(aval_as_json, traced.program.in_avals)),
        "outputs": list(map(aval_as_json, traced.program.out_avals)),
        "constants": [aval_as_json(aval) for _, aval in values],
        "donated": list(traced.donated),
        "kept": list(executable.kept_inputs),
        "has_barriers": call.has_barriers,
        "committed": executable.committed,
        "layouts": executable.layouts,
        "shardings": shardings
        and [
            [_sharding_as_json(sharding, devices) for sharding in of_values]
            for of_values in (shardings.inputs, shardings.outputs)
        ],
    }
    return {
        "header": json.dumps(header).encode(),
        "constants": b"".join(host_value(value).tobytes() for value, _ in values),
        "hlo": zlib.compress(executable.hlo_text().encode()),
        "executable": (
            call.serialized() if isinstance(call, StoredCall) else executable.loaded.serialize()
        ),
    }


def _sharding_as_json(sharding: Sharding, devices: Sequence[Device]) -> JSONObject:
    if type(sharding) is not NamedSharding:
        raise ValueError(
            "executables for several devices are serialized if their shardings are NamedShardings, "
            f"and one is {sharding}: compile the program with in_shardings and out_shardings."
        )
    return placed_sharding_as_json(sharding, devices)


def device_assignment_of(executable: Executable | AbsentExecutable) -> tuple[Device, ...]:
    """Return the devices of an executable, in the order of their numbers in the program."""
    where = executable.where
    return where.devices if isinstance(where, DeviceAssignment) else (where,)


# ---- deserialize_and_load ------------------------------------------------------------------------


@boundary
def deserialize_and_load(
    serialized: bytes,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: str | Client | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """Load a program that `serialize` has written, and return it as a compiled stage.

    The executable is machine code that runs in this process: load none from an untrusted source.

    Args:
      serialized: the bytes.
      in_tree, out_tree: the tree structures that `serialize` returned with them.
      backend: the platform to load it for, by name, or its client; by default the program's own.
      execution_devices: the devices to run on, as many as it was compiled for; by default those
        with the same ids.

    Returns:
      The program, with the methods of `jit(f).lower(...).compile()`. It takes no static arguments.

    Raises:
      ValueError: if the bytes are damaged or from another version of jaxlib, the trees have other
        numbers of leaves, or the devices are of another platform, kind or number.
      RuntimeError: if the platform has no device here.
      JaxRuntimeError: if XLA refuses the executable.
    """
    try:
        fields = cache_file.unpack(serialized)
    except cache_file.DamagedEntry as error:
        raise ValueError(f"the serialized executable {error.reason}") from None
    what = "the header of the serialized executable"
    with reading_of(what):
        header = executable_header(fields)
    _check_version(header)
    with reading_of(what):
        in_avals, out_avals = (
            list(map(aval_of_record, header[key])) for key in ("inputs", "outputs")
        )
    if (in_tree.num_leaves, out_tree.num_leaves) != (len(in_avals), len(out_avals)):
        raise ValueError(
            f"{header['name']} has {len(in_avals)} arguments and {len(out_avals)} results, and was "
            f"given trees of {in_tree.num_leaves} and {out_tree.num_leaves} leaves"
        )
    client = clients.client_for(backend or header["platform"])
    devices = _chosen_devices(header, client, execution_devices)
    compiled = loaded_program(header, fields, devices)
    call, loaded = compiled.call, compiled.loaded
    deserialized = Deserialized(header["name"], out_avals)
    program = stage(lambda *xs: deserialized_call_p.bind(*xs, program=deserialized), in_avals)
    donated = tuple(header["donated"])
    if header["shardings"] is None:
        executable = Executable(
            program, deserialized.name, call, loaded, devices[0], header["committed"], any(donated)
        )
    else:
        assignment = _assignment(header, devices)
        executable = sharded_executables().ShardedExecutable(
            program, deserialized.name, call, loaded, assignment, any(donated)
        )
    if header["layouts"] is not None:
        executable.layouts = LayoutModes(*map(tuple, header["layouts"]))
    deserialized.executable = executable
    traced = TracedProgram(program, in_tree, out_tree, donated)
    return Compiled(_function_named(deserialized.name), traced, executable)


def executable_header(fields: Mapping[str, bytes]) -> JSONObject:
    """Return the header of fields that `fields_of` has returned.

    Raises:
      ValueError: if it is not as `fields_of` writes it.
    """
    for name in ("header", "constants", "hlo", "executable"):
        if name not in fields:
            raise HeaderError(f"the file has no field {name}")
    header = header_checks.json_of(fields["header"])
    header_checks.VERSIONED_EXECUTABLE(header, "it")
    if header["format"] == _FORMAT:
        header_checks.EXECUTABLE(header, "it")
        count, device_count = len(header["inputs"]), len(header["device_ids"])
        if any(position >= count for position in header["kept"]):
            raise HeaderError(f"it takes the arguments {header['kept']} of {count}")
        if len(header["donated"]) not in (0, count):
            raise HeaderError(f"it has {count} arguments, and says of {len(header['donated'])}")
        for record in itertools.chain(*(header["shardings"] or ())):
            if any(number >= device_count for number in record["devices"]):
                raise HeaderError(f"it is split over {record['devices']} of {device_count} devices")
    return header


def loaded_program(
    header: JSONObject, fields: Mapping[str, bytes], devices: Sequence[Device]
) -> CompiledProgram:
    """Load the executable of fields that `fields_of` has returned onto devices.

    Raises:
      JaxRuntimeError: if XLA refuses the executable.
    """
    data = fields["executable"]
    call = StoredCall(header["kept"], header["has_barriers"], (), fields["hlo"], lambda: data)
    call.const_args = list(_constants(header["constants"], fields["constants"]))
    return CompiledProgram(_loaded(data, devices, call.has_barriers), call)


def _check_version(header: JSONObject) -> None:
    """Raise a ValueError if another format or version of jaxlib wrote a serialized executable."""
    version = jaxlib_version()
    if header["format"] != _FORMAT or header["jaxlib"] != version:
        raise ValueError(
            f"{header['name']} was serialized by jaxlib {header['jaxlib']} in format "
            f"{header['format']}, and this process has jaxlib {version} and format {_FORMAT}: "
            "compile it again. Executables are for one version of XLA."
        )


def _chosen_devices(
    header: JSONObject, client: Client, chosen: Sequence[Device] | None
) -> list[Device]:
    """Return the devices to run on; raise a ValueError if they do not fit the executable."""
    ids = header["device_ids"]
    if chosen is None:
        by_id = {device.id: device for device in client.devices()}
        missing = [number for number in ids if number not in by_id]
        if missing:
            raise ValueError(
                f"{header['name']} was compiled for the devices {ids} of {header['platform']}, and "
                f"{missing} are not here: pass execution_devices"
            )
        chosen = [by_id[number] for number in ids]
    expected = f"{len(ids)} devices of {header['platform']} ({header['device_kind']})"
    kinds = {(device.platform, device.device_kind) for device in chosen}
    if not len(chosen) == len(set(chosen)) == len(ids) or kinds != {
        (header["platform"], header["device_kind"])
    }:
        raise ValueError(
            f"{header['name']} was compiled for {expected}, not for {list(chosen)}: compile it for "
            "those"
        )
    return list(chosen)


def _constants(
    records: Sequence[JSONObject], data: bytes
) -> Iterator[tuple[object, AbstractValue]]:
    """Yield each constant as an array in its storage dtype, and the aval of that."""
    start = 0
    for record in records:
        aval = stored(aval_of_record(record))
        size = aval.size * aval.dtype.itemsize
        array = np.frombuffer(data[start : start + size], aval.dtype).reshape(aval.shape)
        yield array, aval
        start += size


def _loaded(executable: bytes, devices: Sequence[Device], barriers: bool) -> LoadedExecutable:
    settings = compile_options(devices, keep_barriers=barriers)
    client = devices[0].client
    try:
        return bridge.deserialize(client, executable, devices, settings)
    except bridge.JaxRuntimeError as error:
        if NOT_REGISTERED not in str(error):
            raise
        # Programs that call LAPACK need its functions registered before they are loaded.
        load_host_kernels()
        return bridge.deserialize(client, executable, devices, settings)


def _assignment(header: JSONObject, devices: Sequence[Device]) -> DeviceAssignment:
    """Return the devices with the shardings of all inputs, some of which may be dropped."""
    used_inputs, outputs = (
        [sharding_over(record, devices, record["devices"]) for record in of]
        for of in header["shardings"]
    )
    inputs: list[Sharding | None] = [None] * len(header["inputs"])
    for index, sharding in zip(header["kept"], used_inputs, strict=True):
        inputs[index] = sharding
    return DeviceAssignment(devices, inputs, outputs, next(iter((*used_inputs, *outputs)), None))


def _function_named(name: str) -> Jitted:
    """Return the record of the function that was compiled: its source is in another process."""

    def function(*args: object, **kwargs: object) -> None:
        pass

    function.__name__ = function.__qualname__ = name
    return Jitted(function, ArgumentPlan(function))
