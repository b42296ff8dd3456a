"""The decoder of kernels in custom calls, which is set where `hlofront.inspect` is imported."""

from hlotools.ir.custom_kernels import set_kernel_decoder


def _decoded(kind: str, payload: bytes) -> str:
    from hlofront.bridge.kernel_payloads import decoded

    return decoded(kind, payload)


set_kernel_decoder(_decoded)
