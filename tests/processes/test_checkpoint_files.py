"""Arrays over two processes that GlobalAsyncCheckpointManager writes and reads."""

import pytest

from tests.processes.group import Group

SCRIPT = """
import hlofront as jax, hlofront.numpy as jnp, numpy as np
from hlofront.experimental.array_serialization.serialization import *
jax.distributed.initialize()
P = jax.P
values = np.arange(16, dtype=np.float32).reshape(8, 2)
over_all = jax.NamedSharding(jax.make_mesh((4,), ("x",)), P("x"))
on_each = jax.NamedSharding(over_all.mesh, P())
array = jax.make_array_from_callback((8, 2), over_all, lambda index: values[index])
manager = GlobalAsyncCheckpointManager(timeout_secs=60)
manager.serialize_with_paths(
    [array], [folder / "a"], on_commit_callback=lambda: (folder / "written").touch()
)
manager.wait_until_finished()
assert (folder / "written").exists()
split, whole = manager.deserialize_with_paths([over_all, on_each], [folder / "a"] * 2)
assert split.sharding == over_all and (np.asarray(whole) == values).all()
assert all((shard.data == values[shard.index]).all() for shard in split.addressable_shards)
try:
    manager.serialize_with_paths([jnp.ones(2)], [folder / "b"])
except ValueError as error:
    assert "split over the devices of all of them" in str(error)
else:
    raise AssertionError("an array of one process was written")
jax.distributed.shutdown()
"""


@pytest.mark.long
def test_processes_write_and_read_the_parts_that_they_hold(tmp_path):
    pytest.importorskip("tensorstore")
    script = f"import pathlib\nfolder = pathlib.Path({str(tmp_path)!r})\n{SCRIPT}"
    with Group(tmp_path, script, processes=2, devices=2) as group:
        assert group.wait() == [0, 0], group.outputs()
