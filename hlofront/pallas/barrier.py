"""The semaphore that the devices of a kernel share: get_barrier_semaphore."""

from collections.abc import Hashable

from hlofront.base.typing import ArrayLikes
from hlofront.core import rules
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import Equation
from hlofront.core.primitive import Primitive
from hlofront.core.references import AbstractRef
from hlofront.pallas.memory import BARRIER_SEMAPHORE_DTYPE, TpuMemorySpace
from hlofront.primitives.references.references import RefLike
from hlofront.primitives.references.rules import Discharged

# The result is a reference to the semaphore of the kernel's `collective_id`.
get_barrier_semaphore_p = Primitive("get_barrier_semaphore")
get_barrier_semaphore_p.ref_primitive = True

_SEMAPHORE = AbstractRef(ShapedArray((), BARRIER_SEMAPHORE_DTYPE), TpuMemorySpace.SEMAPHORE)


@rules.infer(get_barrier_semaphore_p)
def _() -> AbstractRef:
    return _SEMAPHORE


@rules.discharge(get_barrier_semaphore_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    raise NotImplementedError(  # JAX raises this class.
        "a kernel that is interpreted runs on one device, and has no barrier of several"
    )


def get_barrier_semaphore(tag: Hashable = None) -> RefLike:
    """Return a reference to a semaphore that instances of the kernel on all devices share.

    They signal it, and wait for it, before they write to one another's memory. The kernel's
    `CompilerParams` need a `collective_id`; kernels that run at the same time need different ones.

    Args:
      tag: must be None: the semaphore is that of the kernel's `collective_id`.

    Raises:
      ValueError: if `tag` is not None.
    """
    if tag is not None:
        raise ValueError(
            f"get_barrier_semaphore(tag={tag!r}): give the kernel "
            "compiler_params=pltpu.CompilerParams(collective_id=...) instead of a tag"
        )
    return get_barrier_semaphore_p.bind()
