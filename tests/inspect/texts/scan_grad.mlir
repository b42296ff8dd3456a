module @jit_scan_grad attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8x16xf32>, %arg1: tensor<16x16xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<16x16xf32> {jax.result_info = "result[1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %3:5 = stablehlo.while(%iterArg = %c, %iterArg_2 = %0, %iterArg_3 = %1, %iterArg_4 = %2, %iterArg_5 = %2) : tensor<i32>, tensor<16xf32>, tensor<8xf32>, tensor<8x16xf32>, tensor<8x16xf32>
    cond {
      %c_6 = stablehlo.constant dense<8> : tensor<i32>
      %11 = stablehlo.compare LT, %iterArg, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %c_6 = stablehlo.constant dense<0> : tensor<i32>
      %11 = stablehlo.dynamic_slice %arg0, %iterArg, %c_6, sizes = [1, 16] : (tensor<8x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %12 = stablehlo.reshape %11 : (tensor<1x16xf32>) -> tensor<16xf32>
      %13 = stablehlo.dot_general %iterArg_2, %arg1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16xf32>, tensor<16x16xf32>) -> tensor<16xf32>
      %14 = stablehlo.add %13, %12 : tensor<16xf32>
      %15 = stablehlo.tanh %14 : tensor<16xf32>
      %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %16 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<16xf32>
      %17 = stablehlo.add %16, %15 : tensor<16xf32>
      %18 = stablehlo.subtract %16, %15 : tensor<16xf32>
      %19 = stablehlo.multiply %17, %18 : tensor<16xf32>
      %cst_8 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %20 = stablehlo.reduce(%15 init: %cst_8) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
      %21 = stablehlo.reshape %20 : (tensor<f32>) -> tensor<1xf32>
      %22 = stablehlo.dynamic_update_slice %iterArg_3, %21, %iterArg : (tensor<8xf32>, tensor<1xf32>, tensor<i32>) -> tensor<8xf32>
      %23 = stablehlo.reshape %iterArg_2 : (tensor<16xf32>) -> tensor<1x16xf32>
      %24 = stablehlo.dynamic_update_slice %iterArg_4, %23, %iterArg, %c_6 : (tensor<8x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<8x16xf32>
      %25 = stablehlo.reshape %19 : (tensor<16xf32>) -> tensor<1x16xf32>
      %26 = stablehlo.dynamic_update_slice %iterArg_5, %25, %iterArg, %c_6 : (tensor<8x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<8x16xf32>
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %27 = stablehlo.add %iterArg, %c_9 : tensor<i32>
      stablehlo.return %27, %15, %22, %24, %26 : tensor<i32>, tensor<16xf32>, tensor<8xf32>, tensor<8x16xf32>, tensor<8x16xf32>
    }
    %4 = stablehlo.reduce(%3#2 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
    %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %5 = stablehlo.divide %4, %cst_0 : tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.divide %cst_1, %cst_0 : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %10:3 = stablehlo.while(%iterArg = %c, %iterArg_2 = %8, %iterArg_3 = %9) : tensor<i32>, tensor<16x16xf32>, tensor<16xf32>
    cond {
      %c_4 = stablehlo.constant dense<8> : tensor<i32>
      %11 = stablehlo.compare LT, %iterArg, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<7> : tensor<i32>
      %11 = stablehlo.subtract %c_4, %iterArg : tensor<i32>
      %12 = stablehlo.dynamic_slice %7, %11, sizes = [1] : (tensor<8xf32>, tensor<i32>) -> tensor<1xf32>
      %c_5 = stablehlo.constant dense<0> : tensor<i32>
      %13 = stablehlo.dynamic_slice %3#3, %11, %c_5, sizes = [1, 16] : (tensor<8x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %14 = stablehlo.dynamic_slice %3#4, %11, %c_5, sizes = [1, 16] : (tensor<8x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %15 = stablehlo.reshape %12 : (tensor<1xf32>) -> tensor<f32>
      %16 = stablehlo.reshape %13 : (tensor<1x16xf32>) -> tensor<16xf32>
      %17 = stablehlo.reshape %14 : (tensor<1x16xf32>) -> tensor<16xf32>
      %18 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<f32>) -> tensor<16xf32>
      %19 = stablehlo.add %iterArg_3, %18 : tensor<16xf32>
      %20 = stablehlo.multiply %19, %17 : tensor<16xf32>
      %21 = stablehlo.dot_general %16, %20, contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16x16xf32>
      %22 = stablehlo.dot_general %20, %arg1, contracting_dims = [0] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16xf32>, tensor<16x16xf32>) -> tensor<16xf32>
      %23 = stablehlo.add %iterArg_2, %21 : tensor<16x16xf32>
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %24 = stablehlo.add %iterArg, %c_6 : tensor<i32>
      stablehlo.return %24, %23, %22 : tensor<i32>, tensor<16x16xf32>, tensor<16xf32>
    }
    return %5, %10#1 : tensor<f32>, tensor<16x16xf32>
  }
}
