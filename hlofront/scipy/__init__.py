"""hlofront.scipy: SciPy's vocabulary; each part is loaded when it is first asked for."""

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
