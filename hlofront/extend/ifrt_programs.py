"""jax.extend.ifrt_programs: jaxlib's makers of programs for IFRT."""

from hlofront.bridge.ifrt_programs import ifrt_programs as ifrt_programs

# Without this list, a module that another module imports is not one of its public names.
__all__ = ["ifrt_programs"]
