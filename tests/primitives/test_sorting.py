"""What sorts refuse, and how approximate ones are lowered."""

import numpy as np
import pytest

import hlofront
import hlofront.lowering.rules
from hlofront import lax
from hlofront.core.lowering_request import LoweringRequest
from hlofront.lowering.module import lower_program

X = np.arange(6, dtype=np.float32).reshape(2, 3)
KEY = hlofront.random.key(0)


@pytest.mark.parametrize(
    ("call", "class_", "says"),
    [
        (lambda: lax.sort(X, 2), ValueError, "axis 2 is out of bounds"),
        (lambda: lax.sort(1.0), ValueError, "out of bounds"),
        (lambda: lax.sort((X, X[0])), TypeError, r"equal shapes, got: \(2, 3\) \(3,\)"),
        (lambda: lax.sort(()), TypeError, "at least one operand"),
        (lambda: lax.sort((X, X), num_keys=3), ValueError, "num_keys=3 must be between 1 and"),
        (lambda: lax.sort((X, X), num_keys=0), ValueError, "num_keys=0"),
        (lambda: lax.sort(hlofront.random.split(KEY)), TypeError, "random keys have no order"),
        (lambda: lax.sort((X[0, :2], hlofront.random.split(KEY))), TypeError, "key<fry>"),
        (lambda: lax.sort(X, num_keys=2), ValueError, "must equal 1 for a single operand"),
        (lambda: lax.sort("cab"), TypeError, "'cab'"),
        (lambda: lax.sort_key_val(X, X[0]), TypeError, "equal shapes"),
        (lambda: lax.top_k(X, 4), ValueError, r"k=4 with shape=\(2, 3\) and axis=1"),
        (lambda: lax.top_k(X, -1), ValueError, "nonnegative, got -1"),
        (lambda: lax.top_k(X, 1.5), TypeError, "must be an integer"),
        (lambda: lax.top_k(X, 1, axis=2), ValueError, "axis 2"),
        (lambda: lax.top_k(X + 1j, 1), ValueError, "complex"),
        (lambda: lax.approx_max_k(X, 4), ValueError, "reduction_dim 3, got 4"),
        (lambda: lax.approx_max_k(X, 0), ValueError, "positive, got 0"),
        (lambda: lax.approx_min_k(X.astype(int), 1), ValueError, "floating type, got int"),
        (lambda: lax.approx_min_k(X, 1, 2), IndexError, "axis 2"),
        (lambda: lax.approx_max_k(X, 1, recall_target=1.5), ValueError, "recall_target"),
        (
            lambda: lax.approx_max_k(X, 1, reduction_input_size_override=2),
            ValueError,
            "at least the size of the axis",
        ),
    ],
)
def test_refused(call, class_, says):
    with pytest.raises(class_, match=says):
        call()


def test_structure_follows_the_operand():
    assert isinstance(lax.sort((X,)), tuple)
    assert lax.sort([X, X])[1].shape == (2, 3)
    assert lax.sort(X).shape == (2, 3)


def test_candidates_beyond_the_operand_are_fillings():
    values, places = lax.approx_max_k(
        np.arange(2000, dtype=np.float32), 2, recall_target=0.9, aggregate_to_topk=False,
        reduction_input_size_override=4000,
    )  # fmt: skip
    assert values.shape == places.shape == (2048,)
    assert np.asarray(values)[1999] == 0 and np.all(np.asarray(values)[2000:] == -np.inf)
    assert np.all(np.asarray(places)[2000:] == -1)


def test_tpus_have_the_operation():
    program = hlofront.make_jaxpr(
        lambda x: (lax.approx_max_k(x, 2, 0), lax.approx_max_k(x, 1), lax.approx_min_k(x, 1))
    )(X)
    module = lower_program(program, LoweringRequest("f", "tpu"))
    text = module.text()
    assert text.count("@ApproxTopK") == 3
    # One comparator per direction, and XLA accepts them.
    assert text.count("func.func private @top_k_gt_f32_comparator") == 1
    assert text.count("func.func private @top_k_lt_f32_comparator") == 1
    assert "top_k" in module.hlo_text()
