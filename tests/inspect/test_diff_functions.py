"""StableHLO of several functions and modules: each function that others may call is compared."""

import pytest

import hlotools

TWO = """module @jit_f {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.sine %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func public @other(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @helper(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func private @helper(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.cosine %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
  func.func private @unused(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.abs %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""
# Two modules in one, whose functions have the same names.
NESTED = """module @outer {
  module @one {
    func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = func.call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.sine %arg0 : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
  }
  module @two {
    func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = func.call @f(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @f(%arg0: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.cosine %arg0 : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
  }
}
"""
NO_MAIN = TWO.replace("@main", "@first")


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (TWO, "stablehlo.sine", "stablehlo.tan", "opcode of %0: sine -> tan"),
        (TWO, "cosine", "tan", "opcode of helper/%0: cosine -> tan"),
        (TWO, "abs", "negate", "opcode of unused/%0: abs -> negate"),
        (NO_MAIN, "cosine", "tan", "opcode of helper/%0: cosine -> tan"),
        (NESTED, "cosine", "tan", "opcode of two/f/%0: cosine -> tan"),
        (NESTED, "stablehlo.sine", "stablehlo.tan", "opcode of one/f/%0: sine -> tan"),
        (TWO + NO_MAIN, "abs", "abs", None),
        (TWO + "module @b {\n" + TWO.partition("\n")[2], "tan", "tan", None),
    ],
)
def test_each_function_is_compared(text, old, new, said):
    changed = text.replace(old, new)
    difference = hlotools.diff(text, changed)
    assert difference.equal == (said is None)
    assert [change.sentence for change in difference.changes] == ([said] if said else [])
    assert (hlotools.canonical(text) == hlotools.canonical(changed)) == difference.equal
    if said:
        assert said.partition(" ->")[0] in difference.html()


def test_each_of_several_modules_is_compared():
    second = "module @b {\n" + TWO.partition("\n")[2]
    difference = hlotools.diff(TWO + second, TWO + second.replace("cosine", "tan"))
    assert [change.sentence for change in difference.changes] == [
        "opcode of b/helper/%0: cosine -> tan"
    ]


def test_functions_of_one_module_are_listed():
    lines = TWO.splitlines(keepends=True)
    without = "".join(lines[:5] + lines[9:])
    difference = hlotools.diff(TWO, without)
    sentences = [change.sentence for change in difference.changes]
    # What it called is a function that nothing calls in the other module.
    assert sentences == ["removed function @other: (f32[8]) -> f32[8]"]
    assert [c.sentence for c in hlotools.diff(without, TWO).changes] == [
        "added function @other: (f32[8]) -> f32[8]"
    ]
    assert "@other" in difference.html() and "@other" in difference.markdown()


def test_the_order_of_functions_and_the_name_of_an_only_one_mean_nothing():
    lines = TWO.splitlines(keepends=True)
    swapped = "".join(lines[:1] + lines[5:9] + lines[1:5] + lines[9:])
    assert hlotools.diff(TWO, swapped).equal
    without_main = swapped.replace("@main", "@first")
    assert hlotools.diff(NO_MAIN, without_main).equal
    alone = "".join(lines[:5]) + "}\n"
    assert hlotools.diff(alone, alone.replace("@main", "@step")).equal
