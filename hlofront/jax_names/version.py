"""The version of JAX whose API hlofront has: the contents of `jax.version`."""

# pyright: strict

__version__ = "0.10.2"
__version_info__ = tuple(int(part) for part in __version__.split("."))

__all__ = ["__version__", "__version_info__"]
