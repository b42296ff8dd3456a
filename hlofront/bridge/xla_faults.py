"""XLA's known faults in the jaxlibs that hlofront supports, with the guard against each.

A fault makes a correct program return wrong numbers or end the process. Each has a row here until
no supported jaxlib has it. A row says which programs may be affected, and how they are guarded: by
options of XLA's compiler, or by code elsewhere that calls `is_present`. Its test shows the fault in
a program compiled without guards, and its absence with them: it fails under the first jaxlib that
no longer needs the row.

The option `hlofront_xla_guards` turns all guards off. An XLA option that the user sets, in
`compiler_options` or XLA_FLAGS, keeps the user's value, and its guard is off.
"""

import os
import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from hlofront.bridge import state

Version = tuple[int, ...]


class Fault(NamedTuple):
    """A known fault of XLA's compiler, and the guard against it.

    Attributes:
      name: its name in reports.
      effect: its effect on programs, in words.
      test: the test that shows it.
      since: the first supported jaxlib with the fault.
      until: the first later jaxlib without it; None while there is none.
      platform: the platform whose compiler has it.
      reports: the public bug reports; () if there are none.
      options: the options of XLA's compiler that guard programs for the platform.
      lowered_in: the module that lowers operations differently; "" if none does.
      refused_in: the module that raises an error before XLA compiles; "" if none does.
      operations: the operations of StableHLO and CHLO that may trigger the fault; if empty, all
        programs may be affected.
      is_of_several_devices: whether only programs for several devices may be affected.
      is_rare: whether only programs with arrays of billions of elements may be affected; users are
        not told of such faults.
    """

    name: str
    effect: str
    test: str
    since: Version = (0, 10, 2)
    until: Version | None = None
    platform: str = "cpu"
    reports: tuple[str, ...] = ()
    options: Mapping[str, str] = {}
    lowered_in: str = ""
    refused_in: str = ""
    operations: frozenset[str] = frozenset()
    is_of_several_devices: bool = False
    is_rare: bool = False

    def is_in(self, jaxlib: Version) -> bool:
        """Return whether a version of jaxlib has the fault."""
        return self.since <= jaxlib and (self.until is None or jaxlib < self.until)


# On CPUs XLA uses YNNPACK's kernels for products, convolutions and reductions by default. This list
# of kinds replaces the default one, without reductions and operations fused with them.
_NO_REDUCTIONS_BY_YNNPACK = {
    "xla_cpu_experimental_ynn_fusion_type": (
        "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_INDIVIDUAL_CONVOLUTION"
    )
}

FAULTS = (
    # Any program may be affected: XLA also turns products and convolutions into reductions.
    Fault(
        name="reductions by YNNPACK",
        effect="sums over products and over other elementwise operations have wrong elements, and "
        "of arrays of seven and eight axes they end the process",
        until=(0, 11, 2),
        reports=("jax#39103", "jax#39257", "jax#40412", "jax#40633"),
        test="tests/xla_faults/test_ynnpack_reductions.py",
        options=_NO_REDUCTIONS_BY_YNNPACK,
    ),
    # The options that guard the reductions above cure these two as well.
    Fault(
        name="maxima by YNNPACK",
        effect="maxima and minima of some thousand floats ignore NaNs, and elements next to them",
        test="tests/xla_faults/test_maxima.py",
        lowered_in="hlofront/lowering/cpu/maxima.py",
        operations=frozenset(("stablehlo.maximum", "stablehlo.minimum")),
    ),
    Fault(
        name="strided windows by YNNPACK",
        effect="reductions of windows that have strides are wrong, or errors, if the operand is "
        "dilated, padded between its elements, or a product that negative padding cuts",
        test="tests/xla_faults/test_strided_windows.py",
        lowered_in="hlofront/lowering/ops/reduce_window.py",
        operations=frozenset(("stablehlo.reduce_window",)),
    ),
    # LLVM folds operations on a constant NaN, and converting a NaN to an integer, as XLA's
    # exponential does, gives any number. A select on NaN-ness does not depend on that.
    Fault(
        name="exponentials of NaN",
        effect="the exponential of a NaN that is found while a program is compiled is any number",
        reports=("jax#29537",),
        test="tests/xla_faults/test_exponentials.py",
        lowered_in="hlofront/lowering/core/one_to_one.py",
        operations=frozenset(
            (
                "chlo.cosh",
                "chlo.sinh",
                "stablehlo.exponential",
                "stablehlo.exponential_minus_one",
                "stablehlo.logistic",
            )
        ),
    ),
    Fault(
        name="convolutions that cut and pad an axis",
        effect="convolutions of arrays that negative padding cuts at the start of an axis, and "
        "positive padding extends at its end, read outside of the array",
        until=(0, 12),
        test="tests/xla_faults/test_convolutions.py",
        lowered_in="hlofront/lowering/ops/conv.py",
        operations=frozenset(("stablehlo.convolution",)),
    ),
    Fault(
        name="convolutions of nothing but padding",
        effect="convolutions end the process where negative padding cuts a whole axis at its end, "
        "and positive padding extends it at its start",
        test="tests/xla_faults/test_refused_programs.py",
        lowered_in="hlofront/lowering/ops/conv.py",
        operations=frozenset(("stablehlo.convolution",)),
    ),
    Fault(
        name="convolutions with long kernels of dilated inputs",
        effect="convolutions end the process where the kernel is longer than the input along one "
        "axis, and the input is dilated by the length of the kernel along another",
        test="tests/xla_faults/test_refused_programs.py",
        lowered_in="hlofront/lowering/ops/conv.py",
        operations=frozenset(("stablehlo.convolution",)),
    ),
    Fault(
        name="convolutions of inputs with long gaps",
        effect="the positions of a kernel on a dilated input are counted one by one while it is "
        "compiled, which takes minutes if they are billions",
        test="tests/xla_faults/test_refused_programs.py",
        lowered_in="hlofront/lowering/ops/conv.py",
        operations=frozenset(("stablehlo.convolution",)),
        is_rare=True,
    ),
    # XLA's compiler for TPUs (libtpu 0.0.52) does not have the two faults of its partitioner.
    Fault(
        name="cuts of split axes",
        effect="padding and windows that cut an axis at its start end the process, if the axis is "
        "split over devices, and dilated or cut as a whole",
        test="tests/xla_faults/test_split_programs.py",
        lowered_in="hlofront/lowering/core/emitter.py",
        operations=frozenset(("stablehlo.convolution", "stablehlo.pad", "stablehlo.reduce_window")),
    ),
    Fault(
        name="groups of split convolutions",
        effect="convolutions in groups are wrong, or errors, if features are split over devices "
        "and the axes of the result are in another order than those of the operand",
        test="tests/xla_faults/test_split_programs.py",
        lowered_in="hlofront/lowering/ops/conv.py",
        operations=frozenset(("stablehlo.convolution",)),
        is_of_several_devices=True,
    ),
    Fault(
        name="cut windows of one element",
        effect="reductions of windows of one element end the process where negative padding cuts "
        "elements off",
        test="tests/xla_faults/test_refused_programs.py",
        lowered_in="hlofront/lowering/ops/reduce_window.py",
        operations=frozenset(("stablehlo.reduce_window",)),
    ),
    Fault(
        name="products of a row with 2**31 columns",
        effect="the product of a vector or of one row with a matrix of 2**31 columns and more ends "
        "the process",
        test="tests/xla_faults/test_refused_programs.py",
        lowered_in="hlofront/lowering/ops/dot_general.py",
        is_rare=True,
    ),
    Fault(
        name="sizes before a size of zero",
        effect="an array without elements, whose sizes before the 0 have a product beyond 64 bits, "
        "ends the process",
        test="tests/xla_faults/test_refused_programs.py",
        refused_in="hlofront/lowering/core/types.py",
    ),
    Fault(
        name="padding beyond the sizes of arrays",
        effect="padding of 2**31 and more elements, which negative padding cuts again, ends the "
        "process",
        test="tests/xla_faults/test_refused_programs.py",
        lowered_in="hlofront/lowering/ops/shaping.py",
        refused_in="hlofront/lowering/core/types.py",
    ),
    Fault(
        name="windows of padding",
        effect="windows of 2**31 and more elements, nearly all of them padding, are reduced for "
        "ever",
        test="tests/xla_faults/test_refused_programs.py",
        refused_in="hlofront/lowering/ops/reduce_window.py",
    ),
    Fault(
        name="concatenations of two-bit integers",
        effect="concatenations of int2 and uint2 end the process",
        test="tests/xla_faults/test_refused_programs.py",
        lowered_in="hlofront/lowering/core/emitter.py",
        operations=frozenset(("stablehlo.concatenate",)),
    ),
    Fault(
        name="custom calls with names of XLA's own",
        effect="calls of foreign functions by names that XLA interprets itself, such as TopK, end "
        "the process where the operands do not fit",
        since=(0, 10, 2),
        until=None,
        platform="cpu",
        reports=(),
        test="tests/xla_faults/test_refused_programs.py",
        refused_in="hlofront/lowering/ops/ffi.py",
    ),
    Fault(
        name="Triton kernels without configuration",
        effect="custom calls of Triton kernels, whose configuration lacks a value, end the process",
        since=(0, 10, 2),
        until=None,
        platform="cuda",
        reports=(),
        test="tests/xla_faults/test_refused_programs.py",
        refused_in="hlofront/lowering/ops/ffi.py",
    ),
)


class Guard(NamedTuple):
    """The guard of a program against a fault.

    Attributes:
      fault: the fault.
      replaced_by_user: the option of XLA's compiler that the user sets, which turns the guard off;
        "" if the program is guarded.
    """

    fault: Fault
    replaced_by_user: str = ""

    def __str__(self) -> str:
        if self.replaced_by_user:
            return f"{self.fault.name} (no guard, as {self.replaced_by_user} is set)"
        return self.fault.name


def guards_for(
    platform: str,
    user_options: Collection[str],
    jaxlib: Version = state.jaxlib_version,
    operations: Collection[str] | None = None,
    several_devices: bool = False,
) -> list[Guard]:
    """Return the guards of a program against the faults of a jaxlib that may affect it.

    Args:
      platform: the platform for which the program is compiled.
      user_options: the names of the options of XLA's compiler that the user sets for the program.
      jaxlib: the version of jaxlib.
      operations: the names of the program's operations; None if they are unknown.
      several_devices: whether the program is for several devices, if its operations are known.
    """
    faults = [known for known in FAULTS if known.platform == platform and known.is_in(jaxlib)]
    if operations is not None:
        faults = [
            other
            for other in faults
            if not (other.refused_in or other.is_rare)
            and (several_devices or not other.is_of_several_devices)
            and (not other.operations or not other.operations.isdisjoint(operations))
        ]
    set_by_user = {*user_options, *_options_in_environment()} if faults else set[str]()
    return [
        Guard(fault, next((name for name in fault.options if name in set_by_user), ""))
        for fault in faults
    ]


def is_present(name: str, jaxlib: Version = state.jaxlib_version) -> bool:
    """Return whether a version of jaxlib has the fault of this name."""
    return any(fault.name == name and fault.is_in(jaxlib) for fault in FAULTS)


def options_of(guards: Collection[Guard]) -> dict[str, str]:
    """Return the options of XLA's compiler that guards add to those of a program."""
    added: dict[str, str] = {}
    for guard in guards:
        if not guard.replaced_by_user:
            added.update(guard.fault.options)
    return added


def _options_in_environment() -> list[str]:
    """Return the names of the options of XLA's compiler in XLA_FLAGS."""
    return re.findall(r"--(\w+)", os.environ.get("XLA_FLAGS", ""))
