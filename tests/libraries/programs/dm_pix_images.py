"""dm-pix: image operations under jit, vmap and grad."""

import dm_pix as pix
import jax
import jax.numpy as jnp
import numpy as np

image = jnp.array(np.random.default_rng(0).random((8, 8, 3)), jnp.float32)
other = jnp.roll(image, 1, 0)
keys = jax.random.split(jax.random.key(0), 3)

print("brightness", pix.adjust_brightness(image, 0.2)[0, 0])
print("contrast", pix.adjust_contrast(image, 1.5)[0, 0])
print("hue", jax.jit(pix.adjust_hue)(image, 0.3)[0, 0])
print("saturation", pix.adjust_saturation(image, 0.5)[1, 2])
print("gamma", pix.adjust_gamma(image, 0.5)[1, 2])
print("gray", pix.rgb_to_grayscale(image)[:2, :2, 0])
print("hsv", pix.rgb_to_hsv(image)[0, 1], pix.hsv_to_rgb(pix.rgb_to_hsv(image))[0, 1])
print("blur", pix.gaussian_blur(image, 1.0, 3)[4, 4])
print("rotate", pix.rotate(image, 0.5, order=1, mode="nearest")[3, 3])
print("flip", pix.flip_left_right(image)[0, 0], pix.flip_up_down(image)[0, 0])
print("crop", pix.center_crop(image, 4, 4).shape, pix.random_crop(keys[0], image, (4, 4, 3))[0, 0])
print("pad", pix.pad_to_size(image, 10, 12).shape)
print("psnr", pix.psnr(image, other), pix.mse(image, other), pix.mae(image, other))
print("ssim", pix.ssim(image, other, filter_size=5))
print("grad", jax.grad(lambda x: pix.ssim(x, other, filter_size=5))(image)[2, 2])
batch = jax.vmap(lambda key: pix.random_flip_left_right(key, image))(keys)
print("vmap", batch[:, 0, 0])
print("depth", pix.depth_to_space(jnp.arange(16.0).reshape(2, 2, 4), 2)[..., 0])
print("elastic", pix.elastic_deformation(keys[1], image, 2.0, 1.0)[3, 3])
print("solarize", pix.solarize(image, 0.5)[0, 0])
