"""Stands in for the layers above: tracers, operations and a jit, whose frames count as ours."""

from hlofront.base import errors, source
from hlofront.base.boundary import boundary

source.register_exclusion(__file__)


class Aval:
    def __init__(self, shape, dtype="float32", weak_type=False):
        self.shape = shape
        self.dtype = dtype
        self.weak_type = weak_type

    def str_short(self, short_dtypes=False):
        name = self.dtype.replace("float", "f").replace("bool", "bool")
        sizes = ",".join(map(str, self.shape))
        return f"{name if short_dtypes else self.dtype}[{sizes}]"


class Tracer:
    __slots__ = ("_origin_argument", "_origin_traceback", "aval")

    def __init__(self, *aval, argument="", traceback=None):
        self.aval = Aval(*aval)
        self._origin_argument = argument
        self._origin_traceback = traceback

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise errors.NoEngineError(f"{name} is not plugged in")

    def __add__(self, other):
        return add(self, other)

    __radd__ = __iadd__ = __add__

    def __bool__(self):
        raise errors.TracerBoolConversionError(self)

    def __float__(self):
        raise errors.ConcretizationTypeError(self, "The problem arose with the `float` function.")

    def __index__(self):
        raise errors.TracerIntegerConversionError(self)

    def __array__(self, *_, **__):
        raise errors.TracerArrayConversionError(self)

    def take(self, mask):
        raise errors.NonConcreteBooleanIndexError(mask)

    def dot(self, other):
        return add(self, other)


class DescribedTracer(Tracer):
    __slots__ = ()

    def _origin_message(self):
        return errors.depends_on_arguments("f at model.py:3 for jit", ["x['a']"])


def ones(*shape):
    """A tracer that knows the line that made it."""
    return Tracer(shape, traceback=source.current())


def add(x, y):
    shapes = ", ".join(str(getattr(each, "shape", ())) for each in (x, y))
    error = TypeError(f"add got incompatible shapes: {shapes}.")
    raise errors.add_operands(error, "add", [x, y])


def add_converted(x, y, *options):
    """Hands on other objects than it was given, as an operation that promotes its operands does."""
    add(Tracer(x.shape), Tracer(y.shape))


def norm(x, y):
    """Calls an operation on values of its own making."""
    add(ones(7), ones(8))


def concatenate(operands, *, dimension=0):
    error = TypeError("concatenate got different ranks.")
    raise errors.add_operands(error, "concatenate", operands)


def infer_then_explain(x, y):
    """A rule that knows avals alone, called by a trace that knows the operands."""
    try:
        raise errors.add_operands(TypeError("mul got bad shapes."), "mul", [x.aval, y.aval])
    except TypeError as error:
        errors.add_operands(error, "mul", [x, y])
        errors.add_operands(error, "outer", [Tracer(()), Tracer(())])
        raise


def plain_rule(x):
    try:
        raise ValueError("axis 3 is out of bounds")
    except ValueError as error:
        errors.add_operands(error, "cumsum", [x])
        raise


class jit:
    """Calls the function that it wraps through frames of ours."""

    def __init__(self, function):
        self.function = function

    @boundary
    def __call__(self, *args):
        return self._trace(*args)

    def _trace(self, *args):
        return self.function(*args)


@boundary
def fail():
    raise TypeError("no such thing")


@boundary
def fail_from_cause():
    try:
        {}["missing"]
    except KeyError as error:
        raise TypeError("no such key") from error


@boundary
def fail_after_handling():
    try:
        {}["missing"]
    except KeyError:
        raise TypeError("no such key")  # noqa: B904


@boundary
def fail_on_errors_of(function):
    try:
        function()
    except ZeroDivisionError:
        raise TypeError("the function failed")  # noqa: B904


@boundary
def call(function, *args):
    return function(*args)


def call_without_boundary(function, *args):
    return function(*args)
