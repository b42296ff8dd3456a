"""brax: rigid bodies stepped under jit and scan, and gradients through steps."""

# tolerance: 1e-3 1e-4

import jax
import jax.numpy as jnp
from brax.generalized import pipeline as generalized
from brax.io import mjcf
from brax.positional import pipeline as positional
from brax.spring import pipeline as spring

MODEL = """<mujoco><option timestep="0.01"/><worldbody>
<body pos="0 0 1"><joint name="a" type="hinge" axis="0 1 0" damping="0.1"/>
<geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.05" mass="1"/>
<body pos="0.5 0 0"><joint name="b" type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.04" mass="0.5"/></body></body></worldbody>
<actuator><motor joint="a" gear="2" ctrllimited="true" ctrlrange="-1 1"/></actuator></mujoco>"""
system = mjcf.loads(MODEL)
print("sizes", system.q_size(), system.qd_size(), system.act_size(), system.num_links())
q, qd = jnp.array([0.1, -0.3]), jnp.array([0.5, 0.0])
for name, pipeline in (
    ("generalized", generalized),
    ("spring", spring),
    ("positional", positional),
):
    state = jax.jit(pipeline.init)(system, q, qd)

    def step(state, action, pipeline=pipeline):
        state = pipeline.step(system, state, action)
        return state, state.q

    state, path = jax.jit(lambda s: jax.lax.scan(step, s, jnp.full((10, 1), 0.3)))(state)
    print(name, path[-1], state.x.pos)


def reached(action):
    state = generalized.init(system, q, qd)
    for _ in range(3):
        state = generalized.step(system, state, action)
    return state.q.sum()


print("grad", jax.jit(jax.grad(reached))(jnp.array([0.3])))
