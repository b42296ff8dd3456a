"""The systematic tests that need XLA's fusion emitters, and a plugin of pytest that runs them.

`pytest -p tests.support.fusion_emitters` runs those that quick_code.py leaves out, and a tenth of
the others, so that the code that users get is run for each kind of test. Samples that are neighbors
are compiled as one program, so whole groups of neighbors are chosen.
"""

import zlib

import pytest

# What XLA's older emitter, which is much faster, cannot compile (clamp of booleans and complex
# numbers, reduce_window of complex numbers), compiles wrongly (narrow or unsigned indices on axes
# longer than their dtype counts, floats of one bit) or to other roundings (betainc).
NEEDED_BY = (
    "clamp(False, bool",
    "clamp(np.complex64",
    "scatter_add(int32[200]",
    "scatter_add(int32[300]",
    "reduce_window(complex64[6]",
    "test_jit_is_eager[special-betainc(regions)",
    "reduce_precision(values, (1, 0))",
)


def are_needed_by(item: pytest.Item) -> bool:
    return any(text in item.nodeid for text in NEEDED_BY)


# Tests of what is said to XLA, for which it compiles nothing.
COMPILE_NOTHING = ("test_program_and_module", "test_jvp_is_refused", "test_vmap_is_refused")
SAMPLES_IN_A_GROUP = 20
ONE_GROUP_IN = 10


def is_in_a_chosen_group(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if "place" not in parameters or item.originalname in COMPILE_NOTHING:
        return False
    group = f"{parameters['file']} {parameters['place'] // SAMPLES_IN_A_GROUP}"
    return zlib.crc32(group.encode()) % ONE_GROUP_IN == 0


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = [are_needed_by(one) or is_in_a_chosen_group(one) for one in items]
    config.hook.pytest_deselected(items=[one for one, here in zip(items, chosen) if not here])
    items[:] = [one for one, here in zip(items, chosen) if here]
