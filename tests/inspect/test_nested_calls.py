"""Calls of functions in one of two programs line up with the operations themselves in the other."""

import pytest

from hlotools.matching.difference import diff

CALLED = """{ lambda ; a:f32[4]. let
    b:bool[4] = gt a 0.0:f32[]
    c:f32[4] = jit[
      name=_where
      jaxpr={ lambda ; b:bool[4] a:f32[4] d:i32[]. let
          e:f32[] = convert_element_type[new_dtype=float32 weak_type=False] d
          f:f32[4] = broadcast_in_dim e
          c:f32[4] = select_n b f a
        in (c,) }
    ] b a -1:i32[]
  in (c,) }"""
WRITTEN_OUT = """{ lambda ; a:f32[4]. let
    b:bool[4] = gt a 0.0:f32[]
    c:f32[4] = broadcast_in_dim -1.0:f32[]
    d:f32[4] = select_n b c a
  in (d,) }"""

CARRIED = """module @jit_f {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%i = %arg1, %j = %c, %k = %arg0) : tensor<f32>, tensor<i32>, tensor<f32>
    cond {
      %c_3 = stablehlo.constant dense<5> : tensor<i32>
      %2 = stablehlo.compare LT, %j, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = func.call @body(%i, %k) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %j, %c_3 : tensor<i32>
      stablehlo.return %i, %4, %2 : tensor<f32>, tensor<i32>, tensor<f32>
    }
    return %1#2 : tensor<f32>
  }
  func.func private @body(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.subtract %arg1, %arg0 : tensor<f32>
    return %0 : tensor<f32>
  }
}"""
CAPTURED = """module @jit_f {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> tensor<f32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.while(%i = %c, %j = %arg0) : tensor<i32>, tensor<f32>
    cond {
      %c_3 = stablehlo.constant dense<5> : tensor<i32>
      %2 = stablehlo.compare LT, %i, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.subtract %j, %arg1 : tensor<f32>
      %c_3 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %i, %c_3 : tensor<i32>
      stablehlo.return %4, %2 : tensor<i32>, tensor<f32>
    }
    return %1#1 : tensor<f32>
  }
}"""


@pytest.mark.parametrize(
    ("a", "b"),
    [(CALLED, WRITTEN_OUT), (CARRIED, CAPTURED)],
    ids=["a converted literal", "what a loop carries unchanged"],
)
def test_a_call_and_its_operations_are_one_program(a, b):
    assert diff(a, b).equal, diff(a, b).text()
    assert diff(b, a).equal, diff(b, a).text()


@pytest.mark.parametrize(
    ("a", "b", "before", "after"),
    [
        (CALLED, WRITTEN_OUT, "-1.0:f32", "-2.0:f32"),
        (CALLED, WRITTEN_OUT, "select_n b c a", "select_n b a c"),
        (CARRIED, CAPTURED, "dense<5>", "dense<6>"),
        (CARRIED, CAPTURED, "subtract %j, %arg1", "subtract %arg1, %j"),
    ],
)
def test_what_differs_inside_of_a_call_is_the_only_change(a, b, before, after):
    changed = b.replace(before, after)
    assert changed != b
    for pair in ((a, changed), (changed, a)):
        assert len(diff(*pair).changes) == 1, diff(*pair).text()


def test_a_function_that_both_programs_have_is_compared_as_one():
    changed = CALLED.replace("select_n b f a", "select_n b a f")
    (change,) = diff(CALLED, changed).changes
    assert "_where" in change.sentence
    assert len(change.a) == 1
