"""The public names against JAX's list: how much is there, and that finished modules stay whole."""

import functools
import importlib
import inspect
import json
import pathlib
import re

import pytest

from tests.house.source import ROOT

LIST = ROOT / "tests" / "as_jax" / "jax_0.10.2.json"
FINISHED = pathlib.Path(__file__).with_name("finished_modules.txt")


@functools.cache
def reference():
    return json.loads(LIST.read_text())["modules"]


def find(module_name):
    """Our module for one of the list, or None."""
    name = "hlofront" + module_name.removeprefix("jax")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name.startswith(error.name or "?"):
            return None
        raise


def wanted_parameters(signature):
    """[(name, kind)] of a signature's text; kind: '' by position or name, 'name', '*', '**'."""
    parts, depth, current = [], 0, ""
    body = re.sub(r"<[^<>]*>", "None", signature).partition("(")[2]
    for character in body:
        depth += character in "([{"
        depth -= character in ")]}"
        if depth < 0:
            break
        if character == "," and not depth:
            parts.append(current)
            current = ""
        else:
            current += character
    result, by_name = [], False
    for part in [*map(str.strip, parts), current.strip()]:
        stars, name = re.match(r"(\**)(\w*)", part).groups()
        if name:
            result.append((name, stars or ("name" if by_name else "")))
        by_name |= stars == "*"
    return result


def differences(ours, signature):
    """What a caller who follows the reference's signature could not do with ours."""
    try:
        parameters = inspect.signature(ours).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = {parameter.kind for parameter in parameters}
    by_position = [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    names = {parameter.name for parameter in parameters}
    found = []
    wanted = wanted_parameters(signature)
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        found += [
            f"no parameter {name}"
            for name, how in wanted
            if how in ("", "name") and name not in names
        ]
    positional = [name for name, how in wanted if not how]
    if (
        inspect.Parameter.VAR_POSITIONAL not in kinds
        and by_position[: len(positional)] != positional
    ):
        found.append(f"positional parameters {by_position}, expected {positional}")
    return found


def missing_from(module_name):
    """Names, and differing signatures, that ours lacks of a module."""
    ours, found = find(module_name), []
    for name, signature in reference()[module_name].items():
        value = getattr(ours, name, None)
        if value is None and not hasattr(ours, name):
            found.append(f"{module_name}.{name} is missing")
        elif isinstance(signature, str) and not inspect.isclass(value):
            found += [f"{module_name}.{name}: {what}" for what in differences(value, signature)]
    return found


def finished_modules():
    lines = (line.partition("#")[0].strip() for line in FINISHED.read_text().splitlines())
    return [line for line in lines if line]


@pytest.mark.parametrize("module_name", finished_modules())
def test_finished_modules_stay_whole(module_name):
    missing = missing_from(module_name)
    assert not missing, "\n".join(missing)


def test_coverage(record_property):
    """Reports, by module, how many of the reference's names we have."""
    total = have = 0
    lines = []
    for module_name, names in sorted(reference().items()):
        ours = find(module_name)
        here = sum(hasattr(ours, name) for name in names) if ours else 0
        lines.append(f"{module_name:34} {here:4}/{len(names)}")
        total, have = total + len(names), have + here
    record_property("public_names", f"{have}/{total}")
    print("\n".join([*lines, f"{'all':34} {have:4}/{total}"]))
    whole = set(finished_modules())
    assert whole <= set(reference()), "finished_modules.txt names modules that JAX does not have"


def test_our_modules_export_what_they_list():
    """`__all__` names only what is there, lazily made names included."""
    for module_name in reference():
        module = find(module_name)
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{module.__name__}.__all__ lists {name}"
