"""The text of symbolic shapes: `b, 2*d`, `(n, floordiv(n, 2) + 1)`, `b, _, ...`."""

import re
from collections.abc import Sequence

from hlofront.core.sizes.symbolic import (
    FLOORDIV,
    MAX,
    MIN,
    MOD,
    Scope,
    SizeExpression,
    max_dim,
    min_dim,
    operation,
    variable,
)

Size = int | SizeExpression

_TOKEN = re.compile(r"\s*(\.\.\.|\d+|[^\W\d]\w*|\S)")
_END = ""
_MAX_POWER = 1000


class Parser:
    """A parser of text with sizes.

    Args:
      text: the text.
      scope: the scope of the sizes.
      like: the sizes that stand for `_` and `...`; None if the text may not have these.
    """

    def __init__(self, text: str, scope: Scope, like: Sequence[int | None] | None = None):
        self._text = text
        self._scope = scope
        self._like = like
        matches = list(_TOKEN.finditer(text))
        self._tokens = [*(match.group(1) for match in matches), _END]
        self._starts = [*(match.start(1) for match in matches), len(text)]
        self._at = 0
        self._sizes: list[Size] = []

    def shape(self) -> tuple[Size, ...]:
        """Parse the whole text as a shape.

        Raises:
          ValueError: if it is not a shape; the message shows how much was parsed.
        """
        depth = 0
        while self._take("("):
            depth += 1
        while self._token not in (_END, ")"):
            if self._token == "...":
                self._fill(len(self._sizes))
                self._next()
                break
            if self._token == "_":
                self._fill(len(self._sizes), 1)
                self._next()
            else:
                self._add(self._sum())
            if self._token not in (_END, ")"):
                self._expect(",")
        for _ in range(depth):
            self._expect(")")
        if self._token != _END:
            raise self._error(f"expected the end, and there is {self._token!r}")
        return tuple(self._sizes)

    def _fill(self, start: int, count: int | None = None) -> None:
        """Append `count` sizes of the shape `like` from axis `start` on; None appends all."""
        like = self._like
        if like is None:
            raise self._error(
                f"it has the placeholder {self._token!r}, and no 'like' shape was given"
            )
        if len(like) < start + (count or 0):
            raise self._error(
                f"the placeholder {self._token!r} stands for an axis that the 'like' shape "
                f"{tuple(like)} does not have"
            )
        for size in like[start:] if count is None else like[start : start + count]:
            if size is None:
                raise self._error(
                    f"unexpected placeholder for unknown dimension; like={tuple(like)}"
                )
            self._sizes.append(size)

    def _add(self, size: Size) -> None:
        position, like = len(self._sizes), self._like
        if like is not None and not isinstance(size, SizeExpression):
            known = like[position] if position < len(like) else None
            if size != known:
                raise self._error(f"different size {size} for known dimension; like={tuple(like)}")
        self._sizes.append(size)

    # ---- expressions

    def _sum(self) -> Size:
        negative = self._take("-")
        if not negative:
            self._take("+")
        total = -self._product() if negative else self._product()
        while self._token in ("+", "-"):
            negative = self._next() == "-"
            term = self._product()
            total = total - term if negative else total + term
        return total

    def _product(self) -> Size:
        result = self._power()
        while self._take("*"):
            result = result * self._power()
        return result

    def _power(self) -> Size:
        base = self._factor()
        if not self._take("^"):
            return base
        power = self._integer()
        if power > _MAX_POWER:
            raise self._error(f"a power is at most {_MAX_POWER}")
        return base**power

    def _factor(self) -> Size:
        if self._take("-"):
            return -self._integer()
        if self._token.isdigit():
            return self._integer()
        if not self._token.isidentifier():
            raise self._error("expected a number, a variable or an operation")
        name = self._next()
        if name not in (FLOORDIV, MOD, MAX, MIN):
            return variable(name, self._scope)
        self._expect("(")
        x = self._sum()
        self._expect(",")
        y = self._sum()
        self._expect(")")
        if name in (MAX, MIN):
            return max_dim(x, y) if name == MAX else min_dim(x, y)
        return operation(name, x, y, self._scope)

    def _integer(self) -> int:
        if not self._token.isdigit():
            raise self._error("expected an integer")
        return int(self._next())

    # ---- tokens

    @property
    def _token(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._token
        self._at += 1
        return token

    def _take(self, token: str) -> bool:
        if self._token == token:
            self._at += 1
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise self._error(f"expected {token!r}")

    def _error(self, detail: str) -> ValueError:
        start = self._starts[self._at]
        return ValueError(
            f"syntax error in symbolic shape {self._text!r} in dimension {len(self._sizes)}: "
            f"{detail}. Parsed {self._text[:start]!r}, remaining {self._text[start:]!r}."
        )
