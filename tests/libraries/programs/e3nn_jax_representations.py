"""e3nn-jax: spherical harmonics, tensor products, and equivariance."""

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np

vectors = jnp.array(np.random.default_rng(0).normal(size=(4, 3)), jnp.float32)
irreps = e3nn.Irreps("2x0e + 1o + 2e")
print(irreps, irreps.dim, irreps.lmax, e3nn.Irreps("1o") * 2)
harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", vectors, normalize=True)
print(harmonics.irreps, harmonics.array[:2])
print("grad", jax.grad(lambda v: e3nn.spherical_harmonics("2e", v, False).array.sum())(vectors[0]))
features = e3nn.normal(irreps, jax.random.key(0), (4,))
product = e3nn.tensor_product(harmonics, features)
print(product.irreps, product.array[0, :6])
print("clebsch", e3nn.clebsch_gordan(1, 1, 2)[0])
angles = jnp.array([0.3, -0.8, 1.2])
rotation = e3nn.angles_to_matrix(*angles)
print("rotation", rotation)
rotated = e3nn.spherical_harmonics("0e + 1o + 2e", vectors @ rotation.T, normalize=True)
same = harmonics.transform_by_angles(*angles)
print("equivariant", bool(jnp.allclose(rotated.array, same.array, atol=1e-5)))
print("D", irreps.D_from_angles(*angles)[3:6, 3:6])
print("gate", e3nn.gate(e3nn.normal("3x0e + 1o + 2e", jax.random.key(1))).array)
print("norm", e3nn.norm(features).array[0])
print(
    "scatter", e3nn.scatter_sum(features, dst=jnp.array([0, 1, 1, 0]), output_size=2).array[:, :3]
)
weights = jax.jit(
    lambda x: e3nn.soft_one_hot_linspace(
        x, start=0.0, end=2.0, number=4, basis="smooth_finite", cutoff=True
    )
)
print("radial", weights(jnp.linspace(0.1, 1.9, 3)))
