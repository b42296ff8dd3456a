"""Programs for absent TPUs are compiled in a process of its own: its end is an error, and no more.

Skipped where libtpu is not installed.
"""

import os
import signal
import threading

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront.base.config import options
from hlofront.bridge import client, compile_process, worker_process
from hlofront.errors import JaxRuntimeError
from hlofront.lowering.ops import gather
from tests.pjrt.needed import need


def function(x):
    return jnp.sin(x) @ x


X = jax.ShapeDtypeStruct((128, 128), jnp.float32)


def compiled(target, function, *args):
    with target:
        return jax.jit(function).lower(*args).compile()


@pytest.mark.parametrize("on_all", [False, True])
def test_what_is_compiled_in_a_subprocess_is_the_same(tpu, on_all):
    found = []
    for is_subprocess in (True, False):
        with options["hlofront_compile_apart"](is_subprocess):
            each = compiled(tpu.on_all() if on_all else tpu, lambda x: function(x), X)
        found.append(each)
        jax.clear_caches()
    there, here = found
    assert isinstance(there.runtime_executable(), compile_process.SubprocessExecutable)
    assert not isinstance(here.runtime_executable(), compile_process.SubprocessExecutable)
    assert ("num_partitions=4" in there.as_text()) is on_all
    assert there.as_text() == here.as_text()
    assert there.as_text(style="short") == here.as_text(style="short")
    assert there.cost_analysis() == here.cost_analysis()
    assert str(there.memory_analysis()) == str(here.memory_analysis())
    assert (
        there.memory_analysis().argument_size_in_bytes
        == here.memory_analysis().argument_size_in_bytes
        == 128 * 128 * 4
    )
    told, known = there.runtime_executable(), here.runtime_executable()
    for name in ("parameter_layouts", "output_layouts"):
        wanted = [str(layout) for layout in getattr(known, f"get_{name}")()]
        assert [str(layout) for layout in getattr(told, f"get_{name}")()] == wanted
    assert told.get_output_memory_kinds() == known.get_output_memory_kinds()
    for name in ("parameter_shardings", "output_shardings"):
        wanted = getattr(known, f"get_{name}")()
        assert (getattr(told, f"get_{name}")() is None) is (wanted is None)
    (module,), (wanted,) = told.hlo_modules(), known.hlo_modules()
    assert module.name == wanted.name
    assert len(module.computations()) == len(wanted.computations())
    assert len(told.serialize()) > 1000
    with pytest.raises(AttributeError):
        module.nothing_of_the_kind


def ones_at_ones():
    ones = jnp.ones(6, jnp.int32)
    return jnp.zeros(16, jnp.int32).at[ones].add(ones)


def test_a_scatter_of_one_value_to_itself_compiles(tpu):
    """libtpu 0.0.52 ends its process on this, without a barrier."""
    assert "s32[16]" in compiled(tpu, ones_at_ones).as_text()
    nonzero = compiled(tpu, lambda: jnp.nonzero(jnp.array([True] * 5), size=5))
    assert "s32[5]" in nonzero.as_text()


@pytest.mark.long
def test_the_end_of_the_compiler_is_an_error(tpu, monkeypatch):
    monkeypatch.setattr(gather, "_may_be_one", lambda *avals: False)
    try:
        compiled(tpu, lambda: ones_at_ones() + 1)
    except JaxRuntimeError as error:
        said = str(error)
        assert type(error) is JaxRuntimeError
        assert "ended its process on <lambda>, for TPU v5 lite" in said
        assert "Check failed" in said
        assert "pip install -U libtpu" in said
    else:
        pytest.skip("this libtpu compiles it")
    assert "sine" in compiled(tpu, lambda x: function(x) + 1, X).as_text()


def test_a_worker_that_ended_while_it_waited_is_replaced(tpu):
    compiled(tpu, lambda x: x * 3, 1.0)
    before = compile_process.worker.process
    os.kill(before._process.pid, signal.SIGKILL)
    before._process.wait()
    assert compiled(tpu, lambda x: x * 5, 1.0).as_text()
    assert compile_process.worker.process is not before


def test_an_interrupt_ends_the_compilation(tpu, monkeypatch):
    asked = threading.Event()
    answer = worker_process.WorkerProcess._answer

    def asked_for(self, request):
        asked.set()
        return answer(self, request)

    monkeypatch.setattr(worker_process.WorkerProcess, "_answer", asked_for)

    def interrupt():
        if asked.wait(timeout=100):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    # Python ignores interrupts where it was started in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with tpu:
            lowered = jax.jit(lambda x: jnp.linalg.svd(x)[1]).lower(X)
            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                lowered.compile()
            thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert compile_process.worker.process is None
    compiled(tpu, lambda x: x * 7, 1.0)


def test_a_child_of_this_process_has_a_worker_of_its_own(tpu):
    compiled(tpu, lambda x: x * 11, 1.0)
    mine = compile_process.worker.process
    try:
        worker_process._in_child()  # what the child of a fork does first
        compiled(tpu, lambda x: x * 13, 1.0)
        assert compile_process.worker.process is not mine
        assert mine.is_alive()
        compile_process.worker.end()
    finally:
        worker_process._of_others.remove(mine)
        compile_process.worker.process = mine
    compiled(tpu, lambda x: x * 17, 1.0)
    assert compile_process.worker.process is mine


def test_errors_of_the_compiler_are_those_of_this_process(tpu):
    with tpu:
        lowered = jax.jit(lambda x: x * 19).lower(1.0)
        with pytest.raises(JaxRuntimeError, match="No such compile option: 'xla_nothing'"):
            lowered.compile(compiler_options={"xla_nothing": 1})


def test_without_a_worker_it_is_compiled_here(tpu, monkeypatch):
    monkeypatch.setattr(compile_process.worker, "process", None)
    monkeypatch.setattr(worker_process.sys, "executable", "")
    found = compiled(tpu, lambda x: x * 23, 1.0)
    assert not isinstance(found.runtime_executable(), compile_process.SubprocessExecutable)
    monkeypatch.undo()
    # As where modules lie in an archive, or jaxlib does not load there.
    monkeypatch.setattr(compile_process.worker, "process", None)
    monkeypatch.setattr(worker_process.worker_script, "__file__", "/nowhere/worker_script.py")
    found = compiled(tpu, lambda x: x * 29, 1.0)
    assert not isinstance(found.runtime_executable(), compile_process.SubprocessExecutable)
    assert compile_process.worker.process is None


def test_gpus_are_compiled_here():
    """XLA's compiler of GPUs may call what the user has registered with this process."""
    need("cuda")
    target = jax.target("cuda:h100")
    assert not compile_process.needs_subprocess(target.devices[0])
    assert client.is_absent(target.devices[0])


def test_what_jaxlib_cannot_read_is_as_the_compiler_wrote_it():
    """Of TPUs with sparse cores, by a libtpu that is newer than jaxlib."""
    need("tpu")
    arguments = (
        jax.ShapeDtypeStruct((200,), jnp.int32),
        jax.ShapeDtypeStruct((9,), jnp.int8),
        jax.ShapeDtypeStruct((9,), jnp.int32),
    )
    each = compiled(
        jax.target("tpu:v6e:1x1"), lambda x, i, u: x.at[i].add(u, mode="clip"), *arguments
    )
    assert each.as_text().startswith("HloModule jit_")
    assert each.as_text(style="short")
    assert each.cost_analysis()["flops"] > 0
    (module,) = each.runtime_executable().hlo_modules()
    assert module.name.startswith("jit_")
    if module._proto is None:
        with pytest.raises(JaxRuntimeError, match="a newer jaxlib may read it"):
            module.as_serialized_hlo_module_proto()


def test_flags_of_libtpu_are_those_of_a_worker_of_its_own(monkeypatch):
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--mine=1")
    with compile_process.with_flags(["--theirs=2"]):
        flagged = compile_process.current_worker()
        assert flagged is not compile_process.worker
        assert flagged._environment["LIBTPU_INIT_ARGS"] == "--mine=1 --theirs=2"
        assert flagged in worker_process._pools
    assert compile_process.current_worker() is compile_process.worker
    assert flagged not in worker_process._pools
