"""`python -m hlofront` without a command, with a wrong one, and completed by a shell."""

import argparse
import io
import shutil
import subprocess

import pytest

from hlofront.cli.main import main, parser

BASH = shutil.which("bash")
MODEL = """
import hlofront as jax

def step(x):
    return x

async def stream(x):
    return x

def _inner(x):
    def step_inside(y):
        return y
    return x
"""


def run(*arguments):
    out = io.StringIO()
    return main(arguments, out), out.getvalue()


def actions(top):
    for action in top._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from actions(inner)


def test_without_a_command_it_lists_what_it_can_do():
    status, text = run()
    assert status == 0
    for name in ("show", "compare", "cache", "doctor", "as-jax", "completion"):
        assert f"\n    {name} " in text or f"\n    {name}\n" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["shwo"], "invalid choice: 'shwo': did you mean show?"),
        (["something"], "invalid choice: 'something' (choose from show, diff, "),
        (["cache", "wy"], "invalid choice: 'wy': did you mean why?"),
        (["show", "model.py:f", "--stage", "hol"], "invalid choice: 'hol': did you mean hlo?"),
        (["show", "model.py:f", "--tagret=cpu"], "arguments: --tagret=cpu: did you mean --target?"),
        (["--verison"], "unrecognized arguments: --verison: did you mean --version?"),
    ],
)
def test_a_wrong_word_is_answered_with_the_nearest_one(arguments, message, capsys):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert message in capsys.readouterr().err


def test_each_argument_has_a_help_text():
    silent = [each for each in actions(parser()) if not each.help]
    assert [each.dest for each in silent] == ["command", "action"], "these list their choices"


@pytest.fixture
def completed(tmp_path):
    """What bash completes a line to."""
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "model dump.hlo").write_text("")
    script = run("completion", "bash")[1]

    def completed(line, breaks=" \t\n\"'><=;|&(:"):
        program = (
            f"{script}\nCOMP_LINE=$1 COMP_POINT=${{#1}} COMP_WORDBREAKS=$2\n_hlofront\n"
            'for each in "${COMPREPLY[@]}"; do echo "$each"; done'
        )
        done = subprocess.run(
            [BASH, "--norc", "-c", program, "bash", line, breaks],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert not done.stderr
        return done.stdout.splitlines()

    return completed


@pytest.mark.skipif(not BASH, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("hlofront sh", ["show"]),
        ("hlofront c", ["compare", "cost", "cache", "completion"]),
        ("hlofront show --st", ["--stage", "--style"]),
        ("hlofront show model.py:step --stage s", ["source", "stablehlo", "sharding"]),
        ("hlofront show model.py:step --target cuda:h1", ["h100", "h100:8"]),
        ("hlofront cache w", ["why"]),
        ("hlofront completion z", ["zsh"]),
        ("hlofront show mod", ["model.py", "model dump.hlo"]),
        ("hlofront show model.py:", ["step", "stream"]),
        ("hlofront cost --most 3 model.py:st", ["step", "stream"]),
        ("hlofront show absent.py:", []),
        ("hlofront show model.py:step --html mod", ["model.py", "model dump.hlo"]),
    ],
)
def test_bash_completes(line, words, completed):
    assert sorted(completed(line)) == sorted(words)


@pytest.mark.skipif(not BASH, reason="bash is not installed")
def test_where_colons_do_not_break_words_bash_gets_whole_ones(completed):
    assert completed("hlofront show model.py:ste", breaks=" \t\n") == ["model.py:step"]
    assert completed("hlofront show f --target cuda:h1", breaks=" ") == ["cuda:h100", "cuda:h100:8"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_for_other_shells_have_the_commands_and_their_values(shell):
    status, text = run("completion", shell)
    assert status == 0
    assert "show diff compare" in text and "source jaxpr stablehlo" in text and "cuda:h100" in text
    if found := shutil.which(shell):
        subprocess.run([found, "-n", "/dev/stdin"], input=text, text=True, check=True)
