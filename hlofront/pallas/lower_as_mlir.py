"""pl.lower_as_mlir: the StableHLO of a function with kernels, as text."""

from collections.abc import Callable, Sequence

from hlofront.base.tree import PyTree
from hlofront.bridge.client import Device
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.runtime.export.exporting import export


def lower_as_mlir(
    f: Callable[..., PyTree],
    *args: PyTree,
    dynamic_shapes: bool = False,
    device: Device | None = None,
    static_argnames: str | Sequence[str] = (),
    platforms: Sequence[str] | None = None,
    **kwargs: PyTree,
) -> str:
    """Return the StableHLO of a function, by default for TPUs, which need not be here.

    Args:
      f: the function.
      *args: its arguments, or ShapeDtypeStructs in their place.
      dynamic_shapes: must be False: blocks of kernels have known sizes.
      device: must be None: give `platforms` instead.
      static_argnames: the names of arguments that are not arrays.
      platforms: the platforms to lower for; `["tpu"]` by default.
      **kwargs: more arguments, by name.

    Raises:
      ValueError: for `dynamic_shapes` and `device`.
    """
    if dynamic_shapes or device is not None:
        raise ValueError(
            f"lower_as_mlir was given dynamic_shapes={dynamic_shapes!r} and device={device!r}: "
            "kernels have blocks of known sizes, and are lowered for platforms. Give platforms="
        )
    jitted = jit(f, static_argnames=static_argnames)
    return export(jitted, platforms=platforms or ["tpu"])(*args, **kwargs).mlir_module()
