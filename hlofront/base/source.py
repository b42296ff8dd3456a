"""The user's source: the stack frames that called hlofront, and the text of their lines."""

import ast
import functools
import linecache
import os
import re
import sys
import types
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, cast

from hlofront.base.named_tuple import NamedTuple
from hlofront.bridge import fast_parts, state

# Returns the current stack as a C++ object, which is fast.
current = fast_parts.get_traceback

Traceback = fast_parts.Traceback


# Returns a Python frame: `frame_at(0)` is the calling function's, `frame_at(1)` its caller's.
frame_at = sys._getframe  # pyright: ignore[reportPrivateUsage]


# ---- whose frames ----------------------------------------------------------------------------

_standard_library = os.path.dirname(functools.__file__)
_package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_excluded = [
    _package + os.sep,
    os.path.join(os.path.dirname(_package), "hlotools") + os.sep,
    os.path.dirname(os.path.abspath(str(state.extension.__file__))) + os.sep,
    os.path.join(_standard_library, "importlib") + os.sep,
    os.path.join(_standard_library, "contextlib.py"),
    os.path.join(_standard_library, "functools.py"),
    os.path.join(_standard_library, "asyncio") + os.sep,
    os.path.join(_standard_library, "runpy.py"),
    "<frozen ",
]
# Packages that run the cells of notebooks, whose frames are never the user's.
_NOTEBOOK = re.compile(
    r"[\\/](?:site|dist)-packages[\\/](?:IPython|ipykernel|ipykernel_launcher|traitlets|tornado)\b"
)
_is_user_file: dict[str, bool] = {}


def register_exclusion(path: str) -> None:
    """Exclude files whose names begin with `path` from the user's code.

    It is for libraries on top of hlofront, whose users expect errors to name their own lines.
    """
    _excluded.append(path)
    _is_user_file.clear()


def unregister_exclusion(path: str) -> None:
    """Remove one exclusion of `path`; raise ValueError if there is none."""
    _excluded.remove(path)
    _is_user_file.clear()


def exclusions() -> tuple[str, ...]:
    """Return the path prefixes of files that are not part of the user's code."""
    return tuple(_excluded)


def is_user_file(name: str) -> bool:
    """Return whether a file is the user's, not one of hlofront, jaxlib, wrappers or notebooks."""
    is_user = _is_user_file.get(name)
    if is_user is None:
        is_user = not (name.startswith(tuple(_excluded)) or _NOTEBOOK.search(name))
        _is_user_file[name] = is_user
    return is_user


class Frame:
    """A stack entry: a code object and the index of its current instruction.

    Lines count from 1. Columns count from 0, in bytes of UTF-8; they are None if the code was
    compiled without them.
    """

    __slots__ = ("_span", "code", "instruction")

    def __init__(self, code: types.CodeType, instruction: int):
        self.code = code
        self.instruction = instruction
        self._span: tuple[int, int, int, int] | None = None

    def _located(self) -> tuple[int, int, int, int]:
        if self._span is None:
            self._span = Traceback.code_addr2location(self.code, self.instruction)
        return self._span

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_name

    @property
    def line(self) -> int:
        return self._located()[0]

    @property
    def column(self) -> int | None:
        return self._known(1)

    @property
    def end_line(self) -> int | None:
        return self._known(2)

    @property
    def end_column(self) -> int | None:
        return self._known(3)

    def _known(self, part: int) -> int | None:
        span = self._located()
        return span[part] if span[part] >= 0 and span[3] >= 0 else None

    def __repr__(self) -> str:
        return f"Frame({_summary(self)})"


def user_frames(traceback: Traceback | None, limit: int | None = None) -> list[Frame]:
    """Return the user's frames of a C++ traceback, innermost first; at most `limit` of them."""
    frames: list[Frame] = []
    if traceback is None:
        return frames
    for code, instruction in zip(*traceback.raw_frames(), strict=True):
        if is_user_file(code.co_filename):
            frames.append(Frame(code, instruction))
            if len(frames) == limit:
                break
    return frames


def user_frame(traceback: Traceback | None) -> Frame | None:
    """Return the user's innermost frame of a C++ traceback, or None."""
    frames = user_frames(traceback, 1)
    return frames[0] if frames else None


# ---- as text ---------------------------------------------------------------------------------


def calling_frame() -> types.FrameType | None:
    """Return the user's innermost frame of the current stack, or None."""
    frame = frame_at(1)
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def frames_to_user() -> int:
    """Return the `stacklevel` with which a warning names the user's innermost line."""
    frame = frame_at(1)
    level = 1
    while frame.f_back is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
        # Python does not count the frames of the import system.
        if not frame.f_code.co_filename.startswith("<frozen importlib"):
            level += 1
    return level


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn of what the user's innermost line does."""
    warnings.warn(message, category, stacklevel=frames_to_user())


def summarize(traceback: Traceback | None, frame_count: int = 1) -> str:
    """Return the user's innermost frames as lines "file.py:12:4 (f)", or "unknown" if none."""
    frames = user_frames(traceback, frame_count)
    return "\n".join(map(_summary, frames)) if frames else "unknown"


def _summary(frame: Frame) -> str:
    column = "" if frame.column is None else f":{frame.column}"
    line = _cell_line(frame.file, frame.line) or f"{frame.file}:{frame.line}{column}"
    return f"{line} ({frame.code.co_qualname})"


def describe_frame_with_line(frame: Frame) -> str:
    """Return a frame's file, line and source text, as in "model.py:12 in loss:  y = x * 2"."""
    text = line_text(frame)
    return f"{describe_frame(frame)}:  {shortened(text)}" if text else describe_frame(frame)


def shortened(text: str, width: int = 60) -> str:
    """Return a text on one line, cut to at most `width` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


def describe_frame(frame: Frame) -> str:
    """Return a frame's file, line and function, as in "model.py:12 in loss"."""
    inside = "" if frame.function == "<module>" else f" in {frame.function}"
    return f"{shown_line(frame.file, frame.line)}{inside}"


def shown_path(path: str) -> str:
    """Return a file's path for messages, relative if it is below the working directory."""
    try:
        here = os.path.join(os.getcwd(), "")
    except FileNotFoundError:  # The working directory was removed.
        return path
    return path.removeprefix(here)


def shown_line(file: str, line: int | str) -> str:
    """Return a source line for messages, as in "model.py:12", or in a notebook "cell 4, line 1"."""
    return _cell_line(file, line) or f"{shown_path(file)}:{line}"


def _cell_line(file: str, line: int | str) -> str | None:
    """Describe a line of a notebook cell, as in "cell 4, line 1"; return None for a file."""
    if "IPython" not in sys.modules:
        return None
    # Loads hlotools, which few processes need.
    from hlotools.source_lines import cell_of

    cell = cell_of(file)
    return f"{cell}, line {line}" if cell else None


def callable_name(function: object) -> str:
    """Return a callable's name: of a partial, its function's; of an object, its class's."""
    for _ in range(100):
        name = getattr(function, "__name__", None)
        if isinstance(name, str):
            return name
        if not isinstance(function, functools.partial):
            break
        function = function.func
    return type(function).__name__


def describe_callable(function: Any) -> str:
    """Return a function's name and line, as in "loss at model.py:12"; hlofront's own have none."""
    name = callable_name(function)
    for _ in range(100):  # Chains are short; a cyclic one ends here.
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif callable(getattr(function, "__wrapped__", None)):
            function = function.__wrapped__
        else:
            break
    code = getattr(function, "__code__", None)
    if code is None and callable(function):
        code = getattr(type(function).__call__, "__code__", None)
    if not isinstance(code, types.CodeType) or not is_user_file(code.co_filename):
        return name
    return f"{name} at {shown_line(code.co_filename, code.co_firstlineno)}"


def line_text(frame: Frame) -> str:
    """Return the source line of a frame, stripped, or "" if the source is not available."""
    return _line(frame.file, frame.line)


def expression_text(frame: Frame) -> str:
    """Return the expression that a frame evaluates, on one line: the `x @ w` of `y = f(x @ w)`.

    It is "" if the source or the columns are not available.
    """
    if frame.column is None or frame.end_line is None:
        return ""
    lines = [line.encode() for line in _lines(frame.file)[frame.line - 1 : frame.end_line]]
    if not lines or len(lines) != frame.end_line - frame.line + 1:
        return ""
    lines[-1] = lines[-1][: frame.end_column]
    lines[0] = lines[0][frame.column :]
    # If the file has changed since, the position may be inside a character.
    return b" ".join(line.strip() for line in lines).decode(errors="replace")


def _line(file: str, number: int) -> str:
    return "".join(_lines(file)[number - 1 : number]).strip()


def _lines(file: str) -> list[str]:
    linecache.checkcache(file)
    return linecache.getlines(file)


# ---- who is calling now ----------------------------------------------------------------------


class SourceOperand(NamedTuple):
    """An operand's source text, and its value if evaluating it runs no user code."""

    text: str
    value: object
    name: str | None  # Set if the text is a plain name.
    by_keyword: bool


class CallSite:
    """The user's innermost frame while it runs; it refers to live values, so do not keep it."""

    __slots__ = ("_frame", "frame")

    def __init__(self, live: types.FrameType):
        self._frame = live
        self.frame = Frame(live.f_code, live.f_lasti)

    def operands(self) -> list[SourceOperand] | None:
        """Return the operands of the operator or call that the frame runs, in source order.

        Return None if the source is not available or ambiguous, as in `f(*args)`.
        """
        text = expression_text(self.frame)
        nodes = _operand_nodes(text)
        if nodes is None:
            return None
        return [
            SourceOperand(
                ast.get_source_segment(text, node) or "",
                _known_value(node, self._frame),
                node.id if isinstance(node, ast.Name) else None,
                by_keyword,
            )
            for node, by_keyword in nodes
        ]

    def binding(self, name: str) -> str:
        """Return a description of what bound a name in the user's function, or "" if unknown.

        Examples: "argument x of loss", "from model.py:8 in loss:  x = jnp.ones(3)". The source is
        parsed, not run: if several lines assign the name, all are listed.
        """
        binding = _binding(_tree(self.frame.file), self.frame, name)
        if binding is None:
            return ""
        function, is_argument, lines = binding
        if is_argument:
            again = f", set again at line {_listed(lines)}" if lines else ""
            return f"argument {name} of {function}{again}"
        inside = f" in {function}" if function else ""
        text = f":  {shortened(_line(self.frame.file, lines[0]))}" if len(lines) == 1 else ""
        return f"from {shown_line(self.frame.file, _listed(lines))}{inside}{text}"


def _listed(lines: list[int]) -> str:
    return " or ".join(map(str, lines[:4])) + (" or ..." if len(lines) > 4 else "")


def call_site() -> CallSite | None:
    """Return the user's innermost running frame as a CallSite, or None."""
    frame = frame_at(1)
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return CallSite(frame)
        frame = frame.f_back
    return None


UNKNOWN: object = object()


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # The file has changed since it was imported, or is not Python: a notebook.


def _operand_nodes(text: str) -> list[tuple[ast.expr, bool]] | None:
    tree = _parsed(text)
    if tree is None or len(tree.body) != 1:
        return None
    statement = tree.body[0]
    node = statement.value if isinstance(statement, ast.Expr) else statement
    by_keyword: list[ast.expr] = []
    match node:
        case ast.BinOp():
            positional: list[ast.expr] = [node.left, node.right]
        case ast.AugAssign():
            positional = [node.target, node.value]
        case ast.Compare():
            positional = [node.left, *node.comparators]
        case ast.UnaryOp():
            positional = [node.operand]
        case ast.Subscript():
            positional = [node.value, node.slice]
        case ast.Call():
            positional = [node.func.value] if isinstance(node.func, ast.Attribute) else []
            for argument in node.args:
                is_sequence = isinstance(argument, ast.List | ast.Tuple)
                positional += argument.elts if is_sequence else [argument]
            by_keyword = [keyword.value for keyword in node.keywords]
        case _:
            return None
    if any(isinstance(operand, ast.Starred) for operand in positional):
        return None
    nodes = [(operand, False) for operand in positional] + [
        (operand, True) for operand in by_keyword
    ]
    return [pair for pair in nodes if not isinstance(pair[0], _NeverArrays)]


_NeverArrays = ast.Lambda | ast.Dict | ast.Set | ast.JoinedStr | ast.DictComp | ast.SetComp


def _known_value(node: ast.expr, frame: types.FrameType) -> object:
    """Return the value of a name, constant, item or attribute, without running user code."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            for scope in (frame.f_locals, frame.f_globals):
                if type(scope) in (dict, _Locals) and node.id in scope:
                    return scope[node.id]
        case ast.Attribute():
            return _attributes(_known_value(node.value, frame)).get(node.attr, UNKNOWN)
        case ast.Subscript(slice=ast.Constant(value=key)):
            return _item(_known_value(node.value, frame), key)
        case _:
            pass
    return UNKNOWN


def _item(holder: object, key: object) -> object:
    """Return an item of a plain dict, list or tuple, without user code, or UNKNOWN."""
    kind: type = type(holder)
    if kind is dict and type(key) in (str, int):
        return cast(dict[object, object], holder).get(key, UNKNOWN)
    if kind in (list, tuple) and type(key) is int:
        elements = cast(Sequence[object], holder)
        return elements[key] if key < len(elements) else UNKNOWN
    return UNKNOWN


# The class of a function's f_locals: dict, or a view of the frame from Python 3.13 on.
_Locals = (lambda: type(frame_at().f_locals))()


def _attributes(holder: object) -> dict[str, object]:
    try:
        attributes: object = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return {}
    return cast(dict[str, object], attributes) if type(attributes) is dict else {}


# ---- where a name was bound ------------------------------------------------------------------

_trees: dict[str, tuple[list[str], ast.Module | None]] = {}
_MAX_TREES = 16


def _tree(file: str) -> ast.Module | None:
    lines = _lines(file)
    # linecache returns one list object until the file changes.
    parsed = _trees.get(file)
    if parsed is None or parsed[0] is not lines:
        if len(_trees) >= _MAX_TREES:
            _trees.clear()
        parsed = _trees[file] = (lines, _parsed("".join(lines)))
    return parsed[1]


_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def _enclosing_scopes(tree: ast.Module, line: int, column: int) -> list[ast.AST]:
    """Return the functions, comprehensions and module around a position, outermost first."""
    scopes: list[ast.AST] = [tree]
    below = list(ast.iter_child_nodes(tree))
    while below:
        node = below.pop()
        line_of_node: int | None = getattr(node, "lineno", None)
        if line_of_node is None:  # `arguments`, `withitem` and others have no line themselves.
            below.extend(ast.iter_child_nodes(node))
            continue
        last_line: int = getattr(node, "end_lineno", line_of_node)
        if not (line_of_node, 0) <= (line, column) < (last_line + 1, 0):
            continue
        if isinstance(node, _Function | _Comprehension) and _holds(node, line, column):
            scopes.append(node)
        below.extend(ast.iter_child_nodes(node))
    return scopes


def _holds(scope: object, line: int, column: int) -> bool:
    # Only look at the body, since decorators and defaults belong to the enclosing scope.
    body: Any = getattr(scope, "body", scope)
    nodes = cast(list[Any], body) if isinstance(body, list) else [body]
    first, last = nodes[0], nodes[-1]
    start, end = (first.lineno, first.col_offset), (last.end_lineno, last.end_col_offset)
    return start <= (line, column) < end


def _binding(
    tree: ast.Module | None, frame: Frame, name: str
) -> tuple[str, bool, list[int]] | None:
    """Return (function, is argument, lines) of the scope that binds a name, or None."""
    if tree is None or frame.column is None:
        return None
    for scope in reversed(_enclosing_scopes(tree, frame.line, frame.column)):
        if _declares(scope, name):
            continue
        is_function = isinstance(scope, _Function)
        is_argument = is_function and name in _argument_names(scope.args)
        lines = _binding_lines(scope, name)
        if is_argument or lines:
            return getattr(scope, "name", "<lambda>") if is_function else "", is_argument, lines
    return None


def _argument_names(arguments: ast.arguments) -> set[str]:
    each = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    each += filter(None, [arguments.vararg, arguments.kwarg])
    return {argument.arg for argument in each}


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Return the syntax nodes of a scope, without those of nested scopes."""
    if isinstance(scope, _Comprehension):
        below: list[ast.AST] = [generator.target for generator in scope.generators]
    else:
        assert isinstance(scope, _Function | ast.Module)
        below = [scope.body] if isinstance(scope, ast.Lambda) else list(scope.body)
    while below:
        node = below.pop()
        yield node
        if not isinstance(node, _Function | ast.ClassDef | _Comprehension):
            below.extend(ast.iter_child_nodes(node))


def _declares(scope: ast.AST, name: str) -> bool:
    """Return whether a scope declares a name as `global` or `nonlocal`."""
    return any(
        isinstance(node, ast.Global | ast.Nonlocal) and name in node.names
        for node in _own_nodes(scope)
    )


def _binding_lines(scope: ast.AST, name: str) -> list[int]:
    """Return the lines that bind a scope's name, also in nested functions that declare it."""
    lines: set[int] = set()
    declaring = [
        node
        for node in ast.walk(scope)
        if isinstance(node, _Function) and node is not scope and _declares(node, name)
    ]
    for each in [scope, *declaring]:
        for node in _own_nodes(each):
            match node:
                case ast.Name(id=bound, ctx=ast.Store()) if bound == name:
                    lines.add(node.lineno)
                case ast.MatchAs(name=bound) | ast.MatchStar(name=bound) if bound == name:
                    lines.add(node.lineno)
                case ast.alias() if (node.asname or node.name) == name:
                    lines.add(node.lineno)
                case _:
                    pass
    return sorted(lines)
