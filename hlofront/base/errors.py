"""The exceptions that hlofront defines, and their messages.

    HlofrontError
    |- JAXTypeError (TypeError)
    |  |- ConcretizationTypeError            a traced array's value is needed
    |  |  `- TracerBoolConversionError           by `if`, `while`, `and`, `bool()`
    |  |- TracerArrayConversionError             by NumPy
    |  |- TracerIntegerConversionError           by indexing a list, `range()`
    |  |- UnexpectedTracerError              a traced array outlived its function
    |  `- KeyReuseError                      a random key was used twice
    |- JAXIndexError (IndexError)
    |  `- NonConcreteBooleanIndexError       a traced mask would make a shape unknown
    |- JaxprTypeError (TypeError)            a jaxpr breaks the type rules
    |- TypePromotionError (ValueError)       two dtypes have no common dtype
    |- InconclusiveDimensionOperation        a symbolic size does not settle a question
    |- ShardingTypeError                     explicit shardings are incompatible
    |- TracerLeakError                       a traced array leaked, and leaks are looked for
    |- VerificationError (ValueError)        a lowering rule made an invalid module
    |- PaddingError (ValueError)             a result would depend on the padding of a bucket
    |- RecompilationError (RuntimeError)     something is compiled that must not be
    |- PluginError (RuntimeError)            a PJRT plugin is missing, or cannot be used
    |- AbsentDeviceError (RuntimeError)      a program was to run on a compile-only device
    |- TargetError (ValueError)              no target has this name
    |- NoRuleError (NotImplementedError)     a primitive has no rule for a transformation
    `- NoEngineError (RuntimeError)          an operation met no engine to run it
    JaxRuntimeError (RuntimeError)           XLA or a device failed; jaxlib's own class

A wrong shape or dtype is a plain TypeError or ValueError, to which add_operands() adds the user's
source.
"""

import textwrap
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from hlofront.base import source
from hlofront.base.source import CallSite, SourceOperand, Traceback
from hlofront.bridge import fast_parts, state

JaxRuntimeError = state.JaxRuntimeError


class HlofrontError(Exception):
    """The base class of hlofront's own exceptions."""

    # The public module, which tracebacks print.
    __module__ = "hlofront.errors"

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__ == __name__:
            cls.__module__ = HlofrontError.__module__

    # Pickles hold the finished text, which constructors would mistake for a tracer.
    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args), self.__dict__


def _restored(kind: type[BaseException], args: tuple[object, ...]) -> BaseException:
    return kind.__new__(kind, *args)


# ---- named by JAX ----------------------------------------------------------------------------


class JAXTypeError(HlofrontError, TypeError):
    """The error for a value of a type that the operation does not accept."""


class JAXIndexError(HlofrontError, IndexError):
    """The error for an index of a type that the operation does not accept."""


class ConcretizationTypeError(JAXTypeError):
    """The error for code that needs the value of a traced array, which tracing does not know."""

    def __init__(self, tracer: object, context: str = ""):
        headline = (
            "Abstract tracer value encountered where concrete value is expected: "
            f"traced array with shape {_aval_text(tracer)}."
        )
        fix = f"compute with jnp functions, which take traced arrays; or, {_STATIC}"
        super().__init__(_concretization_message(headline, tracer, context, fix))


class TracerBoolConversionError(ConcretizationTypeError):
    """The error for a traced array as a Python condition: `if`, `while`, `and`, `assert`."""

    def __init__(self, tracer: object):
        headline = f"Attempted boolean conversion of traced array with shape {_aval_text(tracer)}."
        fix = f"{_instead_of_condition()}; or, {_STATIC}"
        HlofrontError.__init__(self, _concretization_message(headline, tracer, "", fix))


class TracerArrayConversionError(JAXTypeError):
    """The error for a traced array passed to NumPy, which needs its values."""

    def __init__(self, tracer: object):
        headline = (
            "The numpy.ndarray conversion method __array__() was called on traced array with "
            f"shape {_aval_text(tracer)}."
        )
        fix = (
            "use the jnp function instead of the np one; or, to run NumPy itself on the values "
            "when they are known, wrap it in jax.pure_callback."
        )
        super().__init__(_concretization_message(headline, tracer, "", fix))


class TracerIntegerConversionError(JAXTypeError):
    """The error for a traced array where Python needs an integer: a list's index, `range()`."""

    def __init__(self, tracer: object):
        headline = (
            f"The __index__() method was called on traced array with shape {_aval_text(tracer)}."
        )
        fix = (
            "index an array instead of a list, as in jnp.array(items)[i]; use lax.fori_loop "
            f"instead of `range`; or, {_STATIC}"
        )
        super().__init__(_concretization_message(headline, tracer, "", fix))


class NonConcreteBooleanIndexError(JAXIndexError):
    """The error for indexing with a traced mask, which leaves the result's shape unknown."""

    def __init__(self, tracer: object):
        headline = f"Array boolean indices must be concrete; got {_aval_text(tracer)}."
        context = (
            "The result would have as many elements as the mask has True ones, and shapes must be "
            "known while tracing."
        )
        fix = (
            "keep the shape, as in jnp.where(mask, x, 0); or give the number of elements, as in "
            "x[jnp.nonzero(mask, size=n)]. Assigning by mask works: x = x.at[mask].set(v)."
        )
        super().__init__(_concretization_message(headline, tracer, context, fix))


class UnexpectedTracerError(JAXTypeError):
    """The error for a traced array that is used after its function has returned."""

    def __init__(self, msg: str):
        super().__init__(msg)


class KeyReuseError(JAXTypeError):
    """The error for a random key that is used twice, which would repeat random numbers."""

    def __init__(self, message: str):
        super().__init__(message)


class JaxprTypeError(HlofrontError, TypeError):
    """The error for a jaxpr that breaks the type rules, raised by `core.check_jaxpr`."""


class InconclusiveDimensionOperation(HlofrontError):
    """The error for a question about a symbolic size whose answer depends on the size."""


class TypePromotionError(HlofrontError, ValueError):
    """The error for dtypes without a common dtype under the current promotion rules."""


class IndivisibleError(HlofrontError, ValueError):
    """The error for an axis whose size is not divisible by the shards of a sharding."""


class DuplicateSpecError(HlofrontError, ValueError):
    """The error for a sharding that splits two axes of an array along one mesh axis."""


class ShardingTypeError(HlofrontError):
    """The error for operands with incompatible explicit shardings."""


# ---- hlofront's own --------------------------------------------------------------------------


class TracerLeakError(HlofrontError):
    """The error for a traced array that outlives its function, under `jax_check_tracer_leaks`."""


class VerificationError(HlofrontError, ValueError):
    """The error for a module that breaks MLIR's rules, on which XLA would abort the process."""


class PaddingError(HlofrontError, ValueError):
    """The error for an operation whose result would depend on the padding of a bucket."""


class RecompilationError(HlofrontError, RuntimeError):
    """The error for a compilation that `no_recompile` or `max_compiles` forbids."""


class PluginError(HlofrontError, RuntimeError):
    """The error for a PJRT plugin, or a tool that it needs, that is missing or unusable."""


class AbsentDeviceError(HlofrontError, RuntimeError):
    """The error for running a program on a compile-only device."""


class TargetError(HlofrontError, ValueError):
    """The error for an unknown name of a target."""


class NoRuleError(HlofrontError, NotImplementedError):
    """The error for a primitive without a rule for a transformation."""


class NoEngineError(HlofrontError, RuntimeError):
    """The error for an operation on concrete values when no engine is loaded to run it."""


def missing_rule(
    primitive: str, table: str, home: str = "", kind: str = "A rule", by_others: str = ""
) -> NoRuleError:
    """Return the NoRuleError for a primitive that a rule table lacks.

    Args:
      primitive: the primitive's name.
      table: the name of the table and its decorator: "jvp", "transpose", "batch", "lower".
      home: the file that defines the primitive, if known.
      kind: JAX's name of such a rule: "Batching rule".
      by_others: how the other package that defines the primitive can register such a rule.
    """
    where = f" in {home}" if home else " where the primitive is defined"
    remedy = f"register one, by {by_others}" if by_others else f"add @{table}({primitive}_p){where}"
    return NoRuleError(f"{kind} for '{primitive}' not implemented: {remedy}")


# ---- the texts of concretization errors ------------------------------------------------------

_STATIC = (
    "if it depends on an argument that steers Python and takes few values, mark that one with "
    "static_argnums of jit."
)


def _concretization_message(headline: str, tracer: object, context: str, fix: str) -> str:
    site = source.call_site()
    here = _cut(f"  at {source.describe_frame_with_line(site.frame)}") if site is not None else ""
    describe = _attribute_of(tracer, "_origin_message")
    origin = describe() if describe is not None else ""
    return _screen([headline, here, context, origin, _fix(fix)])


_INSTEAD_OF = {
    "if": "use jnp.where(condition, x, y), or lax.cond to run one branch only, instead of `if`",
    "while": "use lax.while_loop instead of `while`",
    "assert": "use checkify.check instead of `assert`",
    "and": "use &, |, ~ instead of `and`, `or`, `not`",
}


def _instead_of_condition() -> str:
    """Return advice on replacing the Python statements, such as `if`, on the user's line."""
    site = source.call_site()
    line = source.line_text(site.frame) if site is not None else ""
    words = set(line.replace("(", " ").replace(")", " ").replace("elif", "if").split())
    if words & {"or", "not"}:
        words.add("and")
    advice_for_line = [advice for word, advice in _INSTEAD_OF.items() if word in words]
    return "; ".join(advice_for_line or _INSTEAD_OF.values())


# ---- how a value became a tracer -------------------------------------------------------------
#
# Tracers describe themselves with these functions. Errors read these optional attributes:
#   aval                 shape and dtype, with str_short()
#   _origin_message()    depends_on_arguments(...) or made_by_operations(...)
#   _origin_traceback    the C++ traceback of the operation that made it, or None
#   _origin_argument     "argument x['a'] of loss" if it is one, or ""


def traced_function(function: object, purpose: str) -> str:
    """Describe a traced function and its purpose, as in "f at model.py:12 for jit"."""
    return f"{source.describe_callable(function)} for {purpose}"


def depends_on_arguments(traced: str, arguments: Sequence[str]) -> str:
    """Return a message that a value is traced because it depends on arguments, such as "x['a']"."""
    more = f" and {len(arguments) - 5} more" if len(arguments) > 5 else ""
    shown = ", ".join(arguments[:5]) + more
    which = f"the value of the argument{'s' * (len(arguments) > 1)} {shown}"
    return (
        f"The error occurred while tracing the function {traced}.\n"
        f"This concrete value was not available in Python because it depends on {which}."
    )


def made_by_operations(traced: str, operations: Sequence[tuple[str, Traceback | None]]) -> str:
    """Return a message that a value is traced because of operations, not because of arguments.

    Args:
      traced: a description by `traced_function`.
      operations: names of primitives, and their C++ tracebacks or None; the latest last.
    """
    lines = [f"The error occurred while tracing the function {traced}."]
    operation_lines = [
        _cut(f"  {name} {_line('at', traceback)}".rstrip()) for name, traceback in operations
    ]
    if operation_lines:
        lines.append("This value became a tracer due to operations on these lines:")
        lines += operation_lines[-5:]
    return "\n".join(lines)


def _line(preposition: str, traceback: Traceback | None) -> str:
    """Return a preposition and a traceback's user line, as in "at model.py:12 ...", or ""."""
    frame = source.user_frame(traceback)
    return f"{preposition} {source.describe_frame_with_line(frame)}" if frame is not None else ""


def leaked_tracer(
    tracer: object, traced: str = "", made_at: Traceback | None = None
) -> UnexpectedTracerError:
    """Return the error for a tracer that is used after its function has returned.

    Args:
      tracer: the tracer.
      traced: a description by `traced_function` of what was traced when the tracer was made.
      made_at: the C++ traceback of the operation that made it; by default the tracer's own.
    """
    made_where = _line("at", made_at or _attribute_of(tracer, "_origin_traceback"))
    argument = _attribute_of(tracer, "_origin_argument")
    parts = [
        f"Encountered an unexpected tracer: a traced array of type {_aval_text(tracer)} was used "
        "after the function that it stood in had returned, so it has no value.",
        f"The function being traced when the value leaked was {traced}." if traced else "",
        f"The value is {argument}."
        if argument
        else f"The value was made {made_where}"
        if made_where
        else "",
        _fix(
            "return the value from the function instead of storing it in a global variable, an "
            "object or a list that outlives it; hlofront.checking_leaks() finds where it is kept."
        ),
    ]
    return UnexpectedTracerError(_screen(parts))


# ---- mismatched operands ---------------------------------------------------------------------

AnyError = TypeVar("AnyError", bound=BaseException)


def add_operands(error: AnyError, operation: str, operands: Sequence[object]) -> AnyError:
    """Add a failed operation's operands to the text of an exception, and return it.

    It is for callers of rules, which only see avals. The text shows the user's expression for each
    operand, its shape and dtype, and the line that made it. Further calls change nothing.
    """
    is_ours = isinstance(error, HlofrontError) and not isinstance(error, ShardingTypeError)
    if is_ours or len(error.args) != 1 or type(error.args[0]) is not str:
        return error
    return _operand_error(error, operation, operands)


def without_operands(error: BaseException) -> BaseException:
    """Mark a user's own exception so that `add_operands` does not change it, and return it."""
    error.__dict__.setdefault("_about_operands", ("", True))
    return error


def _operand_error(error: AnyError, operation: str, operands: Sequence[object]) -> AnyError:
    headline, is_final = error.__dict__.get("_about_operands", (error.args[0], False))
    if is_final:
        return error
    is_final = not all(_is_aval(operand) for operand in operands)
    error.__dict__["_about_operands"] = (headline, is_final)
    table = argument_table(operation, operands) if operands else ""
    error.args = (_screen([headline, table]),)
    return error


def argument_table(operation: str, operands: Sequence[object]) -> str:
    """Return the operation as the user wrote it, and an aligned line for each operand.

    Args:
      operation: the operation's name, used if the user's expression is not available.
      operands: the operands, which may be values of any type.
    """
    site = source.call_site()
    rows = _rows(operands, site)
    table = [(f"  {label} : {aval}", origin) for label, aval, origin in rows]
    width = max((len(operand) for operand, _ in table), default=0)
    if site is not None:
        expression = source.shortened(source.expression_text(site.frame) or operation, 50)
        table.insert(0, (f"  {expression}", f"at {source.describe_frame(site.frame)}"))
    lines = [_cut(f"{first:{width}}   {second}".rstrip()) for first, second in table]
    if len(operands) > len(rows):
        lines.append(f"  ... and {len(operands) - len(rows)} more")
    return "\n".join(lines)


_MAX_OPERANDS = 8


def _rows(operands: Sequence[object], site: CallSite | None) -> list[tuple[str, str, str]]:
    written = _written_for(operands, site)
    rows: list[tuple[str, str, str]] = []
    for index, operand in enumerate(operands[:_MAX_OPERANDS]):
        made_at: Traceback | None = _attribute_of(operand, "_origin_traceback")
        origin = _attribute_of(operand, "_origin_argument") or _line("from", made_at)
        label = f"operand {index}"
        source_operand = written[index]
        if source_operand is not None:
            label = source_operand.text
            if not origin and source_operand.name is not None and site is not None:
                origin = site.binding(source_operand.name)
        rows.append((label, _operand_text(operand), origin))
    width = max((len(label) for label, _, _ in rows), default=0)
    width = min(width, 30)
    return [
        (f"{source.shortened(label, 30):{width}}", aval, origin) for label, aval, origin in rows
    ]


def _written_for(operands: Sequence[object], site: CallSite | None) -> list[SourceOperand | None]:
    """Return the user's source expression of each operand, or None if it is uncertain."""
    matches: list[SourceOperand | None] = [None] * len(operands)
    written = site.operands() if site is not None else None
    if site is None or written is None:
        return matches
    for index, operand in enumerate(operands):
        for one in written:
            if one.value is operand:
                matches[index] = one
                break
    # An operand may be converted from the value that the user wrote. Then match by order, if the
    # counts agree and each pair could match.
    by_position = [
        one for one in written if not one.by_keyword and _may_be_operand(one.value, operands)
    ]
    if len(by_position) == len(operands) and all(
        known is None or known is one for known, one in zip(matches, by_position, strict=True)
    ):
        for index, one in enumerate(by_position):
            if matches[index] is None and _could_be(one.value, operands[index], site):
                matches[index] = one
    return matches


def _may_be_operand(value: object, operands: Sequence[object]) -> bool:
    known = isinstance(value, np.ndarray | np.generic | fast_parts.Array) or _is_scalar(value)
    return known or value is source.UNKNOWN or type(value) in map(type, operands)


def _could_be(value: object, operand: object, site: CallSite) -> bool:
    if value is not source.UNKNOWN:
        # Compared as text, since comparing symbolic sizes may raise an error.
        return str(getattr(value, "shape", ())) == str(getattr(operand, "shape", ()))
    # An operand made by this very call is not the value of a subexpression in the user's code.
    made_at = source.user_frame(_attribute_of(operand, "_origin_traceback"))
    here = site.frame
    return made_at is None or (made_at.code, made_at.instruction) != (here.code, here.instruction)


def _is_scalar(value: object) -> bool:
    return type(value) in (bool, int, float, complex)


def _has_attribute(value: object, name: str) -> bool:
    kind: type = type(value)
    return hasattr(kind, name)


def _is_aval(value: object) -> bool:
    return _has_attribute(value, "str_short")


def _attribute_of(value: object, name: str) -> Any:
    # Look at the type first: a missing attribute of a tracer may raise other errors.
    return getattr(value, name, None) if _has_attribute(value, name) else None


def _aval_text(value: object, short: bool = False) -> str:
    """Return the type of an array, tracer, aval or scalar as text: float32[3], or short f32[3]."""
    aval: Any = value if _is_aval(value) else _attribute_of(value, "aval")
    if aval is not None and _is_aval(aval):
        return aval.str_short(short_dtypes=short)
    if _is_scalar(value):
        return f"Python {type(value).__name__}"
    shape, dtype = _attribute_of(value, "shape"), _attribute_of(value, "dtype")
    if shape is None or dtype is None:
        return value if type(value) is str else f"a value of type {type(value).__name__}"
    name = _short_dtype(str(dtype)) if short else str(dtype)
    return f"{name}[{','.join(map(str, shape))}]"


def _operand_text(value: object) -> str:
    text = _aval_text(value, short=True)
    aval: Any = value if _is_aval(value) else _attribute_of(value, "aval")
    if getattr(aval, "weak_type", False):
        return f"{text} (weak)"
    return f"{text} (NumPy)" if isinstance(value, np.ndarray | np.generic) else text


_SHORT_DTYPE = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}


def _short_dtype(name: str) -> str:
    for kind, short in _SHORT_DTYPE.items():
        if name.startswith(kind):
            return short + name.removeprefix(kind)
    return name


# ---- layout ----------------------------------------------------------------------------------

_WIDTH = 96  # The width of prose.
_WIDTH_OF_LINES = 120  # The width of lines that end in the user's source.
_MAX_LINES = 20  # With this limit, a message and a traceback of a few entries fit on one screen.


def _fix(text: str) -> str:
    return textwrap.fill(f"Fix: {text}", _WIDTH, initial_indent="  ", subsequent_indent=" " * 7)


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH_OF_LINES else line[: _WIDTH_OF_LINES - 3] + "..."


def _screen(parts: Sequence[str]) -> str:
    lines = "\n".join(part for part in parts if part).split("\n")
    if len(lines) > _MAX_LINES:
        left_out = len(lines) - _MAX_LINES + 1
        lines[_MAX_LINES - 6 : -5] = [f"  ... ({left_out} lines left out)"]
    return "\n".join(lines)
