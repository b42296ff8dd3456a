"""Every file with lowering rules: importing this registers them all."""

from hlofront.lowering import elementwise, programs

__all__ = ["elementwise", "programs"]
