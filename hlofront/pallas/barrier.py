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

# The result is a reference to the semaphore of the kernel's `collective_id`, or of the kernels with
# the parameter `tag`, if it is not None.
get_barrier_semaphore_p = Primitive("get_barrier_semaphore")
get_barrier_semaphore_p.ref_primitive = True

_SEMAPHORE = AbstractRef(ShapedArray((), BARRIER_SEMAPHORE_DTYPE), TpuMemorySpace.SEMAPHORE)


@rules.infer(get_barrier_semaphore_p)
def _(*, tag: Hashable) -> AbstractRef:
    return _SEMAPHORE


@rules.discharge(get_barrier_semaphore_p)
def _(equation: Equation, operands: ArrayLikes) -> Discharged:
    raise NotImplementedError(  # JAX raises this class.
        "a kernel that is interpreted runs on one device, and has no barrier of several"
    )


def get_barrier_semaphore(tag: Hashable = None) -> RefLike:
    """Return a reference to a semaphore that instances of the kernel on all devices share.

    They signal it, and wait for it, before they write to one another's memory. The semaphore is
    that of the `collective_id` of the kernel's `CompilerParams`, or of a tag. Kernels that run at
    the same time need different ones.

    Args:
      tag: a hashable object, by which kernels of a program share a semaphore. A kernel has one tag,
        and then no `collective_id`.
    """
    return get_barrier_semaphore_p.bind(tag=tag)
