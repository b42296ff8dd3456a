"""Text reads as plain English: phrases that stop a native reader are counted, and only get fewer.

`PHRASES` is a ratchet. Lower a maximum when you have rewritten some of its places; never raise it.
Rewrite the whole sentence: a phrase is usually a symptom of an unnatural one.
"""

import bisect
import dataclasses
import functools
import io
import pathlib
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.conventions.source import PACKAGE, ROOT, TOOLS

PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")


@dataclasses.dataclass(frozen=True)
class Phrase:
    """A phrase not to be written.

    Attributes:
        text: words that every match of the pattern contains.
        pattern: a regular expression. Its spaces also match line breaks.
        instead: what to write instead.
        maximum: how many places remain.
    """

    text: str
    pattern: str
    instead: str
    maximum: int = 0


# Words after "is no" that make it idiomatic: "is no longer", "is no more than".
_IDIOMS = "longer|more|less|such|need|way|reason|doubt|other|one|difference|larger|smaller|greater"
PHRASES = (
    Phrase("wants", r"\bwants\b", '"requires", "expects" or "needs"'),
    Phrase("wanted", r"[:;,] wanted\b|\b(is|are|not|if) wanted\b", '"expected" or "requested"', 2),
    Phrase("taken for", r"\btaken for (the )?default\b", '"converted to"'),
    Phrase("but for", r"\bbut for\b", '"except"'),
    Phrase(
        "another", r"\b(is|are) another[.,]|\b(is|are) others\b", '"differs" or "is none of these"'
    ),
    Phrase("so many", r"\bso many (elements|numbers|axes|bits|sizes)\b", '"this many"'),
    Phrase("What nothing", r"# What nothing\b", '"Dead equations" or a noun'),
    Phrase("no", rf"(?<![tT]here\s)\b(is|are|was|be) no (?!({_IDIOMS})\b)[a-z]+", '"is not a X"'),
    Phrase("beside", r"\bbeside\b", '"next to", "with", "as well as" or "except"', 7),
    Phrase(
        "of which",
        r"(?<!some\s)(?<!most\s)(?<!each\s)(?<!one\s)(?<!all\s)\bof which\b",
        'two sentences, or "whose"',
        1,
    ),
    Phrase("alone", r"\bwhich\b[^.;:]{0,40}\balone\b|\b(those|that|these) alone\b", '"only"'),
    Phrase("place of", r"\bin (the )?place of\b", '"instead of"'),
    Phrase("and so", r"\boperations? and so\b", "a table in benchmarks/results"),
    Phrase("of the time", r"\bof the (processor )?time( that)? (it|they|XLA|jax)\b", '"4x faster"'),
    Phrase("NaNs", r"\bknows? (of )?NaNs\b", '"propagate NaNs"'),
    Phrase("kin", r"\bkin\b", '"similar functions"'),
    Phrase("anew", r"\banew\b", '"again"; "is made anew" is "is recreated"'),
    Phrase("mend", r"\bmend(s|ed|ing)?\b", '"fix"', 3),
    Phrase("by chance", r"\bby chance\b", '"random" or "randomly generated"'),
    Phrase("by hand", r"\b(run|runs|started|tried) by hand\b", '"manually"'),
    Phrase("for lack of", r"\bfor lack of\b", '"without"'),
    Phrase("for want of", r"\bfor want of\b", '"without"'),
    Phrase("thereby", r"\bthereby\b", '"so"'),
    Phrase("after the other", r"\bone after the other\b", '"one at a time" or "sequentially"'),
    Phrase("becomes of", r"\bbecomes of\b", '"what happens to"'),
    Phrase("door", r"\bdoors?\b", '"public module"'),
    Phrase("house", r"(?<!/)\bhouse\b(?!/)", '"conventions"', 1),
    Phrase("floor", r"\b(upper|lower|same|own|the) floors? (of|above|below|and)\b", '"layer"', 1),
)


@functools.cache
def prose_of(path: pathlib.Path) -> list[tuple[int, str]]:
    """Return what people read, with its first lines: strings, runs of comments, whole pages."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [(1, text)]
    prose: list[tuple[int, str]] = []
    comment: list[str] = []
    start = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != start + len(comment):
                prose.append((start, "\n".join(comment)))
                comment, start = [], token.start[0]
            comment.append(token.string)
        elif token.type == tokenize.STRING:
            prose.append((token.start[0], token.string))
    return [*prose, (start, "\n".join(comment))]


def spanning_lines(pattern: str) -> re.Pattern[str]:
    """Compile a pattern whose spaces also match line breaks, within text and within comments."""
    return re.compile(pattern.replace(" ", r"\s+(?:#\s*)?"))


def places_of(pattern: re.Pattern[str], path: pathlib.Path) -> Iterator[str]:
    """Yield the file, line and text of each place where a pattern occurs in the prose of a file."""
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    for first, text in prose_of(path):
        ends = [match.start() for match in re.finditer("\n", text)]
        for match in pattern.finditer(text):
            row = bisect.bisect_left(ends, match.start())
            yield f"{shown}:{first + row}: {text.splitlines()[row].strip()}"


def files() -> Iterator[pathlib.Path]:
    """Yield the files whose text is checked."""
    yield from sorted(
        [*PACKAGE.rglob("*.py"), *TOOLS.rglob("*.py"), *ROOT.joinpath("docs").rglob("*.md")]
    )
    yield from (ROOT / page for page in PAGES)


@functools.cache
def texts() -> dict[pathlib.Path, str]:
    """Return the files' texts."""
    return {path: path.read_text(encoding="utf-8") for path in files()}


@pytest.mark.parametrize("phrase", PHRASES, ids=lambda phrase: phrase.text)
def test_phrases_only_get_fewer(phrase: Phrase):
    pattern, words = spanning_lines(phrase.pattern), phrase.text.split()
    # Splitting a file into strings, comments and code is slow: only files with matches are split.
    paths = [p for p, t in texts().items() if all(w in t for w in words) and pattern.search(t)]
    places = [place for path in paths for place in places_of(pattern, path)]
    assert len(places) <= phrase.maximum, (
        f"{len(places)} places have {phrase.text!r}, and at most {phrase.maximum} may: "
        f"write {phrase.instead}\n" + "\n".join(places)
    )


# ---- the rule itself, on planted faults ----------------------------------------------------------


def test_phrases_in_docstrings_comments_and_messages_are_seen(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""A value that is\n    no number."""\n'
        "# One that is\n# no array.\n"
        'text = f"{x} is no scalar"\n'
        "is_no_name = 1\n"
    )
    (phrase,) = (phrase for phrase in PHRASES if phrase.text == "no")
    places = list(places_of(spanning_lines(phrase.pattern), path))
    assert sorted(places) == [
        'a.py:1: """A value that is',
        "a.py:3: # One that is",
        'a.py:5: f"{x} is no scalar"',
    ]


def test_idioms_are_not_counted(tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        "# There is no axis, and the list is no longer than it was. There are no names.\n"
    )
    for phrase in PHRASES:
        assert not list(places_of(spanning_lines(phrase.pattern), path))
