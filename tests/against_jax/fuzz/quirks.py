"""What jax does and hlofront does not, imitated: a drawn program that differs runs once more so.

If hlofront gives what jax gave while it imitates a quirk, that quirk is the difference.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import hlofront
from hlofront.bridge import state
from hlofront.core import rules
from hlofront.core.symbolic_zeros import Zero
from hlofront.higher_order.calls.jit_call import jit_rules
from hlofront.higher_order.custom_rules.custom_jvp import custom_jvp_call_p
from hlofront.higher_order.selecting import nonzero_flags

Imitation = Callable[[], AbstractContextManager[Any]]
# Imitations of quirks by which results may differ, and the steps of which a program has one.
Imitations = tuple[tuple[Imitation, frozenset[str]], ...]


@contextlib.contextmanager
def with_rule(table: Any, primitive: Any, rule: Callable[..., Any]) -> Iterator[None]:
    own = table[primitive]
    table[primitive] = functools.partial(rule, own)
    try:
        yield
    finally:
        table[primitive] = own


def dropped_derivatives() -> AbstractContextManager[None]:
    """In this block custom_jvp has no derivative by what its function closes over, as in jax."""

    def dropping(derive, primals, tangents, **params):
        count = params["num_consts"]
        kept = [*map(Zero.of, primals[:count]), *tangents[count:]]
        if any(nonzero_flags(kept)):
            return derive(primals, kept, **params)
        return _without_tangents(primals, params)

    return with_rule(rules.jvp, custom_jvp_call_p, dropping)


def unread_derivatives() -> AbstractContextManager[None]:
    """In this block custom_jvp has no derivative if its function closes over a perturbed value.

    Its rule may close over it as well. Once that has gone jax fails, unless nothing reads the
    tangents, so that jax removes them.
    """

    def unread(derive, primals, tangents, **params):
        if any(nonzero_flags(tangents[: params["num_consts"]])):
            return _without_tangents(primals, params)
        return derive(primals, tangents, **params)

    return with_rule(rules.jvp, custom_jvp_call_p, unread)


def _without_tangents(primals, params):
    results = custom_jvp_call_p.bind(*primals, **params)
    return results, list(map(Zero.of, results))


def first_generators() -> AbstractContextManager[Any]:
    """In this block a jitted function keeps the default_prng_impl that it was first traced under.

    jax traces anew for each value of other options, but not of this one.
    """
    jit = hlofront.jit

    def jit_once_for_generators(function, **options):
        generators = {}

        @functools.wraps(function)
        def traced(*args, **keywords):
            context = []
            for part in state.trace_context():
                if isinstance(part, tuple):
                    part = tuple(one for one in part if "jax_default_prng_impl" not in one)
                context.append(part)
            own = hlofront.config.jax_default_prng_impl
            with hlofront.default_prng_impl(generators.setdefault(tuple(context), own)):
                return function(*args, **keywords)

        return jit(traced, **options)

    return mock.patch.object(hlofront, "jit", jit_once_for_generators)


def donating_derivatives() -> AbstractContextManager[Any]:
    """In this block derivatives of a call donate its donated operands, and all tangents of such.

    jax warns then of what no result can use, and fails where it needs a deleted array later.
    """

    def donating(params, origins):
        donated = params["donated_invars"]
        flags = [any(donated) if index is None else donated[index] for index in origins]
        return {**params, "donated_invars": tuple(flags)}

    return mock.patch.object(jit_rules, "adapted", donating)


OF_RESULTS: Imitations = (
    (donating_derivatives, frozenset({"jit"})),
    (first_generators, frozenset({"jit_under_options"})),
)
