"""PennyLane: quantum circuits with JAX's interface: values, gradients, jit, vmap, sampling."""

import jax
import jax.numpy as jnp
import pennylane as qml

device = qml.device("default.qubit", wires=2)


def circuit_with(**options):
    @qml.qnode(device, interface="jax", **options)
    def circuit(theta, phi):
        qml.RX(theta, wires=0)
        qml.RY(phi, wires=1)
        qml.CNOT(wires=[0, 1])
        qml.Rot(theta, phi, theta * phi, wires=1)
        return qml.expval(qml.PauliZ(0) @ qml.PauliX(1))

    return circuit


theta, phi = jnp.array(0.4), jnp.array(1.1)
for method in ("backprop", "parameter-shift", "adjoint", "finite-diff"):
    circuit = circuit_with(diff_method=method)
    print(method, circuit(theta, phi), jax.grad(circuit, (0, 1))(theta, phi))
circuit = circuit_with(diff_method="backprop")
print("jit", jax.jit(circuit)(theta, phi), jax.jit(jax.grad(circuit))(theta, phi))
print("vmap", jax.vmap(circuit, (0, None))(jnp.linspace(0.0, 1.0, 4), phi))
print("hessian", jax.hessian(circuit)(theta, phi))
print("jacobian", jax.jacobian(circuit, (0, 1))(theta, phi))


@qml.qnode(device, interface="jax")
def state(theta):
    qml.Hadamard(0)
    qml.CRX(theta, wires=[0, 1])
    return qml.state()


print("state", state(theta))
print("probabilities", jnp.abs(jax.jit(state)(theta)) ** 2)


@jax.jit
@qml.qnode(device, interface="jax")
def measured(weights):
    qml.StronglyEntanglingLayers(weights, wires=[0, 1])
    return qml.probs(wires=[0, 1]), qml.var(qml.PauliY(1))


weights = jax.random.uniform(jax.random.key(1), (2, 2, 3))
print("layers", measured(weights))
print("layers gradient", jax.jacobian(measured)(weights)[1].sum())


def descended(theta, phi):
    for _ in range(5):
        gradients = jax.grad(circuit, (0, 1))(theta, phi)
        theta, phi = theta - 0.3 * gradients[0], phi - 0.3 * gradients[1]
    return theta, phi


print("descended", descended(theta, phi), circuit(*descended(theta, phi)))
hamiltonian = qml.Hamiltonian([0.5, -1.2], [qml.PauliX(0), qml.PauliZ(0) @ qml.PauliZ(1)])
print("matrix", qml.matrix(hamiltonian).real.tolist())
print("math", qml.math.get_interface(theta), qml.math.sum(qml.math.stack([theta, phi])))
