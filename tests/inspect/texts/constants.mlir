module @jit_constants attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x4xf32>) -> (tensor<4x4x4xf32> {jax.result_info = "result[0]"}, tensor<2x2xcomplex<f32>> {jax.result_info = "result[1]"}, tensor<4x4xf32> {jax.result_info = "result[2]"}, tensor<4x4xi8> {jax.result_info = "result[3]"}) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 5.000000e-01, 1.000000e+00, 1.500000e+00], [2.000000e+00, 2.500000e+00, 3.000000e+00, 3.500000e+00], [4.000000e+00, 4.500000e+00, 5.000000e+00, 5.500000e+00], [6.000000e+00, 6.500000e+00, 7.000000e+00, 7.500000e+00]], [[8.000000e+00, 8.500000e+00, 9.000000e+00, 9.500000e+00], [1.000000e+01, 1.050000e+01, 1.100000e+01, 1.150000e+01], [1.200000e+01, 1.250000e+01, 1.300000e+01, 1.350000e+01], [1.400000e+01, 1.450000e+01, 1.500000e+01, 1.550000e+01]], [[1.600000e+01, 1.650000e+01, 1.700000e+01, 1.750000e+01], [1.800000e+01, 1.850000e+01, 1.900000e+01, 1.950000e+01], [2.000000e+01, 2.050000e+01, 2.100000e+01, 2.150000e+01], [2.200000e+01, 2.250000e+01, 2.300000e+01, 2.350000e+01]], [[2.400000e+01, 2.450000e+01, 2.500000e+01, 2.550000e+01], [2.600000e+01, 2.650000e+01, 2.700000e+01, 2.750000e+01], [2.800000e+01, 2.850000e+01, 2.900000e+01, 2.950000e+01], [3.000000e+01, 3.050000e+01, 3.100000e+01, 3.150000e+01]]]> : tensor<4x4x4xf32>
    %cst_0 = stablehlo.constant dense<[[(1.000000e+00,2.000000e+00), (3.000000e+00,0.000000e+00)], [(0x7F800000,0.000000e+00), (-0.000000e+00,-1.000000e+00)]]> : tensor<2x2xcomplex<f32>>
    %c = stablehlo.constant dense<[true, false, true, true]> : tensor<4xi1>
    %c_1 = stablehlo.constant dense<[1, -2, 3, 4]> : tensor<4xi8>
    %0 = stablehlo.dot_general %arg0, %cst, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4x4xf32>, tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
    %1 = stablehlo.slice %arg0 [0:1, 0:1] : (tensor<4x4xf32>) -> tensor<1x1xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x1xf32>) -> tensor<f32>
    %3 = stablehlo.convert %2 : (tensor<f32>) -> tensor<complex<f32>>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<complex<f32>>) -> tensor<2x2xcomplex<f32>>
    %5 = stablehlo.multiply %cst_0, %4 : tensor<2x2xcomplex<f32>>
    %6 = stablehlo.convert %c : (tensor<4xi1>) -> tensor<4xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<4x4xf32>
    %9 = stablehlo.compare GT, %arg0, %8, FLOAT : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
    %cst_2 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %11 = stablehlo.select %9, %arg0, %10 : tensor<4x4xi1>, tensor<4x4xf32>
    %12 = stablehlo.convert %arg0 : (tensor<4x4xf32>) -> tensor<4x4xi8>
    %13 = stablehlo.broadcast_in_dim %c_1, dims = [1] : (tensor<4xi8>) -> tensor<1x4xi8>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<1x4xi8>) -> tensor<4x4xi8>
    %15 = stablehlo.xor %12, %14 : tensor<4x4xi8>
    return %0, %5, %11, %15 : tensor<4x4x4xf32>, tensor<2x2xcomplex<f32>>, tensor<4x4xf32>, tensor<4x4xi8>
  }
}
