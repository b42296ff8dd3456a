"""Re-exports: arguments of transformed functions under the names of `jax.api_util`."""

from hlofront.transforms.flatten import abstract as shaped_abstractify
from hlofront.transforms.wrapped_arguments import argnums_partial as argnums_partial
from hlofront.transforms.wrapped_arguments import debug_info as debug_info
from hlofront.transforms.wrapped_arguments import donation_vector as donation_vector
from hlofront.transforms.wrapped_arguments import flatten_axes as flatten_axes
from hlofront.transforms.wrapped_arguments import flatten_fun as flatten_fun
from hlofront.transforms.wrapped_arguments import flatten_fun_nokwargs as flatten_fun_nokwargs
from hlofront.transforms.wrapped_arguments import rebase_donate_argnums as rebase_donate_argnums
from hlofront.transforms.wrapped_arguments import safe_map as safe_map

__all__ = [
    "argnums_partial",
    "debug_info",
    "donation_vector",
    "flatten_axes",
    "flatten_fun",
    "flatten_fun_nokwargs",
    "rebase_donate_argnums",
    "safe_map",
    "shaped_abstractify",
]
