"""Untrusted programs, which a worker process reads, checks and compiles.

A module from a file may make MLIR's reader or XLA's compiler abort, loop forever, or exhaust
memory. So a worker reads it with limits on time, memory and stack, checks its operations and custom
calls, and writes it again. This process parses only those bytes, and a worker also compiles all
programs for CPUs that contain them.
"""

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from hlofront.bridge import ffi
from hlofront.bridge.client import CompileOptions
from hlofront.bridge.compile_process import WITHOUT_TPU, SubprocessExecutable, answered
from hlofront.bridge.worker_process import CannotStart, Worker, WorkerEnded

worker = Worker({**WITHOUT_TPU, "TF_CPP_MIN_LOG_LEVEL": "3"})


class Limits(NamedTuple):
    """The time limits of a worker for a program.

    Attributes:
      seconds: the time that it may take for any program.
      seconds_per_megabyte: the additional time for each megabyte of the program.
    """

    seconds: float
    seconds_per_megabyte: float

    def of(self, program: bytes) -> float:
        return self.seconds + self.seconds_per_megabyte * len(program) / 1e6


READING = Limits(20, 2)
# A program of 100 kB that does not consist of constants has some 1,000 operations.
COMPILING = Limits(60, 600)
_MEMORY = 4 << 30
_MEMORY_PER_BYTE = 64
_STACK = 4 << 20


class ForeignProgramError(ValueError):
    """The error for an untrusted program that cannot be read, or has forbidden contents.

    Its text is the reason, to follow the name of the program and a colon.
    """


def start() -> None:
    """Start the worker, unless it runs; it loads its libraries in parallel to this process.

    If none can be started, reading the first program raises the error.
    """
    with contextlib.suppress(CannotStart):
        worker.start()


def verified(artifact: bytes, registered: frozenset[str], device_count: int) -> bytes:
    """Return a StableHLO module in its portable form as bytecode that is safe to parse.

    Args:
      artifact: the module in its portable form.
      registered: the custom call targets that the user has registered, which it may call.
      device_count: the number of devices that it is for.

    Raises:
      ForeignProgramError: if the module cannot be read within the limits, or it has operations or
          custom calls that an untrusted program must not contain.
    """
    answer = _ask_worker(
        "verify",
        artifact,
        READING,
        registered=registered,
        device_count=device_count,
        stack=_STACK,
    )
    if "unreadable" in answer:
        # This loads MLIR, which is only needed for the versions that it reads.
        from hlofront.bridge.mlir import why_unreadable

        raise ForeignProgramError(why_unreadable(artifact, answer["unreadable"]))
    if "error" in answer:
        raise ForeignProgramError(answer["error"])
    return answer["module"]


def with_known_sizes(bytecode: bytes) -> bytes:
    """Return a module with the sizes of all values filled in, like `mlir.with_known_sizes`.

    Raises:
      ForeignProgramError: if a size is not determined, or an assertion fails.
      JaxRuntimeError: if XLA's pass fails.
    """
    answer = _ask_worker("refine", bytecode, READING, registered=registered_targets(), stack=_STACK)
    if answer.get("kind") == "ValueError":
        raise ForeignProgramError(answer["error"])
    return answered(answer)["module"]


def compiled(
    bytecode: bytes, device_count: int, devices: Sequence[int], options: CompileOptions
) -> SubprocessExecutable:
    """Compile a module for CPUs, to an executable that can be loaded in this process.

    Args:
      bytecode: the module.
      device_count: the number of devices of the client.
      devices: the numbers of the devices to compile for.
      options: XLA's compile options.

    Raises:
      JaxRuntimeError: if XLA refuses the module or an option.
      ForeignProgramError: if the module ends the compiler's process, or exceeds its limits.
    """
    answer = _ask_worker(
        "compile for CPUs",
        bytecode,
        COMPILING,
        device_count=device_count,
        devices=list(devices),
        options=options.SerializeAsString(),
    )
    return SubprocessExecutable(answered(answer))


def registered_targets() -> frozenset[str]:
    """Return the custom call targets that the user has registered."""
    return frozenset(ffi.registered_targets)


def calls_registered(bytecode: bytes) -> bool:
    """Return whether a module may call a function that the user has registered in this process."""
    return any(name.encode() in bytecode for name in ffi.registered_targets)


def _ask_worker(
    request: str, program: bytes, limits: Limits, **extra_fields: object
) -> dict[str, Any]:
    try:
        return worker.ask(
            {
                "do": request,
                "module": program,
                "memory": _MEMORY + _MEMORY_PER_BYTE * len(program),
                **extra_fields,
            },
            limits.of(program),
        )
    except CannotStart as error:
        raise _without_worker(error) from None
    except WorkerEnded as error:
        raise ForeignProgramError(
            f"it ends the process that reads and compiles untrusted programs: {error}. If it is "
            "your own, load it with trust=True, which reads it in this process, without limits"
        ) from None


def _without_worker(error: Exception) -> ForeignProgramError:
    return ForeignProgramError(
        f"the process that reads untrusted programs cannot be started ({error}): load it with "
        "trust=True if it is your own"
    )
