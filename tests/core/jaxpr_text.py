"""Programs from their text: `parse("{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }")`.

What the text leaves out (parameters that are not shown, weak types) is not there afterwards. All
programs inside equations are closed, over zeros.
"""

import ast
import re

import ml_dtypes
import numpy as np

from hlofront.base import dtypes
from hlofront.core import primitive as primitives
from hlofront.core.aval import AbstractValue, ShapedArray
from hlofront.core.jaxpr import ClosedJaxpr, DebugInfo, Equation, Jaxpr, Literal, Var
from hlofront.core.primitive import Primitive

_DTYPES = {
    dtypes.short_name(np.dtype(dtype)): np.dtype(dtype)
    for dtype in (
        np.bool_,
        np.int8,
        np.int32,
        np.int64,
        np.uint8,
        np.uint32,
        np.uint64,
        np.float16,
        np.float32,
        np.float64,
        np.complex64,
        ml_dtypes.bfloat16,
    )
}
_BINDER = re.compile(r"(\w+):([^\s\[]+\[[^\]]*\])")
_CUSTOM_RULES = {"jvp": "jvp_jaxpr_fun", "fwd": "fwd_jaxpr_thunk", "bwd": "bwd"}


class AsWritten:
    """A value of which only the text is known."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text

    def __eq__(self, other):
        return isinstance(other, AsWritten) and other.text == self.text

    def __hash__(self):
        return hash(self.text)


class UnknownType(AbstractValue):
    """A type of which only the text is known."""

    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text

    def str_short(self, short_dtypes=False, **_):
        return self.text


def parse(text: str) -> ClosedJaxpr:
    """The program that prints as this text."""
    return _Reader(text.strip()).whole()


def aval(text: str) -> AbstractValue:
    """A type from its text: "f32[3,4]"."""
    dtype, shape = text[:-1].split("[", 1)
    if dtype not in _DTYPES:
        return UnknownType(text)
    return ShapedArray(tuple(map(int, filter(None, shape.split(",")))), _DTYPES[dtype])


def primitive(name: str, multiple_results: bool) -> Primitive:
    """The primitive of this name, or a new one that nobody else gets to see."""
    found = primitives.ALL.get(name)
    if found is None:
        found = Primitive(name, multiple_results=multiple_results)
        del primitives.ALL[name]
    return found


def closed(jaxpr: Jaxpr) -> ClosedJaxpr:
    consts = [
        np.zeros(var.aval.shape, var.aval.dtype) if isinstance(var.aval, ShapedArray) else None
        for var in jaxpr.constvars
    ]
    return ClosedJaxpr(jaxpr, consts)


class _Reader:
    def __init__(self, text):
        self.text = text
        self.at = 0
        self.named = {}
        self.called = []

    def take(self, pattern):
        """The match of a pattern here, after white space; None, and nothing taken, if none."""
        match = re.compile(r"\s*(?:" + pattern + ")").match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def need(self, pattern):
        match = self.take(pattern)
        assert match, f"wanted {pattern} at {self.text[self.at : self.at + 60]!r}"
        return match

    def whole(self):
        # Named programs mention each other in any order, so all are there before they are read.
        for name in re.findall(r"^let (.+?) = ", self.text, re.MULTILINE):
            self.named[name] = closed(Jaxpr((), (), (), ()))
        while match := self.take(r"let (.+?) = "):
            self.named[match[1]].__init__(*_opened(self.program()))
            self.need(r"in\n")
        program = self.program()
        assert self.at == len(self.text), self.text[self.at :]
        for called, name in self.called:
            called.jaxpr.debug_info = DebugInfo("jit", name)
        return program

    def program(self):
        scope = {}
        self.need(r"\{ lambda ")
        constants = self.binders(scope)
        self.need(";")
        inputs = self.binders(scope)
        self.need(r"\. let")
        # On lines of their own, equations begin at one column, which others lie to the right of.
        broken = re.compile(r"\n( *)").match(self.text, self.at)
        column = len(broken[1]) if broken else None
        equations = []
        while not self.take(r"in \("):
            equations.append(self.equation(scope, column))
            self.take(";")
        outputs = []
        while not self.take(r"\)"):
            outputs.append(self.atom(self.need(r"(\S+?),?(?=[\s)]|,\))")[1].rstrip(","), scope))
            self.take(",")
        self.need(r"\}")
        return closed(Jaxpr(constants, inputs, outputs, equations))

    def binders(self, scope):
        found = []
        while match := self.take(_BINDER.pattern):
            var = scope[match[1]] = Var(aval(match[2]))
            found.append(var)
        return found

    def atom(self, text, scope):
        if ":" not in text:
            return scope[text]
        value, type_ = text.split(":")
        return Literal(AsWritten(value), aval(type_))

    def equation(self, scope, column):
        results = []
        seen = dict(scope)
        if re.compile(r"\s*" + _BINDER.pattern).match(self.text, self.at):
            results = self.binders(seen)
            self.need("=")
        name = self.need(r"[\w-]+")[0].strip()
        params = self.params() if self.take(r"(?<=\S)\[") else {}
        operands = []
        while self.operand_follows(column):
            operands.append(self.atom(self.need(r"([^\s;]+)")[1], scope))
        scope.update(seen)
        return Equation(
            operands, results, primitive(name, len(results) != 1), self.restored(params)
        )

    def operand_follows(self, column):
        rest = re.compile(r"( *)(\n *)?(\S+)").match(self.text, self.at)
        if rest[2]:
            return column is not None and len(rest[2]) - 1 > column
        return not (rest[3].startswith(";") or self.text.startswith(" in (", self.at))

    def params(self):
        params = {}
        while not self.take(r"\]"):
            name = self.need(r"(\w+)=")[1]
            params[name] = self.value(name)
        return params

    def value(self, name):
        if self.text.startswith("{ lambda", self.at):
            return self.program()
        if name == "branches":
            self.need(r"\(")
            programs = []
            while not self.take(r"\)"):
                shared = self.take(r"(\w+)(?=[\s)])")
                programs.append(self.named[shared[1]] if shared else self.program())
            return tuple(programs)
        start, depth = self.at, 0
        while depth or self.text[self.at] not in " \n]":
            depth += {"(": 1, "[": 1, "{": 1, "<": 1}.get(self.text[self.at], 0)
            depth -= {")": 1, "]": 1, "}": 1, ">": 1}.get(self.text[self.at], 0)
            self.at += 1
        text = self.text[start : self.at]
        if name.endswith("jaxpr") and text in self.named:
            return self.named[text]
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return AsWritten(text)

    def restored(self, params):
        """Parameters from what is shown of them, where that has other names."""
        if "call_jaxpr" in params and "name" in params:
            self.called.append((params["call_jaxpr"], str(params.pop("name"))))
            for shown, name in _CUSTOM_RULES.items():
                if shown in params:
                    function = lambda *args: None
                    function.__name__ = str(params.pop(shown))
                    params[name] = function
            params.setdefault("num_consts", 0)
        return params


def _opened(program):
    return program.jaxpr, program.consts
