# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import _GeneratorContextManager
from typing import Any, ClassVar, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from hlofront import ad as ad
from hlofront import ad_checkpoint as ad_checkpoint
from hlofront import api_util as api_util
from hlofront import bundle as bundle
from hlofront import core as core
from hlofront import custom_batching as custom_batching
from hlofront import custom_derivatives as custom_derivatives
from hlofront import debug as debug
from hlofront import distributed as distributed
from hlofront import dlpack as dlpack
from hlofront import dtypes as dtypes
from hlofront import errors as errors
from hlofront import experimental as experimental
from hlofront import export as export
from hlofront import extend as extend
from hlofront import ffi as ffi
from hlofront import flatten_util as flatten_util
from hlofront import image as image
from hlofront import inspect as inspect
from hlofront import interpreters as interpreters
from hlofront import lax as lax
from hlofront import memory as memory
from hlofront import monitoring as monitoring
from hlofront import nn as nn
from hlofront import numpy as numpy
from hlofront import ops as ops
from hlofront import profiler as profiler
from hlofront import random as random
from hlofront import ref as ref
from hlofront import scipy as scipy
from hlofront import sharding as sharding
from hlofront import stages as stages
from hlofront import test_util as test_util
from hlofront import tree as tree
from hlofront import tree_util as tree_util
from hlofront import typing as typing
from hlofront.base.caches import clear_caches as clear_caches
from hlofront.base.config import allow_f16_reductions as allow_f16_reductions
from hlofront.base.config import array_garbage_collection_guard as array_garbage_collection_guard
from hlofront.base.config import auto_pcast as auto_pcast
from hlofront.base.config import check_tracer_leaks as check_tracer_leaks
from hlofront.base.config import checking_leaks as checking_leaks
from hlofront.base.config import config as config
from hlofront.base.config import debug_infs as debug_infs
from hlofront.base.config import debug_key_reuse as debug_key_reuse
from hlofront.base.config import debug_nans as debug_nans
from hlofront.base.config import default_device as default_device
from hlofront.base.config import default_matmul_precision as default_matmul_precision
from hlofront.base.config import default_prng_impl as default_prng_impl
from hlofront.base.config import disable_jit as disable_jit
from hlofront.base.config import enable_checks as enable_checks
from hlofront.base.config import enable_custom_prng as enable_custom_prng
from hlofront.base.config import enable_x64 as enable_x64
from hlofront.base.config import explain_cache_misses as explain_cache_misses
from hlofront.base.config import (
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
)
from hlofront.base.config import legacy_prng_key as legacy_prng_key
from hlofront.base.config import log_compiles as log_compiles
from hlofront.base.config import no_execution as no_execution
from hlofront.base.config import no_tracing as no_tracing
from hlofront.base.config import numpy_dtype_promotion as numpy_dtype_promotion
from hlofront.base.config import numpy_rank_promotion as numpy_rank_promotion
from hlofront.base.config import (
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
)
from hlofront.base.config import softmax_custom_jvp as softmax_custom_jvp
from hlofront.base.config import thread_guard as thread_guard
from hlofront.base.config import threefry_partitionable as threefry_partitionable
from hlofront.base.config import transfer_guard_device_to_device as transfer_guard_device_to_device
from hlofront.base.config import transfer_guard_device_to_host as transfer_guard_device_to_host
from hlofront.base.config import transfer_guard_host_to_device as transfer_guard_host_to_device
from hlofront.base.elements import float0 as float0
from hlofront.base.user_context import make_user_context as make_user_context
from hlofront.bridge.client import Device as Device
from hlofront.core.aval import typeof as typeof
from hlofront.core.names import named_call as named_call
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.core.sharding.mesh_context import get_abstract_mesh as get_abstract_mesh
from hlofront.core.sharding.mesh_context import get_mesh as get_mesh
from hlofront.core.sharding.mesh_context import set_mesh as set_mesh
from hlofront.core.sharding.mesh_context import use_abstract_mesh as use_abstract_mesh
from hlofront.core.sharding.partition import P as P
from hlofront.higher_order.checkpoint_policies import checkpoint_policies as checkpoint_policies
from hlofront.higher_order.custom_gradient import custom_gradient as custom_gradient
from hlofront.higher_order.custom_jvp import custom_jvp as custom_jvp
from hlofront.higher_order.custom_vjp import custom_vjp as custom_vjp
from hlofront.higher_order.jit_call import Inline as Inline
from hlofront.inspect.memory_fit import fits as fits
from hlofront.lax import GatherScatterMode
from hlofront.pjrt.compile import CompilerEffortLevel as CompilerEffortLevel
from hlofront.pjrt.device_mesh import make_mesh as make_mesh
from hlofront.pjrt.devices import default_backend as default_backend
from hlofront.pjrt.devices import device_count as device_count
from hlofront.pjrt.devices import devices as devices
from hlofront.pjrt.devices import host_count as host_count
from hlofront.pjrt.devices import host_id as host_id
from hlofront.pjrt.devices import host_ids as host_ids
from hlofront.pjrt.devices import local_device_count as local_device_count
from hlofront.pjrt.devices import local_devices as local_devices
from hlofront.pjrt.devices import process_count as process_count
from hlofront.pjrt.devices import process_index as process_index
from hlofront.pjrt.devices import process_indices as process_indices
from hlofront.pjrt.named_shardings import NamedSharding as NamedSharding
from hlofront.pjrt.targets import target as target
from hlofront.pjrt.targets import targets as targets
from hlofront.primitives.linalg.dot_general import PrecisionLike
from hlofront.primitives.references.references import free_ref as free_ref
from hlofront.primitives.references.references import freeze as freeze
from hlofront.runtime.array.reference import Ref as Ref
from hlofront.runtime.array.shards import Shard as Shard
from hlofront.runtime.array.transfer import device_put as device_put
from hlofront.runtime.array.transfer import live_arrays as live_arrays
from hlofront.runtime.compilation.recompilation import max_compiles as max_compiles
from hlofront.runtime.compilation.recompilation import no_recompile as no_recompile
from hlofront.runtime.debugging.environment import print_environment_info as print_environment_info
from hlofront.runtime.dispatch.forward_backward import fwd_and_bwd as fwd_and_bwd
from hlofront.runtime.dispatch.pmap import pmap as pmap
from hlofront.runtime.dispatch.stages import Lowered, Traced
from hlofront.transforms.flatten import ShapeDtypeStruct as ShapeDtypeStruct
from hlofront.transforms.linear_transpose import linear_transpose as linear_transpose
from hlofront.transforms.make_jaxpr import make_jaxpr as make_jaxpr
from hlofront.typing import ArrayLike, DTypeLike

Sharding: TypeAlias = Any
PartitionSpec: TypeAlias = Any
_Tree = TypeVar("_Tree")
_P = ParamSpec("_P")
_R = TypeVar("_R")
_R_co = TypeVar("_R_co", covariant=True)

class Array:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    __array_priority__: ClassVar[int]
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __add__(self, other: ArrayLike, /) -> Array: ...
    def __radd__(self, other: ArrayLike, /) -> Array: ...
    def __sub__(self, other: ArrayLike, /) -> Array: ...
    def __rsub__(self, other: ArrayLike, /) -> Array: ...
    def __mul__(self, other: ArrayLike, /) -> Array: ...
    def __rmul__(self, other: ArrayLike, /) -> Array: ...
    def __truediv__(self, other: ArrayLike, /) -> Array: ...
    def __rtruediv__(self, other: ArrayLike, /) -> Array: ...
    def __floordiv__(self, other: ArrayLike, /) -> Array: ...
    def __rfloordiv__(self, other: ArrayLike, /) -> Array: ...
    def __mod__(self, other: ArrayLike, /) -> Array: ...
    def __rmod__(self, other: ArrayLike, /) -> Array: ...
    def __divmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
    def __rdivmod__(self, other: ArrayLike, /) -> tuple[Array, Array]: ...
    def __pow__(self, other: ArrayLike, /) -> Array: ...
    def __rpow__(self, other: ArrayLike, /) -> Array: ...
    def __matmul__(self, other: ArrayLike, /) -> Array: ...
    def __rmatmul__(self, other: ArrayLike, /) -> Array: ...
    def __and__(self, other: ArrayLike, /) -> Array: ...
    def __rand__(self, other: ArrayLike, /) -> Array: ...
    def __or__(self, other: ArrayLike, /) -> Array: ...
    def __ror__(self, other: ArrayLike, /) -> Array: ...
    def __xor__(self, other: ArrayLike, /) -> Array: ...
    def __rxor__(self, other: ArrayLike, /) -> Array: ...
    def __lshift__(self, other: ArrayLike, /) -> Array: ...
    def __rlshift__(self, other: ArrayLike, /) -> Array: ...
    def __rshift__(self, other: ArrayLike, /) -> Array: ...
    def __rrshift__(self, other: ArrayLike, /) -> Array: ...
    def __eq__(self, other: object, /) -> Array: ...  # type: ignore[override]
    def __ne__(self, other: object, /) -> Array: ...  # type: ignore[override]
    def __lt__(self, other: ArrayLike, /) -> Array: ...
    def __le__(self, other: ArrayLike, /) -> Array: ...
    def __gt__(self, other: ArrayLike, /) -> Array: ...
    def __ge__(self, other: ArrayLike, /) -> Array: ...
    def __neg__(self) -> Array: ...
    def __pos__(self) -> Array: ...
    def __abs__(self) -> Array: ...
    def __invert__(self) -> Array: ...
    def __round__(self, ndigits: int = 0, /) -> Array: ...
    def __getitem__(self, index: Any, /) -> Array: ...
    def __iter__(self) -> Iterator[Array]: ...
    def __reversed__(self) -> Iterator[Array]: ...
    def __len__(self) -> int: ...
    def __contains__(self, other: ArrayLike, /) -> bool: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]: ...
    def __dlpack__(self, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    @property
    def T(self) -> Array: ...
    def addressable_data(self, index: int) -> Array: ...
    @property
    def addressable_shards(self) -> list[Shard]: ...
    def all(
        self,
        axis: int | Sequence[int] | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def any(
        self,
        axis: int | Sequence[int] | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def argmax(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array: ...
    def argmin(
        self, axis: int | None = None, out: None = None, keepdims: bool | None = None
    ) -> Array: ...
    def argpartition(self, kth: int, axis: int = -1) -> Array: ...
    def argsort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: str | None = None,
        stable: bool = True,
        descending: bool = False,
        dtype: DTypeLike | None = None,
    ) -> Array: ...
    def astype(
        self, dtype: DTypeLike, copy: bool = False, device: Device | Sharding | None = None
    ) -> Array: ...
    @property
    def at(self) -> At: ...
    @property
    def aval(self) -> Any: ...
    def block_until_ready(self) -> Array: ...
    def byteswap(self) -> Array: ...
    def choose(
        self, choices: ArrayLike | Sequence[ArrayLike], out: None = None, mode: str = "raise"
    ) -> Array: ...
    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array: ...
    def clone(self) -> Array: ...
    @property
    def committed(self) -> bool: ...
    def compress(
        self,
        condition: ArrayLike,
        axis: int | None = None,
        *,
        out: None = None,
        size: int | None = None,
        fill_value: ArrayLike = 0,
    ) -> Array: ...
    def conj(self) -> Array: ...
    def conjugate(self) -> Array: ...
    def copy(self, order: str | None = None) -> Array: ...
    def copy_to_host_async(self) -> None: ...
    def cumprod(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array: ...
    def cumsum(
        self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
    ) -> Array: ...
    def delete(self) -> None: ...
    @property
    def device(self) -> Any: ...
    @property
    def device_buffer(self) -> Any: ...
    @property
    def device_buffers(self) -> Any: ...
    def devices(self) -> set[Any]: ...
    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array: ...
    def dot(
        self,
        b: ArrayLike,
        *,
        precision: PrecisionLike = None,
        preferred_element_type: DTypeLike | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
    ) -> Array: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def flat(self) -> Any: ...
    def flatten(
        self, order: str = "C", *, out_sharding: NamedSharding | PartitionSpec | None = None
    ) -> Array: ...
    @property
    def format(self) -> Any: ...
    @property
    def global_shards(self) -> list[Shard]: ...
    @property
    def imag(self) -> Array: ...
    def is_deleted(self) -> bool: ...
    @property
    def is_fully_addressable(self) -> bool: ...
    @property
    def is_fully_replicated(self) -> bool: ...
    def is_ready(self) -> bool: ...
    def item(self, *args: int | tuple[int, ...]) -> Any: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def mT(self) -> Array: ...
    def max(
        self,
        axis: int | Sequence[int] | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def mean(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
    ) -> Array: ...
    def min(
        self,
        axis: int | Sequence[int] | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def ndim(self) -> int: ...
    def nonzero(
        self,
        *,
        size: int | None = None,
        fill_value: ArrayLike | tuple[ArrayLike, ...] | None = None,
    ) -> tuple[Array, ...]: ...
    def on_device_size_in_bytes(self) -> int: ...
    def platform(self) -> str: ...
    def prod(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array: ...
    def ptp(
        self, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False
    ) -> Array: ...
    def ravel(
        self, order: str = "C", *, out_sharding: NamedSharding | PartitionSpec | None = None
    ) -> Array: ...
    @property
    def real(self) -> Array: ...
    def repeat(
        self,
        repeats: ArrayLike,
        axis: int | None = None,
        *,
        total_repeat_length: int | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
    ) -> Array: ...
    def reshape(
        self,
        *args: int | Sequence[int],
        order: str = "C",
        copy: bool | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
    ) -> Array: ...
    def round(self, decimals: int = 0, out: None = None) -> Array: ...
    def searchsorted(
        self,
        v: ArrayLike,
        side: str = "left",
        sorter: ArrayLike | None = None,
        *,
        method: str = "scan",
    ) -> Array: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def sharding(self) -> Any: ...
    @property
    def size(self) -> int: ...
    def sort(
        self,
        axis: int | None = -1,
        *,
        kind: None = None,
        order: str | None = None,
        stable: bool = True,
        descending: bool = False,
    ) -> Array: ...
    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array: ...
    def std(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int | float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array: ...
    def sum(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        promote_integers: bool = True,
    ) -> Array: ...
    def swapaxes(self, axis1: int, axis2: int) -> Array: ...
    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        out: None = None,
        mode: str | GatherScatterMode | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        fill_value: ArrayLike | None = None,
    ) -> Array: ...
    def to_device(
        self, device: Device | Sharding | None, *, stream: int | None = None
    ) -> Array: ...
    def tobytes(self, order: str = "C") -> bytes: ...
    def tolist(self) -> Any: ...
    def trace(
        self,
        offset: ArrayLike = 0,
        axis1: int = 0,
        axis2: int = 1,
        dtype: DTypeLike | None = None,
        out: None = None,
    ) -> Array: ...
    @property
    def traceback(self) -> Any: ...
    def transpose(self, *args: int | Sequence[int] | None) -> Array: ...
    def unsafe_buffer_pointer(self) -> int: ...
    def var(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        out: None = None,
        ddof: int | float = 0,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        correction: int | float | None = None,
    ) -> Array: ...
    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array: ...
    @property
    def weak_type(self) -> bool: ...
    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...

class AtIndex:
    """`x.at[index]`: its methods return an array of which the elements there are others."""

    def add(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def apply(
        self,
        func: Callable[[Array], Array],
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def divide(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        fill_value: ArrayLike | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def max(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def min(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def mul(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def multiply(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def power(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def set(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...
    def subtract(
        self,
        values: ArrayLike,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | GatherScatterMode | None = None,
        out_sharding: NamedSharding | PartitionSpec | None = None,
        wrap_negative_indices: bool = True,
    ) -> Array: ...

class At:
    def __getitem__(self, index: Any, /) -> AtIndex: ...

class Jitted(Protocol[_P, _R_co]):
    """What jit makes of a function: called as the function is, and the way to its stages."""

    __wrapped__: Callable[..., Any]
    __name__: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co: ...
    @overload
    def __get__(self, instance: None, owner: Any, /) -> Jitted[_P, _R_co]: ...
    @overload
    def __get__(self, instance: Any, owner: Any = None, /) -> Jitted[..., _R_co]: ...
    # Shapes stand for arrays here.
    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...
    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...
    def _cache_size(self) -> int: ...
    def cache_report(self) -> Any: ...
    def timings(self) -> Any: ...

@overload
def jit(
    fun: Callable[_P, _R],
    /,
    *,
    in_shardings: object = None,
    out_shardings: object = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
) -> Jitted[_P, _R]: ...
@overload
def jit(
    *,
    in_shardings: object = None,
    out_shardings: object = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
) -> Callable[[Callable[_P, _R]], Jitted[_P, _R]]: ...
def grad(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[_P, Any]: ...
def value_and_grad(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Callable[_P, tuple[Any, Any]]: ...
def jacfwd(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[_P, Any]: ...
def jacrev(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, Any]: ...
def jacobian(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[_P, Any]: ...
def hessian(
    fun: Callable[_P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[_P, Any]: ...
def vmap(
    fun: Callable[_P, _R],
    in_axes: int | Sequence[object] | None = 0,
    out_axes: object = 0,
    axis_name: Hashable = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable = None,
    sum_match: bool = False,
) -> Callable[_P, _R]: ...
@overload
def checkpoint(
    fun: Callable[_P, _R],
    /,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., object] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: object = None,
) -> Callable[_P, _R]: ...
@overload
def checkpoint(
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., object] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: object = None,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
@overload
def remat(
    fun: Callable[_P, _R],
    /,
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., object] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: object = None,
) -> Callable[_P, _R]: ...
@overload
def remat(
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., object] | None = None,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    concrete: object = None,
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]: ...
def block_until_ready(x: _R) -> _R: ...
def device_get(x: Any) -> Any: ...
def closure_convert(
    fun: Callable[..., Any], *example_args: object
) -> tuple[Callable[..., Any], list[Any]]: ...
def copy_to_host_async(x: _Tree) -> _Tree: ...
def ds(start: object, size: object = None, stride: object = None) -> Any: ...
def effects_barrier() -> None: ...
def empty_ref(ty: Any, memory_space: object = None) -> Any: ...
def ensure_compile_time_eval() -> _GeneratorContextManager[None]: ...
def eval_shape(fun: Callable[..., Any], *args: object, **kwargs: object) -> Any: ...
def jvp(fun: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any: ...
def linearize(fun: Callable[..., Any], *primals: object, has_aux: bool = False) -> Any: ...
def make_array_from_callback(
    shape: Sequence[int],
    sharding: Any,
    data_callback: Callable[[tuple[slice, ...]], ArrayLike],
    dtype: DTypeLike | None = None,
) -> Array: ...
def make_array_from_process_local_data(
    sharding: Any, local_data: Any, global_shape: object = None
) -> Any: ...
def make_array_from_single_device_arrays(
    shape: Sequence[int], sharding: Any, arrays: Sequence[Array], *, dtype: DTypeLike | None = None
) -> Array: ...
def named_scope(name: str) -> _GeneratorContextManager[None]: ...
def new_ref(
    init_val: ArrayLike, *, memory_space: object = None, kind: str | None = None
) -> Any: ...
def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: object,
) -> Any: ...
def reshard(xs: Any, out_shardings: Any) -> Any: ...
def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: object,
    in_specs: object = ...,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Collection[Hashable] = ...,
    check_vma: bool = True,
) -> Any: ...
def smap(
    f: Callable[..., Any] | None = None,
    /,
    *,
    in_axes: object = ...,
    out_axes: object,
    axis_name: Hashable,
) -> Any: ...
def transfer_guard(new_val: str | None) -> _GeneratorContextManager[None]: ...
def vjp(
    fun: Callable[..., Any],
    *primals: object,
    has_aux: bool = False,
    reduce_axes: Sequence[object] = (),
) -> Any: ...
