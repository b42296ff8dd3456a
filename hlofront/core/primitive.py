"""A primitive is a name; what it means is in the rule tables."""

from typing import Any

from hlofront.core import trace

ALL: dict[str, "Primitive"] = {}


class Primitive:
    """One operation on arrays, known to every interpreter by the rules registered for it."""

    __slots__ = (
        "__weakref__",
        "carries_programs",
        "eager",
        "inferred",
        "multiple_results",
        "name",
    )

    name: str
    multiple_results: bool
    # Whether parameters hold jaxprs or functions: such results are not kept in `inferred`.
    carries_programs: bool
    # What staging learned: (avals of the operands, parameters) -> avals of the results.
    inferred: dict[Any, Any]
    # What the engine compiled: parameters -> compiled call. Owned by runtime/engine.py.
    eager: dict[Any, Any]

    def __init__(
        self, name: str, *, multiple_results: bool = False, carries_programs: bool = False
    ):
        self.name = name
        self.multiple_results = multiple_results
        self.carries_programs = carries_programs
        self.inferred = {}
        self.eager = {}
        ALL.setdefault(name, self)

    def bind(self, *args: Any, **params: Any) -> Any:
        """Hand the operation to whichever interpreter is current.

        Returns the result, or a list of results where the primitive has several.
        """
        return trace.process(self, args, params)

    def __repr__(self):
        return self.name
