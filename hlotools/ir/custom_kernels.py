"""The kernels in the payloads of custom calls: Mosaic's for TPUs and GPUs, and Triton's.

Pallas writes a kernel as MLIR bytecode into the configuration of a custom call. Decoding it takes
MLIR with the kernels' dialects, which jaxlib has and this package lacks: hlofront sets a decoder.
"""

import base64
import binascii
import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hlotools.ir.attribute_text import dictionary
from hlotools.ir.payloads import payload_digest
from hlotools.ir.quoted_text import mlir_bytes, unquoted

# By the target of a custom call: the kind of its kernel, and the key of its bytecode.
_TARGETS = {
    "tpu_custom_call": ("Mosaic TPU", "body"),
    "mosaic_gpu_v2": ("Mosaic GPU", "module"),
    "__gpu$xla.gpu.triton": ("Triton", "ir"),
}
# Entries of a configuration that follow from the code.
_DERIVED = ("kernel_hash", "name")
_CONFIG = "backend_config"
_STABLEHLO_CONFIG = "mhlo.backend_config."
_DIGEST = re.compile(r"<payload ([0-9a-f]+)>$")
# A function with a body, of any dialect.
_FUNCTION = re.compile(r"^ +(?:\w+\.)?func (?!private)(?:public )?@([\w$.\-]+)", re.MULTILINE)

Decoder = Callable[[str, bytes], str]


class CannotDecode(ValueError):
    """The error of a payload that is not decoded; its text is the reason."""


class CustomKernel(NamedTuple):
    """The kernel in the payload of a custom call.

    Attributes:
      kind: "Mosaic TPU", "Mosaic GPU" or "Triton".
      name: the name of its function.
      options: the custom call's entries about it other than its code, such as Triton's `grid_x`.
      mlir: its code as MLIR text with locations, "" if it is not decoded.
      problem: the reason why it is not decoded.
      digest: the digest of its bytecode without locations, by which canonical texts name it.
      operands: the number of operands of the custom call.
    """

    kind: str
    name: str
    options: dict[str, str]
    mlir: str
    problem: str
    digest: str
    operands: int


def _no_decoder(kind: str, payload: bytes) -> str:
    raise CannotDecode(
        "it takes hlofront to decode it: python -m hlofront show FILE, or diff FILE FILE"
    )


_decoders: list[Decoder] = [_no_decoder]


def set_kernel_decoder(decoder: Decoder) -> None:
    """Set the function that returns a kernel's MLIR text with locations.

    Args:
      decoder: a function of the kind of a kernel and its payload; it may raise `CannotDecode`.
    """
    _decoders[0] = decoder


@functools.lru_cache(maxsize=256)
def _decoded(decoder: Decoder, kind: str, payload: bytes) -> tuple[str, str]:
    """Return the MLIR text of a payload, or the reason why there is none."""
    try:
        return decoder(kind, payload), ""
    except CannotDecode as error:
        return "", str(error)


def has_kernels(text: str) -> bool:
    """Return whether a program's text may have kernels: it names a target for kernels."""
    return any(target in text for target in _TARGETS)


def kernel_of(
    attributes: Mapping[str, str], name: str, operands: int, texts: Mapping[str, tuple[str, str]]
) -> CustomKernel | None:
    """Return the kernel in the payload of a custom call; None if it has none.

    Args:
      attributes: the attributes of the custom call.
      name: its name, for a kernel that has none.
      operands: the number of its operands.
      texts: the kernels that the program's text has in comments, as `written_kernels` returns them.
    """
    is_of_hlo = "custom_call_target" in attributes
    key = "custom_call_target" if is_of_hlo else "call_target_name"
    target = unquoted(attributes.get(key, ""))
    if target not in _TARGETS:
        return None
    kind, key = _TARGETS[target]
    config = _configuration(attributes, is_of_hlo)
    written = config.pop(key, "")
    payload = mlir_bytes(written) if written.startswith('"') else written.encode("utf-8", "replace")
    named = _DIGEST.match(payload.decode("latin-1"))
    given = ""
    if named is not None:
        # The text is canonical, as in a golden file, with its kernels in comments at the end.
        digest = named[1]
        given, mlir = texts.get(digest, ("", ""))
        problem = "" if mlir else "the text has only a digest of it"
    else:
        try:
            payload = base64.b64decode(payload, validate=True) if key == "body" else payload
        except binascii.Error as error:
            mlir, problem = "", f"its base64 is broken: {error}"
        else:
            mlir, problem = _decoded(_decoders[0], kind, payload)
        digest = payload_digest(payload)
    function = _FUNCTION.search(mlir)
    given = given or unquoted(attributes.get("kernel_name") or config.get("name", ""))
    name = given or (function[1] if function else "") or name
    options = {entry: value for entry, value in config.items() if entry not in _DERIVED}
    return CustomKernel(kind, name, options, mlir, problem, digest, operands)


def _configuration(attributes: Mapping[str, str], is_of_hlo: bool) -> dict[str, str]:
    """Return the entries of a kernel's configuration as text."""
    text = attributes.get(_CONFIG, "")
    if not is_of_hlo and len(text) > 2:
        text = mlir_bytes(text).decode(errors="replace")
    elif text.startswith('"'):
        text = unquoted(text)
    if text.lstrip().startswith('{"'):
        try:
            config = json.loads(text)["custom_call_config"]
        except (ValueError, RecursionError, KeyError, TypeError):
            return {}
        if not isinstance(config, dict):
            return {}
        return {k: v if isinstance(v, str) else json.dumps(v) for k, v in config.items()}
    if text.startswith("{"):
        return dictionary(text[1:-1])
    return {
        key.removeprefix(_STABLEHLO_CONFIG): value
        for key, value in attributes.items()
        if key.startswith(_STABLEHLO_CONFIG)
    }


def is_of_kernel(attribute: str, kernel: CustomKernel | None) -> bool:
    """Return whether a custom call's attribute is its kernel's code, or an option of the kernel.

    Args:
      attribute: its name, or the path of an entry in a configuration of JSON.
      kernel: the kernel.
    """
    if kernel is None or kernel.kind == "Mosaic TPU":
        return attribute == "custom_call_config.body"
    return attribute == _CONFIG or attribute.startswith(_STABLEHLO_CONFIG)


# ---- in canonical texts --------------------------------------------------------------------------

_COMMENT = re.compile(r"^// kernel <payload ([0-9a-f]+)>: (.*)\n((?:^//   .*\n?)*)", re.MULTILINE)


def written_kernels(text: str) -> dict[str, tuple[str, str]]:
    """Return the kernels in the comments of a canonical text, by the digests of their payloads.

    Each is its name and its MLIR; `kernel_comments` writes them.
    """
    if "// kernel <payload " not in text:
        return {}
    return {
        digest: (name, re.sub(r"^//   ", "", lines, flags=re.MULTILINE))
        for digest, name, lines in _COMMENT.findall(text)
    }
