"""The reading of programs with the kernels in their custom calls, and of binary modules.

Modules that read programs import this one, which sets the decoders: hlotools has none.
"""

from hlotools.ir.binary_modules import set_module_decoder
from hlotools.ir.custom_kernels import set_kernel_decoder
from hlotools.ir.hlo_parser import parse as parse


def _text_of(payload: bytes, kind: str | None) -> str:
    """Return the text of a kernel of a kind, or of a module."""
    from hlofront.bridge import kernel_payloads

    if kind is None:
        return kernel_payloads.module_text(payload)
    return kernel_payloads.decoded(kind, payload)


set_kernel_decoder(lambda kind, payload: _text_of(payload, kind))
set_module_decoder(lambda module: _text_of(module, None))
