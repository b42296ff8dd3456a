"""The error for the use of an array that was deleted or donated."""

from hlofront.base.typing import Array


def deleted(array: Array) -> RuntimeError:
    """Return the error for the use of a deleted array."""
    return RuntimeError(
        f"Array has been deleted with shape={array.aval.str_short()}: by its delete(), or by a "
        "call that it was donated to (donate_argnums). Use what that call returned, or do not "
        "donate it."
    )


def check_not_deleted(array: Array) -> None:
    """Raise RuntimeError if the array was deleted; some C++ calls crash on one before 0.11."""
    if array.is_deleted():
        raise deleted(array)
