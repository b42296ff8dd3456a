"""What each release has written is read by this one: the same values and the same StableHLO."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.export import releases


@pytest.mark.long
def test_programs_of_each_release_are_read():
    done = subprocess.run(
        [sys.executable, "-m", "tests.export.releases"],
        cwd=pathlib.Path(__file__).parents[2],
        env={**os.environ, **releases.ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 problems" in done.stdout


@pytest.mark.parametrize("jaxlib", ["0.10.2", "0.12.0.1"])
def test_this_release_has_a_program_of_each_kind(jaxlib):
    folder = releases.folder_of_this_release(jaxlib)
    assert folder.is_dir(), "run python -m tests.export.releases --write"
    names = {path.name for path in folder.iterdir()}
    assert names == {*releases.KINDS, releases.BUNDLE, releases.DIGESTS}
    with pytest.raises(FileExistsError):
        releases.write(folder)
