"""jax.experimental.pallas: attention for TPUs; hlofront compiles no kernels written by hand."""

from typing import NoReturn


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}: hlofront has no Pallas yet, and compiles "
        "no kernels written by hand"
    )
