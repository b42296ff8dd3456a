"""The limits on the growth of totals between two programs, such as "bytes>1%"."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_LIMIT = re.compile(r"\s*([a-z_ ]+?)\s*>\s*(\d{1,18}(?:\.\d{1,9})?)\s*(%?)\s*")
_SHORT = {"peak": "peak_bytes"}


class Limit(NamedTuple):
    """A limit on the growth of a total: an absolute number, or a percentage of the former total.

    Attributes:
      text: the limit's text.
      total: the key of the total.
      growth: the largest growth that is allowed.
      is_percentage: whether the growth is a percentage of the former total.
    """

    text: str
    total: str
    growth: float
    is_percentage: bool

    def is_exceeded(self, before: Mapping[str, int], after: Mapping[str, int]) -> bool:
        """Return whether a total grew by more than the limit.

        Raises:
          ValueError: if the totals have no such key.
        """
        if self.total not in before or self.total not in after:
            raise ValueError(
                f"{self.text!r} limits {self.total!r}, and the totals are {', '.join(before)}"
            )
        growth = after[self.total] - before[self.total]
        allowed = self.growth / 100 * before[self.total] if self.is_percentage else self.growth
        return growth > allowed


def limit_of(text: str) -> Limit:
    """Parse a limit such as "bytes>1%", "peak>0" or "fusions>2".

    Raises:
      ValueError: if the text is not a limit.
    """
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"a limit is written as 'bytes>1%' or 'peak>0': a total, '>', how much it may grow "
            f"by, and '%' for a part of the former total; got {text!r}"
        )
    total = match[1].replace(" ", "_")
    return Limit(text, _SHORT.get(total, total), float(match[2]), match[3] == "%")
