"""jit: a function that XLA compiles for each kind of arguments."""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from hlofront.bridge.client import Device
from hlofront.higher_order.calls.jit_call import Inline
from hlofront.runtime.dispatch.jit import Jitted, make_callable
from hlofront.runtime.dispatch.jit_layouts import JitLayouts, without_formats
from hlofront.runtime.dispatch.jit_shardings import JitShardings, check_device
from hlofront.transforms.arguments import ArgumentPlan
from hlofront.transforms.flatten import as_cache_key, check_callable

_unspecified: object = None
# A module of the highest layer, which only functions that ask for it load.
_VERIFY = "hlofront.inspect.miscompile.verify"


def jit(
    fun: Callable[..., object] | None = None,
    /,
    *,
    in_shardings: object = _unspecified,
    out_shardings: object = _unspecified,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Device | None = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
    verify: bool | int = False,
    buckets: Mapping[Any, Any] | None = None,
) -> Any:
    """Compile a function with XLA on its first call for each kind of arguments.

    Args:
      fun: a pure function of pytrees of arrays. Without it, jit returns a decorator.
      in_shardings, out_shardings: how arguments and results are split over devices: one Sharding,
        or PartitionSpec over the mesh in context, for all; or a tree of them that is a prefix of
        the positional arguments, or of the result. None where the arguments, or XLA, decide. A
        device stands for its own sharding. A Format also requests a layout in memory, or
        `Layout.AUTO` for XLA's choice; arguments in other layouts are copied.
      static_argnums: positions of arguments that are Python values instead of arrays; the function
        is recompiled for each of their values, which must be hashable.
      static_argnames: names of static arguments.
      donate_argnums: positions of arguments whose buffers the results may reuse; those arrays
        are deleted by the call.
      donate_argnames: names of donated arguments.
      keep_unused: whether arguments that the result does not depend on stay in the program.
      device: the device to run on; by default that of the arguments.
      backend: the platform to run on, by name.
      inline: whether programs that call the function contain its operations instead of a call:
        True for jaxprs, False for the choice of XLA, or a member of `jax.Inline`.
      compiler_options: XLA flags by name, for this function.
      verify: whether the first two calls also run operation by operation, or the number of calls
        that do. If XLA's results differ by more than rounding explains, a MiscompileError names the
        operation.
      buckets: the sizes that axes of arguments are padded to, so that calls of many lengths share
        a few programs; results are those without padding. It is a dictionary: a key is the name or
        the position of a parameter, for axis 0 of its arrays, a pair of one of these and an axis,
        or a tuple of keys whose axes share a length; a value is a tuple of ascending sizes, such as
        (128, 256, 512), "auto" for powers of two, or a growth factor. JAX has no such option.

    Returns:
      A function with the same arguments and results, and the methods `trace`, `lower`,
      `eval_shape`, `clear_cache`, `cache_report` (the compilations, with reasons) and `timings`.

    Raises:
      ValueError: if a position or name is not that of a parameter, both a device and a backend
        are passed, `inline` is neither a boolean nor an Inline, or buckets have shardings.

      A call raises ValueError if the shardings do not fit the arguments or results, devices
      differ, or a length is greater than all its buckets, and PaddingError for an operation
      whose result would depend on the padding of a bucket.

    Example:
      >>> scaled = jax.jit(lambda x, by: x * by / x.sum())
      >>> scaled(jnp.arange(4.0), 6)
      Array([0., 1., 2., 3.], dtype=float32)
    """
    if fun is None:
        return partial(
            jit,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            device=device,
            backend=backend,
            inline=inline,
            compiler_options=compiler_options,
            verify=verify,
            buckets=buckets,
        )
    check_callable(fun, "jit")
    fun = as_cache_key(fun)
    plan = ArgumentPlan(fun, static_argnums, static_argnames, donate_argnums, donate_argnames)
    jit_layouts = JitLayouts.of_user(in_shardings, out_shardings)
    in_shardings, out_shardings = without_formats(in_shardings), without_formats(out_shardings)
    jit_shardings = JitShardings.of_user(in_shardings, out_shardings, device, backend)
    check_device(device, backend)
    if jit_shardings is not None:
        device = jit_shardings.one_device()
    compiler_flags = tuple(sorted((compiler_options or {}).items()))
    options = keep_unused, inline, compiler_flags, device, backend
    jitted = Jitted(fun, plan, *options, jit_shardings=jit_shardings, jit_layouts=jit_layouts)
    key = jitted.plan_key, *options, jit_shardings, jit_layouts
    if buckets is None:
        function = make_callable(jitted, key)
        return importlib.import_module(_VERIFY).verified(function, verify) if verify else function
    if verify:
        raise ValueError(
            f"jit of {plan.signature.where} was given both `buckets` and `verify`: verify the "
            "function without buckets, by arguments of the sizes in them"
        )
    if jit_shardings is not None or jit_layouts is not None:
        raise ValueError(
            f"jit of {plan.signature.where} was given both `buckets` and shardings or formats, "
            "which are for arrays as they are passed: split padded arrays in the function, by "
            "jax.lax.with_sharding_constraint"
        )
    from hlofront.runtime.buckets.axes import bucketed_lengths
    from hlofront.runtime.dispatch.bucketed import bucketed

    return bucketed(jitted, bucketed_lengths(buckets, plan), key)
