"""Decoding kernels in custom calls, which are MLIR bytecode, and binary HLO to text.

The bytes may come from an untrusted file, and MLIR and XLA may abort on hostile ones, so a worker
process reads them, with limits on time, memory and stack.
"""

from typing import Any

from hlofront.bridge import foreign
from hlofront.bridge.worker_process import CannotStart, WorkerEnded
from hlotools.ir.custom_kernels import CannotDecode

_MEMORY = 2 << 30
_MEMORY_PER_BYTE = 256
_STACK = 64 << 20
_TRITON = "Triton's bytecode has no versions: decode it with the jaxlib that wrote it"


def decoded(kind: str, payload: bytes) -> str:
    """Return a kernel's MLIR text with locations.

    Args:
      kind: "Mosaic TPU", "Mosaic GPU" or "Triton".
      payload: its bytecode.

    Raises:
      CannotDecode: if this jaxlib cannot read it; the message says what is missing or broken.
    """
    answer = _answer(payload, {"do": "decode a kernel", "kind": kind})
    if "error" in answer:
        reason = " ".join(answer["error"].split())
        raise CannotDecode(f"{reason} ({_TRITON})" if kind == "Triton" else reason)
    return answer["text"]


def module_text(module: bytes) -> str:
    """Return the HLO text of a module in a protocol buffer.

    Args:
      module: an HloModuleProto.

    Raises:
      CannotDecode: if this jaxlib cannot read it; the message says why.
    """
    answer = _answer(module, {"do": "print a module"})
    if "error" in answer:
        raise CannotDecode(" ".join(answer["error"].split()))
    return answer["text"]


def _answer(payload: bytes, request: dict[str, Any]) -> dict[str, Any]:
    memory = _MEMORY + _MEMORY_PER_BYTE * len(payload)
    try:
        return foreign.worker.ask(
            {**request, "payload": payload, "memory": memory, "stack": _STACK},
            foreign.READING.of(payload),
        )
    except CannotStart as error:
        raise CannotDecode(f"no process to read it in can be started: {error}") from None
    except WorkerEnded as error:
        raise CannotDecode(f"it ends the process that reads it: {error}") from None
