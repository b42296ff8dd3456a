"""Counts of how often programs are looked at, and programs that call one another at many levels."""

import contextlib
import sys

from hlofront.core.jaxpr import Jaxpr


class TooManyVisits(BaseException):
    """Ends a pass that does not end by itself; no handler of exceptions takes it for an error."""


class Visits:
    """How often the equations of programs were read, and how many programs were made."""

    def __init__(self, most: int):
        self.most = most
        self.count = 0

    def add(self):
        self.count += 1
        if self.count > self.most:
            raise TooManyVisits(f"programs are visited more than {self.most} times")


@contextlib.contextmanager
def counting_visits(most: int):
    """Count visits of programs, and raise TooManyVisits where there are more than `most`.

    A visit is a read of a jaxpr's equations, or the making of a jaxpr.
    """
    visits = Visits(most)
    own = {name: Jaxpr.__dict__[name] for name in ("eqns", "live", "__init__")}

    def counted(member):
        def read(jaxpr):
            visits.add()
            return member.__get__(jaxpr)

        return property(read, member.__set__)

    def make(jaxpr, *args, **kwargs):
        visits.add()
        own["__init__"](jaxpr, *args, **kwargs)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20 * limit)
    Jaxpr.eqns, Jaxpr.live, Jaxpr.__init__ = counted(own["eqns"]), counted(own["live"]), make
    try:
        yield visits
    finally:
        sys.setrecursionlimit(limit)
        for name, member in own.items():
            setattr(Jaxpr, name, member)
