"""Modules of HLO in protocol buffers, as XLA dumps them: read as their texts are."""

import io
import random

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.bridge import foreign
from hlofront.bridge.worker_process import WorkerEnded
from hlofront.cli.main import main
from hlofront.inspect import diff, parse
from hlotools.ir import binary_modules


def field(number, data):
    """The bytes of a field of a message that is a message or text itself."""
    size, length = len(data), b""
    while size >= 0x80:
        length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


@pytest.fixture(scope="module")
def compiled():
    return jax.jit(lambda x: jnp.tanh(x @ x).sum()).lower(jnp.ones((8, 8))).compile()


@pytest.fixture(scope="module")
def module(compiled):
    """A module as an HloModuleProto."""
    return compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()


def test_a_module_is_read_in_each_kind_of_file(compiled, module, tmp_path):
    of_buffers = b"\x08\x01"
    proto = field(1, module) + field(3, of_buffers)
    files = {
        "f.hlo_module.pb": module,
        "module_0001.jit_f.cpu_after_optimizations.hlo.pb": proto,
        "module_0001.jit_f.snapshot.-7.pb": field(1, proto) + field(2, of_buffers),
        "module_0001.jit_f.execution_0000.hlo_unoptimized_snapshot.pb": field(1, module),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        assert diff(tmp_path / name, compiled).equal
        out = io.StringIO()
        assert main(["show", str(tmp_path / name)], out) == 0
        assert out.getvalue().startswith("HloModule jit__lambda")
    assert parse(module).entry.root.shape.dtype == "f32"


def test_other_messages_and_parts_of_modules_are_errors(module, tmp_path, capsys):
    for data in (b"", b"\x00\x01", field(1, b"jit_f"), field(1, module)[:-1]):
        path = tmp_path / "f.hlo.pb"
        path.write_bytes(data)
        assert main(["show", str(path)], io.StringIO()) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "f.hlo.pb has no module of HLO" in said and "--xla_dump_hlo_as_proto" in said
    changed = module.replace(b"parameter", b"paramater")
    with pytest.raises(ValueError, match="Unknown opcode: paramater"):
        parse(changed)


def test_changed_bytes_never_end_this_process(module):
    chance = random.Random(1)
    for _ in range(40):
        data = bytearray(module)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            parse(bytes(data))
        except ValueError as error:
            assert str(error)


def test_a_module_that_ends_its_reader_is_an_error(module, monkeypatch):
    def end(*_):
        raise WorkerEnded("Check failed: size >= 0")

    monkeypatch.setattr(foreign.worker, "ask", end)
    with pytest.raises(ValueError, match="it ends the process that reads it: Check failed"):
        parse(module)


def test_without_a_decoder_it_says_what_is_missing(module, monkeypatch):
    monkeypatch.setattr(binary_modules, "_decoders", [binary_modules._no_decoder])
    with pytest.raises(ValueError, match="it takes hlofront to read it"):
        parse(module)
