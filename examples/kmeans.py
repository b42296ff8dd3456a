"""Clusters scikit-learn's handwritten digits by Lloyd's algorithm, each step one jitted program.

Run it:   python examples/kmeans.py
See it:   python -m hlofront show examples/kmeans.py:step
"""

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits

import hlofront as jax
import hlofront.numpy as jnp

CLUSTERS = 10
STARTS = 5


@jax.jit
def step(points, centers):
    """One step of Lloyd's algorithm.

    points: f32[n, d]; centers: f32[k, d]. Returns each point's nearest center, i32[n]; the centers
    moved to the means of their points, f32[k, d]; and the sum of squared distances, f32[].
    """
    distances = (
        jnp.sum(points**2, axis=1)[:, None] - 2 * points @ centers.T + jnp.sum(centers**2, axis=1)
    )
    nearest = jnp.argmin(distances, axis=1)
    belongs = (nearest[:, None] == jnp.arange(centers.shape[0])).astype(points.dtype)
    counts = jnp.sum(belongs, axis=0)[:, None]
    means = belongs.T @ points / jnp.maximum(counts, 1)
    moved = jnp.where(counts > 0, means, centers)  # a center without points stays where it is
    return nearest, moved, jnp.sum(jnp.min(distances, axis=1))


def example_args():
    """What `python -m hlofront show examples/kmeans.py:step` calls `step` with."""
    points = load_points()[0]
    return points, points[:CLUSTERS]


def load_points():
    """The digits as points in [0, 1]^64, f32[1797, 64], and what each one shows, i64[1797]."""
    digits = load_digits()
    return (digits.data / 16).astype(np.float32), digits.target


def fit(points, centers, most_steps=100):
    """Step until no point changes its cluster; return clusters i32[n] and the last distance."""
    before = None
    for _ in range(most_steps):
        nearest, centers, distance = step(points, centers)
        if before is not None and bool((nearest == before).all()):
            break
        before = nearest
    return np.asarray(nearest), float(distance)


def spread_out(points, rng):
    """Starting centers far from each other: k-means++ of Arthur and Vassilvitskii (2007)."""
    chosen = [rng.integers(len(points))]
    for _ in range(CLUSTERS - 1):
        gaps = ((points[:, None] - points[chosen]) ** 2).sum(-1).min(1)
        chosen.append(rng.choice(len(points), p=gaps / gaps.sum()))
    return points[chosen]


def purity(clusters, labels):
    """The share of points that show what most of their cluster shows."""
    most_common = [np.bincount(labels[clusters == c]).max() for c in np.unique(clusters)]
    return sum(most_common) / len(labels)


def main():
    points, labels = load_points()
    rng = np.random.default_rng(0)
    on_device = jnp.asarray(points)  # moved once, used by every step
    ours, _ = min(
        (fit(on_device, spread_out(points, rng)) for _ in range(STARTS)), key=lambda found: found[1]
    )
    theirs = KMeans(CLUSTERS, n_init=STARTS, random_state=0).fit_predict(points)
    print(f"{len(points)} digits of {points.shape[1]} pixels, {CLUSTERS} clusters")
    print(f"purity, hlofront:     {purity(ours, labels):.3f}")
    print(f"purity, scikit-learn: {purity(theirs, labels):.3f}")


if __name__ == "__main__":
    main()
