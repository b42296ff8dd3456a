"""The version of JAX whose API hlofront has: the contents of `jax.version`.

It is the value of the option hlofront_jax_api when `import jax` first imports hlofront.
"""

# pyright: strict

from hlofront.base.config import options

__version__: str = options["hlofront_jax_api"].value
__version_info__ = tuple(int(part) for part in __version__.split("."))

__all__ = ["__version__", "__version_info__"]
