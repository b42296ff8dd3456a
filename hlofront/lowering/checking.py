"""A check that nobody looks at: it cannot be compiled."""

from hlofront.core.rules import lower
from hlofront.higher_order.checking import check_p


@lower(check_p)
def _(build, failed, code, *payload, error_type, structures, debug):
    if debug:
        return []
    raise ValueError(
        "Cannot compile a checkify.check which was not functionalized: a compiled program cannot "
        "raise an error. Give the function that is jitted, or that has the loop or branch, to "
        "checkify, and look at the error that it returns: "
        "error, result = checkify.checkify(f)(x); error.throw(). For a check that is dropped "
        "otherwise, use checkify.debug_check."
    )
