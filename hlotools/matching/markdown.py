"""Differences as Markdown, for the comment of a pull request."""

import re
from collections.abc import Iterable, Sequence

from hlotools.matching.changes import Change
from hlotools.terminal_text import is_visible

# Comments on pull requests are cut at some 65,000 characters.
_MAX_CHANGES = 100
_LONGEST = 400


@is_visible
def diff_markdown(
    title: str,
    labels: tuple[str, str],
    totals: Iterable[tuple[str, int, int]],
    changes: Sequence[Change],
) -> str:
    """Return a difference as Markdown: its title, the totals that differ, and its changes.

    Texts of programs are code spans, so that nothing in them is a link, a mention or a tag.

    Args:
      title: the title of the difference.
      labels: the names of both programs.
      totals: the totals that differ, as (name, total before, total after).
      changes: the changes, the most important first.
    """
    lines = [f"### {title}", "", f"{code(labels[0])} → {code(labels[1])}"]
    rows = [
        (
            key.replace("_", " "),
            f"{before:,}",
            f"{after:,}",
            f"{after - before:+,}",
            f"{(after - before) / before:+.1%}" if before else "",
        )
        for key, before, after in totals
    ]
    if rows:
        lines += ["", *table(("total", "before", "after", "change", ""), rows)]
    if changes:
        lines += ["", *(f"- {_change_text(change)}" for change in changes[:_MAX_CHANGES])]
        more = len(changes) - _MAX_CHANGES
        if more > 0:
            lines.append(f"- and {more} more")
    return "\n".join(lines)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose first column is text and whose others are figures."""
    aligned = ["---", *("--:" for _ in heads[1:])]
    return [f"| {' | '.join(cells)} |" for cells in (heads, aligned, *rows)]


def code(text: str) -> str:
    """Return a text as a code span, which shows it literally."""
    text = " ".join(text.split()).replace("|", "¦")
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + " ..."
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if longest else ""
    return f"{fence}{padding}{text}{padding}{fence}"


def _change_text(change: Change) -> str:
    sources = change.sources
    lines = ", ".join(code(source) for source in sources[:3]) + (", ..." if sources[3:] else "")
    more = len(change.parts)
    follow = "1 change that follows" if more == 1 else f"{more} changes that follow"
    folded = f" (with {follow})" if more else ""
    effect = f" **{change.effect}**" if change.effect and str(change.effect) else ""
    return code(change.sentence) + folded + effect + (f" at {lines}" if lines else "")
