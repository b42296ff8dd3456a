"""The systematic tests that need XLA's fusion emitters, and a plugin of pytest that runs them.

`pytest -p tests.support.fusion_emitters` runs those that quick_code.py leaves
out, and a twentieth of the others, so that the code that users get is run for each kind of test.
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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = [are_needed_by(one) or zlib.crc32(one.nodeid.encode()) % 20 == 0 for one in items]
    config.hook.pytest_deselected(items=[one for one, here in zip(items, chosen) if not here])
    items[:] = [one for one, here in zip(items, chosen) if here]
