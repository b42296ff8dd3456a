"""The disk cache of executables: its entries, and the reasons of misses."""

import contextlib
import functools
import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from hlofront.base import events
from hlofront.base.caches import CacheTable
from hlofront.base.config import options
from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import client as bridge
from hlofront.bridge.client import Device, LoadedExecutable
from hlofront.bridge.kernels import load_host_kernels
from hlofront.core.aval import AbstractValue
from hlofront.core.effects import Effect
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo
from hlofront.core.programs.digest import program_digest
from hlofront.pjrt import cache_key, clients
from hlofront.pjrt.cache_store import Store, abridged
from hlofront.pjrt.compile import compile_options, compiler_settings
from hlofront.pjrt.configured_stores import folder_is_named, small_store, whole_store
from hlofront.runtime.compilation import run_log
from hlofront.runtime.compilation.traced_program import CompilerOptionPairs

if TYPE_CHECKING:
    from hlofront.bridge.compile_process import SubprocessExecutable
    from hlofront.lowering.core.host_call import HostCall
    from hlofront.lowering.module import Module
    from hlofront.runtime.compilation.host_calls import HostFailures

HITS = "/jax/compilation_cache/cache_hits"
MISSES = "/jax/compilation_cache/cache_misses"
RETRIEVAL = "/jax/compilation_cache/cache_retrieval_time_sec"
REQUESTS = "/jax/compilation_cache/compile_requests_use_cache"
SAVED = "/jax/compilation_cache/compile_time_saved_sec"

# By default only small programs are stored, with at most this many equations, and bytes when
# compiled.
_MAX_EQUATIONS = 200
_MAX_BYTES = 256 * 1024

# The modules of programs that call LAPACK contain one of these words: its functions must be
# registered before XLA loads such a program, or loading fails with this text.
_LAPACK = ("@lapack_", "hybrid_")
NOT_REGISTERED = "No FFI handler registered"

# The number of entries with which the log of a run compares a miss.
_MAX_COMPARED_FOR_LOG = 100

_least_seconds = options["jax_persistent_cache_min_compile_time_secs"]
_least_bytes = options["jax_persistent_cache_min_entry_size_bytes"]
_explain = options["jax_explain_cache_misses"]


class StoredCall:
    """The data for calling an executable from disk, without the module it was compiled from."""

    __slots__ = (
        "_hlo",
        "callbacks",
        "const_args",
        "has_barriers",
        "kept_inputs",
        "ordered",
        "serialized",
        "unusable",
    )

    def __init__(
        self,
        kept_inputs: Sequence[int],
        has_barriers: bool,
        unusable: Sequence[str],
        hlo: bytes,
        serialized: Callable[[], bytes],
    ):
        self.kept_inputs = tuple(kept_inputs)
        self.has_barriers = has_barriers
        self.unusable = list(unusable)
        self.callbacks: list[HostCall] = []
        self.const_args: Sequence[tuple[object, AbstractValue]] = ()
        self.ordered: tuple[Effect, ...] = ()
        self._hlo = hlo
        # Returns the executable's bytes: XLA for CPUs cannot serialize what it has loaded.
        self.serialized = serialized

    def hlo_text(self) -> str:
        """Return the optimized HLO as compiled; the loaded executable has less of its metadata."""
        return zlib.decompress(self._hlo).decode()


# The inputs that an executable takes, and its constants: read from the module that it was compiled
# from, or from the record that is stored on disk with it.
ProgramCall: TypeAlias = "Module | StoredCall"


class CompiledProgram(NamedTuple):
    """A jaxlib executable of a program, with the data for calling it."""

    loaded: "LoadedExecutable | SubprocessExecutable"
    call: ProgramCall
    # Where exceptions of its callbacks are collected, if it has callbacks.
    host_failures: "HostFailures | None" = None


class CacheEntry:
    """An entry of the disk cache: the key of one executable, and the stores that may hold it."""

    __slots__ = (
        "_compiler",
        "_debug_info",
        "_is_shared",
        "_key",
        "_key_bytes",
        "_name",
        "_small",
        "_whole",
        "digest",
    )

    def __init__(
        self,
        key: cache_key.Key,
        compiler: "_Compiler",
        small: Store | None,
        whole: Store | None,
        is_shared: bool = False,
        debug_info: DebugInfo | None = None,
    ):
        self._key = key
        self._debug_info = debug_info
        # Whether several processes compile the program, for devices of all of them.
        self._is_shared = is_shared
        self._key_bytes = cache_key.encoded(key)
        self.digest = cache_key.bytes_digest(self._key_bytes)
        self._name = key["name"]
        self._compiler = compiler
        self._small = small
        self._whole = whole

    def load(self, devices: Sequence[Device]) -> CompiledProgram | None:
        """Load the executable and its call data from a store; return None on a miss."""
        events.record_event(REQUESTS)
        started = time.perf_counter()
        for store in (self._whole, self._small):
            fields = None if store is None else store.get(self.digest, self._key_bytes)
            if store is None or fields is None:
                continue
            try:
                call = json.loads(fields["call"].decode())
                stored_call = StoredCall(
                    call["kept"],
                    call["has_barriers"],
                    call["unusable"],
                    fields["hlo"],
                    functools.partial(self._stored_executable, store),
                )
                if call["lapack"]:
                    load_host_kernels()
                settings = self._compiler.options
                if stored_call.has_barriers:
                    overrides = self._compiler.overrides
                    settings = compile_options(devices, overrides, keep_barriers=True)
                loaded = bridge.deserialize(
                    devices[0].client, fields["executable"], devices, settings
                )
                saved = call["compile_seconds"]
            except (KeyError, ValueError, TypeError, bridge.JaxRuntimeError) as error:
                if NOT_REGISTERED in str(error):
                    continue  # It is complete, but calls an unregistered user function.
                store.set_aside(self.digest, f"it cannot be loaded: {error}")
                continue
            seconds = time.perf_counter() - started
            events.record_event(HITS)
            events.record_event_duration_secs(RETRIEVAL, seconds)
            events.record_event_duration_secs(SAVED, saved - seconds)
            run_log.loaded(self._name, stored_call.hlo_text, seconds, saved)
            events.log_stage("Loaded %s from the cache on disk in %.6f s", self._name, seconds)
            return CompiledProgram(loaded, stored_call)
        events.record_event(MISSES)
        if run_log.current is not None:
            run_log.current.record(
                "disk_miss", self._name, why=self.why_missed(_MAX_COMPARED_FOR_LOG)
            )
        if _explain.value:
            level = logging.WARNING if folder_is_named() else logging.DEBUG
            if events.logger.isEnabledFor(level):
                events.logger.log(level, "%s", self.why_missed())
        return None

    def _stored_executable(self, store: Store) -> bytes:
        """Return the serialized executable from the store that it was loaded from."""
        fields = store.get(self.digest, self._key_bytes)
        if fields is None:
            raise ValueError(
                f"{self._name} was loaded from the cache on disk, which no longer has it: call "
                "hlofront.clear_caches() and compile it again"
            )
        return fields["executable"]

    def why_missed(self, limit: int = 2000) -> str:
        """Return, as text, the fields that differ from the nearest entry of this name.

        Args:
          limit: the greatest number of entries to read, most recently used first.
        """
        stores = [store for store in (self._whole, self._small) if store is not None]
        file, _ = self._defined_at()
        candidates = [store.nearest(self._key, limit=limit, file=file) for store in stores]
        nearest = min(filter(None, candidates), key=lambda each: each.distance(file), default=None)
        if nearest is None:
            return (
                f"{self._name} is not in the cache on disk: it has no entry of this name among the "
                f"{limit:,} that were used last"
            )
        before = nearest.entry.key
        fields = set(nearest.differing)
        # A digest adds no information to the fields that it is computed from.
        if "arguments" in fields:
            fields.discard("program")
        if fields & {"compiler options", "XLA_FLAGS", "config"}:
            fields.discard("options")
        differing = "; ".join(
            f"{field}: {abridged(before.get(field, 'nothing'))} -> "
            f"{abridged(self._key.get(field, 'nothing'))}"
            for field in nearest.differing
            if field in fields
        )
        other = nearest.entry.file if nearest.entry.file != file else ""
        whose = f", of another function of this name in {other}," if other else ""
        return (
            f"{self._name} is not in the cache on disk: the nearest entry{whose} differs in "
            f"{differing}"
        )

    def _defined_at(self) -> tuple[str, int]:
        """Return the absolute file and line of the program's function; "" and 0 without them."""
        info = self._debug_info
        where = "" if info is None else info.func_src_info.partition(" at ")[2]
        path, colon, line = where.rpartition(":")
        if not colon or not line.isdigit():
            return "", 0
        return (path if path.startswith("<") else os.path.abspath(path)), int(line)

    def keep(
        self, loaded: "LoadedExecutable | SubprocessExecutable", module: "Module", seconds: float
    ) -> None:
        """Write a compiled program to disk, if a store accepts executables of its kind.

        If several processes share a program and a folder, one of them writes.
        """
        whole = self._whole if seconds >= _least_seconds.value else None
        store = whole or self._small
        if store is None:
            return
        claim = store.claimed(self.digest) if self._is_shared else contextlib.nullcontext(True)
        with claim as may_write:
            if may_write:
                self._put(loaded, module, seconds, whole, self._small)

    def _put(
        self,
        loaded: "LoadedExecutable | SubprocessExecutable",
        module: "Module",
        seconds: float,
        whole: Store | None,
        small: Store | None,
    ) -> None:
        executable = loaded.serialize()
        size = len(executable)
        if size < _least_bytes.value:
            whole = None
        if size > _MAX_BYTES:
            small = None
        store = whole or small
        if store is None:
            return
        hlo = "\n\n".join(part.to_string() for part in loaded.hlo_modules())
        file, line = self._defined_at()
        about: dict[str, object] = {
            "name": self._name,
            # Not in the key: a program that moved to another file or line is the same one.
            "file": file,
            "line": line,
            "platform": self._key["platform"],
            "compile_seconds": round(seconds, 6),
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "executable_bytes": size,
        }
        stablehlo = module.text()
        call: dict[str, object] = {
            "kept": list(module.kept_inputs),
            "has_barriers": module.has_barriers,
            "unusable": module.unusable,
            "lapack": any(mark in stablehlo for mark in _LAPACK),
            # It is stored here as well because `load` does not read the field "about".
            "compile_seconds": about["compile_seconds"],
        }
        store.put(
            self.digest,
            {
                "key": self._key_bytes,
                "about": json.dumps(about).encode(),
                "call": json.dumps(call).encode(),
                "executable": executable,
                "stablehlo": zlib.compress(stablehlo.encode(), 6),
                "hlo": zlib.compress(hlo.encode(), 6),
            },
        )


def has_digest(program: ClosedJaxpr) -> bool:
    """Return whether the cache entry of a program can be determined without its module.

    Programs that are never stored have no entry, and therefore need no module either.
    """
    if program.effects or not any(_stores_of(program)):
        return True
    return program_digest(program) is not None


def _stores_of(program: ClosedJaxpr) -> tuple[Store | None, Store | None]:
    """Return the stores that may have a program with its number of equations."""
    is_small = len(program.jaxpr.eqns) <= _MAX_EQUATIONS
    return small_store() if is_small else None, whole_store()


def cache_entry_for(
    program: ClosedJaxpr,
    name: str,
    devices: Sequence[Device],
    compiler_options: CompilerOptionPairs,
    settings: dict[str, str],
    module: "Module | None" = None,
) -> CacheEntry | None:
    """Return the entry of a program's executable, stored or not; None if it is never stored.

    Args:
      program: the program.
      name: the name of the traced function.
      devices: the devices that it runs on, in order.
      compiler_options: the user's options for this function.
      settings: other settings that affect the lowering of the program.
      module: the lowered program, required if the program has no digest.
    """
    small, whole = _stores_of(program)
    if program.effects or (small is None and whole is None):
        return None
    digest = program_digest(program)
    if digest is None:
        if module is None or module.callbacks or module.ordered or module.keepalives:
            return None
        if module.partitioned_calls:
            return None
        digest = f"module {cache_key.text_digest(module.text())}"
    compiler = _compiler_for(tuple(devices), compiler_options)
    key = {
        "name": name,
        "program": digest,
        "arguments": ", ".join(aval.str_short() for aval in program.in_avals),
        **settings,
        **compiler.fields,
    }
    is_shared = any(device.process_index != devices[0].process_index for device in devices)
    return CacheEntry(key, compiler, small, whole, is_shared, program.debug_info)


class _Compiler(NamedTuple):
    """The settings of compilations for some devices, as fields of keys and as XLA's options."""

    fields: cache_key.Key
    options: bridge.CompileOptions
    overrides: dict[str, object]


# The compilers by devices and settings. Texts distinguish options that Python calls equal, such as
# 1 and True.
_compilers = CacheTable()
clients.on_reset(_compilers.clear)


def _compiler_for(devices: tuple[Device, ...], compiler_options: CompilerOptionPairs) -> _Compiler:
    variables = [os.environ.get(name) for name in cache_key.VARIABLES]
    settings = (devices, repr(compiler_options), compiler_settings(), *variables)
    compiler: _Compiler | None = _compilers.get(settings)
    if compiler is None:
        overrides = dict(compiler_options)
        in_key = compile_options(devices, overrides, numbers=cache_key.numbers_in_key(devices))
        compiler = _compilers[settings] = _Compiler(
            cache_key.compiler_fields(devices, in_key, overrides),
            compile_options(devices, overrides),
            overrides,
        )
    return compiler
