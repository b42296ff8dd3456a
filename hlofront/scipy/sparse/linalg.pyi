# Written by scripts/write_stubs.py from the running package: do not edit.

from typing import Any

from hlofront.typing import ArrayLike

def bicgstab(
    A: ArrayLike,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: ArrayLike | None = None,
) -> tuple[Any, Any]: ...
def cg(
    A: ArrayLike,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: ArrayLike | None = None,
) -> tuple[Any, Any]: ...
def gmres(
    A: ArrayLike,
    b: ArrayLike,
    x0: ArrayLike | None = None,
    *,
    tol: float = 1e-05,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: ArrayLike | None = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]: ...
