module @jit_gpt_block attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x16x32xbf16>, %arg1: tensor<32x96xbf16>, %arg2: tensor<32x32xbf16>, %arg3: tensor<32x64xbf16>, %arg4: tensor<64x32xbf16>) -> (tensor<2x16x32xbf16> {jax.result_info = "result"}) {
    %0 = stablehlo.convert %arg0 : (tensor<2x16x32xbf16>) -> tensor<2x16x32xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x32xf32>, tensor<f32>) -> tensor<2x16xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %cst_0 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %4 = stablehlo.divide %2, %3 : tensor<2x16x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x32xf32>
    %6 = stablehlo.subtract %0, %5 : tensor<2x16x32xf32>
    %7 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x32xf32>, tensor<f32>) -> tensor<2x16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %9 = stablehlo.divide %8, %3 : tensor<2x16x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x32xf32>
    %11 = stablehlo.subtract %0, %10 : tensor<2x16x32xf32>
    %12 = stablehlo.multiply %11, %11 : tensor<2x16x32xf32>
    %13 = stablehlo.reduce(%12 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x32xf32>, tensor<f32>) -> tensor<2x16xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %15 = stablehlo.divide %14, %3 : tensor<2x16x1xf32>
    %cst_1 = stablehlo.constant dense<9.99999974E-6> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x16x1xf32>
    %17 = stablehlo.add %15, %16 : tensor<2x16x1xf32>
    %18 = stablehlo.rsqrt %17 : tensor<2x16x1xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x32xf32>
    %20 = stablehlo.multiply %6, %19 : tensor<2x16x32xf32>
    %21 = stablehlo.convert %20 : (tensor<2x16x32xf32>) -> tensor<2x16x32xbf16>
    %22 = stablehlo.dot_general %21, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x32xbf16>, tensor<32x96xbf16>) -> tensor<2x16x96xbf16>
    %23 = stablehlo.reshape %22 : (tensor<2x16x96xbf16>) -> tensor<2x16x3x4x8xbf16>
    %24 = stablehlo.transpose %23, dims = [2, 0, 3, 1, 4] : (tensor<2x16x3x4x8xbf16>) -> tensor<3x2x4x16x8xbf16>
    %25 = stablehlo.slice %24 [0:1, 0:2, 0:4, 0:16, 0:8] : (tensor<3x2x4x16x8xbf16>) -> tensor<1x2x4x16x8xbf16>
    %26 = stablehlo.slice %24 [1:2, 0:2, 0:4, 0:16, 0:8] : (tensor<3x2x4x16x8xbf16>) -> tensor<1x2x4x16x8xbf16>
    %27 = stablehlo.slice %24 [2:3, 0:2, 0:4, 0:16, 0:8] : (tensor<3x2x4x16x8xbf16>) -> tensor<1x2x4x16x8xbf16>
    %28 = stablehlo.reshape %25 : (tensor<1x2x4x16x8xbf16>) -> tensor<2x4x16x8xbf16>
    %29 = stablehlo.reshape %26 : (tensor<1x2x4x16x8xbf16>) -> tensor<2x4x16x8xbf16>
    %30 = stablehlo.reshape %27 : (tensor<1x2x4x16x8xbf16>) -> tensor<2x4x16x8xbf16>
    %31 = stablehlo.dot_general %28, %29, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>) -> tensor<2x4x16x16xbf16>
    %cst_2 = stablehlo.constant dense<2.828130e+00> : tensor<bf16>
    %32 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<bf16>) -> tensor<2x4x16x16xbf16>
    %33 = stablehlo.divide %31, %32 : tensor<2x4x16x16xbf16>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %34 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<16x16xi1>
    %35 = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %36 = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %37 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<16x16xi32>
    %38 = stablehlo.add %35, %37 : tensor<16x16xi32>
    %39 = stablehlo.compare GE, %38, %36, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %c_4 = stablehlo.constant dense<false> : tensor<i1>
    %40 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i1>) -> tensor<16x16xi1>
    %41 = stablehlo.select %39, %34, %40 : tensor<16x16xi1>, tensor<16x16xi1>
    %42 = stablehlo.broadcast_in_dim %41, dims = [2, 3] : (tensor<16x16xi1>) -> tensor<2x4x16x16xi1>
    %cst_5 = stablehlo.constant dense<-9.982440e+08> : tensor<bf16>
    %43 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<bf16>) -> tensor<2x4x16x16xbf16>
    %44 = stablehlo.select %42, %33, %43 : tensor<2x4x16x16xi1>, tensor<2x4x16x16xbf16>
    %45 = stablehlo.convert %44 : (tensor<2x4x16x16xbf16>) -> tensor<2x4x16x16xf32>
    %cst_6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %46 = stablehlo.reduce(%45 init: %cst_6) applies stablehlo.maximum across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %49 = stablehlo.subtract %45, %48 : tensor<2x4x16x16xf32>
    %50 = stablehlo.exponential %49 : tensor<2x4x16x16xf32>
    %51 = stablehlo.reduce(%50 init: %cst) applies stablehlo.add across dimensions = [3] : (tensor<2x4x16x16xf32>, tensor<f32>) -> tensor<2x4x16xf32>
    %52 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2] : (tensor<2x4x16xf32>) -> tensor<2x4x16x1xf32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1, 2, 3] : (tensor<2x4x16x1xf32>) -> tensor<2x4x16x16xf32>
    %54 = stablehlo.divide %50, %53 : tensor<2x4x16x16xf32>
    %55 = stablehlo.convert %54 : (tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xbf16>
    %56 = stablehlo.dot_general %30, %55, batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<2x4x16x8xbf16>, tensor<2x4x16x16xbf16>) -> tensor<2x4x8x16xbf16>
    %57 = stablehlo.transpose %56, dims = [0, 3, 1, 2] : (tensor<2x4x8x16xbf16>) -> tensor<2x16x4x8xbf16>
    %58 = stablehlo.reshape %57 : (tensor<2x16x4x8xbf16>) -> tensor<2x16x32xbf16>
    %59 = stablehlo.dot_general %58, %arg2, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x32xbf16>, tensor<32x32xbf16>) -> tensor<2x16x32xbf16>
    %60 = stablehlo.add %arg0, %59 : tensor<2x16x32xbf16>
    %61 = stablehlo.convert %60 : (tensor<2x16x32xbf16>) -> tensor<2x16x32xf32>
    %62 = stablehlo.reduce(%61 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x32xf32>, tensor<f32>) -> tensor<2x16xf32>
    %63 = stablehlo.broadcast_in_dim %62, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %64 = stablehlo.divide %63, %3 : tensor<2x16x1xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x32xf32>
    %66 = stablehlo.subtract %61, %65 : tensor<2x16x32xf32>
    %67 = stablehlo.reduce(%61 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x32xf32>, tensor<f32>) -> tensor<2x16xf32>
    %68 = stablehlo.broadcast_in_dim %67, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %69 = stablehlo.divide %68, %3 : tensor<2x16x1xf32>
    %70 = stablehlo.broadcast_in_dim %69, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x32xf32>
    %71 = stablehlo.subtract %61, %70 : tensor<2x16x32xf32>
    %72 = stablehlo.multiply %71, %71 : tensor<2x16x32xf32>
    %73 = stablehlo.reduce(%72 init: %cst) applies stablehlo.add across dimensions = [2] : (tensor<2x16x32xf32>, tensor<f32>) -> tensor<2x16xf32>
    %74 = stablehlo.broadcast_in_dim %73, dims = [0, 1] : (tensor<2x16xf32>) -> tensor<2x16x1xf32>
    %75 = stablehlo.divide %74, %3 : tensor<2x16x1xf32>
    %76 = stablehlo.add %75, %16 : tensor<2x16x1xf32>
    %77 = stablehlo.rsqrt %76 : tensor<2x16x1xf32>
    %78 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2] : (tensor<2x16x1xf32>) -> tensor<2x16x32xf32>
    %79 = stablehlo.multiply %66, %78 : tensor<2x16x32xf32>
    %80 = stablehlo.convert %79 : (tensor<2x16x32xf32>) -> tensor<2x16x32xbf16>
    %81 = stablehlo.dot_general %80, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x32xbf16>, tensor<32x64xbf16>) -> tensor<2x16x64xbf16>
    %cst_7 = stablehlo.constant dense<5.000000e-01> : tensor<bf16>
    %82 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<bf16>) -> tensor<2x16x64xbf16>
    %83 = stablehlo.multiply %82, %81 : tensor<2x16x64xbf16>
    %84 = stablehlo.multiply %81, %81 : tensor<2x16x64xbf16>
    %85 = stablehlo.multiply %81, %84 : tensor<2x16x64xbf16>
    %cst_8 = stablehlo.constant dense<4.467770e-02> : tensor<bf16>
    %86 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<bf16>) -> tensor<2x16x64xbf16>
    %87 = stablehlo.multiply %86, %85 : tensor<2x16x64xbf16>
    %88 = stablehlo.add %81, %87 : tensor<2x16x64xbf16>
    %cst_9 = stablehlo.constant dense<7.968750e-01> : tensor<bf16>
    %89 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<bf16>) -> tensor<2x16x64xbf16>
    %90 = stablehlo.multiply %89, %88 : tensor<2x16x64xbf16>
    %91 = stablehlo.tanh %90 : tensor<2x16x64xbf16>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %92 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<bf16>) -> tensor<2x16x64xbf16>
    %93 = stablehlo.add %92, %91 : tensor<2x16x64xbf16>
    %94 = stablehlo.multiply %83, %93 : tensor<2x16x64xbf16>
    %95 = stablehlo.dot_general %94, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x64xbf16>, tensor<64x32xbf16>) -> tensor<2x16x32xbf16>
    %96 = stablehlo.add %60, %95 : tensor<2x16x32xbf16>
    return %96 : tensor<2x16x32xbf16>
  }
}
