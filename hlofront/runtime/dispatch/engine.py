"""Eager execution: each operation on concrete values is a small program, compiled once."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hlofront.base import errors
from hlofront.base.boundary import boundary
from hlofront.base.elements import exact_dtype_types
from hlofront.base.typing import Params
from hlofront.core import rules
from hlofront.core.aval import is_value, token_aval, typeof
from hlofront.core.primitive import Primitive
from hlofront.core.references import is_reference
from hlofront.core.trace import RuleTrace, engine, plug_in_engine
from hlofront.runtime.dispatch.executable import CallAnswer
from hlofront.runtime.dispatch.jit import Jitted, make_callable
from hlofront.runtime.sharding.placement import choose_device, put
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.stage import EAGER

# The number of compiled calls that each primitive caches, one per set of parameters.
_MAX_KEPT = 1024


class Engine(RuleTrace):
    """The bottom interpreter of the stack, which runs each operation on concrete operands."""

    __slots__ = ()

    def lift(self, x: object) -> Any:
        aval = typeof(x)
        # Tokens and mutable references are not converted.
        if aval is token_aval or is_reference(aval):
            return x
        device, committed = choose_device(())
        return put(x, aval, device, committed)

    def process(self, primitive: Primitive, args: tuple[object, ...], params: Params) -> object:
        try:
            call = primitive.eager[tuple(params.items()) if params else None]
        except (KeyError, TypeError):
            call = _make_call(primitive, params)
        return self._call(primitive, call, args)

    def run_compiled(self, primitive: Primitive, args: tuple[object, ...], params: Params) -> Any:
        key = "compiled", *params.items()
        try:
            call = primitive.eager[key]
        except (KeyError, TypeError):
            call = _compiled(primitive, params, key)
        return self._call(primitive, call, args)

    def _call(
        self, primitive: Primitive, call: Callable[..., object], args: tuple[object, ...]
    ) -> object:
        for x in args:
            if type(x) in exact_dtype_types:  # C++ would narrow such a scalar.
                args = tuple([self.lift(x) if type(x) in exact_dtype_types else x for x in args])
                break
        try:
            return call(*args)
        except (TypeError, ValueError, errors.ShardingTypeError) as error:
            errors.add_operands(error, primitive.name, args)
            raise


def _make_call(primitive: Primitive, params: Params) -> Callable[..., object]:
    """Return the cached function that runs a primitive with these parameters."""
    rule = rules.run.get(primitive)
    if rule is not None:
        if primitive in rules.run.foreign:
            return lambda *args: _run_checked(primitive, rule, args, params)
        return lambda *args: rule(*args, **params)
    return _compiled(primitive, params, tuple(params.items()) if params else None)


def apply_primitive(prim: Primitive, *args: object, **params: object) -> Any:
    """Run an operation on arrays as a compiled program, even if the primitive has an `impl`.

    Other packages register this as the impl: `p.def_impl(functools.partial(apply_primitive, p))`.

    Args:
      prim: the primitive.
      args: the operands.
      params: the parameters of the operation.

    Returns:
      The result, or a list of results where the primitive has several.

    Raises:
      NoRuleError: if the primitive has no infer rule.
    """
    return engine().run_compiled(prim, args, params)


def _compiled(primitive: Primitive, params: Params, key: object) -> Callable[..., object]:
    """Return the compiled call of a primitive with these parameters, cached under a key."""
    if primitive not in rules.infer and primitive not in rules.staged:
        by_others = f"{primitive.name}_p.def_impl(rule)"
        raise errors.missing_rule(primitive.name, "run", "", "Evaluation rule", by_others)

    def operation(*args: object) -> object:
        return primitive.bind(*args, **params)

    operation.__name__ = operation.__qualname__ = primitive.name
    jitted = Jitted(operation, ArgumentPlan(operation), keep_unused=True, traced_for=EAGER)

    def run(*args: object) -> object:
        return jitted.compile_and_call(args, {})[0]

    # C++ calls `run` while jit is disabled: nothing runs without an executable.
    call = make_callable(jitted, (), fun=run, call=partial(_run, jitted))
    if primitive.carries_programs:
        return call
    try:
        if len(primitive.eager) >= _MAX_KEPT:
            primitive.eager.clear()
        primitive.eager[key] = call
    except TypeError:  # A parameter is unhashable: the operation is compiled at each call.
        return call
    return call


def _run_checked(
    primitive: Primitive,
    rule: Callable[..., object],
    args: tuple[object, ...],
    params: Params,
) -> object:
    """Check the operands of an external primitive; return the results of its eager rule."""
    for position, x in enumerate(args):
        if not is_value(x):
            raise TypeError(
                f"Error interpreting argument to {primitive} as a JAX value. The problematic value "
                f"is of type {type(x)} and was passed to {primitive} at position {position}."
            )
    return rule(*args, **params)


@boundary
def _run(jitted: Jitted, *args: object) -> CallAnswer:
    return jitted.compile_and_call(args, {})


plug_in_engine(Engine())
