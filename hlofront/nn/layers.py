"""Layers of neural networks as pairs of functions, and their combinations.

A layer is a pair: `init_fun(rng, input_shape)` returns the shape of its result and its parameters,
and `apply_fun(params, inputs, **kwargs)` returns its result. Layers that need random numbers take
the keyword `rng`.

    init_fun, apply_fun = serial(Dense(32), Relu, Dense(10), LogSoftmax)
    output_shape, params = init_fun(jax.random.key(0), (-1, 784))
    log_probabilities = apply_fun(params, images)
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import hlofront.numpy as jnp
import hlofront.random as random
from hlofront.base.tree import PyTree
from hlofront.base.typing import Array, ArrayLike, Shape
from hlofront.higher_order.control_flow.reduce import reduce_window
from hlofront.nn.activations import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus
from hlofront.nn.initializers import glorot_normal, normal, ones, zeros
from hlofront.nn.normalizing import log_softmax, softmax, standardize
from hlofront.primitives.elementwise.elementwise import add, max
from hlofront.primitives.linalg.conv import conv_general_dilated
from hlofront.primitives.linalg.conv_variants import conv_transpose
from hlofront.runtime.dispatch.eval_shape import eval_shape
from hlofront.transforms.flatten import ShapeDtypeStruct

# The shape of an array; a list of shapes where a layer has several inputs or outputs.
Shapes = PyTree
# (key, shape of the inputs) -> (shape of the outputs, parameters)
InitFun = Callable[[Array, Shapes], tuple[Shapes, PyTree]]
# (parameters, inputs, **keywords) -> outputs
ApplyFun = Callable[..., PyTree]
Layer = tuple[InitFun, ApplyFun]
Initializer = Callable[..., Array]
Padding = str | Sequence[tuple[int, int]]

# Short names that programs for JAX use.
glorot = glorot_normal
randn = normal
logsoftmax = log_softmax


# ---- linear layers -------------------------------------------------------------------------------


def Dense(
    out_dim: int, W_init: Initializer = glorot_normal(), b_init: Initializer = normal()
) -> Layer:
    """Make a layer that multiplies the last axis by a matrix and adds a vector.

    Args:
      out_dim: the size of the last axis of the result.
      W_init: the initializer of the matrix.
      b_init: the initializer of the vector.
    """

    def init_fun(rng: Array, input_shape: Shape) -> tuple[Shape, PyTree]:
        of_matrix, of_vector = random.split(rng)
        matrix = W_init(of_matrix, (input_shape[-1], out_dim))
        return (*input_shape[:-1], out_dim), (matrix, b_init(of_vector, (out_dim,)))

    def apply_fun(params: PyTree, inputs: Array, **kwargs: object) -> Array:
        matrix, vector = params
        return jnp.dot(inputs, matrix) + vector

    return init_fun, apply_fun


def _convolution(
    convolve: Callable[..., Array],
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    W_init: Initializer | None,
    b_init: Initializer,
) -> Layer:
    """Make a layer of a convolution `convolve(inputs, kernel)` and an addition of biases."""
    of_inputs, of_kernel, of_outputs = dimension_numbers
    init_kernel = W_init or glorot_normal(of_kernel.index("I"), of_kernel.index("O"))

    def init_fun(rng: Array, input_shape: Shape) -> tuple[Shape, PyTree]:
        sizes = iter(filter_shape)
        channels = {"O": out_chan, "I": input_shape[of_inputs.index("C")]}
        shape = tuple([channels[c] if c in channels else next(sizes) for c in of_kernel])
        rng_of_kernel, rng_of_bias = random.split(rng)
        kernel = init_kernel(rng_of_kernel, shape)
        bias = b_init(rng_of_bias, tuple([out_chan if c == "C" else 1 for c in of_outputs]))
        inputs = ShapeDtypeStruct(input_shape, kernel.dtype)
        return eval_shape(convolve, inputs, kernel).shape, (kernel, bias)

    def apply_fun(params: PyTree, inputs: Array, **kwargs: object) -> Array:
        kernel, bias = params
        return convolve(inputs, kernel) + bias

    return init_fun, apply_fun


def GeneralConv(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),
) -> Layer:
    """Make a layer that convolves and adds a bias per channel.

    Args:
      dimension_numbers: the letters of the axes of inputs, kernel and outputs, such as ("NHWC",
        "HWIO", "NHWC").
      out_chan: the number of channels of the result.
      filter_shape: the sizes of the kernel in space.
      strides: the steps of the kernel in space; None for 1.
      padding: "VALID", "SAME", or pairs of numbers.
      W_init: the initializer of the kernel; None for Glorot's.
      b_init: the initializer of the biases.
    """
    steps = strides or (1,) * len(filter_shape)

    def convolve(inputs: Array, kernel: Array) -> Array:
        return conv_general_dilated(
            inputs, kernel, steps, padding, dimension_numbers=dimension_numbers
        )

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: tuple[str, str, str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),
) -> Layer:
    """Make a layer of a transposed convolution, which enlarges by strides, with a bias per channel.

    Args:
      dimension_numbers: the letters of the axes of inputs, kernel and outputs, such as ("NHWC",
        "HWIO", "NHWC").
      out_chan: the number of channels of the result.
      filter_shape: the sizes of the kernel in space.
      strides: the factors by which axes in space grow; None for 1.
      padding: "VALID", "SAME", or pairs of numbers.
      W_init: the initializer of the kernel; None for Glorot's.
      b_init: the initializer of the biases.
    """
    steps = strides or (1,) * len(filter_shape)

    def convolve(inputs: Array, kernel: Array) -> Array:
        return conv_transpose(inputs, kernel, steps, padding, dimension_numbers=dimension_numbers)

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


Conv = partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def BatchNorm(
    axis: int | tuple[int, ...] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """Make a layer that standardizes over axes, then scales and shifts the other axes.

    Args:
      axis: the axes over which mean and variance are taken.
      epsilon: a number that is added to the variance.
      center: whether to shift.
      scale: whether to scale.
      beta_init: the initializer of the shifts.
      gamma_init: the initializer of the factors.
    """
    axes = (axis,) if isinstance(axis, int) else axis

    def init_fun(rng: Array, input_shape: Shape) -> tuple[Shape, PyTree]:
        shape = tuple([n for i, n in enumerate(input_shape) if i not in axes])
        of_beta, of_gamma = random.split(rng)
        beta = beta_init(of_beta, shape) if center else ()
        return input_shape, (beta, gamma_init(of_gamma, shape) if scale else ())

    def apply_fun(params: PyTree, x: Array, **kwargs: object) -> Array:
        beta, gamma = params
        result = standardize(x, axes, epsilon=epsilon)
        if scale:
            result = jnp.expand_dims(gamma, axes) * result
        return result + jnp.expand_dims(beta, axes) if center else result

    return init_fun, apply_fun


# ---- layers without parameters -------------------------------------------------------------------


def _same_shape(rng: Array, input_shape: Shapes) -> tuple[Shapes, PyTree]:
    return input_shape, ()


def elementwise(fun: Callable[..., Array], **fun_kwargs: object) -> Layer:
    """Make a layer that applies a function of elements to its inputs.

    Args:
      fun: (inputs, **fun_kwargs) -> outputs of the same shape.
      **fun_kwargs: further arguments of `fun`.
    """

    def apply_fun(params: PyTree, inputs: Array, **kwargs: object) -> Array:
        return fun(inputs, **fun_kwargs)

    return _same_shape, apply_fun


Elu = elementwise(elu)
Exp = elementwise(jnp.exp)
Gelu = elementwise(gelu)
LeakyRelu = elementwise(leaky_relu)
LogSoftmax = elementwise(log_softmax, axis=-1)
Relu = elementwise(relu)
Selu = elementwise(selu)
Sigmoid = elementwise(sigmoid)
Softmax = elementwise(softmax, axis=-1)
Softplus = elementwise(softplus)
Tanh = elementwise(jnp.tanh)


def _pooling(
    initial: float,
    reducer: Callable[[ArrayLike, ArrayLike], Array],
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
    spec: str | None,
    mean: bool = False,
) -> Layer:
    """Make a layer that reduces windows in space.

    Args:
      initial: the value that windows outside of the inputs have.
      reducer: the operation.
      window_shape: the sizes of a window in space.
      strides: the steps of the window in space; None for 1.
      padding: "VALID", "SAME", or pairs of numbers, for all axes.
      spec: the letters of the axes of the inputs; None if the first axis is the batch, and the last
        the channels.
      mean: whether to divide by the number of inputs in each window.
    """
    rank = len(window_shape) + 2
    not_spatial = (0, rank - 1) if spec is None else (spec.index("N"), spec.index("C"))
    of_window, of_strides = iter(window_shape), iter(strides or (1,) * len(window_shape))
    window = tuple([1 if axis in not_spatial else next(of_window) for axis in range(rank)])
    steps = tuple([1 if axis in not_spatial else next(of_strides) for axis in range(rank)])

    def reduced(inputs: Array) -> Array:
        return reduce_window(inputs, initial, reducer, window, steps, padding)

    def init_fun(rng: Array, input_shape: Shape) -> tuple[Shape, PyTree]:
        return eval_shape(reduced, ShapeDtypeStruct(input_shape, jnp.float32)).shape, ()

    def apply_fun(params: PyTree, inputs: Array, **kwargs: object) -> Array:
        if not mean:
            return reduced(inputs)
        one_example = [1 if axis in not_spatial else n for axis, n in enumerate(inputs.shape)]
        return reduced(inputs) / reduced(jnp.ones(one_example, inputs.dtype))

    return init_fun, apply_fun


def MaxPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """Make a layer that takes the greatest input of each window.

    Args:
      window_shape: the sizes of a window in space.
      strides: the steps of the window in space; None for 1.
      padding: "VALID", "SAME", or pairs of numbers, for all axes.
      spec: the letters of the axes of the inputs, such as "NHWC"; None if the first axis is the
        batch, and the last the channels.
    """
    return _pooling(-math.inf, max, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """Make a layer that sums the inputs of each window.

    Args:
      window_shape: the sizes of a window along the spatial axes.
      strides: the steps of the window along the spatial axes; None for 1.
      padding: "VALID", "SAME", or pairs of numbers, for all axes.
      spec: the letters of the axes of the inputs, such as "NHWC"; None if the first axis is the
        batch, and the last the channels.
    """
    return _pooling(0.0, add, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    spec: str | None = None,
) -> Layer:
    """Make a layer that takes the mean of each window's inputs, without the padding.

    Args:
      window_shape: the sizes of a window in space.
      strides: the steps of the window in space; None for 1.
      padding: "VALID", "SAME", or pairs of numbers, for all axes.
      spec: the letters of the axes of the inputs, such as "NHWC"; None if the first axis is the
        batch, and the last the channels.
    """
    return _pooling(0.0, add, window_shape, strides, padding, spec, mean=True)


def _flat_shape(rng: Array, input_shape: Shape) -> tuple[Shape, PyTree]:
    return (input_shape[0], math.prod(input_shape[1:])), ()


def _flattened(params: PyTree, inputs: Array, **kwargs: object) -> Array:
    return jnp.reshape(inputs, (inputs.shape[0], -1))


def _unchanged(params: PyTree, inputs: PyTree, **kwargs: object) -> PyTree:
    return inputs


# Make one axis of all but the first.
Flatten: Layer = (_flat_shape, _flattened)
Identity: Layer = (_same_shape, _unchanged)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Make a layer that keeps inputs with a probability, and divides them by it.

    Args:
      rate: the probability with which an input is kept; the others become 0.
      mode: "train" to drop inputs; in any other mode they are unchanged.

    Raises:
      ValueError: by the layer, if it is applied without the keyword `rng`.
    """

    def apply_fun(params: PyTree, inputs: Array, **kwargs: object) -> Array:
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError(
                "Dropout needs random numbers: call apply_fun(params, inputs, rng=key), with a key "
                "such as jax.random.key(0)"
            )
        if mode != "train":
            return inputs
        return jnp.where(random.bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return _same_shape, apply_fun


# ---- several inputs and outputs ------------------------------------------------------------------


def FanOut(num: int) -> Layer:
    """Make a layer whose result is a list of `num` times its inputs."""

    def init_fun(rng: Array, input_shape: Shape) -> tuple[list[Shape], PyTree]:
        return [input_shape] * num, ()

    def apply_fun(params: PyTree, inputs: Array, **kwargs: object) -> list[Array]:
        return [inputs] * num

    return init_fun, apply_fun


def _first_shape(rng: Array, input_shape: Sequence[Shape]) -> tuple[Shape, PyTree]:
    return input_shape[0], ()


def _summed(params: PyTree, inputs: Sequence[Array], **kwargs: object) -> Array:
    return sum(inputs)


# Add the arrays of a list.
FanInSum: Layer = (_first_shape, _summed)


def FanInConcat(axis: int = -1) -> Layer:
    """Make a layer that concatenates the arrays of a list along an axis."""

    def init_fun(rng: Array, input_shape: Sequence[Shape]) -> tuple[Shape, PyTree]:
        first = list(input_shape[0])
        first[axis] = sum(shape[axis] for shape in input_shape)
        return tuple(first), ()

    def apply_fun(params: PyTree, inputs: Sequence[Array], **kwargs: object) -> Array:
        return jnp.concatenate(inputs, axis)

    return init_fun, apply_fun


def _keys(rng: Array | None, count: int) -> Sequence[Array | None]:
    return [None] * count if rng is None else list(random.split(rng, count))


def serial(*layers: Layer) -> Layer:
    """Make a layer that applies layers in sequence, each to the result of the previous one.

    Its parameters are the list of the layers' parameters.
    """

    def init_fun(rng: Array, input_shape: Shapes) -> tuple[Shapes, list[PyTree]]:
        params: list[PyTree] = []
        for init, _ in layers:
            rng, layer_rng = random.split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Sequence[PyTree], inputs: PyTree, **kwargs: object) -> PyTree:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        for (_, apply), param, rng in zip(layers, params, keys, strict=True):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """Make a layer of layers that are applied to the members of a list, one to each.

    Its parameters are the tuple of the layers' parameters.
    """

    def init_fun(rng: Array, input_shape: Sequence[Shapes]) -> tuple[Shapes, PyTree]:
        keys = random.split(rng, len(layers))
        pairs = [
            init(key, shape)
            for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)
        ]
        return tuple([shape for shape, _ in pairs]), tuple([param for _, param in pairs])

    def apply_fun(
        params: Sequence[PyTree], inputs: Sequence[PyTree], **kwargs: object
    ) -> list[PyTree]:
        keys = _keys(kwargs.pop("rng", None), len(layers))
        return [
            apply(param, x, rng=rng, **kwargs)
            for (_, apply), param, x, rng in zip(layers, params, inputs, keys, strict=True)
        ]

    return init_fun, apply_fun


def shape_dependent(make_layer: Callable[[Shape], Layer]) -> Layer:
    """Make a layer that depends on the shape of its inputs.

    Args:
      make_layer: a function from the shape of the inputs to a layer.
    """

    def init_fun(rng: Array, input_shape: Shapes) -> tuple[Shapes, PyTree]:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: PyTree, inputs: PyTree, **kwargs: object) -> PyTree:
        return make_layer(inputs.shape)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
