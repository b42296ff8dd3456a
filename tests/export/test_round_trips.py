"""A few programs of the corpora, called in another process; round_trips.py is for many."""

import subprocess
import sys

import pytest

from tests.export import round_trips


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_some_programs_of_the_corpora(tmp_path):
    round_trips.write(tmp_path, 4, ("corpus_programs", "corpus_loops", "corpus_linalg"))
    assert len(list(tmp_path.glob("*.export"))) == 4
    command = [sys.executable, "-m", "tests.export.round_trips", "--read", "--folder", tmp_path]
    subprocess.run(command, check=True)
