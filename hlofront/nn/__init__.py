"""hlofront.nn: functions that neural networks are made of."""

from hlofront.base.lazy import lazy as _lazy
from hlofront.nn.activations import celu as celu
from hlofront.nn.activations import elu as elu
from hlofront.nn.activations import gelu as gelu
from hlofront.nn.activations import glu as glu
from hlofront.nn.activations import hard_sigmoid as hard_sigmoid
from hlofront.nn.activations import hard_silu as hard_silu
from hlofront.nn.activations import hard_swish as hard_swish
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
from hlofront.nn.activations import swish as swish
from hlofront.nn.attention import dot_product_attention as dot_product_attention
from hlofront.nn.normalizing import log_softmax as log_softmax
from hlofront.nn.normalizing import logmeanexp as logmeanexp
from hlofront.nn.normalizing import logsumexp as logsumexp
from hlofront.nn.normalizing import softmax as softmax
from hlofront.nn.normalizing import standardize as standardize
from hlofront.nn.scaling import get_scaled_dot_general_config as get_scaled_dot_general_config
from hlofront.nn.scaling import scaled_dot_general as scaled_dot_general
from hlofront.nn.scaling import scaled_matmul as scaled_matmul
from hlofront.numpy.ufuncs import tanh as tanh

__getattr__, __dir__ = _lazy(__name__, ("initializers",))
