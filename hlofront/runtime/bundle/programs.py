"""A program of a bundle: its StableHLO as a traced function, and its executables."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base import source
from hlofront.base.tree import PyTreeDef
from hlofront.bridge.client import Device, NamedSharding
from hlofront.bridge.kernels import load_host_kernels
from hlofront.bridge.state import JaxRuntimeError
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.sharding.mesh import Mesh
from hlofront.core.sizes.symbolic import is_symbolic_dim
from hlofront.higher_order.calls.exported_call import call_of
from hlofront.pjrt import cache_file
from hlofront.runtime.bundle.bundle_file import (
    BundleError,
    BundleFile,
    ExecutableEntry,
    ProgramEntry,
)
from hlofront.runtime.bundle.fingerprint import (
    compilation_fields,
    devices_of,
    differing,
    differing_shardings,
)
from hlofront.runtime.compilation.disk_cache import CompiledProgram
from hlofront.runtime.compilation.pipeline import CompilationRequest, supply
from hlofront.runtime.compilation.traced_program import TracedKey, TracedProgram
from hlofront.runtime.export.exported import Exported
from hlofront.runtime.export.header_checks import HeaderError, reading_of
from hlofront.runtime.export.reading import read
from hlofront.runtime.export.records import sharding_over
from hlofront.runtime.export.serialization import executable_header, loaded_program
from hlofront.transforms.arguments import StaticValue
from hlofront.transforms.flatten import result_paths, stage_tree


class BundleWarning(UserWarning):
    """The warning that a part of a bundle does not fit this process, and is recompiled."""


class NoExecutable(Exception):
    """The exception for a call for which a bundle has a program, but no executable that fits."""


class EarlyLoad:
    """The load of an executable in another thread, which the process waits for before it exits.

    Args:
      request: the compilation that it is for.
      load: loads it.
    """

    def __init__(self, request: CompilationRequest, load: Callable[[], CompiledProgram | str]):
        self.request = request
        self._load = load
        self._outcome: CompiledProgram | str | Exception = ""
        self._thread = threading.Thread(target=self._run, name="hlofront-load")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._load()
        except Exception as error:  # The call that needs the executable raises it.
            self._outcome = error

    def result(self) -> CompiledProgram | str:
        """Return the loaded executable or why there is none, or raise the error of loading it."""
        self._thread.join()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


def exported_program(contents: BundleFile, entry: ProgramEntry, trust: bool) -> Exported:
    """Read the StableHLO of a program of a bundle.

    Raises:
      BundleError: if it is damaged, or does not match the bundle's header.
    """
    with reading_of(f"a program of the bundle {contents.path}", BundleError):
        exported = read(contents.value(entry.field), trust)
        count = len(exported.in_avals)
        if len(entry.donated) not in (0, count):
            raise HeaderError(f"it has {count} arguments, and says of {len(entry.donated)}")
        return exported


class Program:
    """A program of a bundle, with its executables.

    Args:
      contents: the bundle.
      entry: the program's entry in it.
      trust: whether its machine code may be loaded.
      has_function: whether the function is here too, and is compiled if no executable fits.
    """

    def __init__(self, contents: BundleFile, entry: ProgramEntry, trust: bool, has_function: bool):
        self.contents = contents
        self.entry = entry
        self.trust = trust
        self.has_function = has_function
        self.static = tuple(StaticValue(where, value) for where, value in entry.static)
        self._exported: Exported | None = None
        # The executable that is being loaded before the first call.
        self._early: EarlyLoad | None = None
        # The executables whose fields differ from those of this process.
        self._refused: set[tuple[str, str]] = set()

    @property
    def exported(self) -> Exported:
        """The program's StableHLO, with its types."""
        if self._exported is None:
            self._exported = exported_program(self.contents, self.entry, self.trust)
        return self._exported

    def fits(self, key: TracedKey, exactly: bool) -> bool:
        """Return whether the program is for arguments of this kind.

        Args:
          exactly: whether weak types and shardings must be equal, and no size symbolic.
        """
        exported = self.exported
        in_tree, avals, static, _ = key
        if in_tree != exported.in_tree or static != self.static:
            return False
        if exactly:
            return avals == exported.in_avals
        return all(map(_is_of, avals, exported.in_avals))

    def traced(
        self, in_tree: PyTreeDef, avals: Sequence[AbstractValue], names: tuple[str, ...], where: str
    ) -> TracedProgram:
        """Return the call of the program, as a traced function of arguments of these types.

        Args:
          names: the name of each flat argument.
          where: the function's name and the file, for messages.
        """
        out_tree = None
        info = DebugInfo("bundle", where, names, lambda: result_paths(out_tree))
        program, out_tree = stage_tree(call_of(self.exported), in_tree, tuple(avals), info)
        supply(program, self.executable_for)
        return TracedProgram(program, in_tree, out_tree, self.entry.donated)

    def start_loading(self, request: CompilationRequest) -> None:
        """Start to load the executable that fits a compilation, if one does, in another thread.

        XLA loads it in a thread of its own, while Python prepares the first call.
        """
        fields = compilation_fields(request)
        for executable in self.entry.executables:
            if not differing(executable.fields, fields):
                self._early = EarlyLoad(request, partial(self._load, executable, request))
                return

    def executable_for(self, request: CompilationRequest) -> CompiledProgram | None:
        """Load the executable that fits a compilation; return None to compile the StableHLO.

        It warns of the fields that differ, once for each executable.

        Raises:
          NoExecutable: if none fits, and the function is here.
        """
        if self.trust and self.entry.executables:
            fields = compilation_fields(request)
            reasons: list[tuple[int, str, str]] = []
            of_platform = [
                saved
                for saved in self.entry.executables
                if saved.fields.get("platform") == fields["platform"]
            ]
            for executable in of_platform or self.entry.executables:
                reason = differing(executable.fields, fields)
                loaded = None if reason else self._loaded(executable, request)
                if isinstance(loaded, CompiledProgram):
                    return loaded
                reason = loaded or reason
                reasons.append((reason.count("; "), executable.target, reason))
            _, target, reason = min(reasons)
            if (target, reason) not in self._refused:
                self._refused.add((target, reason))
                source.warn(
                    f"the executable of {self.contents.header['name']} for {target} in "
                    f"{self.contents.path} is not used, and the program is compiled: {reason}. "
                    "Save the bundle again for this machine.",
                    BundleWarning,
                )
            if self.has_function:
                raise NoExecutable
        if self.exported.is_foreign:
            with reading_of(f"a program of the bundle {self.contents.path}", BundleError):
                self.exported.checked_bytecode()
        if b"lapack_" in self.exported.mlir_module_serialized:
            load_host_kernels()
        return None

    def _loaded(
        self, executable: ExecutableEntry, request: CompilationRequest
    ) -> CompiledProgram | str:
        """Return the loaded executable or why there is none; use that of `start_loading` once."""
        early, self._early = self._early, None
        if early is not None and early.request == request:
            return early.result()
        return self._load(executable, request)

    def _load(
        self, executable: ExecutableEntry, request: CompilationRequest
    ) -> CompiledProgram | str:
        """Return the loaded executable, or why it cannot be loaded."""
        with reading_of(f"an executable of the bundle {self.contents.path}", BundleError):
            fields = self.fields(executable)
            header = executable_header(fields)
        devices = devices_of(request.device)
        exported = self.exported
        ranks = (
            [exported.in_avals[position].ndim for position in header["kept"]],
            [aval.ndim for aval in exported.out_avals],
        )
        shardings = header["shardings"] and [
            [sharding_over(record, devices, record["devices"]) for record in records]
            for records in header["shardings"]
        ]
        reason = differing_shardings(shardings, header["kept"], request.device, ranks)
        if reason:
            return reason
        try:
            return loaded_program(header, fields, devices)
        except JaxRuntimeError as error:
            return f"XLA refuses it: {error}"

    def fields(self, executable: ExecutableEntry) -> Mapping[str, bytes]:
        """Return the fields of an executable, which the bundle's checksum covers."""
        data = self.contents.value(executable.field)
        spans = cache_file.locate(data, len(data))
        return {name: data[start:stop] for name, (start, stop) in spans.items()}

    def shardings(self, devices: Sequence[Device]) -> tuple[list[Any], list[Any]]:
        """Return how its arguments and results are split over devices; None where XLA decides."""
        return (
            [_placed(sharding, devices) for sharding in self.exported.in_splits],
            [_placed(sharding, devices) for sharding in self.exported.out_splits],
        )


def _placed(sharding: NamedSharding | None, devices: Sequence[Device]) -> NamedSharding | None:
    """Convert a sharding over a mesh without devices to one over the first of these devices."""
    if sharding is None:
        return None
    described = sharding.mesh
    count = described.size
    if count > len(devices):
        raise ValueError(
            f"the program is for {count} devices, and {len(devices)} are here: run it where there "
            "are as many, on CPUs with JAX_NUM_CPU_DEVICES"
        )
    grid = np.empty(count, object)
    grid[:] = devices[:count]
    mesh = Mesh(
        grid.reshape(described.axis_sizes), described.axis_names, axis_types=described.axis_types
    )
    return sharding.update(mesh=mesh)


def _is_of(aval: AbstractValue, expected: ShapedArray) -> bool:
    """Return whether a value has the shape and dtype of a type, whose sizes may be variables."""
    return (
        isinstance(aval, ShapedArray)
        and aval.dtype == expected.dtype
        and len(aval.shape) == len(expected.shape)
        and all(
            is_symbolic_dim(size) or size == other
            for size, other in zip(expected.shape, aval.shape, strict=True)
        )
    )
