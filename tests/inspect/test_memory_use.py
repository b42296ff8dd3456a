"""Memory over time: what is live at each operation, on the terminal and in errors."""

import io
import json
import pathlib

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
import hlotools
from hlofront import lax
from hlofront.base.errors import JaxRuntimeError
from hlofront.cli.main import main
from hlofront.inspect import memory_use
from hlofront.pjrt.targets import install_hint, target
from hlofront.runtime.compilation.out_of_memory import explained
from hlotools.cost.peak import assigned_bytes, peaks
from hlotools.ir.hlo_parser import parse
from tests.inspect.bounds.programs import PROGRAMS

FILE = pathlib.Path(__file__).name
TPU = pytest.mark.skipif(bool(install_hint("tpu")), reason="a compiler for TPUs is needed")

# Each value has 4,000 bytes; b is overwritten by c, which is added to in place.
CHAIN = """HloModule chain, is_scheduled=true

ENTRY e {
  x = f32[1000]{0} parameter(0), metadata={op_name="x"}
  a = f32[2000]{0} broadcast(x), dimensions={0}
  b = f32[1000]{0} slice(a), slice={[0:1000]}, metadata={source_file="step.py" source_line=7}
  c = f32[1000]{0} exponential(b)
  ROOT d = f32[500]{0} slice(c), slice={[0:500]}
}
"""


def command(*arguments):
    out = io.StringIO()
    code = main([*map(str, arguments)], out)
    return code, out.getvalue()


def test_each_moment_has_what_is_live():
    use = memory_use(CHAIN)
    assert [(m.name, m.bytes) for m in use.moments] == [
        ("a", 4000 + 8000),
        ("b", 4000 + 8000 + 4000),
        ("c", 4000 + 4000),
        ("d", 4000 + 4000 + 2000),
    ]
    assert use.moments[use.peak].name == "b" and use.peak_bytes == 16000
    assert [live.buffer.name for live in use.live()] == ["a", "x", "b"]
    assert [live.buffer.name for live in use.live(3)] == ["x", "c", "d"]
    kinds = {live.buffer.name: live.buffer.kind for live in use.buffers}
    assert kinds == {"x": "argument", **dict.fromkeys("abc", "temporary"), "d": "result"}


def test_the_chart_marks_the_peak_and_lists_its_buffers():
    lines = memory_use(CHAIN).text(width=8, height=4).splitlines()
    assert lines[0] == (
        "chain: the peak memory is 15.6 KiB, while operation 2 of 4 runs: slice b at step.py:7"
    )
    chart = lines[2:6]
    assert chart[0] == "15.6 KiB |  ██" and chart[3] == "       0 |████████"
    assert lines[7].index("^ peak") == chart[0].index("██")
    assert lines[9:] == [
        # It has no line of its own: that of the value which it serves is told.
        "  7.8 KiB  temporary f32[2000] a  at step.py:7",
        "  3.9 KiB  argument f32[1000] x",
        "  3.9 KiB  temporary f32[1000] b  at step.py:7",
    ]


def test_what_a_loop_makes_is_inside_of_it():
    def looped(x):
        return lax.fori_loop(0, 5, lambda i, h: jnp.sort(h @ h), x).sum()

    use = memory_use(jax.jit(looped).lower(np.ones((64, 64), np.float32)).compile())
    inside = [m for m in use.moments if "body" in m.computation or "region" in m.computation]
    assert inside and max(m.bytes for m in inside) == use.peak_bytes
    assert [live for live in use.live() if live.computation == inside[0].computation]


@pytest.mark.parametrize("name", ["embedding_gradient", "scanned_layers", "perceptron_step"])
def test_the_peak_is_that_of_costs_and_near_xlas_buffers(name):
    function, args = PROGRAMS[name]
    compiled = jax.jit(function).lower(*args).compile()
    use = memory_use(compiled)
    assert use.peak_bytes == peaks(parse(compiled.as_text()))[1]
    assert use.peak_bytes == sum(live.buffer.bytes for live in use.live())
    assert use.assigned_bytes == assigned_bytes(compiled.memory_analysis())
    assert use.peak_bytes == pytest.approx(use.assigned_bytes, rel=0.25)


def test_the_command_shows_functions_and_files(tmp_path):
    file = tmp_path / "chain.hlo"
    file.write_text(CHAIN)
    code, text = command("show", file, "--stage", "memory")
    assert code == 0 and "^ peak" in text
    code, text = command("show", file, "--stage", "memory", "--json")
    read = json.loads(text)
    assert read["format"] == "hlofront.memory/1" and read["peak"] == 1
    assert read["moments"][1]["line"] == 7 and read["buffers"][0]["first"] == 0
    step = tmp_path / "step.py"
    step.write_text("def step(x):\n    return (x @ x).sum()\n")
    code, text = command("show", f"{step}:step", "--args", "f32[64,64]", "--stage", "memory")
    assert code == 0 and "XLA's buffers:" in text and "argument f32[64,64]" in text
    code, text = command("show", f"{step}:step", "--args", "f32[64,64]")
    assert code == 0 and "^ peak" not in text


def test_a_program_before_optimization_says_so():
    lowered = jax.jit(lambda x: jnp.sort(x) + 1).lower(np.ones(8, np.float32))
    assert "before XLA's optimizations" in memory_use(lowered).text()
    assert hlotools.memory_use(lowered.as_text("hlo")).peak_bytes == memory_use(lowered).peak_bytes


def test_what_another_core_makes_is_made_once():
    """The update of an asynchronous operation passes its operands on, and makes its result."""
    state = "((), (), s32[4]{0})"
    after = "((f32[256]{0}), f32[64]{0}, s32[4]{0})"
    text = f"""HloModule other_core, is_scheduled=true

%kernel (p: f32[256]) -> f32[64] {{
  %p = f32[256]{{0}} parameter(0)
  ROOT %k = f32[64]{{0}} custom-call(%p), custom_call_target="k"
}}

ENTRY %main (x: f32[256]) -> f32[64] {{
  %start = {state} async-start(), async_execution_thread="sparsecore", calls=%kernel
  %x = f32[256]{{0}} parameter(0)
  %update = {after} async-update(%start, %x)
  ROOT %done = f32[64]{{0}} async-done(%update)
}}
"""
    assert memory_use(parse(text)).peak_bytes == 4 * (256 + 64)


def test_a_program_without_operations():
    text = "HloModule m, is_scheduled=true\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n"
    assert memory_use(text).text() == "m: no operation runs"


# ---- errors -------------------------------------------------------------------------------------


def huge(x, w):
    return jnp.sort(jnp.tanh(x @ w), 0) @ w.T


HUGE = [jax.ShapeDtypeStruct((n, 32768), "float32") for n in (65536, 32768)]


@TPU
def test_a_program_that_is_too_large_to_compile_says_what_takes_the_memory():
    with target("tpu:v5e:1x1"), pytest.raises(JaxRuntimeError) as raised:
        jax.jit(huge).lower(*HUGE).compile()
    first, *lines = str(raised.value).splitlines()
    assert first.startswith("RESOURCE_EXHAUSTED: huge needs more memory than its device has.")
    assert "the peak memory is 32.0 GiB" in first
    assert "  8.0 GiB  argument f32[65536,32768] x.1" in lines
    assert any("temporary f32[65536,32768] sort" in line and FILE in line for line in lines)
    assert "Ran out of memory on HBM" in str(raised.value)
    assert "Ran out of memory" in str(raised.value.__cause__)


@TPU
def test_fits_lists_the_buffers_of_a_program_that_the_compiler_refuses():
    fit = jax.fits(huge, *HUGE, target="tpu:v5e:1x1")
    assert not fit and fit.buffers[0].bytes == 8 << 30
    assert "8.0 GiB  argument f32[65536,32768]" in str(fit)


def test_a_run_that_finds_too_little_memory_says_what_takes_it(monkeypatch):
    step = jax.jit(lambda x: jnp.sort(x @ x))
    x = jnp.ones((32, 32))
    compiled = step.lower(x).compile()

    class Full:
        def __getattr__(self, name, loaded=compiled._executable.loaded):
            return getattr(loaded, name)

        def execute_sharded(self, buffers):
            raise JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate")

    monkeypatch.setattr(compiled._executable, "loaded", Full())
    with pytest.raises(JaxRuntimeError, match=r"needs more memory than its device has") as raised:
        compiled._executable.run_unchecked([x])
    assert "argument f32[32,32]" in str(raised.value)
    assert str(raised.value).endswith("Out of memory while trying to allocate")


def test_other_errors_stay_as_they_are():
    error = JaxRuntimeError("INTERNAL: no")
    assert explained(error, "f", lambda: CHAIN) is error
    full = JaxRuntimeError("RESOURCE_EXHAUSTED: full")
    assert explained(full, "f", lambda: "no HLO") is full


# ---- donated arguments ---------------------------------------------------------------------------

# Arguments of 4,000 bytes, whose buffers results take: one of a fusion with two, one of a loop.
DONATED = """HloModule donated, is_scheduled=true, input_output_alias={ALIASES}

two {
  p = f32[1000]{0} parameter(0)
  n = f32[1000]{0} negate(p)
  ROOT t = (f32[1000]{0}, f32[1000]{0}) tuple(n, p)
}

goes_on {
  c = (f32[1000]{0}, f32[1000]{0}) parameter(0)
  ROOT yes = pred[] custom-call(c), custom_call_target="more"
}

step {
  c = (f32[1000]{0}, f32[1000]{0}) parameter(0)
  a = f32[1000]{0} get-tuple-element(c), index=0
  b = f32[1000]{0} get-tuple-element(c), index=1
  ROOT t = (f32[1000]{0}, f32[1000]{0}) tuple(b, a)
}

ENTRY e {
  x = f32[1000]{0} parameter(0)
  y = f32[1000]{0} parameter(1)
  f = (f32[1000]{0}, f32[1000]{0}) fusion(x), kind=kLoop, calls=two
  f0 = f32[1000]{0} get-tuple-element(f), index=0
  f1 = f32[1000]{0} get-tuple-element(f), index=1
  z = f32[1000]{0} copy(y)
  start = (f32[1000]{0}, f32[1000]{0}) tuple(z, f1)
  w = (f32[1000]{0}, f32[1000]{0}) while(start), condition=goes_on, body=step
  w0 = f32[1000]{0} get-tuple-element(w), index=0
  w1 = f32[1000]{0} get-tuple-element(w), index=1
  ROOT r = (f32[1000]{0}, (f32[1000]{0}, f32[1000]{0})) tuple(f0, w)
}
"""


@pytest.mark.parametrize(
    ("aliases", "most"),
    [
        ("{}", 8000 + 8000 + 4000),
        ("{ {0}: (0, {}, may-alias) }", 8000 + 4000 + 4000),
        ("{ {0}: (0, {}, may-alias), {1, 0}: (1, {}, must-alias) }", 8000 + 4000),
        # An index that the result does not have says nothing.
        ("{ {0, 7}: (0, {}, may-alias), {9}: (1, {}) }", 8000 + 8000 + 4000),
    ],
)
def test_results_in_buffers_of_arguments_count_once(aliases, most):
    text = DONATED.replace("{ALIASES}", aliases)
    use = memory_use(text)
    assert use.peak_bytes == most
    assert peaks(parse(text))[1] == most
    assert sum(live.buffer.bytes for live in use.live()) == most
    assert hlotools.costs(text).peak_bytes == most


def test_adam_with_donated_states_has_the_bytes_of_xla():
    def adam(p, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    array = jnp.zeros((512, 512))
    compiled = jax.jit(adam, donate_argnums=(0, 1, 2)).lower(*[array] * 4).compile()
    use = memory_use(compiled)
    assert use.peak_bytes == 4 << 20
    # XLA's figure has the pointers of the result's tuple, too.
    assert use.assigned_bytes - use.peak_bytes == 3 * 8


# ---- what libraries allocate ---------------------------------------------------------------------

LIBRARIES = """HloModule libraries, is_scheduled=true

product {
  a = f32[8,8]{1,0} parameter(0)
  ROOT d = f32[8,8]{1,0} dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY e {
  x = f32[8,8]{1,0} parameter(0)
  y = f32[8,8]{1,0} fusion(x), kind=kCustom, calls=product, backend_config={"fusion_config":{"kind":"__ynn_fusion"}}
  z = f32[8,8]{1,0} fusion(y), kind=kCustom, calls=product, backend_config={"fusion_config":{"kind":"__ynn_fusion"}}
  t = f32[8,8]{1,0} fusion(z), kind=kCustom, calls=product, backend_config={"fusion_backend_config":{"kind":"__triton"}}
  b = f32[8,8]{1,0} custom-call(), custom_call_target="AllocateBuffer"
  g = (f32[8,8]{1,0}, s8[64]{0}) custom-call(t, b), custom_call_target="__cublas$gemm"
  h = f32[8,8]{1,0} get-tuple-element(g), index=0
  ROOT r = f32[8,8]{1,0} custom-call(h), custom_call_target="my_solver"
}
"""  # noqa: E501


def test_libraries_that_allocate_memory_of_their_own_are_told(tmp_path):
    use = memory_use(LIBRARIES)
    line = "not counted: what library calls allocate while they run (2 ynn_fusion, 1 my_solver)"
    assert line in use.text().splitlines()
    assert use.as_dict()["uncounted"] == {"ynn_fusion": 2, "my_solver": 1}
    assert line in hlotools.costs(LIBRARIES).text().splitlines()
    assert line in hlotools.page(LIBRARIES)
    assert "not counted" not in memory_use(CHAIN).text() + hlotools.costs(CHAIN).text()
    file = tmp_path / "libraries.hlo"
    file.write_text(LIBRARIES)
    assert line in command("show", file, "--stage", "memory")[1].splitlines()
