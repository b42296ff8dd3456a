"""Functions beyond NumPy's work where the user has forbidden promotion, and promotes nothing."""

import pytest

import hlofront.numpy as jnp
from tests.numpy import strict_promotion
from tests.scipy.library_calls import CASES


@pytest.mark.long
@pytest.mark.parametrize("option", strict_promotion.OPTIONS)
def test_the_library_promotes_nothing_by_itself(option):
    report = []
    for name, (function, *values) in CASES.items():
        said = strict_promotion.differences(function, list(map(jnp.asarray, values)), option)
        report += [f"{name}: {text}" for text in said]
    assert not report, "\n".join(report)
