"""jax.experimental.rnn: LSTM networks with all weights in one array."""

from hlofront.nn.recurrent import get_num_params_in_lstm as get_num_params_in_lstm
from hlofront.nn.recurrent import init_lstm_weight as init_lstm_weight
from hlofront.nn.recurrent import lstm as lstm
from hlofront.nn.recurrent import lstm_ref as lstm_ref
from hlofront.nn.recurrent import swap_lstm_gates as swap_lstm_gates
from hlofront.nn.recurrent import unpack_lstm_weights as unpack_lstm_weights
