"""Tracing under the options that forbid promotion, as plain calls, derivatives and batches."""

from typing import Any

import numpy as np

import hlofront as jax
import hlofront.numpy as jnp

OPTIONS = {
    "dtypes": jax.numpy_dtype_promotion("strict"),
    "ranks": jax.numpy_rank_promotion("raise"),
}
FORMS = ("plain", "jvp", "vjp", "vmap")


def traced(function: Any, values: list[Any], form: str) -> Any:
    """The types of the results of a function, or of its derivative, or over a batch."""
    places = [i for i, x in enumerate(values) if jnp.issubdtype(x.dtype, np.inexact)]
    moving = tuple(values[i] for i in places)

    def of_moving(*args: Any) -> Any:
        whole = list(values)
        for i, x in zip(places, args):
            whole[i] = x
        return [
            x
            for x in jax.tree.leaves(function(*whole))
            if jnp.issubdtype(getattr(x, "dtype", np.int32), np.inexact)
        ]

    def pulled_back(*args: Any) -> Any:
        results, pullback = jax.vjp(of_moving, *args)
        return pullback(results)

    if form == "plain":
        return jax.make_jaxpr(function)(*values).out_avals
    if form == "jvp":
        return jax.make_jaxpr(lambda *args: jax.jvp(of_moving, args, args))(*moving).out_avals
    if form == "vjp":
        return jax.make_jaxpr(pulled_back)(*moving).out_avals
    batches = [jnp.stack([x, x]) for x in values]
    return jax.make_jaxpr(jax.vmap(function))(*batches).out_avals


def differences(function: Any, values: list[Any], option: str) -> list[str]:
    """What an option changes: an error, or other types, by the form of the call."""
    said: list[str] = []
    for form in FORMS:
        try:
            wanted = traced(function, values, form)
        except (TypeError, ValueError, NotImplementedError):
            if form == "plain":
                raise
            continue  # It has no derivative, or takes no batch.
        try:
            with OPTIONS[option]:
                given = traced(function, values, form)
        except (TypeError, ValueError) as error:
            said.append(f"{form}: {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        if given != wanted:
            said.append(f"{form}: {given} instead of {wanted}")
    return said
