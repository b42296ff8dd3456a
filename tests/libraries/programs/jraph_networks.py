"""jraph: batches of graphs, message passing, attention and their gradients."""

import jax
import jax.numpy as jnp
import jraph
import numpy as np

generator = np.random.default_rng(0)


def graph(nodes, edges):
    return jraph.GraphsTuple(
        nodes=jnp.array(generator.normal(size=(nodes, 4)), jnp.float32),
        edges=jnp.array(generator.normal(size=(edges, 3)), jnp.float32),
        senders=jnp.array(generator.integers(0, nodes, edges)),
        receivers=jnp.array(generator.integers(0, nodes, edges)),
        n_node=jnp.array([nodes]),
        n_edge=jnp.array([edges]),
        globals=jnp.array(generator.normal(size=(1, 2)), jnp.float32),
    )


batch = jraph.batch([graph(4, 5), graph(3, 6)])
print("batch", batch.n_node, batch.senders, batch.receivers)
padded = jraph.pad_with_graphs(batch, n_node=10, n_edge=14, n_graph=4)
print("padded", padded.n_node, padded.n_edge, jraph.get_node_padding_mask(padded))
print("back", [g.n_node for g in jraph.unbatch(jraph.unpad_with_graphs(padded))])
print("softmax", jraph.segment_softmax(batch.edges[:, 0], batch.receivers, 7))
print("mean", jraph.segment_mean(batch.edges, batch.receivers, 7))
print("max", jraph.segment_max(batch.edges, batch.receivers, 7))

weights = [
    jnp.array(generator.normal(size=size) / 3, jnp.float32) for size in ((13, 3), (12, 4), (9, 2))
]


def network(weights, graphs):
    def update(weight):
        return lambda *parts: jnp.tanh(jnp.concatenate(parts, -1) @ weight)

    net = jraph.GraphNetwork(*[update(weight) for weight in weights])
    return net(graphs)


out = jax.jit(network)(weights, padded)
print("nodes", out.nodes[:7])
print("globals", out.globals[:2])
loss = jax.jit(lambda w: (network(w, padded).globals[:2] ** 2).sum())
print("grad", jax.grad(loss)(weights)[0][:2])
convolved = jraph.GraphConvolution(lambda nodes: nodes @ weights[1][:4], add_self_edges=True)(batch)
print("gcn", convolved.nodes)
attention = jraph.GAT(
    lambda nodes: nodes @ weights[1][:4], lambda s, r, e: (s * r).sum(-1, keepdims=True), None
)
print("gat", attention(batch._replace(edges=None)).nodes[:3])
