"""fwd_and_bwd: the forward and backward passes of a function, each compiled."""

from collections.abc import Callable, Sequence

from hlofront.base.tree import PyTree
from hlofront.runtime.dispatch.jit_function import jit
from hlofront.transforms.grad import argument_numbers, at_positions, pull_back
from hlofront.transforms.pullback import Pullback


def fwd_and_bwd(
    fun: Callable[..., PyTree],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., PyTree], Callable[..., PyTree]]:
    """Return the forward and the backward pass of a function, as two functions.

    Args:
      fun: a function of pytrees of arrays.
      argnums: the position or positions of the arguments to differentiate with respect to.
      has_aux: whether `fun` returns (result, auxiliary value), the latter not differentiated.
      jitted: whether to compile both.

    Returns:
      (forward, backward). `forward(*args)` returns (result, residuals), and the auxiliary value
      if there is one; `backward(residuals, cotangent)` returns the cotangents of the arguments.
    """
    argnums = argument_numbers(argnums)

    def forward(*args: object, **kwargs: object) -> tuple[object, ...]:
        chosen, partial = at_positions(fun, args, kwargs, argnums)
        result, residuals, aux = pull_back(partial, chosen, has_aux, "fwd_and_bwd")
        return (result, residuals, aux) if has_aux else (result, residuals)

    def backward(residuals: Pullback, cotangent: object) -> object:
        cotangents = residuals(cotangent)
        return cotangents[0] if isinstance(argnums, int) else cotangents

    return (jit(forward), jit(backward)) if jitted else (forward, backward)
