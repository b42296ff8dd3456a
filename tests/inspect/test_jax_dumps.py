"""Dumps of jax's programs, a sample: every reader reads each. `jax_dumps` reads thousands."""

import os

import pytest

from hlotools.dumps.dump_folder import dump_folder
from tests.inspect import jax_dumps


@pytest.mark.slow
def test_every_reader_reads_dumps_of_jax(tmp_path):
    if "HLOFRONT_ORACLE_PYTHON" not in os.environ:
        pytest.skip("no Python that has jax")
    jax_dumps.make(tmp_path, count=1, platforms=())
    assert "jit_mlp" in dump_folder(tmp_path / "cpu").text()
    assert jax_dumps.read_folder(tmp_path / "cpu", None, tmp_path / "page.html") == []
    paths = [*jax_dumps.chosen(tmp_path, 12), *(tmp_path / "programs").glob("*/*.mlir")]
    found = {path: jax_dumps.read(path, None) for path in paths}
    assert not {path.name: failures for path, (failures, _) in found.items() if failures}
    assert {kind for _, kind in found.values()} == {"hlo", "stablehlo", None}


def test_a_text_that_a_reader_cannot_read_is_a_failure(tmp_path):
    path = tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt"
    path.write_text("HloModule jit_f\n\nENTRY %main (x: f32[4]) -> f32[4] {\n  %x = f32[4")
    failures, kind = jax_dumps.read(path, None)
    assert kind == "hlo" and {"parse", "page", "diff"} <= {reader for reader, _ in failures}
    path.write_text("BufferAssignment:\n")
    assert jax_dumps.read(path, None) == ([], None)
