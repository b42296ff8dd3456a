"""Calls of functions that are jitted with buckets: arguments are padded, and results sliced."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hlofront.base import tree
from hlofront.base.boundary import boundary
from hlofront.base.dtypes import ExtendedDType
from hlofront.base.tree import PyTree
from hlofront.bridge import state
from hlofront.bridge.client import ArrayImpl, PjitFunction
from hlofront.core.aval import typeof
from hlofront.core.jaxpr import DebugInfo
from hlofront.core.sizes.symbolic import SizeExpression, value_of
from hlofront.core.trace import is_eager
from hlofront.primitives.arrays import slicing
from hlofront.primitives.elementwise.converting import convert
from hlofront.runtime.array.transfer import device_put
from hlofront.runtime.buckets.axes import BucketedLength
from hlofront.runtime.buckets.program import Bucket, PaddedResult, Shape, bounded_program
from hlofront.runtime.compilation.recompilation import TraceKey
from hlofront.runtime.compilation.traced_program import TracedKey, TracedProgram
from hlofront.runtime.dispatch import stages
from hlofront.runtime.dispatch.executable import CallAnswer
from hlofront.runtime.dispatch.jit import Jitted, make_callable
from hlofront.transforms.flatten import ShapeDtypeStruct, abstract

_disable_jit = state.disable_jit
# The keyword argument with the true lengths, of programs of padded arrays.
LENGTHS = "bucket_lengths"


class BucketedJitted(Jitted):
    """A jitted function whose calls pad arguments to buckets.

    Its programs take padded arrays, and the true lengths as the keyword argument `bucket_lengths`.
    """

    __slots__ = ("exact", "in_bucket", "masked", "of_lengths")

    def __init__(
        self, exact: Jitted, of_lengths: tuple[BucketedLength, ...], key: tuple[object, ...]
    ):
        super().__init__(
            exact.fun,
            exact.plan,
            exact.keep_unused,
            exact.inline,
            exact.compiler_options,
            exact.device,
            exact.backend,
            variant=(of_lengths,),
        )
        # The function without buckets, for calls while an enclosing one is traced.
        self.exact = exact
        self.of_lengths = of_lengths
        # Calls a program of padded arrays, through C++.
        self.in_bucket = make_callable(self, (*key, "in a bucket"))
        # The operations whose operands are masked, by the sizes of the buckets.
        self.masked: dict[tuple[int, ...], tuple[str, ...]] = {}

    # ---- programs

    def traced_function(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Callable[..., PyTree]:
        """Return the function to trace, of padded dynamic arguments and lengths."""
        kwargs = {name: value for name, value in kwargs.items() if name != LENGTHS}
        fun = self.plan.with_statics(self.fun, args, kwargs)
        where = self.plan.signature.where
        names = self.plan.names(args, kwargs)
        placed = self._placed(args, kwargs, lambda leaf, axes: _Axes(axes))
        placed_args, placed_kwargs = self.plan.dynamic(*placed)
        axes = [
            x.axes if type(x) is _Axes else {}
            for x in tree.tree_leaves((placed_args, placed_kwargs))
        ]

        def padded(*arrays: Any, **named: Any) -> PyTree:
            lengths = named.pop(LENGTHS)
            leaves, in_tree = tree.tree_flatten((arrays, named))
            buckets = self._buckets(leaves, axes)
            debug_info = DebugInfo(self.traced_for, where, names)
            avals = list(map(typeof, leaves))
            program = bounded_program(fun, in_tree, avals, axes, buckets, debug_info)
            result, masked = program(lengths, leaves)
            self.masked[tuple(bucket.size for bucket in buckets.values())] = masked
            return result

        return padded

    def _buckets(self, leaves: Sequence[Any], axes: Sequence[Mapping[int, str]]) -> dict[str, Any]:
        """Return the bucket of each length, which padded arrays have as their size."""
        sizes = {
            name: typeof(leaf).shape[axis]
            for leaf, names in zip(leaves, axes, strict=True)
            for axis, name in names.items()
        }
        return {each.name: each.bucket(sizes[each.name]) for each in self.of_lengths}

    def traced(
        self, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[TracedProgram, list[object]]:
        if LENGTHS not in kwargs:
            lengths, buckets = self._lengths(args, kwargs)
            args, kwargs = self._placed(args, kwargs, partial(_described, buckets=buckets))
            kwargs = {**kwargs, LENGTHS: lengths}
        return super().traced(args, kwargs)

    def reason(self, kind: TraceKey) -> str | None:
        why = super().reason(kind)
        return None if why is None else f"{why} ({'; '.join(map(str, self.of_lengths))})"

    def _trace_and_report(
        self, args: tuple[object, ...], kwargs: dict[str, object], key: TracedKey
    ) -> TracedProgram:
        traced = super()._trace_and_report(args, kwargs, key)
        leaves, axes = [], []
        self._placed(args, kwargs, lambda leaf, names: (leaves.append(leaf), axes.append(names)))
        buckets = self._buckets(leaves, axes)
        sizes = ", ".join(f"{b.least} <= {name} <= {b.size}" for name, b in buckets.items())
        masked = self.masked.get(tuple(bucket.size for bucket in buckets.values()), ())
        masks = f", with masks of {'; '.join(masked)}" if masked else ""
        traced.why = f"{traced.why or 'the first'}, for {sizes}{masks}"
        return traced

    @property
    def called_by(self) -> PjitFunction:
        return self.in_bucket

    def of_function(self, fun: Callable[..., object]) -> Jitted:
        raise TypeError(
            f"{self.name} is jitted with buckets, and was given a value with a state: leave "
            "`buckets` out, or pass the arrays that it holds"
        )

    # ---- calls

    @boundary
    def call_padded(self, *args: object, **kwargs: object) -> CallAnswer:
        """Answer a C++ call: pad its arguments, call the program of the bucket, slice the result.

        C++ never receives an executable for the unpadded arguments.
        """
        if _disable_jit.value:
            return self.fun(*args, **kwargs), None, False
        if not is_eager():
            return self.exact.call(*args, **kwargs)
        lengths, buckets = self._lengths(args, kwargs)
        where = self.plan.signature.where
        args, kwargs = self._placed(args, kwargs, partial(_padded, buckets=buckets, where=where))
        result = self.in_bucket(*args, **kwargs, **{LENGTHS: lengths})
        return _without_padding(result, lengths, _sliced), None, False

    def _lengths(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[dict[str, np.int32], dict[str, Bucket]]:
        """Return the true lengths of a call's arguments, and the bucket of each."""
        where = self.plan.signature.where
        lengths = {each.name: each.length(args, kwargs, where) for each in self.of_lengths}
        buckets = {each.name: each.bucket(lengths[each.name]) for each in self.of_lengths}
        return {name: np.int32(length) for name, length in lengths.items()}, buckets

    def _placed(
        self,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
        change: Callable[[Any, dict[int, str]], Any],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments with `change(leaf, axes)` for each leaf that has a bucketed length.

        Args:
          args, kwargs: the arguments.
          change: takes a leaf, and the name of the length of each of its bucketed axes.
        """
        new_args, new_kwargs = list(args), dict(kwargs)
        places: dict[int | str, list[tuple[str, Any]]] = {}
        for each in self.of_lengths:
            for place in each.places:
                is_positional = place.position is not None and place.position < len(args)
                at: Any = place.position if is_positional else place.name
                places.setdefault(at, []).append((each.name, place))
        for at, named in places.items():
            holder: Any = new_args if isinstance(at, int) else new_kwargs
            if isinstance(at, str) and at not in new_kwargs:
                continue

            def changed(leaf: Any, named: Any = named) -> Any:
                return change(leaf, {place.axis_of(leaf): name for name, place in named})

            argument = holder[at]
            whole = hasattr(argument, "shape")
            holder[at] = changed(argument) if whole else tree.tree_map(changed, argument)
        return tuple(new_args), new_kwargs

    @boundary
    def eval_shape(self, *args: object, **kwargs: object) -> PyTree:
        """Return the shapes and dtypes of the result, without padding."""
        if not is_eager():
            return self.exact.eval_shape(*args, **kwargs)
        traced, leaves = self.traced(args, kwargs)
        padded = stages.Traced(self, traced, *self._stages_where(traced, leaves)).out_info
        lengths, _ = self._lengths(args, kwargs)
        return _without_padding(padded, lengths, lambda leaf, shape: leaf.update(shape=shape))


class _Axes:
    """The names of the lengths of an array's axes, instead of the array."""

    __slots__ = ("axes",)

    def __init__(self, axes: Mapping[int, str]):
        self.axes = axes


def bucketed(
    exact: Jitted, of_lengths: tuple[BucketedLength, ...], key: tuple[object, ...]
) -> PjitFunction:
    """Return a function like a jitted one that pads arguments to buckets."""
    jitted = BucketedJitted(exact, of_lengths, key)
    return make_callable(jitted, (*key, of_lengths), call=jitted.call_padded)


# ---- padding and slicing -------------------------------------------------------------------------


def _padded_shape(x: Any, axes: Mapping[int, str], buckets: Mapping[str, Bucket]) -> Any:
    return tuple(buckets[axes[i]].size if i in axes else size for i, size in enumerate(x.shape))


def _described(x: Any, axes: Mapping[int, str], *, buckets: Mapping[str, Bucket]) -> Any:
    return ShapeDtypeStruct.like(abstract(x)).update(shape=_padded_shape(x, axes, buckets))


def _padded(x: Any, axes: Mapping[int, str], *, buckets: Mapping[str, Bucket], where: str) -> Any:
    """Pad an array with zeros to its buckets.

    Arrays in the memory of this host are padded there; others are padded by an operation on their
    device, which is compiled for each length.

    Raises:
      TypeError: for random keys.
      ValueError: for an array on several devices.
    """
    shape = _padded_shape(x, axes, buckets)
    if shape == tuple(x.shape):
        return x
    if isinstance(x.dtype, ExtendedDType):
        raise TypeError(
            f"an argument of {where} that has a bucket is an array of random keys, {x.aval}: pass "
            "one key, and split it in the function"
        )
    if isinstance(x, ArrayImpl) and not _is_on_host(x):
        _check_device(x, where)
        rows = [(0, new - size, 0) for new, size in zip(shape, x.shape, strict=True)]
        return slicing.pad(x, convert(np.zeros((), x.dtype), x.dtype, x.weak_type), rows)
    padded = np.zeros(shape, x.dtype)
    padded[tuple(map(slice, x.shape))] = x
    return device_put(padded, x.sharding) if getattr(x, "committed", False) else padded


def _is_on_host(x: Any) -> bool:
    """Return whether an array is on one CPU device, where NumPy reads it, and strongly typed."""
    return (
        x.is_fully_addressable
        and len(x.devices()) == 1
        and _platform(x) == "cpu"
        and not (x.weak_type)
    )


def _platform(x: Any) -> str:
    (device,) = x.devices()
    return device.platform


def _check_device(x: Any, where: str) -> None:
    if len(x.devices()) > 1:
        raise ValueError(
            f"an argument of {where} that has a bucket is on {len(x.devices())} devices and would "
            "have to be padded there: pad it to the bucket before it is split over them"
        )


def _without_padding(
    result: PaddedResult, lengths: Mapping[str, Any], cut: Callable[[Any, Any], Any]
) -> PyTree:
    """Return a result with `cut(leaf, shape)` for each leaf that is padded."""
    if not any(result.shapes):
        return result.value
    leaves, structure = tree.tree_flatten(result.value)
    return structure.unflatten(
        [
            leaf if shape is None else cut(leaf, _known(shape, lengths))
            for leaf, shape in zip(leaves, result.shapes, strict=True)
        ]
    )


def _known(shape: Shape, lengths: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(
        int(value_of(size, lengths)) if isinstance(size, SizeExpression) else size for size in shape
    )


def _sliced(x: Any, shape: tuple[int, ...]) -> Any:
    if shape == tuple(x.shape):
        return x
    if isinstance(x.dtype, ExtendedDType) or not _is_on_host(x):
        return slicing.slice(x, (0,) * len(shape), shape)
    part = np.asarray(x)[tuple(map(slice, shape))]
    return device_put(part, x.sharding if x.committed else None)
