"""hlofront.nn: functions for building neural networks."""

from hlofront.base.lazy import exports as _exports

__getattr__, __dir__ = _exports(
    __name__,
    submodules="initializers",
    now={
        "hlofront.nn.activations": (
            "celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh identity leaky_relu "
            "log1mexp log_sigmoid mish one_hot relu relu6 selu sigmoid silu soft_sign softplus "
            "sparse_plus sparse_sigmoid squareplus swish"
        ),
        "hlofront.nn.attention": "dot_product_attention",
        "hlofront.nn.normalizing": "log_softmax logmeanexp logsumexp softmax standardize",
        "hlofront.nn.scaling": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
        "hlofront.numpy.elementwise.ufuncs": "tanh",
    },
)
