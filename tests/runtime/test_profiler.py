"""jax.profiler: timelines with annotations, memory profiles, servers."""

import functools
import gzip
import json
import os
import pathlib
import socket
import socketserver
import threading
import time
import urllib.error
import urllib.request

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import profiler
from hlofront.runtime.debugging import profiler as implementation


def run():
    return jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((50, 50))).block_until_ready()


def events_in(folder):
    (path,) = pathlib.Path(folder).glob("plugins/profile/*/*.trace.json.gz")
    with gzip.open(path, "rt") as file:
        return json.load(file)["traceEvents"]


def test_a_timeline_shows_annotations(tmp_path):
    @functools.partial(profiler.annotate_function, name="named_call")
    def named():
        return run()

    @profiler.annotate_function
    def unnamed():
        """Have a docstring."""

    assert unnamed.__name__ == "unnamed" and unnamed.__doc__ == "Have a docstring."
    with profiler.trace(tmp_path):
        with profiler.TraceAnnotation("my_block", file="a.txt"):
            named()
        with profiler.StepTraceAnnotation("my_step", step_num=3):
            unnamed()
    events = {event.get("name"): event for event in events_in(tmp_path)}
    assert {"my_block", "named_call", "my_step"} <= set(events)
    assert any(name and name.endswith("unnamed") for name in events)
    assert events["my_block"]["args"]["file"] == "a.txt"
    assert events["my_step"]["args"]["step_num"] == "3"


def test_a_timeline_can_be_read_back(tmp_path):
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    with profiler.trace(tmp_path, profiler_options=options), profiler.TraceAnnotation("read_me"):
        run()
    (path,) = tmp_path.glob("plugins/profile/*/*.xplane.pb")
    data = profiler.ProfileData.from_file(str(path))
    names = {event.name for plane in data.planes for line in plane.lines for event in line.events}
    assert "read_me" in names


def test_a_timeline_for_perfetto(tmp_path):
    profiler.start_trace(tmp_path, create_perfetto_trace=True)
    run()
    profiler.stop_trace()
    (path,) = tmp_path.glob("plugins/profile/*/perfetto_trace.json.gz")
    with gzip.open(path, "rt") as file:
        assert list(json.load(file)) == ["traceEvents"]


def test_the_newest_timeline_of_several_hosts_is_for_perfetto(tmp_path):
    folder = tmp_path / "plugins" / "profile" / "2026_01_01"
    folder.mkdir(parents=True)
    for age, host in ((10, "older"), (0, "newer"), (5, "old")):
        path = folder / f"{host}.trace.json.gz"
        with gzip.open(path, "wt") as file:
            json.dump({"traceEvents": [host]}, file)
        os.utime(path, (1e9 - age, 1e9 - age))
    written = implementation._write_perfetto_trace(str(tmp_path))
    with gzip.open(written, "rt") as file:
        assert json.load(file) == {"traceEvents": ["newer"]}
    assert not socketserver.TCPServer.allow_reuse_address


def test_a_session_is_kept_in_memory_and_written_where_asked(tmp_path):
    session = profiler.ProfileSession()
    assert not session.is_running and session.profile_data is None
    with pytest.raises(RuntimeError, match="No profile data to export"):
        session.export_profile_data(tmp_path)
    with session as same, profiler.TraceAnnotation("in_memory"):
        assert same is session and session.is_running
        with pytest.raises(RuntimeError, match="already been started"):
            profiler.ProfileSession().start()
        run()
    data = session.profile_data
    names = {event.name for plane in data.planes for line in plane.lines for event in line.events}
    assert "in_memory" in names and not any(tmp_path.iterdir())
    profiler.export_profile_data(data, tmp_path, create_perfetto_trace=True, session_id="mine")
    written = {path.name for path in (tmp_path / "plugins" / "profile" / "mine").iterdir()}
    assert "perfetto_trace.json.gz" in written and len(written) == 3
    with pytest.raises(TypeError, match="got str"):
        profiler.export_profile_data("mine", tmp_path)
    with pytest.raises(ValueError, match="what a session recorded"):
        profiler.export_profile_data(profiler.ProfileData.from_serialized_xspace(b""), tmp_path)
    with pytest.raises(RuntimeError, match="No profile started"):
        session.stop()


def test_a_trace_gives_its_session(tmp_path):
    with profiler.trace() as session:
        run()
    assert session.profile_data.planes
    started = profiler.start_trace(tmp_path)
    assert profiler.stop_trace() is started.profile_data


def test_one_timeline_at_a_time(tmp_path):
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    with profiler.trace(tmp_path), pytest.raises(RuntimeError, match="already been started"):
        profiler.start_trace(tmp_path)


def test_a_timeline_ends_where_its_block_fails(tmp_path):
    with pytest.raises(KeyError), profiler.trace(tmp_path):
        raise KeyError("in the block")
    with profiler.trace(tmp_path):
        pass


def test_memory_profiles_are_compressed(tmp_path):
    kept = jnp.ones((100, 100))
    profile = gzip.decompress(profiler.device_memory_profile())
    assert len(profile) > 10 and kept.size
    profiler.save_device_memory_profile(tmp_path / "memory.prof", "cpu")
    assert gzip.decompress((tmp_path / "memory.prof").read_bytes())


def test_one_server_at_a_time():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
    profiler.start_server(port)
    try:
        with pytest.raises(ValueError, match="Only one profiler server"):
            profiler.start_server(port)
    finally:
        profiler.stop_server()


def test_a_link_serves_the_timeline_until_it_was_read(tmp_path, monkeypatch, capfd):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(implementation, "_PERFETTO_PORT", port)
    profiler.start_trace(tmp_path, create_perfetto_link=True)
    stopping = threading.Thread(target=profiler.stop_trace)
    stopping.start()
    url = f"http://127.0.0.1:{port}/perfetto_trace.json.gz"
    for _ in range(600):
        try:
            with urllib.request.urlopen(url) as response:
                assert response.headers["Access-Control-Allow-Origin"] == "*"
                assert "traceEvents" in json.loads(gzip.decompress(response.read()))
                break
        except urllib.error.URLError:  # It does not serve yet.
            time.sleep(0.05)
    stopping.join(timeout=30)
    assert not stopping.is_alive()
    assert f"127.0.0.1:{port}/perfetto_trace.json.gz" in capfd.readouterr().out
