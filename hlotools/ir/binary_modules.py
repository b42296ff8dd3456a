"""Modules of HLO as protocol buffers, which XLA dumps as `.hlo.pb`, `.hlo_module.pb`, snapshots.

A file is an HloModuleProto, or a message with one inside. Converting it to text takes XLA, which
jaxlib has and this package lacks: hlofront sets a decoder.
"""

import re
from collections.abc import Callable, Iterator

from hlotools.ir.custom_kernels import CannotDecode
from hlotools.wire import WireError, fields

# The names of such files in XLA's dumps, and names that users may give them.
_NAMES = re.compile(
    r"\.hlo(?:_\w+)?(?:\.\d+)?\.pb$|\.hlo_\w+(?:\.\d+)?$|\.snapshot\.-?\d+\.pb$|\.pb$"
)
# HloProto in HloSnapshot, HloModuleProto in HloProto: always the first field.
_INSIDE = 1
_DEEPEST = 3
# Fields of HloModuleProto: its name, that of its entry, and its computations.
_NAME, _ENTRY, _COMPUTATION = 1, 2, 3

ModuleDecoder = Callable[[bytes], str]


def _no_decoder(module: bytes) -> str:
    raise CannotDecode(
        "it takes hlofront to read it: python -m hlofront show FILE, or diff FILE FILE"
    )


_decoders: list[ModuleDecoder] = [_no_decoder]


def set_module_decoder(decoder: ModuleDecoder) -> None:
    """Set the function that returns the text of an HloModuleProto.

    Args:
      decoder: a function of the bytes of the message; it may raise `CannotDecode`.
    """
    _decoders[0] = decoder


def is_binary_name(path: str) -> bool:
    """Return whether a path is named like a module in a protocol buffer."""
    return _NAMES.search(path) is not None


def module_text(data: bytes, label: str) -> str:
    """Return the HLO text of a module in a protocol buffer, or in a message around it.

    Raises:
      ValueError: if there is no module in it, or it cannot be read; the message begins with the
        label.
    """
    module = _module_in(data)
    if module is None:
        raise ValueError(
            f"{label} has no module of HLO: expected a protocol buffer HloModuleProto, HloProto or "
            "HloSnapshot, as XLA writes with --xla_dump_hlo_as_proto; it may be another message, "
            "or have lost its end"
        )
    try:
        return _decoders[0](module)
    except CannotDecode as error:
        raise ValueError(
            f"{label} is a module as a protocol buffer that is not read: {error}"
        ) from None


def _module_in(data: bytes) -> bytes | None:
    """Return the innermost message that is an HloModuleProto, None if there is none."""
    for message in reversed(list(_nested(memoryview(data)))):
        try:
            found = dict(fields(message))
        except WireError:
            continue
        texts = [found.get(_NAME), found.get(_ENTRY)]
        if all(
            isinstance(value, memoryview) for value in (*texts, found.get(_COMPUTATION))
        ) and all(_is_name(value) for value in texts):
            return bytes(message)
    return None


def _is_name(value: object) -> bool:
    return isinstance(value, memoryview) and len(value) < 10_000 and bytes(value).isascii()


def _nested(message: memoryview) -> Iterator[memoryview]:
    """Yield a message, and those inside of it that may be a module."""
    for _ in range(_DEEPEST):
        yield message
        try:
            inside = next((value for number, value in fields(message) if number == _INSIDE), None)
        except WireError:
            return
        if not isinstance(inside, memoryview):
            return
        message = inside
