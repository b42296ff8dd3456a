"""LSTM networks of several layers, in one direction or both, with all weights in one array.

The equations are those of Hochreiter and Schmidhuber, "Long Short-Term Memory" (1997), with the
forget gates of Gers, Schmidhuber and Cummins (2000); the order of the weights is cuDNN's.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial

import hlofront.numpy as jnp
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array
from hlofront.higher_order.control_flow.library_loops import scan
from hlofront.nn.activations import sigmoid
from hlofront.primitives.linalg.dot_general import PrecisionLike
from hlofront.random.continuous import uniform
from hlofront.runtime.dispatch.jit_function import jit

# The gates by their rows in the weights: input, forget, cell, output.
_GATES = 4


class _Part(NamedTuple):
    """A part of the weights: its name, its layer and direction as one number, its shape."""

    name: str
    number: int
    shape: tuple[int, ...]


def _parts(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[_Part]:
    """Yield the parts of the weights in their order."""
    directions = 2 if bidirectional else 1
    rows = _GATES * hidden_size
    for number in range(num_layers * directions):
        columns = input_size if number < directions else hidden_size * directions
        yield _Part("W_ih", number, (rows, columns))
        yield _Part("W_hh", number, (rows, hidden_size))
    for number in range(num_layers * directions):
        yield _Part("b_ih", number, (rows,))
        yield _Part("b_hh", number, (rows,))


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """Return the number of the weights of an LSTM network."""
    parts = _parts(input_size, hidden_size, num_layers, bidirectional)
    return sum(math.prod(part.shape) for part in parts)


def init_lstm_weight(
    rng: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Return random weights of an LSTM network, uniform within 1 / sqrt(hidden_size) of zero.

    Args:
      rng: a random key.
      input_size: the number of features.
      hidden_size: the number of elements of a state.
      num_layers: the number of layers.
      bidirectional: whether each layer runs in both directions.

    Returns:
      A float32 array of one axis.
    """
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = math.sqrt(1 / hidden_size)
    return uniform(rng, (count,), jnp.float32, -bound, bound)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """Return the weights of an LSTM network as matrices and vectors.

    Args:
      weights: an array of one axis.
      input_size: the number of features.
      hidden_size: the number of elements of a state.
      num_layers: the number of layers.
      bidirectional: whether each layer runs in both directions.

    Returns:
      Four dicts, W_ih, W_hh, b_ih and b_hh, whose keys are layer numbers; with two directions they
      are twice the layer number, plus one for the reverse direction. Rows are those of the input,
      forget, cell and output gate.
    """
    unpacked: dict[str, dict[int, Array]] = {"W_ih": {}, "W_hh": {}, "b_ih": {}, "b_hh": {}}
    start = 0
    for name, number, shape in _parts(input_size, hidden_size, num_layers, bidirectional):
        stop = start + math.prod(shape)
        unpacked[name][number] = weights[start:stop].reshape(shape)
        start = stop
    return unpacked["W_ih"], unpacked["W_hh"], unpacked["b_ih"], unpacked["b_hh"]


def swap_lstm_gates(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Return the weights of an LSTM network with its cell gates and output gates exchanged.

    Libraries differ in the order of these two gates.

    Args:
      weights: the weights, an array of one axis.
      input_size: the number of features.
      hidden_size: the number of elements of a state.
      num_layers: the number of layers.
      bidirectional: whether each layer runs in both directions.

    Returns:
      An array of the shape and dtype of `weights`.
    """
    swapped: list[Array] = []
    start = 0
    for _, _, shape in _parts(input_size, hidden_size, num_layers, bidirectional):
        stop = start + math.prod(shape)
        inputs, forget, cell, output = jnp.split(weights[start:stop], _GATES)
        swapped += [inputs, forget, output, cell]
        start = stop
    return jnp.concatenate(swapped)


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: PrecisionLike = None,
) -> tuple[Array, Array, Array]:
    """Run an LSTM network over a batch of sequences of several lengths.

    It is compiled by XLA for any device, and differentiable in both modes.

    Args:
      x: the inputs, of shape (batch, time, input_size).
      h_0: the first hidden states, of shape (layers * directions, batch, hidden_size).
      c_0: the first cell states, of the same shape.
      weights: the weights, an array of one axis; see `unpack_lstm_weights`.
      seq_lengths: the number of valid time steps of each sequence, of shape (batch,).
      input_size: the number of features.
      hidden_size: the number of elements of a state.
      num_layers: the number of layers.
      dropout: must be 0.0.
      bidirectional: whether each layer runs in both directions, which are joined in the features.
      precision: the precision of the products.

    Returns:
      The hidden states of the last layer, of shape (batch, time, directions * hidden_size), zeros
      after the end of a sequence; and the last hidden and cell states, shaped like the first.

    Raises:
      NotImplementedError: if `dropout` is not 0.0.
    """
    parts = unpack_lstm_weights(weights, input_size, hidden_size, num_layers, bidirectional)
    return _layers(x, h_0, c_0, *parts, seq_lengths, num_layers, dropout, bidirectional, precision)


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: dict[int, Array],
    W_hh: dict[int, Array],
    b_ih: dict[int, Array],
    b_hh: dict[int, Array],
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """Run an LSTM network over a batch of sequences, with its weights as separate matrices.

    Args:
      x: the inputs, of shape (batch, time, input_size).
      h_0: the first hidden states, of shape (layers * directions, batch, hidden_size).
      c_0: the first cell states, of the same shape.
      W_ih, W_hh, b_ih, b_hh: matrices and vectors of weights, as `unpack_lstm_weights` returns
        them.
      seq_lengths: the number of valid time steps of each sequence, of shape (batch,).
      input_size: the number of features.
      hidden_size: the number of elements of a state.
      num_layers: the number of layers.
      dropout: must be 0.0.
      bidirectional: whether each layer runs in both directions, which are joined in the features.

    Returns:
      The hidden states of the last layer, of shape (batch, time, directions * hidden_size), and the
      last hidden and cell states, shaped like the first.

    Raises:
      NotImplementedError: if `dropout` is not 0.0.
    """
    parts = W_ih, W_hh, b_ih, b_hh
    return _layers(x, h_0, c_0, *parts, seq_lengths, num_layers, dropout, bidirectional, None)


@partial(jit, static_argnums=(8, 9, 10, 11))
def _layers(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: Mapping[int, Array],
    W_hh: Mapping[int, Array],
    b_ih: Mapping[int, Array],
    b_hh: Mapping[int, Array],
    seq_lengths: Array,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: PrecisionLike,
) -> tuple[Array, Array, Array]:
    if dropout:
        raise NotImplementedError(  # JAX raises this class.
            f"dropout between LSTM layers is not supported, for no random key is given: got "
            f"dropout={dropout}. Pass 0.0, and drop elements of the inputs."
        )
    directions = 2 if bidirectional else 1
    inputs = x.swapaxes(0, 1)
    # Whether a time step of a sequence is before its end, of shape (time, batch, 1).
    valid = (jnp.arange(inputs.shape[0])[:, None] < seq_lengths)[:, :, None]
    hidden: list[Array] = []
    cells: list[Array] = []
    for layer in range(num_layers):
        outputs: list[Array] = []
        for direction in range(directions):
            number = layer * directions + direction
            projected = jnp.matmul(inputs, W_ih[number].T, precision=precision)
            step = partial(_step, W_hh[number].T, precision)
            (h, c), states = scan(
                step,
                (h_0[number], c_0[number]),
                (projected + b_ih[number] + b_hh[number], valid),
                reverse=direction == 1,
            )
            outputs.append(states)
            hidden.append(h)
            cells.append(c)
        inputs = jnp.concatenate(outputs, axis=-1)
    return inputs.swapaxes(0, 1), jnp.stack(hidden), jnp.stack(cells)


def _step(
    recurrent: Array,
    precision: PrecisionLike,
    state: tuple[Array, Array],
    inputs: tuple[Array, Array],
) -> tuple[tuple[Array, Array], Array]:
    """Return the states after a time step, and the output, which is zero past a sequence's end."""
    h, c = state
    projected, valid = inputs
    gates = projected + jnp.matmul(h, recurrent, precision=precision)
    into, forget, cell, output = jnp.split(gates, _GATES, axis=-1)
    new_c = sigmoid(forget) * c + sigmoid(into) * jnp.tanh(cell)
    new_h = sigmoid(output) * jnp.tanh(new_c)
    outputs = jnp.where(valid, new_h, jnp.zeros_like(new_h))
    return (jnp.where(valid, new_h, h), jnp.where(valid, new_c, c)), outputs
