"""einops: images to patches and back, reductions, repeats, contractions, gradients."""

import jax
import jax.numpy as jnp
from einops import einsum, pack, rearrange, reduce, repeat, unpack

images = jax.random.uniform(jax.random.key(0), (2, 8, 12, 3))


@jax.jit
def patches(images):
    return rearrange(images, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)


flat = patches(images)
print("patches", flat.shape, flat.sum(), flat[1, 5, 7])
back = rearrange(flat, "b (h w) (p q c) -> b (h p) (w q) c", h=2, w=3, p=4, q=4)
print("back", bool(jnp.array_equal(back, images)))
print("pooled", reduce(images, "b (h 2) (w 2) c -> b c", "max"))
print("mean", reduce(images, "b h w c -> c", "mean"))
print("repeated", repeat(flat[:, :1, :2], "b n d -> b (n r) d", r=3).tolist())
scores = einsum(flat, flat, "b i d, b j d -> b i j")
print("scores", scores.shape, jnp.trace(scores[0]))
packed, shapes = pack([images, images[..., 0]], "b *")
print("packed", packed.shape, shapes, [part.shape for part in unpack(packed, shapes, "b *")])
print("vmapped", jax.vmap(lambda x: reduce(x, "h w c -> c", "prod"))(images + 0.5))
print("gradient", jax.grad(lambda x: (patches(x) ** 3).sum())(images)[0, 0, 0])
