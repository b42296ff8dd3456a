"""Digests of programs, equal in every process for programs with equal lowerings.

Names of variables, source lines and the history of the process do not enter a digest. A value
without a canonical form, such as a user's function, leaves its program without a digest.
"""

import enum
import hashlib
import struct
from typing import Any, cast

import numpy as np

from hlofront.base.elements import ExtendedDType
from hlofront.base.module_names import home_of
from hlofront.bridge import state
from hlofront.core.aval import ShapedArray
from hlofront.core.jaxpr import ClosedJaxpr, Jaxpr, Literal
from hlofront.core.names import frontend_attributes_of, path_of
from hlofront.core.primitive import ALL, Primitive
from hlofront.core.programs.program_cache import once_per_program
from hlofront.core.rules import lower
from hlofront.core.sharding.mesh import AbstractMesh, Mesh
from hlofront.core.sharding.partition import PartitionSpec

ArrayImpl = state.ArrayImpl

# Parameters that lowering does not read, such as derivative rules, by primitive.
_unread: dict[Primitive, frozenset[str]] = {}

# Larger constants are arguments of an executable, and not part of its module.
LARGE_CONSTANT_BYTES = 1024


def not_lowered(primitive: Primitive, *parameters: str) -> None:
    """Register parameters of a primitive that its lowering does not read, for digests to skip."""
    _unread[primitive] = frozenset(parameters)


@once_per_program
def program_digest(program: ClosedJaxpr) -> str | None:
    """Return the SHA-256 of a program in hexadecimal, or None if a part has no canonical form.

    This is much faster than lowering.
    """
    writer = _Writer()
    try:
        writer.closed(program)
    except _NoCanonicalForm:
        return None
    return hashlib.sha256("\x1f".join(writer.parts).encode()).hexdigest()


class _NoCanonicalForm(Exception):
    """The exception for a value without a canonical form: only its identity distinguishes it."""


class _Writer:
    """A writer that appends the canonical text of programs to a list of strings."""

    __slots__ = ("parts", "programs")

    def __init__(self):
        self.parts: list[str] = []
        # The number of each program by id: a program that occurs several times is written once.
        self.programs: dict[int, int] = {}

    def closed(self, program: ClosedJaxpr) -> None:
        if self._seen(program):
            return
        self.parts.append("program")
        for const in program.consts:
            self._constant(const)
        self._jaxpr(program.jaxpr)

    def _seen(self, program: object) -> bool:
        number = self.programs.get(id(program))
        if number is not None:
            self.parts.append(f"program {number}")
            return True
        self.programs[id(program)] = len(self.programs)
        return False

    def _constant(self, const: Any) -> None:
        if isinstance(const, ArrayImpl):
            if const.nbytes > LARGE_CONSTANT_BYTES:
                raise _NoCanonicalForm("a large constant is an argument of the executable")
            const = np.asarray(const)
        self.value(const)

    def _jaxpr(self, jaxpr: Jaxpr) -> None:
        add = self.parts.append
        foreign = lower.foreign
        numbers: dict[Any, int] = {}
        for var in (*jaxpr.constvars, *jaxpr.invars):
            numbers[var] = len(numbers)
            add(_aval_text(var.aval))
        if jaxpr.effects:
            add(",".join(sorted(map(str, jaxpr.effects))))
        for equation in jaxpr.eqns:
            primitive = equation.primitive
            if primitive in foreign or ALL.get(primitive.name) is not primitive:
                raise _NoCanonicalForm(f"{primitive} or its lowering is not defined by hlofront")
            add(primitive.name)
            if equation.name_stack:
                self.value(path_of(equation.name_stack))
                self.value(frontend_attributes_of(equation.name_stack))
            for atom in equation.invars:
                if type(atom) is Literal:
                    self._literal(atom)
                else:
                    add(f"%{numbers[atom]}")
            params = equation.params
            if params:
                unread = _unread.get(primitive)
                for name in sorted(params):
                    if unread is None or name not in unread:
                        add(name)
                        self.value(params[name])
            add("->")
            for var in equation.outvars:
                numbers[var] = len(numbers)
                add(_aval_text(var.aval))
        add("returns")
        for atom in jaxpr.outvars:
            if type(atom) is Literal:
                self._literal(atom)
            else:
                add(f"%{numbers[atom]}")
        add("end")

    def _literal(self, atom: Literal) -> None:
        self.parts.append(_aval_text(atom.aval))
        self._constant(atom.val)

    def value(self, value: Any) -> None:
        """Write a parameter in a form that differs for unequal values.

        Raises:
          _NoCanonicalForm: for a value without a canonical form.
        """
        kind = cast("type[Any]", type(value))
        write = _WRITERS.get(kind)
        if write is not None:
            write(self, value)
        elif isinstance(value, np.dtype):
            self.parts.append(f"dtype {value}")
        elif isinstance(value, ExtendedDType):
            self.parts.append(f"dtype {_dtype_text(value)}")
        elif isinstance(value, enum.Enum):
            self.parts.append(f"{home_of(kind)}.{value}")
        elif isinstance(value, np.generic | np.ndarray):
            self._array(value)
        elif isinstance(value, Mesh):
            self.parts.append(f"{value!r} of {value.device_ids.tolist() if value.size else ()}")
        elif isinstance(value, AbstractMesh | PartitionSpec):
            self.parts.append(repr(value))
        elif hasattr(value, "mesh") and hasattr(value, "memory_kind"):  # a NamedSharding
            self._members((value.mesh, value.spec, value.memory_kind))
        elif _is_named_tuple(kind):
            self.parts.append(f"{home_of(kind)}.{kind.__qualname__}")
            self._members(value)
        elif kind is type and value.__module__ in ("builtins", "numpy", "ml_dtypes"):
            self.parts.append(f"{value.__module__}.{value.__qualname__}")
        else:
            raise _NoCanonicalForm(f"a parameter of type {kind}")

    def _plain(self, value: object) -> None:
        self.parts.append(repr(value))

    def _text(self, value: str) -> None:
        # The length is written because strings may contain the separator of parts.
        self.parts.append(f"'{len(value)}:{value}")

    def _bytes(self, value: bytes) -> None:
        self.parts.append(f"bytes {value.hex()}")

    def _float(self, value: float) -> None:
        self.parts.append(repr(value) if value == value else struct.pack("d", value).hex())

    def _complex(self, value: complex) -> None:
        self.parts.append("complex")
        self._float(value.real)
        self._float(value.imag)

    def _array(self, value: Any) -> None:
        # Arrays of objects or strings, and large arrays, have no canonical form.
        if value.dtype.kind in "OUS" or value.nbytes > LARGE_CONSTANT_BYTES:
            raise _NoCanonicalForm(f"an array of {value.nbytes} bytes of {value.dtype}")
        self.parts.append(f"{value.dtype}{value.shape} {value.tobytes().hex()}")

    def _members(self, values: Any) -> None:
        self.parts.append(f"{type(values).__name__} {len(values)}")
        for member in values:
            self.value(member)

    def _dict(self, values: dict[Any, Any]) -> None:
        self.parts.append(f"dict {len(values)}")
        for key, value in values.items():
            self.value(key)
            self.value(value)

    def _frozenset(self, values: frozenset[object]) -> None:
        self.parts.append("frozenset")
        self._members(sorted(values, key=repr))

    def _open(self, value: Jaxpr) -> None:
        if not self._seen(value):
            self._jaxpr(value)

    def _aval(self, value: ShapedArray) -> None:
        self.parts.append(_aval_text(value))


# pyright: reportPrivateUsage=false
_WRITERS: dict[Any, Any] = {
    type(None): _Writer._plain,
    bool: _Writer._plain,
    int: _Writer._plain,
    str: _Writer._text,
    bytes: _Writer._bytes,
    float: _Writer._float,
    complex: _Writer._complex,
    tuple: _Writer._members,
    list: _Writer._members,
    dict: _Writer._dict,
    frozenset: _Writer._frozenset,
    ClosedJaxpr: _Writer.closed,
    Jaxpr: _Writer._open,
    ShapedArray: _Writer._aval,
}


def _is_named_tuple(kind: Any) -> bool:
    return tuple in kind.__mro__ and hasattr(kind, "_fields")


def _aval_text(aval: object) -> str:
    if type(aval) is not ShapedArray:
        raise _NoCanonicalForm(f"a value of type {aval}")
    if isinstance(aval.dtype, ExtendedDType):
        return f"{_dtype_text(aval.dtype)}{aval.shape}{aval.split or ''}{aval.manual_axis_type}"
    return aval.str_short() if aval.mesh is None else f"{aval.str_short()} of {aval.mesh}"


def _dtype_text(dtype: ExtendedDType) -> str:
    text = dtype.canonical
    if text is None:
        raise _NoCanonicalForm(f"{dtype}, which is another dtype in another process")
    return text
