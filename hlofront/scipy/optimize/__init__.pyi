# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Callable, Mapping
from typing import Any

from hlofront.scipy.optimize.minimizing import OptimizeResults as OptimizeResults
from hlofront.typing import ArrayLike

def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults: ...
