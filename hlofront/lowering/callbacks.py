"""Callbacks as StableHLO: custom calls that find the host's function by its number."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from hlofront.base.elements import ExtendedDType
from hlofront.bridge import state
from hlofront.core.aval import ShapedArray, token_aval
from hlofront.core.effects import Effect
from hlofront.core.rules import lower
from hlofront.lowering import types
from hlofront.primitives import callbacks as c


class HostCall:
    """What a module calls on the host: a function of flat arrays, and of what types they are.

    runtime/host_calls.py makes of it what the device's runtime calls.
    """

    __slots__ = ("avals_in", "avals_out", "function", "name", "ordered", "x64")

    def __init__(
        self,
        name: str,
        function: Callable[..., Sequence[Any]],
        avals_in: Sequence[Any],
        avals_out: Sequence[Any],
        ordered: bool,
    ):
        # The primitive's.
        self.name = name
        self.function = function
        self.avals_in = avals_in
        self.avals_out = avals_out
        # Whether it is handed a token before the arrays, and returns one before the results.
        self.ordered = ordered
        # Whether 64-bit types were on where the program was made.
        self.x64 = bool(state.enable_x64.value)


_TARGETS = {
    "cpu": "xla_ffi_python_cpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}
# Called by each device with its own part of the operands.
_PARTITIONED = {"cpu": "xla_ffi_partitioned_python_cpu_callback"}


@lower(c.pure_callback_p)
def _(build, *operands, callback, **_):
    return _call(build, callback, operands, side_effect=False)


@lower(c.io_callback_p)
def _(build, *operands, callback, ordered, **_):
    return _call(build, callback, operands, c.ordered_io_effect if ordered else None)


@lower(c.debug_callback_p)
def _(build, *operands, callback, effect, partitioned):
    return _call(build, callback, operands, effect if effect.ordered else None, partitioned)


@lower(c.debug_print_p)
def _(build, *operands, ordered, partitioned, **params):
    callback = partial(c.print_now, **params)
    effect = c.ordered_debug_effect if ordered else None
    return _call(build, callback, operands, effect, partitioned)


def _call(
    build: Any,
    function: Callable[..., Any],
    operands: Sequence[Any],
    effect: Effect | None = None,
    partitioned: bool = False,
    side_effect: bool = True,
) -> list[Any]:
    """Emit the call of a host function; `effect` is the one that it is ordered by, if any."""
    name = build.equation.primitive.name
    platform = build.module.platform
    targets = {**_TARGETS, **_PARTITIONED} if partitioned else _TARGETS
    if platform not in targets:
        raise ValueError(
            f"{name}: programs on {platform} cannot call Python functions; those on "
            f"{', '.join(sorted(_TARGETS))} can"
        )
    ordered = () if effect is None else (effect,)
    avals_in = [_physical(aval) for aval in build.avals_in]
    avals_out = [_physical(aval) for aval in build.avals_out]
    module = build.module
    number = len(module.callbacks)
    module.callbacks.append(HostCall(name, function, avals_in, avals_out, bool(ordered)))
    tokens = [token_aval] * len(ordered)
    results = build.ops(
        "stablehlo.custom_call",
        [*build.tokens_of(ordered), *operands],
        [*tokens, *avals_out],
        call_target_name=types.string(targets[platform]),
        api_version=types.i32(4),
        has_side_effect=types.boolean(side_effect),
        backend_config=types.attribute(f"{{index = {number} : ui64}}"),
        operand_layouts=_layouts([*tokens, *avals_in]),
        result_layouts=_layouts([*tokens, *avals_out]),
    )
    return build.take_tokens(ordered, results)


def _physical(aval: Any) -> Any:
    """The array that stands for one of elements that NumPy does not know: keys as integers."""
    if isinstance(aval.dtype, ExtendedDType):
        return ShapedArray(*aval.dtype.physical(aval.shape))
    return aval.strip_weak_type()


def _layouts(avals: Sequence[Any]) -> Any:
    """The host's functions are given, and give, arrays in row-major order."""
    return types.attribute(f"[{', '.join(_row_major(getattr(a, 'ndim', 0)) for a in avals)}]")


def _row_major(rank: int) -> str:
    body = f"[{', '.join(map(str, reversed(range(rank))))}]" if rank else ""
    return f"dense<{body}> : tensor<{rank}xindex>"
