"""jax.experimental.pjit: `jit` under the name that it had for functions of split arrays."""

from hlofront.runtime.dispatch.jit_function import jit as pjit

__all__ = ["pjit"]
