"""The key of an executable on disk changes with every module that lowering reaches."""

import os
import shutil

import pytest

from hlofront.pjrt import cache_key
from tests.conventions.source import PACKAGE, modules


def modules_that_lowering_imports():
    """Return lowering's modules and, transitively, all of ours that they import."""
    by_name = {module.name: module for module in modules()}
    waiting = [name for name, module in by_name.items() if module.folder == "lowering"]
    reached = set(waiting)
    while waiting:
        imported = {one.target for one in by_name[waiting.pop()].imports} & by_name.keys()
        waiting += imported - reached
        reached |= imported
    return [by_name[name] for name in sorted(reached)]


@pytest.mark.long
def test_an_edit_of_any_module_that_lowering_imports_changes_the_key(tmp_path):
    package = tmp_path / "hlofront"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    before = cache_key.digest_of_sources(package)
    reached = modules_that_lowering_imports()
    assert {module.folder for module in reached} >= {"core", "lowering", "transforms"}
    unseen = []
    for module in reached:
        # hlotools gives the words for lines in errors, and no part of a program.
        if module.is_tool or (module.is_package and not module.text.strip()):
            continue
        file = package / module.path.relative_to(PACKAGE)
        status = file.stat()
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1000))
        if cache_key.digest_of_sources(package) == before:
            unseen.append(module.name)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cache_key.digest_of_sources(package) == before
    assert not unseen


def test_installed_sources_are_told_apart_by_their_sizes(tmp_path):
    package = tmp_path / "site-packages" / "hlofront"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / "transforms" / "stage.py"
    before = cache_key.digest_of_sources(package)
    os.utime(file, ns=(0, 0))
    assert cache_key.digest_of_sources(package) == before
    file.write_text(file.read_text() + "\n")
    assert cache_key.digest_of_sources(package) != before
