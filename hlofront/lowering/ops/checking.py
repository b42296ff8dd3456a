"""A lowering rule that refuses checks that `checkify` has not transformed."""

from hlofront.bridge.mlir import Value
from hlofront.core.rules import lower
from hlofront.higher_order.checking import check_p
from hlofront.lowering.core.builder import Builder


@lower(check_p)
def _(
    build: Builder, failed: Value, code: Value, *payload: Value, debug: bool, **_: object
) -> list[Value]:
    if debug:
        return []
    raise ValueError(
        "Cannot compile a checkify.check which was not functionalized: a compiled program cannot "
        "raise an error. Give the function that is jitted, or that has the loop or branch, to "
        "checkify, and look at the error that it returns: "
        "error, result = checkify.checkify(f)(x); error.throw(). For a check that is dropped "
        "otherwise, use checkify.debug_check."
    )
