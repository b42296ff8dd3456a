"""The decoding of kernels in custom calls: MLIR bytecode of Mosaic and Triton, as text.

A payload may come from an untrusted file, and MLIR's reader may abort on hostile bytes, so a worker
process reads it, with limits on time, memory and stack.
"""

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
      CannotDecode: if this jaxlib does not read it; the message says what is missing or broken.
    """
    request = {
        "do": "decode a kernel",
        "kind": kind,
        "payload": payload,
        "memory": _MEMORY + _MEMORY_PER_BYTE * len(payload),
        "stack": _STACK,
    }
    try:
        answer = foreign.worker.ask(request, foreign.READING.of(payload))
    except CannotStart as error:
        raise CannotDecode(f"no process to read it in can be started: {error}") from None
    except WorkerEnded as error:
        raise CannotDecode(f"it ends the process that reads it: {error}") from None
    if "error" in answer:
        reason = " ".join(answer["error"].split())
        raise CannotDecode(f"{reason} ({_TRITON})" if kind == "Triton" else reason)
    return answer["text"]
