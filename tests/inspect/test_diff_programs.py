"""Diffs of jaxprs and StableHLO are of structure: names and orders that mean nothing are none."""

import pathlib
import random
import re
import time

import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax
from hlofront.inspect import HloSyntaxError, diff
from hlotools.ir.digests import Hashes
from hlotools.ir.jaxpr_parser import read_jaxpr
from hlotools.ir.mlir_lines import canonical_jaxpr, canonical_stablehlo
from hlotools.ir.stablehlo_parser import read_stablehlo

TEXTS = pathlib.Path(__file__).with_name("texts")
FILE = pathlib.Path(__file__).name


@jax.jit
def scaled(x, factor):
    return x * factor + 1.0


def program(x, w, i):
    """Calls, loops, branches, regions with values from outside, several results, callbacks."""
    y = jnp.where(x > 0, jnp.sqrt(x), 0.0) @ w
    y = jnp.sort(y.at[i].add(1.0), axis=1)
    carry, ys = lax.scan(lambda c, row: (c + row @ w, (c.sum(), c[0])), x[0], y)
    z = lax.cond(carry.sum() > 0, lambda v: jnp.log(v), lambda v: v * 2 + w[0], carry)
    _, k = lax.while_loop(lambda s: s[0] < i[0], lambda s: (s[0] + 1, s[1] * w[0, 0]), (0, z))
    noise = jax.random.normal(jax.random.key(0), (3,))
    jax.debug.print("z = {}", z[0])
    return scaled(z, 2.0), scaled(ys[0], 3.0), k, noise, jnp.argmax(x, 1), jax.nn.softmax(x)


@pytest.fixture(scope="module")
def texts():
    traced = jax.jit(program).trace(jnp.ones((4, 4)), jnp.ones((4, 4)), jnp.arange(3))
    return {
        "jaxpr": traced.jaxpr.pretty_print(source_info=True, use_color=False),
        "stablehlo": traced.lower().as_text(debug_info=True),
    }


def said(before, after):
    found = diff(before, after)
    assert not found.equal
    assert len(diff(after, before).changes) == len(found.changes)
    return [change.sentence for change in found.changes]


def edited(text, *edits):
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


# ---- nothing differs ----------------------------------------------------------------------------


def test_names_and_places_are_no_differences(texts):
    for kind, canonical in (("jaxpr", canonical_jaxpr), ("stablehlo", canonical_stablehlo)):
        text = texts[kind]
        renamed = canonical(text)
        assert renamed != text
        assert diff(text, renamed).equal
        assert diff(text, text.replace(FILE, "other.py")).equal
    text = texts["stablehlo"]
    swapped = re.sub(r"@scaled\w*", lambda name: name[0].replace("scaled", "other"), text)
    assert swapped != text and diff(text, swapped).equal


@pytest.mark.parametrize("name", ["gpt_block.mlir", "scan_grad.mlir", "gpt_block.jaxpr"])
def test_the_order_of_what_does_not_depend_on_each_other(name):
    """Lines change places as often as they may, also where values from outside are used first."""
    lines = (TEXTS / name).read_text().splitlines()
    value = r"%[\w]+" if name.endswith("mlir") else r"\b[a-z]{1,2}\b(?=[:\s]|$)"
    whole = re.compile(r"\s+(%\w+|\w+:\S+) = .*[^{\[]$")
    rng = random.Random(3)
    moved = 0
    for _ in range(2000):
        n = rng.randrange(len(lines) - 1)
        pair = lines[n : n + 2]
        indents = {len(line) - len(line.lstrip()) for line in pair}
        if len(indents) > 1 or not all(whole.match(line) for line in pair):
            continue
        if any("while" in line for line in pair):
            continue
        defined = re.findall(value, pair[0])[0]
        if defined not in re.findall(value, pair[1])[1:]:
            lines[n : n + 2] = pair[::-1]
            moved += 1
    assert moved > 100
    assert diff((TEXTS / name).read_text(), "\n".join(lines)).equal


def test_functions_may_stand_in_any_order():
    text = (TEXTS / "named.mlir").read_text()
    pattern = r"(.*?\{\n)(  func.func public.*?\n  \}\n)(.*?\n  \}\n)"
    head, main, inner = re.match(pattern, text, re.DOTALL).groups()
    assert diff(text, f"{head}{inner}{main}}}".replace("@inner", "@g")).equal


# ---- one thing differs --------------------------------------------------------------------------


def test_changes_in_stablehlo(texts):
    text = texts["stablehlo"]
    of = {
        opcode: re.search(rf"(%\w+) = \"?stablehlo\.{opcode}\b", text)[1]
        for opcode in ("sqrt", "sort", "scatter", "case")
    }
    cases = [
        (("stablehlo.sqrt %arg0", "stablehlo.rsqrt %arg0"),
         f"opcode of {of['sqrt']}: sqrt -> rsqrt"),
        (("applies stablehlo.maximum across", "applies stablehlo.minimum across"),
         "applies of %"),
        (("is_stable = true", "is_stable = false"),
         f"is_stable of {of['sort']}: true -> false"),
        (("dense<466688986>", "dense<466688987>"),
         "constant of threefry2x32/%c: 466688986 -> 466688987"),
        (("stablehlo.log ", "stablehlo.exponential "),
         f"opcode of {of['case']}.branch1/%"),
        (("update_window_dims = [1]", "update_window_dims = [0]"),
         f"scatter_dimension_numbers.update_window_dims of {of['scatter']}: [1] -> [0]"),
        (("stablehlo.dot_general %4, %arg1, contracting_dims = [1] x [0]",
          "stablehlo.dot_general %4, %arg1, contracting_dims = [0] x [0]"),
         "contracting_dims of %5: [1] x [0] -> [0] x [0]"),
    ]  # fmt: skip
    for edit, sentence in cases:
        (only,) = said(text, edited(text, edit))
        assert only.startswith(sentence), only
    found = diff(text, edited(text, ("stablehlo.sqrt %arg0", "stablehlo.rsqrt %arg0")))
    assert [source.partition(":")[0] for source in found.changes[0].sources] == [FILE]
    assert found.kind == "stablehlo" and found.totals is None


PLANTED = {
    "gpt_block.mlir": [
        (r"stablehlo\.add ", "stablehlo.subtract "),
        (r"stablehlo\.multiply ", "stablehlo.divide "),
        (r"dims = \[0, 1\]", "dims = [1, 0]"),
        (r"applies stablehlo\.add", "applies stablehlo.maximum"),
        (r"dense<0\.0", "dense<1.0"),
        (r"contracting_dims = \[2\]", "contracting_dims = [1]"),
    ],
    "scan_grad.mlir": [(r"dense<[01]\.0", "dense<2.0"), (r"stablehlo\.add ", "stablehlo.divide ")],
    "gpt_block.jaxpr": [(r" mul ", " div "), (r" add ", " sub "), (r"axes=\(2,\)", "axes=(1,)")],
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_one_planted_change_is_one_change(name):
    """Also where the program has several that are equal, such as constants."""
    text = (TEXTS / name).read_text()
    rng = random.Random(2)
    for pattern, new in PLANTED[name]:
        places = list(re.finditer(pattern, text))
        for found in rng.sample(places, min(3, len(places))):
            other = text[: found.start()] + new + text[found.end() :]
            assert len(diff(text, other).changes) == 1, (pattern, diff(text, other))


def test_values_from_outside_of_a_region():
    text = (TEXTS / "scan_grad.mlir").read_text()
    # Another value of the same shape, in the body of the loop alone.
    assert said(text, edited(text, ("%15 = stablehlo.tanh %14", "%15 = stablehlo.tanh %12"))) == [
        "operands of %3.body/%15: %14 -> %12"
    ]
    other = edited(text, ("stablehlo.dynamic_slice %3#3, %11", "stablehlo.dynamic_slice %3#4, %11"))
    assert any("%3#3 -> %3#4" in sentence for sentence in said(text, other))
    # Something before the loop: what is in it is the same.
    line = "%2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) ->"
    assert sorted(said(text, edited(text, (line, "%2 = stablehlo.iota dim = 0 :")))) == [
        "added operation %2: f32[8,16] iota()",
        "removed operation %2: f32[8,16] broadcast_in_dim(%cst)",
    ]
    # A dtype, throughout.
    found = said(text, text.replace("f32", "f64"))
    assert found[0] == "arguments %arg0, %arg1: dtype f32 -> f64"
    assert len(found) == 1


def test_changes_in_a_jaxpr(texts):
    text = texts["jaxpr"]
    cases = [
        ((" sqrt ", " rsqrt "), "opcode of "),
        (("reverse=False", "reverse=True"), "reverse of "),
        (("dimension=1 is_stable=True", "dimension=0 is_stable=True"), "dimension of "),
        ((" log ", " exp "), "opcode of "),
        (("bit_width=32", "bit_width=16"), "bit_width of "),
    ]
    for edit, start in cases:
        (only,) = said(text, edited(text, edit))
        assert only.startswith(start), only
    (change,) = diff(text, edited(text, (" sqrt ", " rsqrt "))).changes
    assert (change.before, change.after, change.what) == ("sqrt", "rsqrt", "opcode")
    assert change.sources[0].startswith(FILE)
    (branch,) = said(text, edited(text, (" log ", " exp ")))
    assert re.search(r"\.branches1/\w+: log -> exp", branch)


def test_functions_with_arguments():
    def f(x, w):
        return lax.scan(lambda c, _: (jnp.tanh(c @ w), None), x, None, length=3)[0]

    def g(x, w):
        return lax.scan(lambda c, _: (jnp.sin(c @ w), None), x, None, length=4)[0]

    x, w = jnp.ones(3), jnp.ones((3, 3))
    for stage in ("jaxpr", "stablehlo"):
        assert diff((f, x, w), (f, x, w), stage=stage).equal
    words = " and ".join(said_of(diff((f, x, w), (g, x, w), stage="jaxpr")))
    assert "length of" in words and "3 -> 4" in words and "tanh -> sin" in words
    closed = jax.make_jaxpr(f)(x, w), jax.make_jaxpr(g)(x, w)
    assert len(diff(*closed).changes) == 2


def said_of(found):
    return [change.sentence for change in found.changes]


# ---- text that is none --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jaxpr", "stablehlo"])
def test_text_that_is_damaged(texts, kind):
    """It is read, refused with a place, or compared by lines; never anything else, and at once."""
    read = read_jaxpr if kind == "jaxpr" else read_stablehlo
    rng = random.Random(5)
    pieces = [*'{}[]()<>=:%,.;"@#-', "->", "\n", " : ", "{ lambda", "cond {", "reducer(", "}) :"]
    refused = 0
    for _ in range(60):
        text = texts[kind]
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            text = rng.choice(
                [text[:at] or " ", text[:at] + rng.choice(pieces) + text[at:],
                 text[:at] + text[at + rng.randint(1, 30) :]]
            )  # fmt: skip
        try:
            Hashes(read(text))
        except HloSyntaxError as error:
            refused += 1
            assert error.line >= 1
        except ValueError:
            refused += 1
    assert refused > 10
    broken = texts[kind][: len(texts[kind]) // 2]
    assert diff(broken, broken).equal
    assert not diff(broken, broken.replace("sqrt", "rsqrt")).equal


def test_hostile_text_takes_bounded_time():
    function = "func.func @main() -> () {\n"
    started = time.monotonic()
    for read, text in [
        (read_jaxpr, "{ lambda ; a:f32[]. let b:f32[] = sin[" + " " * 100_000),
        (read_jaxpr, "{ lambda ; a:f32[]. let " + "b:f32[] = f[x=" + "{ lambda ; . let " * 5_000),
        (read_jaxpr, "{ lambda ; a:f32[]. let b:f32[] = sin[x=" + "[" * 100_000),
        (read_jaxpr, "{ lambda ; a:f32[]. let b:f32[] = sin " + "a " * 50_000),
        (read_stablehlo, function + '%0 = "a"(' + "{" * 100_000),
        (read_stablehlo, function + "%a" * 100_000),
        (read_stablehlo, function + '%0 = "x.y"() ({\n' * 5_000),
        (read_stablehlo, function + '%0 = "a"' + "(%a: " * 50_000 + ") {\n"),
    ]:
        with pytest.raises(HloSyntaxError):
            read(text)
    assert time.monotonic() - started < 20
