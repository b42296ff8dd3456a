"""hlofront.scipy.spatial.transform: rotations in space, as unit quaternions (x, y, z, w)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

import hlofront.numpy as jnp
import hlofront.random as random
from hlofront.base.dtypes import finfo
from hlofront.base.lazy import dir_of
from hlofront.base.named_tuple import NamedTuple
from hlofront.base.typing import Array, ArrayLike, DTypeLike
from hlofront.core.aval import typeof
from hlofront.numpy.linalg.decompositions import eigh
from hlofront.numpy.support.promotion import promote_args_inexact
from hlofront.primitives.elementwise.converting import convert, strong
from hlofront.primitives.elementwise.weak_types import strong_cotangents, times_one, weak_tangents
from hlofront.runtime.dispatch.operation import operation

__all__ = ["Rotation", "Slerp"]
__dir__ = dir_of(__name__)

# Below this angle, series replace quotients of vanishing terms.
_SMALL = 1e-3


def _array(x: ArrayLike) -> Array:
    """Return the argument as an array of floats."""
    return promote_args_inexact("Rotation", jnp.asarray(x))[0]


def _square(x: Array) -> Array:
    """Return the sum of squares over the last axis, of size 1, weakly typed where x is."""
    total = jnp.sum(x * x, axis=-1, keepdims=True)
    return convert(total, typeof(total).dtype, typeof(x).weak_type)


def _norm(x: Array) -> Array:
    """Return the Euclidean norm over the last axis, of size 1; its derivative at zero is zero."""
    squares = _square(x)
    there = squares > 0
    return weak_tangents(jnp.where(there, jnp.sqrt(jnp.where(there, squares, 1)), 0))


def _parts(quat: Array) -> tuple[Array, Array, Array, Array]:
    return tuple([quat[..., i] for i in range(4)])


@operation
def _normalized(quat: Array) -> Array:
    return quat / weak_tangents(jnp.sqrt(_square(quat)))


@operation
def _composed(p: Array, q: Array) -> Array:
    """Return the quaternion of rotation `q` followed by rotation `p`: Hamilton's product."""
    p, q = jnp.broadcast_arrays(*promote_args_inexact("Rotation", p, q))
    p, q = strong_cotangents(p), strong_cotangents(q)
    a, b = p[..., :3], q[..., :3]
    s, t = p[..., 3:], q[..., 3:]
    vector = s * b + t * a + jnp.cross(a, b)
    along = jnp.sum(a * b, axis=-1, keepdims=True)
    along = convert(along, typeof(along).dtype, typeof(vector).weak_type)
    return jnp.concatenate([vector, s * t - along], axis=-1)


@operation
def _inverse(quat: Array) -> Array:
    aval = typeof(quat)
    return quat * jnp.broadcast_to(jnp.asarray([-1, -1, -1, 1], aval.dtype), aval.shape)


@operation
def _as_matrix(quat: Array) -> Array:
    x, y, z, w = _parts(times_one(quat))
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w],
    ]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


@operation
def _from_matrix(matrix: Array) -> Array:
    """Return the unit quaternions (..., 4) of rotation matrices (..., 3, 3).

    The method is that of Markley, "Unit Quaternion from Rotation Matrix" (2008).
    """
    diagonal = jnp.diagonal(matrix, axis1=-2, axis2=-1)
    trace = jnp.sum(diagonal, axis=-1, keepdims=True)
    greatest = jnp.argmax(jnp.concatenate([diagonal, trace], axis=-1), axis=-1)

    def entry(i: int, j: int) -> Array:
        return matrix[..., i, j]

    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts = {
            i: 1 - trace[..., 0] + 2 * entry(i, i),
            j: entry(j, i) + entry(i, j),
            k: entry(k, i) + entry(i, k),
            3: entry(k, j) - entry(j, k),
        }
        candidates.append(jnp.stack([parts[n] for n in range(4)], axis=-1))
    last = [entry(2, 1) - entry(1, 2), entry(0, 2) - entry(2, 0), entry(1, 0) - entry(0, 1)]
    candidates.append(jnp.stack([*last, 1 + trace[..., 0]], axis=-1))
    result = candidates[3]
    for i in range(3):
        result = jnp.where((greatest == i)[..., None], candidates[i], result)
    return _normalized(result)


@operation
def _from_rotvec(rotvec: Array) -> Array:
    angle = _norm(rotvec)
    small = angle <= _SMALL
    square = angle * angle
    series = 0.5 - square / 48 + square * square / 3840
    safe = jnp.where(small, 1, angle)
    factor = jnp.where(small, series, jnp.sin(safe / 2) / safe)
    return strong(jnp.concatenate([factor * rotvec, jnp.cos(angle / 2)], axis=-1))


@operation
def _as_rotvec(quat: Array) -> Array:
    quat = strong_cotangents(quat)
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    length = _norm(quat[..., :3])
    angle = 2 * jnp.arctan2(length, quat[..., 3:])
    small = angle <= _SMALL
    square = angle * angle
    series = 2 + square / 12 + 7 * square * square / 2880
    safe = jnp.where(small, 1, angle)
    return jnp.where(small, series, safe / jnp.sin(safe / 2)) * quat[..., :3]


@operation
def _from_mrp(mrp: Array) -> Array:
    square = _square(mrp)
    return jnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square)


@operation
def _as_mrp(quat: Array) -> Array:
    quat = strong_cotangents(quat)
    sign = jnp.where(quat[..., 3:] < 0, -1, 1)
    return sign * quat[..., :3] / (1 + sign * quat[..., 3:])


@operation
def _magnitude(quat: Array) -> Array:
    quat = strong_cotangents(quat)
    return 2 * jnp.arctan2(_norm(quat[..., :3])[..., 0], jnp.abs(quat[..., 3]))


@operation
def _canonical(quat: Array) -> Array:
    quat = strong_cotangents(quat)
    x, y, z, w = _parts(quat)
    # In canonical form the first nonzero component of w, x, y, z is positive.
    flip = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return jnp.where(flip[..., None], -quat, quat)


@operation(static_argnames=("axes", "intrinsic"))
def _from_euler(angles: Array, axes: tuple[int, ...], intrinsic: bool) -> Array:
    angles = convert(angles, typeof(angles).dtype, False)
    result = None
    for i, axis in enumerate(axes):
        half = angles[..., i : i + 1] / 2
        sine, zero = jnp.sin(half), jnp.zeros_like(half)
        parts = [sine if i == axis else zero for i in range(3)]
        one = jnp.concatenate([*parts, jnp.cos(half)], axis=-1)
        if result is None:
            result = one
        else:
            result = _composed(result, one) if intrinsic else _composed(one, result)
    return result


@operation(static_argnames=("axes", "extrinsic"))
def _as_euler(quat: Array, axes: tuple[int, int, int], extrinsic: bool) -> Array:
    """Return the Euler angles (..., 3) of unit quaternions around a sequence of three axes.

    The method is that of Bernardes and Viollet, "Quaternion to Euler angles conversion" (2022).
    """
    quat = times_one(quat)
    i, j, k = axes if extrinsic else axes[::-1]
    symmetric = i == k
    if symmetric:
        k = 3 - i - j
    sign = (i - j) * (j - k) * (k - i) // 2
    parts = _parts(quat)
    if symmetric:
        a, b, c, d = parts[3], parts[i], parts[j], parts[k] * sign
    else:
        a, b = parts[3] - parts[j], parts[i] + parts[k] * sign
        c, d = parts[j] + parts[3], parts[k] * sign - parts[i]
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    half_sum, half_difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    # At both ends only the sum or difference of two angles is determined: one is set to zero.
    near = max(1e-7, 4 * float(finfo(typeof(quat).dtype).eps))
    low, high = jnp.abs(middle) <= near, jnp.abs(middle - math.pi) <= near
    turned = 2 * half_difference * (-1 if extrinsic else 1)
    first = jnp.where(low, 2 * half_sum, jnp.where(high, turned, half_sum - half_difference))
    third = jnp.where(low | high, 0, half_sum + half_difference)
    if not symmetric:
        third, middle = third * sign, middle - math.pi / 2
    angles = [first, middle, third] if extrinsic else [third, middle, first]
    result = jnp.stack(angles, axis=-1)
    result = jnp.where(result < -math.pi, result + 2 * math.pi, result)
    return jnp.where(result > math.pi, result - 2 * math.pi, result)


@operation(static_argnames=("inverse",))
def _apply(quat: Array, vectors: Array, inverse: bool) -> Array:
    matrix = _as_matrix(quat)
    return jnp.einsum("...ji,...j->...i" if inverse else "...ij,...j->...i", matrix, vectors)


@operation
def _mean(quat: Array, weights: Array) -> Array:
    """Return the weighted mean (4,) of unit quaternions (n, 4), by an eigendecomposition.

    See Markley et al., "Averaging Quaternions" (2007).
    """
    products = jnp.matmul(jnp.swapaxes(quat, -1, -2) * weights[None], quat)
    return eigh(products)[1][..., -1]


def _axes(seq: str) -> tuple[tuple[int, ...], bool]:
    """Return the axis numbers of a sequence such as "xyz", and whether they are intrinsic."""
    if not 1 <= len(seq) <= 3:
        raise ValueError(
            f"Expected axis specification to be a non-empty string of upto 3 characters, got {seq}"
        )
    intrinsic = re.fullmatch("[XYZ]+", seq) is not None
    if not intrinsic and re.fullmatch("[xyz]+", seq) is None:
        raise ValueError(
            f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}"
        )
    if any(one == other for one, other in itertools.pairwise(seq)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return tuple(["xyz".index(letter) for letter in seq.lower()]), intrinsic


class Rotation(NamedTuple):
    """A rotation in three dimensions, or an array of rotations.

    It is a pytree; its methods can be called under jit, vmap and grad.
    """

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Return the rotations of several objects as one object."""
        return cls(jnp.concatenate([rotation.quat for rotation in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Make rotations from angles around successive axes.

        Args:
          seq: up to three of "xyz" for fixed axes, or of "XYZ" for axes that turn with the object.
          angles: an array with an angle for each along its last axis; a number for one axis.
          degrees: whether angles are degrees.

        Raises:
          ValueError: if `seq` does not name such axes, or there is not an angle for each.
        """
        axes, intrinsic = _axes(seq)
        angles = _array(angles)
        if degrees:
            angles = jnp.deg2rad(angles)
        if not typeof(angles).ndim:
            angles = angles[None]
        if typeof(angles).shape[-1] != len(axes):
            raise ValueError(
                f"from_euler needs an angle for each of {seq!r} along the last axis, got angles "
                f"of shape {typeof(angles).shape}"
            )
        return cls(_from_euler(angles, axes, intrinsic))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Make rotations from orthogonal matrices, an array of shape (..., 3, 3)."""
        return cls(_from_matrix(_array(matrix)))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Make rotations from modified Rodrigues parameters, an array of shape (..., 3)."""
        return cls(_from_mrp(_array(mrp)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Make rotations from quaternions (x, y, z, w), not normalized, of shape (..., 4)."""
        return cls(_normalized(_array(quat)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Make rotations from their axes, as long as their angles, an array of shape (..., 3)."""
        rotvec = _array(rotvec)
        return cls(_from_rotvec(jnp.deg2rad(rotvec) if degrees else rotvec))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """Return the identity rotation, or `num` of them."""
        one = jnp.asarray([0, 0, 0, 1], dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """Draw a random rotation, uniform by Haar's measure, or `num` of them."""
        shape = (4,) if num is None else (num, 4)
        return cls.from_quat(random.normal(random_key, shape))

    def __getitem__(self, indexer: int | slice | ArrayLike) -> Rotation:  # type: ignore[override]
        """Return the selected rotations of an array. Raise TypeError for a single rotation."""
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        """Return the number of rotations. Raise TypeError for a single rotation."""
        if self.single:
            raise TypeError("Single rotation has no len().")
        return typeof(self.quat).shape[0]

    def __mul__(self, other: Rotation) -> Rotation:  # type: ignore[override]
        """Return the composition of rotations: `other` first, then `self`."""
        return Rotation(_composed(self.quat, other.quat))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Rotate vectors, an array of shape (..., 3).

        Args:
          vectors: an array of shape (..., 3).
          inverse: whether to rotate them back.

        Raises:
          ValueError: unless there are as many vectors as rotations, or one vector or one rotation.
        """
        return _apply(self.quat, _array(vectors), inverse)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return the Euler angles, an array of shape (..., 3), around a sequence of three axes.

        Raises:
          ValueError: if `seq` does not name three such axes.
        """
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        axes, intrinsic = _axes(seq)
        angles = _as_euler(self.quat, axes, not intrinsic)
        return jnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Return rotation matrices, an array of shape (..., 3, 3)."""
        return _as_matrix(self.quat)

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters, an array of shape (..., 3)."""
        return _as_mrp(self.quat)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return unit quaternions, an array of shape (..., 4).

        Args:
          canonical: whether to choose, of a rotation's two quaternions, the one with positive w.
          scalar_first: whether w comes first.
        """
        quat = _canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, -1) if scalar_first else quat

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return rotation vectors, an array of shape (..., 3): the unit axes times the angles.

        Args:
          degrees: whether the angles are in degrees, not radians.
        """
        rotvec = _as_rotvec(self.quat)
        return jnp.rad2deg(rotvec) if degrees else rotvec

    def inv(self) -> Rotation:
        """Return the inverse rotations."""
        return Rotation(_inverse(self.quat))

    def magnitude(self) -> Array:
        """Return the rotation angles, from 0 to pi."""
        return _magnitude(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """Return the mean rotation, which minimizes the squared chordal distances.

        Args:
          weights: an array with a weight for each rotation.

        Raises:
          TypeError: if there is a single rotation.
        """
        count = len(self)
        dtype = typeof(self.quat).dtype
        weights = jnp.ones((count,), dtype) if weights is None else jnp.asarray(weights, dtype)
        return Rotation(_mean(self.quat, weights))

    @property
    def single(self) -> bool:
        """A flag: True for one rotation, False for an array of rotations."""
        return typeof(self.quat).ndim == 1


@operation
def _interpolated(times: Array, timedelta: Array, quats: Array, rotvecs: Array, at: Array) -> Array:
    index = jnp.searchsorted(times, at, side="right") - 1
    index = jnp.clip(index, 0, typeof(timedelta).shape[0] - 1)
    share = (at - times[index]) / timedelta[index]
    return _composed(quats[index], _from_rotvec(rotvecs[index] * share[..., None]))


class Slerp(NamedTuple):
    """The spherical linear interpolation between rotations at increasing times: Shoemake (1985).

    `Slerp.init(times, rotations)` makes one; a call with times returns the rotations there.
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    def __call__(self, times: ArrayLike) -> Rotation:
        """Return the interpolated rotations at times: a number or a vector.

        Raises:
          ValueError: if `times` has more than one axis.
        """
        times = _array(times)
        if typeof(times).ndim > 1:
            raise ValueError(f"`times` must be at most 1-dimensional., got {typeof(times).shape}")
        return Rotation(
            _interpolated(self.times, self.timedelta, self.rotations.quat, self.rotvecs, times)
        )

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Make the interpolation between rotations at increasing times.

        Args:
          times: an array of ascending numbers.
          rotations: a rotation for each of them.

        Raises:
          TypeError: if `rotations` is not a Rotation.
          ValueError: if there are fewer than two rotations, or not as many as times.
        """
        if not isinstance(rotations, Rotation):
            raise TypeError(f"`rotations` must be a `Rotation` instance., got {type(rotations)}")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = _array(times)
        if typeof(times).ndim != 1:
            raise ValueError(
                "Expected times to be specified in a 1 dimensional array, got "
                f"{typeof(times).ndim} dimensions."
            )
        if typeof(times).shape[0] != len(rotations):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps given, got "
                f"{len(rotations)} rotations and {typeof(times).shape[0]} timestamps."
            )
        first, second = rotations[:-1], rotations[1:]
        return cls(times, jnp.diff(times), first, (first.inv() * second).as_rotvec())
