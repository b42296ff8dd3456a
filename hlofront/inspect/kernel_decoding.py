"""The reading of programs' texts with the kernels in their custom calls decoded.

Modules that read texts import this one, which sets the decoder: hlotools has none.
"""

from hlotools.ir.custom_kernels import set_kernel_decoder
from hlotools.ir.hlo_parser import parse as parse


def _decoded(kind: str, payload: bytes) -> str:
    from hlofront.bridge.kernel_payloads import decoded

    return decoded(kind, payload)


set_kernel_decoder(_decoded)
