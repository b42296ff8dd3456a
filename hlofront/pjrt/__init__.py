"""PJRT clients, devices and executables; for users, `hlofront.pjrt.register_plugin`."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    later={
        "hlofront.pjrt.platforms": "register_plugin",
    },
)
