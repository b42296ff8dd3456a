"""PJRT clients, devices and executables; for users, `hlofront.pjrt.register_plugin`."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(__name__, (), {"register_plugin": "hlofront.pjrt.platforms"})
