"""Counts the public names of JAX that hlofront has, by module.

    python -m tests.support.api_names [LIST ...] [--module jax.lax] [--signatures]

A list is a JSON file of names with their signatures by module; without one, the names are those of
jax 0.10.2 and those that 0.12.0.1 added or gave other parameters. The command prints how many names
of each module are there and which are absent; those that tests/as_jax/absent.txt excuses are
counted separately, by reason. With `--signatures` it also prints what a caller who follows JAX's
signature could not do. It ends with status 1 if a name is absent without a reason.
"""

import argparse
import functools
import importlib
import inspect
import json
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path

AS_JAX = Path(__file__).resolve().parents[1] / "as_jax"
LIST = AS_JAX / "jax_0.10.2.json"
ADDED = AS_JAX / "jax_0.12.0.1_added.json"
ABSENT = AS_JAX / "absent.txt"

# Module -> its names -> the text of the signature, or None.
Names = dict[str, dict[str, str | None]]


def read_lists(paths: Iterable[Path]) -> Names:
    """Return the names of these lists; later ones replace the signatures of earlier ones."""
    merged: Names = {}
    for path in paths:
        for module, names in json.loads(path.read_text())["modules"].items():
            merged.setdefault(module, {}).update(names)
    return merged


@functools.cache
def absent_and_said_so() -> dict[str, str]:
    """Return the reasons for which names are absent, by a pattern of `module.name`."""
    lines = (line.partition("#")[0].strip() for line in ABSENT.read_text().splitlines())
    pairs = (line.partition(":") for line in lines if line)
    return {pattern.strip(): reason.strip() for pattern, _, reason in pairs}


def reason_for(name: str) -> str | None:
    """Return why a name such as "jax.lax.psend" is absent, or None if nothing excuses it."""
    reasons = absent_and_said_so().items()
    return next((reason for pattern, reason in reasons if fnmatch(name, pattern)), None)


def find(module_name: str) -> types.ModuleType | None:
    """Return hlofront's module for one of JAX's, or None."""
    name = "hlofront" + module_name.removeprefix("jax")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if name.startswith(error.name or "?"):
            return None
        raise


def absent_names(module_name: str, names: Iterable[str]) -> list[str]:
    """Return which of these names hlofront's module lacks."""
    module = find(module_name)
    return [name for name in names if not hasattr(module, name)]


def wanted_parameters(signature: str) -> list[tuple[str, str]]:
    """Return [(name, kind)] for a signature: kind is '' by position or name, 'name', '*', '**'."""
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
        match = re.match(r"(\**)(\w*)", part)
        assert match
        stars, name = match.groups()
        if name:
            result.append((name, stars or ("name" if by_name else "")))
        by_name |= stars == "*"
    return result


def differences(ours: Callable[..., object], signature: str) -> list[str]:
    """Return what a caller who follows JAX's signature could not do with ours."""
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


def signature_differences(module_name: str, names: Mapping[str, str | None]) -> list[str]:
    """Return how the signatures of the functions that are there differ from JAX's."""
    module, found = find(module_name), []
    for name, signature in names.items():
        value = getattr(module, name, None)
        if callable(value) and isinstance(signature, str) and not inspect.isclass(value):
            found += [f"{module_name}.{name}: {what}" for what in differences(value, signature)]
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.support.api_names", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("lists", nargs="*", type=Path, metavar="LIST")
    parser.add_argument("--module", default="*", help="only modules that match, as jax.scipy.*")
    parser.add_argument("--signatures", action="store_true")
    options = parser.parse_args(arguments)
    total = have = 0
    excused: dict[str, int] = {}
    unexplained = 0
    for module, names in sorted(read_lists(options.lists or [LIST, ADDED]).items()):
        if not fnmatch(module, options.module):
            continue
        absent = absent_names(module, names)
        reasons = {name: reason_for(f"{module}.{name}") for name in absent}
        missing = [name for name, reason in reasons.items() if reason is None]
        total, have = total + len(names), have + len(names) - len(absent)
        unexplained += len(missing)
        print(f"{module:44} {len(names) - len(absent):4}/{len(names)}")
        for reason in reasons.values():
            if reason is not None:
                excused[reason] = excused.get(reason, 0) + 1
        if missing:
            print("    absent:", *missing)
        if options.signatures:
            for line in signature_differences(module, names):
                print(f"    {line}")
    print(f"{'all':44} {have:4}/{total}")
    for reason, count in excused.items():
        print(f"absent and said so: {count}: {reason}")
    print(f"absent: {unexplained}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
