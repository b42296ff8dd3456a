# Written by scripts/write_stubs.py from the running package: do not edit.

from collections.abc import Sequence
from typing import Any, Literal, overload

from hlofront import Array
from hlofront.nn import initializers as initializers
from hlofront.nn.activations import celu as celu
from hlofront.nn.activations import elu as elu
from hlofront.nn.activations import gelu as gelu
from hlofront.nn.activations import glu as glu
from hlofront.nn.activations import hard_sigmoid as hard_sigmoid
from hlofront.nn.activations import hard_silu as hard_silu
from hlofront.nn.activations import hard_tanh as hard_tanh
from hlofront.nn.activations import identity as identity
from hlofront.nn.activations import leaky_relu as leaky_relu
from hlofront.nn.activations import log1mexp as log1mexp
from hlofront.nn.activations import log_sigmoid as log_sigmoid
from hlofront.nn.activations import mish as mish
from hlofront.nn.activations import one_hot as one_hot
from hlofront.nn.activations import relu as relu
from hlofront.nn.activations import relu6 as relu6
from hlofront.nn.activations import selu as selu
from hlofront.nn.activations import sigmoid as sigmoid
from hlofront.nn.activations import silu as silu
from hlofront.nn.activations import soft_sign as soft_sign
from hlofront.nn.activations import softplus as softplus
from hlofront.nn.activations import sparse_plus as sparse_plus
from hlofront.nn.activations import sparse_sigmoid as sparse_sigmoid
from hlofront.nn.activations import squareplus as squareplus
from hlofront.nn.normalizing import log_softmax as log_softmax
from hlofront.nn.normalizing import logmeanexp as logmeanexp
from hlofront.nn.normalizing import softmax as softmax
from hlofront.nn.normalizing import standardize as standardize
from hlofront.nn.scaling import get_scaled_dot_general_config as get_scaled_dot_general_config
from hlofront.nn.scaling import scaled_dot_general as scaled_dot_general
from hlofront.nn.scaling import scaled_matmul as scaled_matmul
from hlofront.typing import ArrayLike

@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[False] = False,
) -> Array: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: Literal[True],
) -> tuple[Array, Array]: ...
@overload
def dot_product_attention(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    bias: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: ArrayLike | None = None,
    key_value_seq_lengths: ArrayLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
    implementation: str | None = None,
    return_residual: bool = False,
) -> Any: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: int | Sequence[int] | None = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any: ...
def tanh(x: ArrayLike, /) -> Array: ...
