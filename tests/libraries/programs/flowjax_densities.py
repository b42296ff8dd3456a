"""flowjax: normalizing flows, their densities, samples and training."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flowjax.bijections import Affine, Chain, Exp, Permute, RationalQuadraticSpline
from flowjax.distributions import Normal, StudentT, Transformed
from flowjax.flows import coupling_flow, masked_autoregressive_flow
from flowjax.train import fit_to_data

keys = jax.random.split(jax.random.key(0), 6)
base = Normal(jnp.zeros(2))
print("normal", base.log_prob(jnp.ones((3, 2))), base.sample(keys[0], (2,)))
print("student", StudentT(jnp.array([3.0, 4.0])).log_prob(jnp.ones(2)))
chain = Chain(
    [Affine(jnp.array([1.0, 2.0]), jnp.array([0.5, 2.0])), Exp((2,)), Permute(jnp.array([1, 0]))]
)
y, log_det = chain.transform_and_log_det(jnp.array([0.1, -0.2]))
print("chain", y, log_det, chain.inverse(y))
print("transformed", Transformed(base, chain).log_prob(y))
spline = RationalQuadraticSpline(knots=4, interval=3)
print("spline", spline.transform_and_log_det(jnp.array(0.7)), spline.inverse(jnp.array(0.7)))
flow = coupling_flow(keys[1], base_dist=base, flow_layers=2, nn_width=8, nn_depth=1)
x = jax.random.normal(keys[2], (40, 2)) * jnp.array([0.5, 2.0]) + 1.0
print("coupling", flow.log_prob(x[:3]))
print("samples", eqx.filter_jit(flow.sample)(keys[3], (2,)))
maf = masked_autoregressive_flow(keys[4], base_dist=base, flow_layers=2, nn_width=8, nn_depth=1)
print(
    "maf",
    maf.log_prob(x[:3]),
    eqx.filter_grad(lambda f: -f.log_prob(x).mean())(maf).base_dist is not None,
)
trained, losses = fit_to_data(
    keys[5], flow, x, max_epochs=3, batch_size=20, optimizer=optax.adam(1e-2), show_progress=False
)
print("losses", jnp.array(losses["train"]), jnp.array(losses["val"]))
print("trained", trained.log_prob(x[:2]))
