"""netket: Hilbert spaces, operators, and expectation values and gradients of a full-sum state."""
# tolerance: 1e-4 1e-6

import flax.linen as nn
import jax
import jax.numpy as jnp
import netket as nk
import numpy as np

hilbert = nk.hilbert.Spin(s=1 / 2, N=4)
chain = nk.graph.Chain(length=4, pbc=True)
hamiltonian = nk.operator.IsingJax(hilbert, chain, h=0.7)
print("hilbert", hilbert.n_states, hilbert.all_states()[3])
print("energies", np.linalg.eigvalsh(hamiltonian.to_dense())[:3])


class Network(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.Dense(6, param_dtype=jnp.float64)(x)
        return jnp.sum(jnp.log(jnp.cosh(h)), axis=-1)


state = nk.vqs.FullSumState(hilbert, Network(), seed=1)
sizes = jax.tree.map(jnp.shape, state.parameters)
state.parameters = jax.tree.map(
    lambda v: 0.1 * jnp.cos(jnp.arange(v.size, dtype=v.dtype)).reshape(v.shape), state.parameters
)
print("parameters", sizes)
print("norm", jnp.sum(jnp.abs(state.to_array()) ** 2))
energy = state.expect(hamiltonian)
print("energy", energy.mean, energy.variance)
energy, gradient = state.expect_and_grad(hamiltonian)
print("gradient", energy.mean, gradient["Dense_0"]["bias"])
optimizer = nk.optimizer.Sgd(learning_rate=0.05)
preconditioner = nk.optimizer.SR(diag_shift=0.01)
driver = nk.VMC(hamiltonian, optimizer, variational_state=state, preconditioner=preconditioner)
for _ in range(3):
    driver.run(1, show_progress=False)
    print("step", state.expect(hamiltonian).mean)
print("samples", hilbert.random_state(jax.random.key(0), 3).shape)
sampler = nk.sampler.MetropolisLocal(hilbert, n_chains=4)
sampled = nk.vqs.MCState(sampler, Network(), n_samples=64, seed=2, sampler_seed=3)
print("sampled", sampled.samples.shape, sampled.expect(hamiltonian).mean)
