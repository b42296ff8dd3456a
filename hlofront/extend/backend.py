"""jax.extend.backend: clients, their caches and XLA's compile options."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    now={
        "hlofront.base.caches": "clear_caches=clear_in_memory_compilation_cache",
        "hlofront.bridge.ifrt_programs": "ifrt_proxy",
        "hlofront.pjrt.backends": (
            "backend_xla_version backends clear_backends get_compile_options register_backend_cache"
        ),
        "hlofront.pjrt.clients": "client_for=get_backend register_backend_factory",
        "hlofront.runtime.sharding.placement": "default_device=get_default_device",
    },
)
