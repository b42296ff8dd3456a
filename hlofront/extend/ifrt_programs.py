"""jax.extend.ifrt_programs: jaxlib's makers of programs for IFRT."""

from hlofront.bridge.ifrt_programs import ifrt_programs as ifrt_programs
