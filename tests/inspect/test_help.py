"""What `help` says of the package and of its tools: what there is, and what to read next."""

import pydoc
import re

import pytest

import hlofront
from hlofront import inspect
from hlofront.cli.main import parser


@pytest.mark.parametrize("module", [hlofront, inspect])
def test_help_is_a_screen_with_what_to_read_next(module):
    text = module.__doc__
    assert 10 <= len(text.splitlines()) <= 14
    read_next = re.sub(r"\s+", " ", text.partition("Read next: ")[2])
    for name in re.findall(r"help\(hlofront\.([\w.]+)\)", read_next):
        assert pydoc.locate(f"hlofront.{name}").__doc__
    assert read_next


def test_help_of_the_tools_names_all_functions():
    functions = {name for name in inspect.__all__ if name[0].islower()}
    assert functions <= {*re.findall(r"`(\w+)`", inspect.__doc__)}


def test_commands_in_help_are_there():
    commands = parser()._subparsers._group_actions[0].choices
    for module in (hlofront, inspect):
        assert {*re.findall(r"python -m hlofront ([\w-]+)", module.__doc__)} <= commands.keys()
