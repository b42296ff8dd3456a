"""Why results of a drawn program may differ: where jax stumbles, and where hlofront is stricter.

An excuse names the error of the side that refuses, by class and text, and what a program must have
for it: steps, a planted mistake. Where an excuse says what hlofront does instead, it is run for it.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import Any
from unittest import mock

import hlofront
from hlofront.higher_order.custom_rules import custom_vjp_call
from tests.against_jax.fuzz import quirks, running
from tests.against_jax.fuzz.quirks import Imitation, Imitations

# What came out of a program in one mode.
Outcome = dict[str, Any]
# (program, mode, what the side gives that does not refuse) -> whether the excuse holds.
Check = Callable[[dict[str, Any], str, Outcome], bool]

CUSTOM_RULES = {
    "custom_jvp",
    "custom_vjp",
    "custom_jvp_closure",
    "custom_vjp_closure",
    "custom_over_mapped",
    "closed_by_vmap",
}
CUSTOM_VMAPS = {"custom_vmap_closure", "custom_vmap_of_vmap"}
NO_FORWARD = "can't apply forward-mode autodiff (jvp) to a custom_vjp function"
NO_INDEX = "'float' object cannot be interpreted as an integer"
NO_PLACE = "Detected differentiation of a custom_jvp function with respect to a closed-over value"


def steps_of(program: dict[str, Any]) -> set[str]:
    """The names of a program's steps, with those of bodies, and of its layers."""
    names = {layer[0] for layer in program["layers"]}
    steps = list(program["steps"])
    for name, _, bodies, *_ in steps:
        names.add(name)
        steps += [step for body in bodies for step in body]
    return names


def has_mistake(program: dict[str, Any]) -> bool:
    """Whether a mistake was planted into a step or a layer."""

    def in_steps(steps: list[Any]) -> bool:
        return any(len(step) > 3 or any(map(in_steps, step[2])) for step in steps)

    return in_steps(program["steps"]) or any(len(layer) > 2 for layer in program["layers"])


def without_mistakes(program: dict[str, Any]) -> dict[str, Any]:
    """The program without the mistakes that were planted into its steps and layers."""

    def corrected(steps: list[Any]) -> list[Any]:
        return [
            [name, seed, [corrected(body) for body in bodies]] for name, seed, bodies, *_ in steps
        ]

    layers = [layer[:2] for layer in program["layers"]]
    return {**program, "steps": corrected(program["steps"]), "layers": layers}


def always(*_: Any) -> bool:
    return True


def raises(error: str, text: str) -> Check:
    """Whether the other side refuses as well, with this class and text."""
    return lambda program, mode, other: error in other.get("error", ()) and text in other["message"]


@dataclasses.dataclass(frozen=True)
class Excuse:
    """Why one side may raise an error where the other does something else.

    Attributes:
      error: the error's class.
      text: a regular expression that its message contains.
      steps: one of these the program has; none where any program may be concerned.
      planted: whether the program must have a planted mistake.
      holds: looks at what the other side gives.
    """

    error: str
    text: str
    steps: frozenset[str] = frozenset()
    planted: bool = False
    holds: Check = always

    def covers(self, program: dict[str, Any], mode: str, refused: Outcome, other: Outcome) -> bool:
        return (
            self.error in refused.get("error", ())
            and re.search(self.text, refused["message"]) is not None
            and (not self.steps or not self.steps.isdisjoint(steps_of(program)))
            and (not self.planted or has_mistake(program))
            and self.holds(program, mode, other)
        )


def excuse(error: str, text: str, steps: set[str] = frozenset(), **options: Any) -> Excuse:
    return Excuse(error, text, frozenset(steps), **options)


def derives_custom_vjp(program: dict[str, Any], mode: str, other: Outcome) -> bool:
    """Whether hlofront raises an error as well, or derives a custom_vjp function.

    What it derives forward, and something reads, it refuses to run or lower; jax refuses all.
    """
    if "error" in other:
        return True
    primitive = mock.Mock(wraps=custom_vjp_call.custom_lin_p)
    with mock.patch.object(custom_vjp_call, "custom_lin_p", primitive):
        running.described(program, hlofront)
    return bool(primitive.bind.called)


def derives_optimized_remat(program: dict[str, Any], mode: str, other: Outcome) -> bool:
    """Whether hlofront derives a function with optimize_remat, or refuses to derive it forward."""
    if "error" in other and not raises("TypeError", NO_FORWARD)(program, mode, other):
        return False
    with mock.patch.object(
        hlofront.custom_vjp, "defvjp", autospec=True, side_effect=hlofront.custom_vjp.defvjp
    ) as defvjp:
        running.described({**program, "modes": [mode]}, hlofront)
    return any(call.kwargs.get("optimize_remat") for call in defvjp.call_args_list)


def staged_text(program: dict[str, Any]) -> str:
    """The program as hlofront writes it down; "" if it does not."""
    staged = running.described({**program, "modes": ["equations"]}, hlofront)["equations"]
    return staged.get("text", "")


# jax raises these errors, and hlofront need not.
STUMBLES = (
    # hlofront calls it by its name.
    excuse(
        "NotImplementedError",
        "^Differentiation rule for 'custom_lin' not implemented",
        CUSTOM_RULES,
        holds=raises("TypeError", NO_FORWARD),
    ),
    excuse("TypeError", f"^{re.escape(NO_FORWARD)}", CUSTOM_RULES, holds=derives_custom_vjp),
    # The tangents of optimize_remat are those of a call whose rule is not known forward, either,
    # and have no derivative in reverse.
    excuse(
        "ValueError",
        "^Linearization failed to produce known values",
        {"custom_vjp"},
        holds=derives_optimized_remat,
    ),
    # It types operations on numbers of 64 bits anew outside of the block under enable_x64.
    excuse(
        "TypeError",
        "requires arguments to have the same dtypes, got uint32, uint64",
        {"jit_under_options", "under_option"},
        holds=lambda program, mode, other: "error" in other,
    ),
    # A custom_vmap function whose result nothing reads has no derivative that could be missing.
    excuse("ValueError", "^Linearization failed to produce known values", CUSTOM_VMAPS),
    # Second derivatives of the greatest and least numbers of windows: with jax there are none.
    excuse("ValueError", "^Linearization failed to produce known values", {"combining"}),
    excuse("NotImplementedError", "^Differentiation rule for 'pm(ax|in)'", {"collective"}),
    # Of its own sizes and indices: a batch of no elements, for one.
    excuse("ZeroDivisionError", "^integer modulo by zero$"),
    excuse("IndexError", "^tuple index out of range$"),
    # It looks at the first of the arrays of an associative_scan that has none.
    excuse(
        "IndexError",
        "^list index out of range$",
        {"combining"},
        planted=True,
        holds=raises("ValueError", "requires at least one array"),
    ),
    # Its lowering fails: of what a block under enable_x64 returned, for one.
    excuse(
        "ValueError",
        "^Cannot lower jaxpr with verifier errors",
        {"under_option", "jit_under_options"},
    ),
    # A checkpoint whose policy saves complex numbers, outside jit.
    excuse(
        "TypeError",
        "reduce_precision does not accept dtype complex",
        {"checkpoint", "checkpointed_loop"},
    ),
    # It refuses a flag that cannot be hashed, such as `unique_indices=[]`; we take its truth.
    excuse("ValueError", "must have __hash__ and __eq__ methods", planted=True),
    excuse("TypeError", "must have __hash__ and __eq__ methods", planted=True),
    excuse("TypeError", "^unhashable type: 'list'$", planted=True),
    excuse("ValueError", r"an object of type <class 'list'>, \[\]\. The error was", planted=True),
    # It hashes the options of its jitted functions before it looks at an axis that is a list.
    excuse(
        "ValueError",
        "^Non-hashable static arguments are not supported",
        planted=True,
        holds=raises("TypeError", "an axis must be an integer"),
    ),
    # A text for a result of matvec has the shape () for it, and is no value for hlofront.
    excuse(
        "ValueError",
        r"^matvec\(\) output shapes must match b",
        planted=True,
        holds=raises("TypeError", "is not a valid JAX type"),
    ),
    # Rules over a mapped value run after vmap with hlofront; with jax the value has escaped.
    excuse(
        "UnexpectedTracerError",
        "wrapped in a BatchTracer to escape the scope",
        {"closed_by_vmap", "custom_over_mapped"},
    ),
    excuse(
        "TypeError",
        r"^No constant handler for type: .*\.(Batch|DynamicJaxpr)Tracer",
        {"closed_by_vmap", "custom_over_mapped"},
    ),
    # Its transpose of an all_to_all of two axes, where the derivative is taken inside of vmap.
    excuse("ValueError", "^Expected cotangent type", {"collective"}),
    # The value that has escaped meets one without the mapped axis in the sum of tangents.
    excuse(
        "TypeError",
        r"^add: arrays must have the same number of dimensions, got \{\d, \d\}",
        {"closed_by_vmap", "custom_over_mapped"},
    ),
    # Its `.at[].apply` has no derivative, even one of zero.
    excuse("NotImplementedError", "^scatter_apply JVP not implemented", {"updated"}),
    # A custom_vmap function that closes over a mapped value: jax asserts that no flag is set.
    excuse("AssertionError", r"^\[((True|False)(, )?)*\]$", CUSTOM_VMAPS),
    # Its jacfwd asks for a value that is not mapped, and its rule for windows maps it.
    excuse(
        "ValueError",
        r"^at vmap out_axes\[0\].*got axis spec None but output was batched",
        {"combining"},
    ),
    excuse("NotImplementedError", "^remat optimization for custom_vjp does not", {"custom_vjp"}),
    # int() of a text that is no number; with us a text is no index, whatever it says.
    excuse(
        "ValueError",
        r"^invalid literal for int\(\)",
        planted=True,
        holds=raises("TypeError", "cannot be interpreted as an integer"),
    ),
    # It asks NumPy for the shape of a list of traced values.
    excuse(
        "TracerArrayConversionError",
        r"__array__\(\) was called on traced array",
        planted=True,
        holds=raises("TypeError", "is not a valid array operand"),
    ),
    # It unpacks what a rule of custom_vmap returns, whatever that is.
    excuse(
        "TypeError",
        "^cannot unpack non-iterable",
        CUSTOM_VMAPS,
        planted=True,
        holds=raises("ValueError", "must return a pair"),
    ),
    # It takes a text as axes with names of one letter; with us it is one name.
    excuse(
        "ValueError",
        r"^duplicate value in 'axis': \('",
        {"reduction"},
        planted=True,
        holds=raises("NameError", "unbound axis name"),
    ),
    excuse(
        "ValueError",
        r"^duplicate value in 'axis': \('",
        {"reduction"},
        planted=True,
        holds=raises("NotImplementedError", "has no named axes"),
    ),
    # It takes a float as an axis that it then looks for in a list.
    excuse(
        "IndexError",
        "^list assignment index out of range$",
        planted=True,
        holds=raises("TypeError", "an axis must be an integer"),
    ),
    # It takes a float as an axis of cumulative sums, without its fraction.
    excuse(
        "ValueError",
        r"^axis \d+ is out of bounds for array of shape",
        {"reduction"},
        planted=True,
        holds=raises("TypeError", NO_INDEX),
    ),
    # It reverses before it looks at whether there is the axis.
    excuse(
        "TypeError",
        "^rev dimensions must have every element be nonnegative",
        planted=True,
        holds=raises("AxisError", "out of bounds"),
    ),
    # An operation of hlofront is called by jaxlib, which hashes options before it calls Python.
    excuse(
        "TypeError",
        "positional arguments? but",
        planted=True,
        holds=raises("ValueError", "Non-hashable static arguments"),
    ),
)


def same_without_refusal(program: dict[str, Any], mode: str, wanted: Outcome) -> bool:
    """Whether hlofront gives what jax gives once it drops the derivative that jax drops."""
    drops = (quirks.dropped_derivatives, quirks.unread_derivatives)
    return any(same_under(imitation, program, mode, wanted) for imitation in drops)


def same_under(imitation: Imitation, program: dict[str, Any], mode: str, wanted: Outcome) -> bool:
    """Whether hlofront gives what jax gives while it imitates a quirk of jax."""
    from tests.against_jax.fuzz import shrinking  # the comparer imports this module

    with imitation():
        found = running.described({**program, "modes": [mode]}, hlofront)
    return not shrinking.difference(program, found, {mode: wanted}, imitations=())


def excused_by_quirk(
    program: dict[str, Any], mode: str, wanted: Outcome, imitations: Imitations
) -> bool:
    """Whether results differ from jax's by a quirk of jax that the program may show."""
    return any(
        same_under(imitation, program, mode, wanted)
        for imitation, steps in imitations
        if not steps.isdisjoint(steps_of(program))
    )


# What hlofront refuses and jax does not look at.
STRICTER = (
    # Options of another kind than those that there are.
    excuse("ValueError", "Unknown gather mode", planted=True),
    excuse("TypeError", "Unknown gather mode", planted=True),
    excuse("TypeError", "Invalid inline option", planted=True),
    excuse("TypeError", "^`out_sharding` of reduce is", planted=True),
    excuse("TypeError", "is not callable: the policy of checkpoint is", planted=True),
    excuse("TypeError", f"^{NO_INDEX}$", {"reduction"}, planted=True),
    # jax refuses it when the key is made, and so not where nothing reads the key.
    excuse("TypeError", "PRNG key seed must be an integer; got (float|complex)", planted=True),
    excuse("UnexpectedTracerError", NO_PLACE, CUSTOM_RULES, holds=same_without_refusal),
)


def excused(program: dict[str, Any], mode: str, found: Outcome, wanted: Outcome) -> bool:
    """Return whether an excuse covers what hlofront and jax give in one mode, of which one raised.

    Args:
      program: the program.
      mode: how it was looked at.
      found: what hlofront gives.
      wanted: what jax gives.
    """
    if "error" in wanted:
        if any(one.covers(program, mode, wanted, found) for one in STUMBLES):
            return True
        if "error" not in found:
            return False
        return (
            fails_inside(wanted)
            or fails_later(program, mode, found, wanted)
            or any(one.covers(program, mode, found, wanted) for one in STRICTER if not one.planted)
        )
    return any(one.covers(program, mode, found, wanted) for one in STRICTER)


def fails_later(program: dict[str, Any], mode: str, found: Outcome, wanted: Outcome) -> bool:
    """Whether hlofront refuses a mistake, and raises without it what jax raises, that has it."""
    from tests.against_jax.fuzz import shrinking  # the comparer imports this module

    if not any(one.planted and one.covers(program, mode, found, wanted) for one in STRICTER):
        return False
    program = {**without_mistakes(program), "modes": [mode]}
    corrected = running.described(program, hlofront)
    return not shrinking.difference(program, corrected, {mode: wanted})


def fails_inside(wanted: Outcome) -> bool:
    """Whether jax stumbled over its own values, which says nothing of the error that users want."""
    kind = wanted["error"][0]
    if kind == "AttributeError":
        return bool(re.search(r"object( '\w+')? has no attribute", wanted["message"]))
    return kind == "AssertionError"


def warned_of_truncation(program: dict[str, Any], found: Outcome, wanted: Outcome) -> bool:
    """Whether jax alone warns, and of dtypes of 64 bits that a block under enable_x64 made.

    It types such operations anew outside of the block, where they are batched for one. If hlofront
    refuses the program, which then has no text, jax must refuse it as well for such a dtype.
    """
    if program["x64"] or wanted.get("warned") != ["UserWarning"] or "warned" in found:
        return False
    if "error" in found:
        return re.search(r"int64|float64|complex128", wanted.get("message", "")) is not None
    return re.search(r"\b[fiu]64\[|\bc128\[", staged_text(program)) is not None
