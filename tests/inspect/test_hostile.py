"""Texts that mean no good: refused with a line and a column, in bounded time and memory."""

import hashlib
import pathlib
import re
import subprocess
import sys
import time

import pytest

from hlofront.cli import main
from hlofront.inspect import HloSyntaxError, canonical, diff, parse, styled
from hlotools.ir.payloads import payload_digest

TEXTS = pathlib.Path(__file__).with_name("texts")
NAMES = (
    "gpt_block.hlo gpt_block.gpu.hlo sorting.tpu.hlo scan_grad.v0.12.0.1.hlo gpt_block.mlir "
    "scan_grad.mlir gpt_block.jaxpr"
).split()


def refused_or_read(text, whole):
    """Whatever is done with a text, it is done or refused with a place in the text."""
    start = text.lstrip()
    for use in (canonical, lambda text: styled(text, "short"), lambda text: diff(text, whole)):
        try:
            use(text)
        except HloSyntaxError as error:
            assert 1 <= error.line <= text.count("\n") + 1
            assert error.column >= 1
        except ValueError as error:
            # Too little is left to say which kind of text it is.
            assert len(start) < 12, error


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_truncated_anywhere(name):
    text = (TEXTS / name).read_text(encoding="utf-8")
    for end in range(0, len(text), 1000):
        cut = text[:end]
        if name.endswith(".hlo"):
            # Cut between two instructions, or in one: there is no end of it.
            with pytest.raises(HloSyntaxError):
                parse(cut)
        if "\n" in cut:
            refused_or_read(cut, text[:4000] if name.endswith(".hlo") else text)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_anywhere(name):
    text = (TEXTS / name).read_text(encoding="utf-8")
    damages = ["\0", '"', "(", "}", "\udcff", "9" * 5000, "\n\n", "%", "\\", "\ufeff", "{" * 200]
    for number, at in enumerate(range(len(text) // 20, len(text), len(text) // 10)):
        piece = damages[number % len(damages)]
        refused_or_read(text[:at] + piece + text[at:], text[:4000])


# Run in a process of its own, which may have so much memory beside the text, and time.
LIMITED = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
sys.path.insert(0, {folder!r})
from test_hostile import HUGE
from hlofront.inspect import HloSyntaxError, diff, parse

for name, (make, use) in HUGE.items():
    text = make()
    if use is diff:
        other = "module {{\\n}}\\n" if text.startswith("module") else "{{ lambda ; }}\\n"
        use = lambda text: diff(text, other)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    try:
        use(text)
    except HloSyntaxError as error:
        print(name, error.line, error.column, error.message, sep="|")
    else:
        print(name, "read", sep="|")
    spent = resource.getrusage(resource.RUSAGE_SELF).ru_utime - used
    assert spent < 20, (name, spent)
    print(name, spent, file=sys.stderr)
    del text
"""  # fmt: skip
SIZE = 100_000_000
ENTRY = "HloModule m\n\nENTRY e {\n a = "
HUGE = {
    "brackets": (lambda: ENTRY + "(" * SIZE, parse),
    "braces": (lambda: "HloModule m, a=" + "{" * SIZE, parse),
    "sizes": (lambda: ENTRY + "f32[" + "9," * (SIZE // 2) + "]", parse),
    "digits": (lambda: ENTRY + "f32[] constant(" + "9" * SIZE + ")\n b = q\n}", parse),
    "operands": (lambda: ENTRY + "f32[] add(" + "a," * (SIZE // 2) + "a)\n}", parse),
    "tuples": (lambda: ENTRY + "(" * 15 + "f32[]," * (SIZE // 6) + ")", parse),
    "a string": (lambda: 'HloModule m, x="' + "\\" * SIZE, parse),
    "zeros": (lambda: "HloModule m\n\n" + "\0" * SIZE, parse),
    "lines": (lambda: "HloModule m\n" + "\n" * SIZE + "x", parse),
    "a name": (lambda: "HloModule " + "a" * SIZE, parse),
    "mlir brackets": (lambda: "module {\n" + "{" * SIZE, diff),
    "mlir locations": (lambda: "module {\n" + "  %0 = a loc(\n" * (SIZE // 14), diff),
    "mlir constant": (lambda: 'module {\n %0 = a dense<"0x' + "F" * SIZE + '"> : x\n}', diff),
    "jaxpr": (lambda: "{ lambda ; a:f32[]. let\n" + "b:f32[] = sin a\n" * (SIZE // 16), diff),
}


@pytest.mark.long
def test_a_hundred_megabytes():
    pytest.importorskip("resource")
    script = LIMITED.format(folder=str(TEXTS.parent))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    said = dict(line.split("|", 1) for line in done.stdout.splitlines())
    assert said.keys() == HUGE.keys()
    # A large constant is nothing bad.
    assert said.pop("mlir constant") == "read"
    assert all(line.count("|") == 2 for line in said.values()), said
    assert said["brackets"] == "4|26|nested deeper than 20 tuples"
    assert said["operands"].endswith("a list of more than 1,000,000 values")
    assert "more than 32 MiB of text" in said["jaxpr"]


def test_time_grows_with_length_alone():
    """What once took time by the square of a line's length."""
    for make in (
        lambda n: "module {\n %0 = \"" + "x" * n,
        lambda n: "module {\n {" + " = " * (n // 3),
        lambda n: "module {\n" + "loc(" * (n // 4),
        lambda n: "module {\n %0 = a" + " loc(b)" * (n // 7) + "\n}",
    ):  # fmt: skip
        start = time.process_time()
        canonical(make(300_000))
        assert time.process_time() - start < 4


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"\x00\x01\xff\xfe", "is not the text of a program"),
        ("HloModule m\n".encode("utf-16"), "is not the text of a program"),
        (b"HloModule m\n", "hostile.hlo, line 2, column 1: the module has no computations"),
        (b"HloModule m\n\nENTRY e {\n a = f32[] add(\n", "hostile.hlo, line 4, column 15: '('"),
        (b"HloModule \xe9t\xe9\n\nENTRY e {\n a = f32[] const\xe9\n", "hostile.hlo, line 4"),
        (b"module {\n}\n", "compare programs at one stage"),
    ],
    ids=range(7),
)
def test_files_at_the_shell(tmp_path, capsys, data, said):
    good = tmp_path / "good.hlo"
    good.write_text((TEXTS / "layer.hlo").read_text())
    file = tmp_path / "hostile.hlo"
    file.write_bytes(data)
    for sides in ((good, file), (file, good)):
        assert main.main(["diff", *map(str, sides)]) == 2
        out, err = capsys.readouterr()
        assert not out and said in err and "Traceback" not in err


def test_bytecode_whose_section_is_aligned_to_2_to_the_63():
    """Once the position was advanced byte by byte, which took centuries."""
    alignment = b"\x00" + (1 << 63).to_bytes(8, "little")
    # The magic, a version, the producer, and a section of one byte.
    data = b"ML\xefR\x0dproducer\x00" + b"\x81\x03" + alignment + b"\xcb"
    assert payload_digest(data) == hashlib.blake2b(data, digest_size=12).hexdigest()


def test_bytes_that_are_no_utf_8_in_the_payload_of_a_kernel():
    text = (TEXTS / "kernels" / "matmul_rows.hlo").read_text(encoding="utf-8")
    damaged = re.sub('("body": *"[^"]{20})', "\\1\udcff", text)
    assert damaged != text
    (kernel,) = (each.kernel for each in parse(damaged).instructions() if each.kernel)
    assert "base64 is broken" in kernel.problem


def test_a_call_with_fewer_operands_than_the_function_has():
    text = (TEXTS / "named.mlir").read_text(encoding="utf-8")
    damaged = text.replace("@inner(%0)", "@inner").replace(
        "@inner(%arg0: tensor<", "@inner(%arg0: t"
    )
    assert damaged.count("tensor<") < text.count("tensor<")
    refused_or_read(damaged, text)


@pytest.mark.parametrize("command", ["show", "diff", "cost", "profile"])
def test_a_file_name_that_is_too_long_at_the_shell(capsys, command):
    words = [command, "9" * 400, *["layer.hlo"] * (command == "diff")]
    assert main.main(words) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith(f"hlofront {command}: ") and "too long" in err
