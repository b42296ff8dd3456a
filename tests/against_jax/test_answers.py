"""The kept answers of jax: each question has one, it is what was said, and all are small."""

import ml_dtypes
import numpy as np
import pytest

from tests.against_jax import (
    answers,
    conftest,
    memory,
    test_catalogue,
    test_corpora,
    test_fuzz,
    test_samples,
    test_splits,
)
from tests.numpy import catalogue, catalogue_runner
from tests.support.outcomes import Raised

MAX_BYTES = 3_000_000


def keys_of_shelves():
    """By the name of each file of answers: the keys of the questions."""
    found = {corpus: conftest.keys_of(corpus) for corpus in test_corpora.CORPORA}
    for kind in ("wrong", "catalogue"):
        for chapter in catalogue.CHAPTERS:
            found[f"{kind}_{chapter}"] = test_catalogue.keys_of(kind, chapter)
    for file in test_samples.SAMPLES:
        found[f"samples_{file}"] = test_samples.keys_of(file)
        found[f"splits_{file}"] = test_splits.keys_of(file)
    found["fuzz_programs"] = test_fuzz.keys()
    found["memory_loops"] = {"temporaries": answers.digest_of_texts(memory.__name__)}
    return found


def test_each_question_has_a_kept_answer(request):
    if request.config.getoption("--ask-jax") in ("keep", "all"):
        pytest.skip("answers are being kept")
    wrong = []
    keys = keys_of_shelves()
    for title, wanted in keys.items():
        shelf = answers.Shelf(answers.FOLDER / f"{title}.jsonl.xz")
        missing = [name for name, key in wanted.items() if not shelf.knows(name, key)]
        gone = set(shelf.lines) - set(wanted)
        if missing or gone:
            wrong.append(f"{title}: {len(missing)} new or changed, {len(gone)} no longer asked")
    there = {path.name.removesuffix(".jsonl.xz") for path in answers.FOLDER.iterdir()}
    wrong += [f"{title}: nobody asks it" for title in sorted(there - set(keys))]
    assert not wrong, "\n".join([*wrong, f"run `{answers.HOW_TO_KEEP}`, and commit the answers"])


def test_answers_are_small():
    size = sum(path.stat().st_size for path in answers.FOLDER.iterdir())
    assert size <= MAX_BYTES, f"{size} bytes: have programs of corpora give smaller arrays"


EVERYTHING = {
    "error": ["ValueError", "Exception"],
    "leaves": [
        ("array", "float32[2]", np.float32([np.nan, -0.0])),
        ("array", "bfloat16[1,1]", np.ones((1, 1), ml_dtypes.bfloat16)),
        ("array", "int4[3]", np.array([1, -8, 7], ml_dtypes.int4)),
        ("array", "float0[0,2]", np.zeros((0, 2), [("float0", "V")])),
        ("numpy", "<U3", np.array(["abc", ""])),
        ("python", "complex", complex(float("inf"), -0.0)),
        ("python", "float", 0.1),
        ("python", "bytes", b"\0\xff"),
        ("python", "bool", True),
        ("object", "None", None),
    ],
}


def test_what_is_kept_comes_back(tmp_path):
    shelf = answers.Shelf(tmp_path / "there" / "some.jsonl.xz")
    raised = Raised(["TypeError"], "of such a kind: é")
    shelf.keep("one", "key", EVERYTHING)
    shelf.keep("two", "key", raised)
    shelf.keep("three", "key", 1)
    shelf.write(["one", "two"])
    found = answers.Shelf(shelf.path)
    assert found.knows("one", "key") and not found.knows("one", "other")
    assert not found.knows("three", "key")
    assert not answers.unlike(EVERYTHING, found.answer("one"))
    assert found.answer("one")["leaves"][2][2].dtype == ml_dtypes.int4
    assert found.answer("two").message == raised.message
    with pytest.raises(TypeError, match="plain data"):
        shelf.keep("three", "key", object())


@pytest.mark.parametrize(
    ("kept", "fresh"),
    [
        ({"a": 1}, {"b": 1}),
        ([1, 2], [1]),
        (1, True),
        (("array", "float32[1]", np.ones(1)), ("array", "float32[1]", np.ones(1) + 1e-3)),
        (Raised(["TypeError"], ""), Raised(["ValueError"], "")),
        ({"count": 3}, {"count": 2}),
    ],
)
def test_other_answers_are_told(kept, fresh):
    assert answers.unlike(kept, fresh)
    assert not answers.unlike(kept, kept)


def test_keys_tell_questions_apart():
    """A key says what an answer depends on: the text, the texts that it imports, the values."""
    texts = dict(answers.texts("tests.against_jax.corpus_lax"))
    assert {"tests.against_jax.corpus_lax", "tests.against_jax.inputs"} <= texts.keys()
    one = catalogue.call(np.float32([1, 2]), axis=0)
    keys = {
        answers.digest_of_call(
            "tests.numpy.catalogue.making", catalogue_runner.changed(one, **fields)
        )
        for fields in (
            {},
            {"operands": (np.float32([1, 3]),)},
            {"operands": (np.float64([1, 2]),)},
            {"operands": ((1, 2),)},
            {"operands": ([1, 2],)},
            {"operands": ([1, 2.0],)},
            {"keywords": {"axis": None}},
            {"function": "sum"},
            {"concrete": True},
            {"operands": (catalogue.f32[2],)},
            {"operands": (catalogue.f32[2].between(0, 1),)},
        )
    }
    assert len(keys) == 11
    # What no text can say is as old as its file.
    assert answers.fingerprint((lambda x: x,)) is None
    assert answers.fingerprint({"a": [np.sin]}) is None
