"""Named tuples like those of `typing`, whose classes are much faster to make.

`typing.NamedTuple` and `collections.namedtuple` compile source and make a dozen functions for each
class, and a first program imports about a hundred of them. Here classes share the functions, and
constructors with equally many fields share their code except for the names.
"""

import functools
import sys
import types
from collections import namedtuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    if sys.version_info >= (3, 14):
        import annotationlib

    # The class of the descriptors of fields, which read an item by its index in C.
    _Field = type(namedtuple("Sample", ("field",)).field)

    class _NamedTupleClass(type):
        """The metaclass of named tuples, which turns annotations into fields."""

        def __new__(mcs, name, bases, namespace):
            # NamedTuple itself, and subclasses of classes that have fields, are ordinary classes.
            if bases == (tuple,) or any(getattr(base, "_fields", ()) for base in bases):
                return super().__new__(mcs, name, bases, namespace)
            fields = tuple(_annotations(namespace))
            defaults = {field: namespace.pop(field) for field in fields if field in namespace}
            if fields[len(fields) - len(defaults) :] != tuple(defaults):
                raise TypeError(f"a field of {name} without a default follows one that has one")
            code = _constructor(len(fields)).replace(co_varnames=("cls", *fields))
            new = types.FunctionType(code, {"new": tuple.__new__}, "__new__")
            new.__defaults__ = tuple(defaults.values()) or None
            new.__qualname__ = f"{namespace.get('__qualname__', name)}.__new__"
            made = {
                "__slots__": (),
                "__new__": new,
                "_fields": fields,
                "__match_args__": fields,
                "_field_defaults": defaults,
            }
            descriptors = zip(fields, map(_field, range(len(fields))), strict=True)
            return super().__new__(mcs, name, bases, {**namespace, **made, **dict(descriptors)})

    def _annotations(namespace):
        """Return the annotations in the body of a class."""
        if sys.version_info >= (3, 14):
            annotate = annotationlib.get_annotate_from_class_namespace(namespace)
            as_names = annotationlib.Format.FORWARDREF
            return annotationlib.call_annotate_function(annotate, as_names) if annotate else {}
        return namespace.get("__annotations__", {})

    @functools.cache
    def _field(index):
        """Return the descriptor of the field at an index, which classes share."""
        return _Field(index, f"Alias for field number {index}")

    @functools.cache
    def _constructor(count):
        """Return the code of `__new__` for classes with this many fields."""
        names = "".join(f"field{i}, " for i in range(count))
        return eval(f"lambda cls, {names}: new(cls, ({names}))").__code__.replace(co_name="__new__")

    class NamedTuple(tuple, metaclass=_NamedTupleClass):
        """A tuple whose items are also attributes, which subclasses annotate in order."""

        __slots__ = ()
        _fields: tuple[str, ...] = ()
        _field_defaults: dict[str, Any] = {}

        @classmethod
        def _make(cls, iterable):
            """Make a tuple of this class from its items."""
            return cls(*iterable)

        def _replace(self, /, **changes):
            """Return a tuple with some fields replaced.

            Raises:
              TypeError: if there is no such field.
            """
            return type(self)(**{**self._asdict(), **changes})

        __replace__ = _replace

        def _asdict(self):
            """Return a dictionary of the fields."""
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self):
            items = ", ".join(map("{}={!r}".format, self._fields, self))
            return f"{type(self).__name__}({items})"

        def __getnewargs__(self):
            return tuple(self)
