"""Re-exports: arguments of transformed functions under the names of `jax.api_util`."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.transforms.flatten": "abstract=shaped_abstractify",
        "hlofront.transforms.wrapped_arguments": (
            "argnums_partial debug_info donation_vector flatten_axes flatten_fun "
            "flatten_fun_nokwargs rebase_donate_argnums safe_map"
        ),
    },
)
