"""hlofront.scipy: functions by SciPy's names; each submodule is loaded on first use."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules=(
        "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special "
        "stats"
    ),
)
