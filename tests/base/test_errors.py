"""Exceptions: the classes and their hierarchy, and messages that show the user's own lines."""

import copy
import pickle

import numpy as np
import pytest

from hlofront import errors as door
from hlofront.base import errors, source
from hlofront.base.errors import HlofrontError
from hlofront.bridge import state
from tests.base import fake_library as fake

# ---- classes ---------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.parametrize(
    "name, parents",
    {
        "JAXTypeError": ["TypeError"],
        "JAXIndexError": ["IndexError", "LookupError"],
        "ConcretizationTypeError": ["JAXTypeError", "TypeError"],
        "TracerBoolConversionError": ["ConcretizationTypeError", "JAXTypeError", "TypeError"],
        "TracerArrayConversionError": ["JAXTypeError", "TypeError"],
        "TracerIntegerConversionError": ["JAXTypeError", "TypeError"],
        "NonConcreteBooleanIndexError": ["JAXIndexError", "IndexError", "LookupError"],
        "UnexpectedTracerError": ["JAXTypeError", "TypeError"],
        "KeyReuseError": ["JAXTypeError", "TypeError"],
        "JaxprTypeError": ["TypeError"],
        "InconclusiveDimensionOperation": [],
        "ShardingTypeError": [],
        "TypePromotionError": ["ValueError"],
        "TracerLeakError": [],
        "VerificationError": ["ValueError"],
        "NoRuleError": ["NotImplementedError", "RuntimeError"],
        "NoEngineError": ["RuntimeError"],
    }.items(),
)
def test_hierarchy(name, parents):
    cls = getattr(errors, name)
    above = [base.__name__ for base in cls.__mro__[1:]]
    assert [base for base in above if base != "HlofrontError"] == [
        *parents, "Exception", "BaseException", "object"
    ]  # fmt: skip
    assert issubclass(cls, HlofrontError)
    assert name in errors.__doc__


def test_the_door_has_jax_names():
    for name in (
        "ConcretizationTypeError InconclusiveDimensionOperation JAXIndexError JAXTypeError "
        "JaxRuntimeError JaxprTypeError KeyReuseError NonConcreteBooleanIndexError "
        "TracerArrayConversionError TracerBoolConversionError TracerIntegerConversionError "
        "UnexpectedTracerError"
    ).split():
        assert getattr(door, name) is getattr(errors, name)
    assert door.JaxRuntimeError is state.JaxRuntimeError


def test_classes_are_known_by_their_public_names():
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, HlofrontError):
            assert value.__module__ == "hlofront.errors"
            assert getattr(door, name) is value

    class Theirs(HlofrontError):
        pass

    assert Theirs.__module__ == __name__


def test_errors_survive_pickling_and_copying():
    error = errors.TracerBoolConversionError(fake.DescribedTracer(()))
    error.add_note("a note")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (str(again), again.__notes__) == (str(error), ["a note"])


@pytest.mark.parametrize("name", ["UnexpectedTracerError", "KeyReuseError", "NoEngineError"])
def test_errors_that_take_a_message(name):
    assert str(getattr(errors, name)("what went wrong")) == "what went wrong"


def test_missing_rule_names_its_home():
    home = "hlofront/primitives/arrays/cumulative.py"
    error = errors.missing_rule("cumsum", "batch", home, "Batching rule")
    assert type(error) is errors.NoRuleError
    assert str(error) == (
        "Batching rule for 'cumsum' not implemented: "
        "add @batch(cumsum_p) in hlofront/primitives/arrays/cumulative.py"
    )
    assert "where the primitive is defined" in str(errors.missing_rule("mine", "jvp"))


# ---- the value of a traced array was asked for -----------------------------------------------


def message_of(kind, function, *args):
    with pytest.raises(kind) as caught:
        function(*args)
    assert type(caught.value) is kind
    text = str(caught.value)
    assert len(text.split("\n")) <= 20
    assert all(len(line) <= 120 for line in text.split("\n")[1:])
    return text


def test_concretization_says_what_where_why_and_the_fix():
    def model(x):
        return float(x)

    text = message_of(errors.ConcretizationTypeError, model, fake.DescribedTracer(()))
    line = model.__code__.co_firstlineno + 1
    assert text == (
        "Abstract tracer value encountered where concrete value is expected: "
        "traced array with shape float32[].\n"
        f"  at {source.shown_path(__file__)}:{line} in model:  return float(x)\n"
        "The problem arose with the `float` function.\n"
        "The error occurred while tracing the function f at model.py:3 for jit.\n"
        "This concrete value was not available in Python because it depends on the value of the "
        "argument x['a'].\n"
        "  Fix: compute with jnp functions, which take traced arrays; or, if it depends on an "
        "argument\n"
        "       that steers Python and takes few values, mark that one with static_argnums of jit."
    )


def branch(x):
    if x:
        return 1


def loop(x):
    while x:
        pass


def both(x):
    return x and 1


def negation(x):
    return not x


def claim(x):
    assert x


@pytest.mark.parametrize(
    "function, advised, not_advised",
    [
        (branch, ["jnp.where", "lax.cond"], ["while_loop", "checkify"]),
        (loop, ["lax.while_loop"], ["lax.cond", "checkify"]),
        (both, ["&, |, ~"], ["lax.cond"]),
        (negation, ["&, |, ~"], ["lax.cond"]),
        (claim, ["checkify.check"], ["lax.cond"]),
        (bool, ["jnp.where", "while_loop", "&, |, ~"], []),
    ],
)
def test_the_fix_for_a_condition_fits_the_statement(function, advised, not_advised):
    text = message_of(errors.TracerBoolConversionError, function, fake.Tracer((), "bool"))
    assert text.startswith("Attempted boolean conversion of traced array with shape bool[].\n")
    assert "static_argnums" in text
    for words in advised:
        assert words in text
    for words in not_advised:
        assert words not in text


def test_other_conversions():
    x = fake.DescribedTracer((3,))
    text = message_of(errors.TracerArrayConversionError, np.asarray, x)
    assert "__array__() was called on traced array with shape float32[3]" in text
    assert "argument x['a']" in text and "pure_callback" in text
    text = message_of(errors.TracerIntegerConversionError, [1, 2].__getitem__, x)
    assert "__index__() method was called on traced array with shape float32[3]" in text
    assert "lax.fori_loop" in text
    mask = fake.Aval((3,), "bool")
    text = message_of(errors.NonConcreteBooleanIndexError, x.take, mask)
    assert text.startswith("Array boolean indices must be concrete; got bool[3].\n")
    assert "jnp.where" in text and "size=n" in text


def test_tracers_may_know_nothing_of_themselves():
    # This one raises NoEngineError for every attribute that it lacks.
    assert "float32[2]" in message_of(errors.ConcretizationTypeError, float, fake.Tracer((2,)))
    for value in (object(), None, 3, "an array"):
        assert "expected" in str(errors.ConcretizationTypeError(value))
    assert "a value of type object" in str(errors.TracerBoolConversionError(object()))


def test_origin_helpers():
    def f():
        return source.current()

    at = f"{source.shown_path(__file__)}:{f.__code__.co_firstlineno}"
    assert errors.traced_function(f, "jit") == f"f at {at} for jit"
    many = errors.depends_on_arguments("f for jit", list("abcdefg"))
    assert many.endswith("depends on the value of the arguments a, b, c, d, e and 2 more.")
    made = errors.made_by_operations("f for jit", [("mul", None), ("add", f())])
    assert made.split("\n")[1:3] == [
        "This value became a tracer due to operations on these lines:",
        "  mul",
    ]
    assert made.endswith(" in f:  return source.current()")
    assert "became" not in errors.made_by_operations("f for jit", [])
    assert made.count("\n") == 3
    assert errors.made_by_operations("f", [("add", f())] * 50).count("\n") == 6


def test_leaked_tracer():
    x = fake.ones(3)
    text = str(errors.leaked_tracer(x, "f at model.py:3 for jit"))
    assert text.startswith("Encountered an unexpected tracer: a traced array of type float32[3] ")
    assert "traced when the value leaked was f at model.py:3 for jit." in text
    assert "The value was made at " in text and "x = fake.ones(3)" in text
    assert "checking_leaks" in text
    text = str(errors.leaked_tracer(fake.Tracer((), argument="argument y of f")))
    assert "The value is argument y of f." in text and "being traced" not in text
    assert type(errors.leaked_tracer(None)) is errors.UnexpectedTracerError


# ---- operands that do not fit ----------------------------------------------------------------


def table_of(function, *args, kind=TypeError):
    """The lines below the headline, with this file's path shortened, and without the fix."""
    text = message_of(kind, function, *args).replace(source.shown_path(__file__), "model.py")
    lines = text.split("\n")[1:]
    return [line for line in lines if not line.startswith(("  Fix:", "       "))]


@pytest.mark.smoke
def test_a_mismatch_shows_operation_operands_and_lines():
    def loss(y):
        x = fake.ones(3)
        return x + y

    text = message_of(TypeError, loss, fake.Tracer((4,), argument="argument y of loss"))
    line = loss.__code__.co_firstlineno
    place = source.shown_path(__file__)
    assert text == (
        "add got incompatible shapes: (3,), (4,).\n"
        f"  x + y        at {place}:{line + 2} in loss\n"
        f"  x : f32[3]   from {place}:{line + 1} in loss:  x = fake.ones(3)\n"
        "  y : f32[4]   argument y of loss"
    )


@pytest.mark.parametrize("shapes", [((3,), (4,)), ((2,), (2,))])
def test_operands_are_named_by_identity(shapes):
    left, right = map(fake.Tracer, shapes)

    def swapped():
        return call_swapped(left, y=right)

    def call_swapped(x, y):
        fake.add(*reversed([x, y]))

    # Only the innermost user frame is looked at, and there it says fake.add(*...).
    assert "operand 0" in table_of(swapped)[1]

    def in_order(a, b):
        return fake.call_without_boundary(lambda x, y: fake.add(y, x), a, b)

    def reflected(a, b):
        return b + a

    rows = table_of(in_order, left, right)
    assert rows[1].startswith("  y : ") and rows[2].startswith("  x : ")
    rows = table_of(reflected, left, right)
    assert rows[1].startswith("  b : ") and rows[2].startswith("  a : ")


def test_operands_that_were_converted_are_named_by_position_where_they_could_be():
    x, y = fake.ones(3), fake.ones(4)
    assert table_of(lambda: fake.add_converted(x, y))[1].startswith("  x : f32[3]   from ")

    def other_values(x, y):
        fake.norm(x, y)

    def of_expressions(x, y):
        fake.norm(max(x, x, key=id), max(y, y, key=id))

    for function in (other_values, of_expressions):
        rows = table_of(function, x, y)
        assert rows[1].startswith("  operand 0 : f32[7]   from ")
        assert rows[2].startswith("  operand 1 : f32[8]   from ")


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x, y, many: x.dot(y), ["x", "y"]),
        (lambda x, y, many: x.dot(other=y), ["x", "y"]),
        (lambda x, y, many: fake.add(x=x, y=y), ["x", "y"]),
        (lambda x, y, many: x + fake.ones(4), ["x", "fake.ones(4)"]),
        (lambda x, y, many: fake.ones(3) + fake.ones(4), ["fake.ones(3)", "fake.ones(4)"]),
        (lambda x, y, many: many["w"] + many["list"][0], ['many["w"]', 'many["list"][0]']),
        (lambda x, y, many: many["holder"].w + x, ['many["holder"].w', "x"]),
        (lambda x, y, many: fake.add_converted(x, y, lambda: 1, f"{x}", {1}), ["x", "y"]),
        (lambda x, y, many: x + 1.5, ["x", "1.5"]),
        (lambda x, y, many: 2 + x, ["x", "2"]),
        (lambda x, y, many: fake.concatenate([x, y, x], dimension=1), ["x", "y", "x"]),
        (lambda x, y, many: fake.concatenate((x, *many["list"])), ["operand 0", "operand 1"]),
    ],
)
def test_operands_as_written(call, expected):
    class Holder:
        def __init__(self):
            self.w = fake.Tracer((9,))

    many = {"w": fake.Tracer((5,)), "list": [fake.Tracer((6,))], "holder": Holder()}
    rows = table_of(call, fake.Tracer((3,)), fake.Tracer((4,)), many)[1:]
    assert [row.split(" : ")[0].strip() for row in rows] == expected


def test_augmented_assignment():
    def loss(x, y):
        x += y

    rows = table_of(loss, fake.Tracer((3,)), fake.Tracer((4,)))
    assert rows[0].startswith("  x += y ")
    assert [row[2] for row in rows[1:]] == ["x", "y"]


def test_looking_at_operands_runs_no_code_of_the_user():
    class Model:
        runs = 0

        @property
        def weight(self):
            self.runs += 1
            return fake.Tracer((5,))

        def __getattr__(self, name):
            raise RuntimeError(name)

    model = Model()
    table_of(lambda: model.weight + fake.ones(3))
    assert model.runs == 1


def test_objects_of_the_user_are_not_asked_for_their_shapes():
    class Closed:
        @property
        def shape(self):
            raise RuntimeError("closed")

    dataset = Closed()

    def read(dataset, x):
        return x

    def add(x):
        fake.add_converted(x, read(dataset, x))

    def handed_on(x):
        fake.call_without_boundary(lambda other, _: fake.add(x, 1), dataset, x)

    for function in (add, handed_on):
        assert "x : f32[3]" in " ".join(table_of(function, fake.ones(3))[1].split())


A_CONSTANT = np.ones(5)


def test_concrete_operands():
    weight = np.eye(2)

    def loss(x, y, again):
        z = np.ones(4)
        if y is None:
            choice = np.ones(7)
        else:
            choice = np.ones(8)
        again = again * 2
        for each in [np.ones(9)]:
            for f in (
                lambda: fake.add(x, z),
                lambda: fake.add(weight, A_CONSTANT),
                lambda: fake.add(choice, again),
                lambda: [fake.add(one, each) for one in [np.ones(6)]],
            ):
                found.append(table_of(f)[1:])

    found = []
    loss(np.ones(3, np.float32), None, np.ones(2))
    start = loss.__code__.co_firstlineno
    here = "test_concrete_operands"
    constant = line_of("A_CONSTANT =")
    assert [[" ".join(row.split()) for row in rows] for rows in found] == [
        [
            "x : f32[3] (NumPy) argument x of loss",
            f"z : f64[4] (NumPy) from model.py:{start + 1} in loss: z = np.ones(4)",
        ],
        [
            f"weight : f64[2,2] (NumPy) from model.py:{start - 2} in {here}: weight = np.eye(2)",
            f"A_CONSTANT : f64[5] (NumPy) from model.py:{constant}: A_CONSTANT = np.ones(5)",
        ],
        [
            f"choice : f64[7] (NumPy) from model.py:{start + 3} or {start + 5} in loss",
            f"again : f64[2] (NumPy) argument again of loss, set again at line {start + 6}",
        ],
        [
            f"one : f64[6] (NumPy) from model.py:{start + 12}: {line_at(start + 12)}",
            f"each : f64[9] (NumPy) from model.py:{start + 7} in loss: {line_at(start + 7)}",
        ],
    ]


def line_of(text):
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if line.startswith(text))


def line_at(number):
    with open(__file__) as file:
        return source.shortened(file.read().split("\n")[number - 1])


def test_names_that_are_not_the_functions_own():
    def loss():
        nonlocal captured
        global A_CONSTANT
        captured = np.ones(2)
        found.append(table_of(lambda: fake.add(captured, A_CONSTANT)))
        fake.add(captured, A_CONSTANT)

    found = []
    captured = None
    table = table_of(loss)
    for rows in (found[0], table):
        assert "set again" not in rows[1] and "from model.py:" in rows[1]
        assert rows[2].endswith(
            f" from model.py:{line_of('A_CONSTANT =')}:  A_CONSTANT = np.ones(5)"
        )
    lines = line_of("    captured = None"), loss.__code__.co_firstlineno + 3
    assert f":{lines[1]} or {lines[0]} in test_names_that" in table[1]

    def default(A_CONSTANT=A_CONSTANT):
        return fake.add(A_CONSTANT, 1)

    assert table_of(default)[1].endswith("argument A_CONSTANT of default")


def test_add_operands_replaces_avals_and_keeps_the_first_that_knows():
    def loss(x, y):
        return fake.infer_then_explain(x, y)

    x, y = fake.Tracer((3,)), fake.Tracer((4,), argument="argument y of loss")
    text = message_of(TypeError, loss, x, y)
    assert text.startswith("mul got bad shapes.\n  fake.infer_then_explain(x, y) ")
    assert "  x : f32[3]" in text and "  y : f32[4]" in text and "argument y of loss" in text
    assert text.count("argument y of loss") == 1
    assert "outer" not in text and text.count("got bad shapes") == 1


def test_add_operands_to_a_plain_error():
    def loss(x):
        return fake.plain_rule(x)

    rows = message_of(ValueError, loss, fake.ones(2, 3)).split("\n")
    assert rows[0] == "axis 3 is out of bounds"
    assert rows[1].startswith("  fake.plain_rule(x) ") and rows[2].startswith("  x : f32[2,3] ")


@pytest.mark.parametrize(
    "error",
    [
        errors.NoRuleError("no rule"),
        KeyError(3),
        TypeError(),
        TypeError("a", "b"),
        UnicodeDecodeError("utf-8", b"a", 0, 1, "bad"),
    ],
)
def test_add_operands_leaves_other_errors_alone(error):
    before = error.args
    assert errors.add_operands(error, "add", [1, 2]) is error
    assert error.args is before


def test_argument_table_without_operands():
    assert errors.argument_table("f", []).count("\n") == 0
    assert str(errors.add_operands(TypeError("f got nothing."), "f", [])) == "f got nothing."


def test_always_at_most_one_screen():
    operands = [fake.Tracer((3,) * 40) for _ in range(100)]
    error = TypeError("concatenate got " + "lines\n" * 90)
    text = str(errors.add_operands(error, "concatenate", operands))
    assert len(text.split("\n")) <= 20
    assert "lines left out" in text
    table = errors.argument_table("concatenate", operands)
    assert len(table.split("\n")) == 10 and table.endswith("... and 92 more")


def test_source_that_is_not_at_hand():
    exec("def f(x, y):\n  return x + y", names := {})
    rows = table_of(names["f"], fake.ones(3), fake.Tracer((4,)))
    assert rows[0].startswith("  add ") and "at <string>:2 in f" in rows[0]
    assert rows[1].startswith("  operand 0 : f32[3]   from model.py:")
    assert rows[2] == "  operand 1 : f32[4]"


@pytest.mark.parametrize(
    "value, text",
    [
        (np.ones((2, 0), np.float16), "f16[2,0] (NumPy)"),
        (np.uint8(3), "u8[] (NumPy)"),
        (np.ones(2, bool), "bool[2] (NumPy)"),
        (np.ones(2, np.complex64), "c64[2] (NumPy)"),
        (True, "Python bool"),
        (3j, "Python complex"),
        (fake.Aval((3,), "float32", True), "f32[3] (weak)"),
        (fake.Tracer(()), "f32[]"),
        ([1], "a value of type list"),
    ],
)
def test_how_operands_are_described(value, text):
    assert errors.argument_table("f", [value]).split("\n")[1].startswith(f"  value : {text}  ")


def test_short_dtype_names():
    import ml_dtypes

    for dtype, short in [
        (ml_dtypes.bfloat16, "bf16"),
        (ml_dtypes.float8_e4m3fn, "f8_e4m3fn"),
        (ml_dtypes.int4, "i4"),
        (np.uint32, "u32"),
    ]:
        row = errors.argument_table("f", [np.zeros(1, dtype)]).split("\n")[1]
        assert f" : {short}[1] (NumPy)" in row
