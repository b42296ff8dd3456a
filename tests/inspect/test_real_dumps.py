"""Whole programs as XLA wrote them for CPU, TPU and GPU: read, compared with themselves, changed.

Compiled for devices that are not here: a target is skipped where its plugin is not installed.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys

import pytest

import hlofront as jax
from hlofront.inspect import canonical, costs, diff, parse, styled, write
from hlofront.pjrt import targets
from tests.support.xla_options import PRESENT_EMITTERS, has_option

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import programs  # noqa: E402

sys.path.remove(str(HERE))


def missing_for(target):
    """What to install for compiling for a target, None if nothing is missing."""
    platform = target.partition(":")[0]
    return targets.install_hint(platform) if platform != "cpu" else None


@pytest.fixture(scope="module", params=programs.TARGETS)
def target(request):
    if missing := missing_for(request.param):
        pytest.skip(f"compiling for {request.param} takes `{missing}`")
    return request.param


@pytest.fixture(scope="module")
def text_of(target):
    """What a program compiles to for a target, compiled once."""
    return functools.cache(lambda name: programs.compiled(name, target).as_text())


@pytest.fixture(scope="module")
def texts(text_of):
    """What each program compiles to for a target."""
    return {name: text_of(name) for name in programs.PROGRAMS}


@pytest.fixture(scope="module")
def compiled_as(target):
    """The text of a function of three arrays, compiled once."""
    known = {}

    def text(function):
        if function not in known:
            found = programs.compiled_as(function, programs.SQUARE, target)
            known[function] = found.as_text()
        return known[function]

    return text


def sentences(found):
    return [change.sentence for change in found.changes]


# ---- read and written ----------------------------------------------------------------------------


@pytest.mark.long
def test_what_is_written_is_what_was_read(texts):
    for name, text in texts.items():
        written = write(parse(text))
        assert written.strip() == text.strip(), name
        assert write(parse(written)) == written, name


@pytest.mark.long
def test_costs_and_styles(texts, target):
    for name, text in texts.items():
        report = costs(text, target=target if target != "cpu" else None)
        assert report.total["bytes"] > 0 and report.peak_bytes > 0, name
        assert any(row.file and row.file.endswith("programs.py") for row in report.lines), name
        assert "programs.py" in styled(text, "source"), name
        assert "metadata" not in styled(text, "short"), name
        assert canonical(parse(text)) == canonical(write(parse(text))), name
    steps = costs(texts["gpt_step"])
    layers = 1 if target.startswith("cuda") else 2
    # Six multiplications and additions per weight and token is what a step is said to take.
    assert steps.total["flops"] > 6 * layers * (12 * 32 * 32) * 2 * 16


# ---- compiled again ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def elsewhere(texts_elsewhere, target):
    """The programs compiled for a target in another process."""
    ending = f".{target.replace(':', '-')}.hlo"
    return {
        name.removesuffix(ending): text
        for name, text in texts_elsewhere.items()
        if name.endswith(ending)
    }


@pytest.fixture(scope="session")
def texts_elsewhere(tmp_path_factory):
    """The files of all targets, from another process, in other folders and another order."""
    root = tmp_path_factory.mktemp("elsewhere")
    packages, models, out = (root / name for name in ("lib/site-packages", "models", "out"))
    for folder in (packages, models, out):
        folder.mkdir(parents=True)
    (packages / "hlofront").symlink_to(pathlib.Path(jax.__file__).parent)
    text = (HERE / "programs.py").read_text(encoding="utf-8")
    script = models / "training_programs.py"
    script.write_text("# A line more.\n" + text, encoding="utf-8")
    present = [target for target in programs.TARGETS if not missing_for(target)]
    command = [sys.executable, str(script), str(out), *present]
    settings = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run(command, env=settings, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return {path.name: path.read_text() for path in out.iterdir()}


@pytest.mark.long
def test_another_process_and_another_folder_are_no_difference(text_of, elsewhere):
    assert set(programs.PROGRAMS) - set(elsewhere) <= {"gpt_step"}
    for name in elsewhere:
        text = text_of(name)
        assert text != elsewhere[name] and "training_programs.py" in elsewhere[name], name
        found = diff(text, elsewhere[name])
        assert found.equal and not found.changes, f"{name}: {found}"
        assert found.same_schedule, name
        assert canonical(text) == canonical(elsewhere[name]), name


# ---- changed programs ----------------------------------------------------------------------------


def test_a_dtype(compiled_as, target):
    found = diff(compiled_as(programs.activated), compiled_as(programs.activated_in_half))
    # The TPU keeps what becomes bfloat16 elsewhere; the GPU gives a value more.
    (change,) = found.changes
    assert change.sentence.startswith("dtype f32 -> bf16: ") and "convert added" in change.sentence
    assert "programs.py:201" in change.sources
    assert sum(" convert(" in part.sentence for part in change.parts) >= 2
    # The finding of its dtypes says the same as the cause, and is not repeated under it.
    assert found.text().count("dtype f32 -> bf16: ") == 1
    assert all(part.sentence in found.text() for part in change.parts)
    assert len(found.as_dict()["changes"][0]["parts"]) == len(change.parts)


def test_an_axis(compiled_as, target):
    found = diff(compiled_as(programs.activated), compiled_as(programs.activated_along_columns))
    about = [s for s in sentences(found) if s.startswith("dimensions of ")]
    assert len(about) == 1 and about[0].endswith(": {1} -> {0}")
    if not target.startswith("tpu"):
        # There other layouts follow from it.
        assert len(found.changes) == 1, found
    found = diff(compiled_as(programs.activated), compiled_as(programs.activated_transposed))
    said = [s for s in sentences(found) if not s.startswith("backend_config")]
    assert len(said) == 1
    assert re.match("(rhs_contracting_dims|dim_labels) of ", said[0])
    if target.startswith("cuda"):
        # Elsewhere it is fused in another way, or padded and added.
        found = diff(compiled_as(programs.joined), compiled_as(programs.joined_sideways))
        (cause,) = [change for change in found.changes if change.is_cause]
        assert cause.sentence == "dimensions of concatenate: {0} -> {1}"
        assert [(c.what, c.before, c.after) for c in cause.parts if c.kind == "changed"] == [
            ("shape", "[128,64]", "[64,128]"),
            ("dimensions", "{0}", "{1}"),
        ], found


def test_a_reordered_sum(compiled_as):
    text = compiled_as(programs.added)
    (change,) = diff(text, compiled_as(programs.added_in_pairs)).changes
    names = [re.sub(r"[a-z]+[\w.]*", "x", side) for side in (change.before, change.after)]
    assert names == ["((x + x) + x) + x", "(x + x) + (x + x)"]
    assert change.sentence.startswith("order of additions of ")
    assert change.sources and change.sources[0].startswith("programs.py:")
    # In which order two values are added is nothing.
    assert diff(text, compiled_as(programs.added_backwards)).equal


def test_a_constant_in_a_training_step(text_of, target, tmp_path):
    source = (HERE / "programs.py").read_text(encoding="utf-8")
    namespace = {"__name__": "programs_changed"}
    assert source.count("0.9 * old") == 1
    changed = source.replace("0.9 * old", "0.8 * old")
    exec(compile(changed, programs.__file__, "exec"), namespace)
    after = programs.compiled_as(*namespace["PROGRAMS"]["resnet_step"], target).as_text()
    (change,) = diff(text_of("resnet_step"), after).changes
    assert (change.what, change.before, change.after) == ("constant", "0.9", "0.8")
    assert len(change.a) == 4  # of two norms, each with a mean and a variance


# What is asked of each compiler, of which program, and how many changes are folded into one.
FLAGS = {
    "cpu": ({PRESENT_EMITTERS: False}, "standardized", 2),
    "tpu:v5e:1x1": ({"xla_tpu_dot_dot_fusion": False}, "resnet_step", 3),
    "cuda:h100": ({"xla_disable_hlo_passes": "multi_output_fusion"}, "resnet_step", 5),
}


def test_a_flag_of_fusions_is_told_as_regrouping(text_of, target):
    options, name, parts = FLAGS[target]
    if target == "cpu" and not has_option(jax.devices("cpu")[0].client, PRESENT_EMITTERS, False):
        pytest.skip("this jaxlib has one kind of fusion emitters for CPUs")
    after = programs.compiled(name, target, compiler_options=options).as_text()
    found = diff(text_of(name), after)
    (change,) = found.changes
    if change.kind != "split":
        assert change.kind == "refused", found
        assert re.search(" over the same work: | of the same kinds and sizes: ", change.sentence)
        assert len(change.parts) == parts


@pytest.mark.long
def test_a_training_step_without_fusions(text_of, target):
    if target != "cpu":
        pytest.skip("one compiler is enough")
    options = {"xla_disable_hlo_passes": "fusion"}
    after = programs.compiled("resnet_step", target, compiler_options=options).as_text()
    found = diff(text_of("resnet_step"), after)
    folded = next(change for change in found.changes if change.kind == "refused")
    assert len(folded.parts) > 30 and len(found.changes) < 10, found
    assert re.match(
        r"\d+ fusions became \d+ fusions and 1 operation (with operations of the same kinds|"
        "over the same work)",
        folded.sentence,
    )


def test_no_fusions_at_all_on_a_gpu(text_of, target):
    if not target.startswith("cuda"):
        pytest.skip("the pass is the GPU compiler's")
    options = {"xla_disable_hlo_passes": "priority-fusion"}
    after = programs.compiled("resnet_step", target, compiler_options=options).as_text()
    found = diff(text_of("resnet_step"), after)
    # Over a hundred fusions more, all of the work the same.
    assert found.totals[1]["fusions"] > 2 * found.totals[0]["fusions"]
    assert len(found.changes) < 12, found
    (folded,) = (change for change in found.changes if change.kind == "refused")
    assert len(folded.b) > 100


# ---- changed texts -------------------------------------------------------------------------------


def chosen(module, wanted):
    """The first instruction of the entry, in its order, that is wanted."""
    return next(i for i in module.entry.instructions if wanted(i))


def is_plain(i):
    """Whether a value could as well be of another type, in another place or at another time."""
    is_array = i.opcode == "fusion" and i.shape.dtype in ("f32", "bf16") and i.shape.layout
    return bool(is_array) and len(i.users) == 1


def shape_of(text):
    return parse(f"HloModule m\n\nENTRY e {{ ROOT a = {text} parameter(0) }}").entry.root.shape


@pytest.mark.parametrize("name", ["gpt_step", "resnet_step"])
class TestPlantedInText:
    """One change in a training step's text is one change in words."""

    def test_a_dtype(self, text_of, name):
        module = parse(text_of(name))
        place = chosen(module, is_plain)
        root, dtype = place.fused.root, place.shape.dtype
        for instruction in (place, root):
            instruction.shape = shape_of(instruction.shape.text.replace(dtype, "f16", 1))
        (change,) = diff(text_of(name), write(module)).changes
        names = f"{place.name}, {place.name}/{root.name}"
        assert change.sentence == f"dtype of {names}: {dtype} -> f16"

    def test_a_copy(self, text_of, name):
        text = text_of(name)
        module = parse(text)
        place = chosen(module, is_plain)
        user = place.users[0]
        line = next(n for n in text.splitlines() if n.lstrip().startswith(f"%{place.name} = "))
        copy = f"  %copy.9999 = {place.shape.text} copy(%{place.name})"
        used = next(n for n in text.splitlines() if re.match(rf"\s*(ROOT )?%{user.name} = ", n))
        edited = re.sub(rf"%{re.escape(place.name)}(?=[,)])", "%copy.9999", used)
        after = text.replace(line, line + "\n" + copy).replace(used, edited)
        (change,) = diff(text, after).changes
        assert change.kind == "added" and change.what == "copy"
        shape = place.shape.short_text()
        assert change.sentence == f"added copy copy.9999: {shape} copy({place.name})"
        (change,) = diff(after, text).changes
        assert change.kind == "removed" and change.what == "copy"

    def test_an_axis(self, text_of, name):
        module = parse(text_of(name))
        wanted = [
            (c, i)
            for c in module.computations
            for i in c.instructions
            if i.opcode == "broadcast" and len(i.dimensions) == 1 and c is not module.entry
        ]
        _, place = wanted[0]
        old = place.dimensions[0]
        new = (old + 1) % len(place.shape.dimensions)
        place.attributes["dimensions"] = f"{{{new}}}"
        (change,) = diff(text_of(name), write(module)).changes
        assert change.what == "dimensions"
        assert (change.before, change.after) == (f"{{{old}}}", f"{{{new}}}")

    def test_a_schedule(self, text_of, name):
        module = parse(text_of(name))
        order = module.entry.instructions
        at = {id(i): n for n, i in enumerate(order)}
        place, first = next(
            (i, min(at[id(u)] for u in i.users))
            for i in order
            if is_plain(i) and min(at[id(u)] for u in i.users) > at[id(i)] + 3
        )
        order.remove(place)
        order.insert(first - 1, place)
        after = write(module)
        found = diff(text_of(name), after)
        assert found.equal and found.same_schedule is False and "in another order" in found.text()
        found = diff(text_of(name), after, schedule=True)
        (change,) = found.changes
        assert not found.equal and change.kind == "scheduled"
        assert re.fullmatch(
            rf"the schedule of ENTRY [\w.]+: 1 of \d+ operations run at another place: "
            rf"{re.escape(place.name)} \(\d+ later\)",
            change.sentence,
        )

    def test_a_layout(self, text_of, name):
        module = parse(text_of(name))
        place = chosen(module, lambda i: is_plain(i) and len(i.shape.dimensions) == 2)
        old = place.shape.text
        new = old.replace("{1,0", "{0,1") if "{1,0" in old else old.replace("{0,1", "{1,0")
        root = place.fused.root
        for instruction in (place, root):
            instruction.shape = shape_of(new)
        for user in place.users:
            if user.fused is not None:
                number = user.operands.index(place)
                user.fused.parameters[number].shape = place.shape
        changes = diff(text_of(name), write(module)).changes
        assert {change.what for change in changes} == {"layout"}
        assert len(changes) <= 2
