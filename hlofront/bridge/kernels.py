"""LAPACK's routines as XLA calls them: jaxlib's targets, registered before the first use."""

import functools

from hlofront.bridge.client import xla_client
from hlofront.bridge.state import extension


@functools.cache
def load_lapack() -> None:
    """Make the targets `lapack_*_ffi` known to XLA's CPU backend.

    Late, because it loads SciPy's LAPACK: programs without linear algebra do not wait for it.
    """
    from jaxlib import lapack

    for platform, targets in lapack.registrations().items():
        for name, capsule, api_version in targets:
            xla_client.register_custom_call_target(
                name, capsule, platform=platform, api_version=api_version
            )
    for name in lapack.batch_partitionable_targets():
        extension.register_custom_call_as_batch_partitionable(name)
    lapack._lapack.initialize()  # pyright: ignore[reportPrivateImportUsage]
