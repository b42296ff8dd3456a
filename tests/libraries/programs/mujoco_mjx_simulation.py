"""mujoco-mjx: a pendulum and a falling ball, stepped under jit and vmap."""

# tolerance: 1e-3 1e-4

import jax
import jax.numpy as jnp
import mujoco
from mujoco import mjx

MODEL = """<mujoco><option timestep="0.01"/><worldbody><geom type="plane" size="1 1 .1"/>
<body pos="0 0 1"><joint type="hinge" axis="0 1 0"/>
<geom type="capsule" size="0.05" fromto="0 0 0 0.5 0 0"/></body>
<body pos="1 0 0.15"><freejoint/><geom type="sphere" size="0.1"/></body></worldbody></mujoco>"""
model = mujoco.MjModel.from_xml_string(MODEL)
on_device = mjx.put_model(model)
data = mjx.make_data(on_device)
print("sizes", on_device.nq, on_device.nv, on_device.nbody)
step = jax.jit(mjx.step)
for _ in range(5):
    data = step(on_device, data)
print("state", data.qpos, data.qvel)
print("positions", data.xpos)


def after(angle):
    data = mjx.make_data(on_device)
    data = data.replace(qpos=data.qpos.at[0].set(angle))
    return mjx.step(on_device, data).qvel[0]


print("vmap", jax.jit(jax.vmap(after))(jnp.array([0.0, 0.5, 1.0])))
print("kinematics", jax.jit(mjx.kinematics)(on_device, data).xquat)
