module @jit_conditional attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16xf32>, %arg1: tensor<i32>) -> (tensor<16xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.clamp %c, %arg1, %c_0 : tensor<i32>
    %1 = "stablehlo.case"(%0) ({
      %2 = stablehlo.sine %arg0 : tensor<16xf32>
      stablehlo.return %2 : tensor<16xf32>
    }, {
      %2 = stablehlo.cosine %arg0 : tensor<16xf32>
      stablehlo.return %2 : tensor<16xf32>
    }, {
      %2 = stablehlo.reverse %arg0, dims = [0] : tensor<16xf32>
      stablehlo.return %2 : tensor<16xf32>
    }) : (tensor<i32>) -> tensor<16xf32>
    return %1 : tensor<16xf32>
  }
}
