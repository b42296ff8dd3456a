"""The page of errors has a section for each class, whose program raises it."""

import pathlib
import re

import pytest

from hlofront import errors

TEXT = (pathlib.Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text("utf-8")
START, *SECTIONS = re.split(r"^## ", TEXT, flags=re.MULTILINE)
SECTIONS = {section.split("\n")[0]: section for section in SECTIONS}
PROGRAMS = {
    name: code[1]
    for name, section in SECTIONS.items()
    if (code := re.search(r"```python\n(.*?)```", section, re.DOTALL))
}
(IMPORTS,) = re.findall(r"```python\n(.*?)```", START, re.DOTALL)


def test_each_public_error_has_a_section():
    public = {name for name in dir(errors) if name.endswith(("Error", "Operation"))}
    assert set(SECTIONS) == public


def test_sections_say_what_and_why_and_three_ways_out():
    # Base classes are raised as their subclasses.
    for name in set(SECTIONS) - {"JAXTypeError", "JAXIndexError", "HlofrontError"}:
        section = SECTIONS[name]
        assert "**What happened.**" in section and "**Why.**" in section, name
        assert re.findall(r"^(\d)\. ", section, re.MULTILINE) == ["1", "2", "3"], name


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_raises_it(name):
    names = {}
    exec(IMPORTS, names)
    with pytest.raises(getattr(errors, name)) as raised:
        exec(compile(PROGRAMS[name], f"<{name}>", "exec"), names)
    assert type(raised.value).__name__ == name
