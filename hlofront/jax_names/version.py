"""The version of JAX whose API hlofront has: the contents of `jax.version`.

The option hlofront_jax_api decides, as it is when `import jax` first gives hlofront.
"""

# pyright: strict

from hlofront.base.config import options

__version__: str = options["hlofront_jax_api"].value
__version_info__ = tuple(int(part) for part in __version__.split("."))

__all__ = ["__version__", "__version_info__"]
