"""The planted faults fit the code as it is, and are all over it: see `python -m tests.planted`."""

import pytest

from tests.conventions.source import LAYERS
from tests.planted.faults import FAULTS, ROOT

# Folders of re-exports and of names, which have no rules that could be wrong.
WITHOUT_FAULTS = {"bridge", "export", "jax_names"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_can_be_planted(fault):
    source = (ROOT / fault.file).read_text(encoding="utf-8")
    compile(fault.planted(source), fault.file, "exec", dont_inherit=True)
    assert fault.right != fault.wrong


def test_each_layer_has_a_fault():
    layers = {fault.layer.partition("/")[0] for fault in FAULTS}
    assert layers == {*LAYERS, "hlotools"} - WITHOUT_FAULTS


def test_names_of_faults_are_distinct():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 30
