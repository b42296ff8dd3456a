"""Inputs for every primitive: one file per file of hlofront/primitives, each a list of samples.

A sample names a function of `lax` (or any function of arrays), its operands and its parameters:

    sample(lax.sin, f32[3, 4], reference=np.sin)
    sample(lax.cumsum, f32[3, 4], axis=1, reference=lambda x, axis: np.cumsum(x, axis))
    sample(lax.sqrt, f32[3].between(0, 9))
    sample(lax.gather, f32[4, 5], np.array([[0], [2]]), dimension_numbers=..., ...)

Operands are specs (dtype and shape; values are drawn from a seeded generator) or values. The
systematic tests try each sample in every way: infer = run, jit = eager, against `reference`, ...
"""

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.cases import Case, Spec

ALL: list["Sample"] = []
# An error's class, and words that its message has.
Refusal = tuple[type[Exception], str]


@dataclasses.dataclass(kw_only=True, repr=False)
class Sample(Case):
    """One way to call one function of `lax`, or any function of arrays."""

    name: str
    # The file of samples that has it.
    file: str
    # Computes with NumPy what the function should give.
    reference: Callable[..., Any] | None
    computes_in: str | None
    unlike_loop: str | None
    # By "jvp", "vjp", "twice" and "vmap": what is raised there.
    refused: dict[str, Refusal]

    def operand_values(self) -> list[Any]:
        """Return the operands, with values instead of specs, equal ones for each call."""
        return list(self.arguments(self.values())[0])

    def call(self, *values: Any) -> Any:
        return self.function(*values, **self.keywords)

    def __repr__(self):
        return self.name


def sample(
    function: Callable[..., Any],
    *operands: Any,
    reference: Callable[..., Any] | None = None,
    name: str | None = None,
    unlike_jax: str | None = None,
    ulps: int | None = None,
    not_smooth: str | None = None,
    computes_in: str | None = None,
    unlike_loop: str | None = None,
    not_differentiable: Refusal | None = None,
    not_transposed: Refusal | None = None,
    not_twice: Refusal | None = None,
    not_batched: Refusal | None = None,
    **keywords: Any,
) -> None:
    """Register a sample.

    Args:
      function: a function of arrays, and its operands.
      reference: takes the operands and parameters and computes with NumPy.
      name: of the sample, where that of the function with its operands is not distinct.
      unlike_jax: why values differ from jax's, where they should.
      ulps: how many units in the last place results may be off, where that is more than usual.
      not_smooth: why numerical differences say nothing of the derivative: ties, steps.
      computes_in: the dtype that says how far derivatives may be off, where digits are lost inside.
      unlike_loop: why `vmap` gives other values, and maybe shapes, than a loop, as jax's does.
      not_differentiable: what `jvp` raises, where it refuses as jax does: the class, and words of
        the message.
      not_transposed: what `vjp` raises, where `jvp` does not refuse.
      not_twice: what derivatives of derivatives raise, where the first ones do not refuse.
      not_batched: what `vmap` raises.
      keywords: what the function is given by name.
    """
    if name is None:
        shown = [repr(x) if isinstance(x, Spec) else _shown(x) for x in operands]
        shown += [f"{key}={_shown(value)}" for key, value in keywords.items()]
        name = f"{function.__name__}({', '.join(shown)})"
    # The file that calls us; files may import one another.
    file = sys._getframe(1).f_globals["__name__"].rpartition(".")[2]
    refused = {
        "jvp": not_differentiable,
        "vjp": not_transposed,
        "twice": not_twice,
        "vmap": not_batched,
    }
    ALL.append(
        Sample(
            function=function,
            operands=operands,
            keywords=keywords,
            reference=reference,
            name=name[:150],
            unlike_jax=unlike_jax,
            ulps=ulps,
            not_smooth=not_smooth,
            computes_in=computes_in,
            unlike_loop=unlike_loop,
            refused={what: refusal for what, refusal in refused.items() if refusal},
            file=file,
        )
    )


def _shown(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype.name}{list(x.shape)}"
    return getattr(x, "__name__", None) or repr(x)
