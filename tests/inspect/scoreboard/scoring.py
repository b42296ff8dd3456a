"""What a diff says of a planted change, held against what it should say."""

import re
from typing import NamedTuple

from hlofront.inspect import diff
from hlotools.cost.costs import costs
from tests.inspect.scoreboard.planted import pair_of

# The lines of a screen.
MAX_LINES = 40


class Score(NamedTuple):
    """What a diff says of a planted change."""

    first: str
    is_first: bool
    lines: int
    is_counted_once: bool
    """Whether the effects of the findings add up to what the programs cost more, not told twice."""
    causes: int
    is_first_in_text: bool
    """Whether the diff of the programs' texts says it first, too, as far as they have it."""

    @property
    def is_right(self):
        is_short = self.lines <= MAX_LINES
        return (
            self.is_first
            and is_short
            and self.is_counted_once
            and self.causes == 1
            and self.is_first_in_text
        )

    def __str__(self):
        word = "right" if self.is_right else "WRONG"
        return f"{word}, {self.lines} lines, {self.causes} causes: {self.first[:110]}"


def score_of(case, target):
    """Return what the diff of a pair's programs for a target says."""
    before, after = pair_of(case, target)
    difference = diff(before, after)
    first = difference.changes[0].sentence if difference.changes else ""
    return Score(
        first,
        re.search(case.finding, first) is not None,
        len(difference.text().splitlines()),
        _effects(difference) == _more(before, after),
        sum(change.is_cause for change in difference.changes),
        _is_first_in_text(case, target, before.as_text(), after.as_text()),
    )


def _is_first_in_text(case, target, before, after):
    pattern = case.pattern(target)
    if pattern is None:
        return True
    changes = diff(before, after).changes
    return bool(changes) and re.search(pattern, changes[0].sentence) is not None


def _effects(difference):
    effects = [change.effect for change in difference.changes if change.effect is not None]
    return sum(each.bytes for each in effects), sum(each.operations for each in effects)


def _more(before, after):
    first, second = (costs(program.as_text()).total for program in (before, after))
    more = {key: second[key] - first[key] for key in ("bytes", "flops", "transcendentals")}
    return more["bytes"], more["flops"] + more["transcendentals"]
