"""hlofront.scipy: functions by SciPy's names; each submodule is loaded on first use."""

from hlofront.base.lazy import lazy as _lazy

__getattr__, __dir__ = _lazy(
    __name__,
    (
        "cluster",
        "fft",
        "integrate",
        "interpolate",
        "linalg",
        "ndimage",
        "optimize",
        "signal",
        "sparse",
        "spatial",
        "special",
        "stats",
    ),
)
