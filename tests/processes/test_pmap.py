"""pmap over the devices of several processes, each of which passes its own elements."""

import pytest

from tests.processes.group import Group

SCRIPT = """
import hlofront as jax, hlofront.numpy as jnp, numpy as np
jax.distributed.initialize()
me, n = jax.process_index(), jax.local_device_count()
own = np.arange(3 * n, dtype=np.float32).reshape(n, 3) + 10 * me
every = np.concatenate([own - 10 * me, own - 10 * me + 10])

def check(function, wanted, *args, **options):
    result = jax.pmap(function, axis_name="i", **options)(*args)
    np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-6)
    return result

check(lambda x: jax.lax.psum(x, "i"), np.tile(every.sum(0), (n, 1)), own)
check(lambda x: jax.lax.pmean(x, "i"), every.mean(0), own, out_axes=None)
check(lambda x: jax.lax.axis_index("i") + 0 * x[0], [n * me, n * me + 1], own)
check(lambda x, y: x * y, own.T * 2, own.T, np.float32(2), in_axes=(1, None), out_axes=1)
check(lambda x: jax.lax.psum(x, "i"), np.tile(every.sum(0), (n, 1)), own, devices=jax.devices())
check(lambda x: jax.lax.psum(x, "i"), [every[[0, n]].sum(0)], own[:1])
check(lambda x: jax.lax.psum(1, "i") + 0 * x, np.full((n, 3), 2 * n), own, axis_size=2 * n)
check(
    lambda key: jax.random.normal(key),
    [jax.random.normal(key) for key in jax.random.split(jax.random.key(me), n)],
    jax.random.split(jax.random.key(me), n),
)
local = check(
    lambda x: jax.lax.psum(x, "i"), np.tile(own.sum(0), (n, 1)), own, devices=jax.local_devices()
)
assert local.is_fully_addressable

step = jax.pmap(lambda w, x: w - 0.1 * jax.lax.pmean(jax.grad(lambda w: (w @ x) ** 2)(w), "i"),
                axis_name="i", donate_argnums=0)
w = jnp.ones((n, 3))
single = np.ones(3, np.float32)
for _ in range(2):
    w = step(w, own / 20)
    single -= 0.1 * np.mean([2 * (single @ x) * x for x in every / 20], 0)
assert w.is_fully_addressable and w.shape == (n, 3)
np.testing.assert_allclose(np.asarray(w), np.tile(single, (n, 1)), rtol=1e-5)

for size, options in ((n + 1, {}), (n, {"axis_size": n})):
    try:
        jax.pmap(lambda x: x, **options)(np.ones(size))
    except ValueError as error:
        print(error)
print("done")
"""


@pytest.mark.long
def test_the_mapped_axis_is_over_the_devices_of_all_processes(tmp_path):
    with Group(tmp_path, SCRIPT, 2, devices=2) as group:
        assert group.wait() == [0, 0], group.outputs()
        for number in range(2):
            text = group.output(number)
            assert "requires 3 logical devices, but only 2 XLA devices are available" in text
            assert "Specified axis_size 2 doesn't match received axis_size 4." in text
            assert text.endswith("done"), text
