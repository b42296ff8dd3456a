"""Typed random keys: they go wherever arrays go, and calculate nothing."""

import copy
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import hlofront as jax
import hlofront.numpy as jnp
from hlofront import lax, random
from hlofront.extend import random as generators
from hlofront.random import counter_based

key = random.key(0)
keys = random.split(key, 4)
data = np.asarray(random.key_data(keys))


def same(found, expected):
    """Keys whose integers are these."""
    assert jnp.issubdtype(found.dtype, jax.dtypes.prng_key)
    np.testing.assert_array_equal(np.asarray(random.key_data(found)), expected)


def close(numbers, printed):
    """Numbers are these within rounding, which processors do differently in transcendentals."""
    np.testing.assert_allclose(numbers, printed, rtol=1e-6, atol=1e-6)


def test_what_a_key_is():
    assert repr(key) == "Array((), dtype=key<fry>) overlaying:\n[0 0]"
    assert isinstance(keys, jax.Array)
    assert (keys.shape, keys.ndim, keys.size, keys.itemsize, keys.nbytes) == ((4,), 1, 4, 8, 32)
    assert keys.dtype == random.key_dtype() and keys.dtype != random.key(0, impl="rbg").dtype
    assert jnp.issubdtype(keys.dtype, jax.dtypes.extended)
    assert random.key(0).devices() == jnp.zeros(()).devices() and not keys.committed
    assert [shard.data.shape for shard in keys.addressable_shards] == [(4,)]
    assert len(keys) == 4 and keys.block_until_ready() is keys


def test_python_loads_random_when_it_is_touched():
    program = "import sys, hlofront; sys.exit('hlofront.random.keys' in sys.modules)"
    root = pathlib.Path(jax.__file__).parent.parent
    subprocess.run([sys.executable, "-c", program], cwd=root, check=True)


def test_what_the_seeds_print():
    """It was printed before the option had another default."""
    with jax.threefry_partitionable(False):
        key = random.PRNGKey(seed=42)
        assert str(key) == "[ 0 42]"
        key, subkey = random.split(key)
        assert str(key) == "[2465931498 3679230171]"
        assert str(subkey) == "[255383827 267815257]"

        key = random.key(42)
        close(random.normal(key), -0.18471177)
        close(random.normal(random.fold_in(key, 43)), 0.11627013)
        new_key, new_key2 = random.split(key)
        close(random.normal(new_key), 0.13790321)
        close(random.normal(new_key2), 1.3694694)

        key, subkey = random.split(random.PRNGKey(0x123456789))
        assert str(random.uniform(subkey, (5,))) == (
            "[0.2918682  0.90834665 0.13555491 0.08107758 0.9746183 ]"
        )
        close(random.normal(key, (2,)), [-0.67039955, 0.02259737])
        for _ in range(2):  # the guide's author ran this cell twice
            key, *subkeys = random.split(key, 5)
        printed = [
            [[1.0308125, -0.07533383], [-0.36027843, -1.270425]],
            [[0.34779412, -0.11094793], [1.0509511, 0.52164143]],
            [[1.5565109, -0.9507161], [1.4706124, 0.25808835]],
            [[-0.5725152, -1.1480215], [-0.6206856, -0.12488112]],
        ]
        for subkey, numbers in zip(subkeys, printed, strict=True):
            close(random.normal(subkey, (2, 2)), numbers)


MOVES = {
    "index": (lambda x: x[1], data[1]),
    "slice": (lambda x: x[::-2], data[::-2]),
    "gather": (lambda x: x[jnp.array([2, 0])], data[[2, 0]]),
    "mask": (lambda x: jnp.where(jnp.arange(4) > 1, x, x[0]), data[[0, 0, 2, 3]]),
    "out_of_bounds": (lambda x: x.at[9].get(mode="fill"), np.full(2, 2**32 - 1)),
    "set": (lambda x: x.at[1].set(x[3]), data[[0, 3, 2, 3]]),
    "set_several": (lambda x: x.at[jnp.array([0, 9])].set(x[2]), data[[2, 1, 2, 3]]),
    "reshape": (lambda x: x.reshape(2, 2).T, data.reshape(2, 2, 2).swapaxes(0, 1)),
    "concatenate": (lambda x: jnp.concatenate([x, x[:1]]), data[[0, 1, 2, 3, 0]]),
    "stack": (lambda x: jnp.stack([x, x], 1), np.stack([data, data], 1)),
    "broadcast": (lambda x: jnp.broadcast_to(x, (3, 4)), np.broadcast_to(data, (3, 4, 2))),
    "tile": (lambda x: jnp.tile(x, 2), np.concatenate([data, data])),
    "roll": (lambda x: jnp.roll(x, 1), np.roll(data, 1, 0)),
    "flip": (jnp.flip, data[::-1]),
    "zeros": (jnp.zeros_like, np.zeros((4, 2))),
    "dynamic_slice": (lambda x: lax.dynamic_slice(x, (1,), (2,)), data[1:3]),
    "update": (lambda x: lax.dynamic_update_slice(x, x[:1], (3,)), data[[0, 1, 2, 0]]),
    "split": (lambda x: jnp.split(x, 2)[1], data[2:]),
    "barrier": (lax.optimization_barrier, data),
    "scan": (lambda x: lax.scan(lambda c, k: (k, c), x[0], x)[1], data[[0, 0, 1, 2]]),
    "cond": (lambda x: lax.cond(x.size > 9, lambda: x[0], lambda: x[1]), data[1]),
    "while": (lambda x: lax.fori_loop(0, 2, lambda i, c: c[::-1], x), data),
    "vmap": (lambda x: jax.vmap(lambda k: k)(x), data),
    "vmap_of_cond": (
        lambda x: jax.vmap(lambda k, p: lax.cond(p, lambda: k, lambda: x[0]))(
            x, jnp.arange(4) % 2 == 1
        ),
        data[[0, 1, 0, 3]],
    ),
    "checkpoint": (jax.checkpoint(lambda x: x[:2]), data[:2]),
    "tree_map": (lambda x: jax.tree.map(lambda y: y[0], {"a": x})["a"], data[0]),
    "map": (lambda x: lax.map(lambda k: random.clone(k), x), data),
}


@pytest.mark.parametrize("name", MOVES)
def test_moved_about(name):
    function, expected = MOVES[name]
    same(function(keys), expected)


def test_moved_about_in_programs():
    """All of them in one program, with keys as argument and as results."""
    results = jax.jit(lambda x: {name: function(x) for name, (function, _) in MOVES.items()})(keys)
    for name, (_, expected) in MOVES.items():
        same(results[name], expected)


def test_constants_of_programs():
    many = random.split(key, 300)  # too large to stand in a module
    one, several = jax.jit(lambda: (keys[1], many[299]))()
    same(one, data[1])
    same(several, np.asarray(random.key_data(many))[299])


def test_donated():
    mine = random.split(random.key(3))
    kept = jax.jit(lambda x: x[::-1], donate_argnums=0)(mine)
    assert mine.is_deleted() and kept.shape == (2,)
    with pytest.raises(RuntimeError, match="deleted"):
        repr(mine)


def test_copies_pickles_and_puts():
    for found in (
        copy.copy(keys),
        copy.deepcopy(keys),
        pickle.loads(pickle.dumps(keys)),
        jax.device_put(keys, jax.devices()[0]),
        jax.device_get(keys),
        jnp.array(keys),
        jax.jit(lambda x: x)(keys),
    ):
        same(found, data)


def test_equality_and_iteration():
    assert (keys == keys[2]).tolist() == [False, False, True, False]
    assert [bool(k == keys[i]) for i, k in enumerate(keys)] == [True] * 4
    for k, row in zip(reversed(keys), data[::-1], strict=True):
        same(k, row)
    assert keys[0] in keys


@pytest.mark.parametrize(
    "function",
    [
        lambda: key + 1,
        lambda: key + key,
        lambda: -key,
        lambda: keys * 2.0,
        lambda: keys < key,
        lambda: jax.jit(lambda k: k + 1)(key),
        lambda: jnp.sin(keys),
        lambda: np.asarray(keys),
        lambda: bool(key),
        lambda: hash(key),
        lambda: key == random.PRNGKey(0),
        lambda: jax.grad(lambda k: 1.0)(key),
    ],
)
def test_no_numbers(function):
    with pytest.raises(TypeError):
        function()
    with pytest.raises(NotImplementedError, match="key_data"):
        keys.sum()


def test_derivatives_beside_keys():
    def loss(x, k):
        return x * random.normal(k)

    noise = random.normal(key)
    assert jax.grad(loss)(2.0, key) == noise
    assert jax.jvp(loss, (2.0, key), (1.0, np.zeros((), jax.dtypes.float0)))[1] == noise
    value, pull = jax.vjp(loss, 2.0, key)
    assert value == 2 * noise and pull(1.0)[0] == noise


def test_callbacks_get_keys():
    def on_host(k):
        return np.asarray(random.key_data(k))

    wanted = jax.ShapeDtypeStruct((4, 2), np.uint32)
    for call in (lambda f: f, jax.jit):
        found = call(lambda k: jax.pure_callback(on_host, wanted, k))(keys)
        np.testing.assert_array_equal(found, data)


def test_raw_keys():
    raw = random.PRNGKey(0)
    assert raw.dtype == np.uint32 and raw.shape == (2,)
    np.testing.assert_array_equal(random.split(raw, 4), data)
    assert random.normal(raw) == random.normal(key)
    same(random.wrap_key_data(raw), [0, 0])
    with jax.legacy_prng_key("error"), pytest.raises(ValueError, match="legacy"):
        random.split(raw)
    with jax.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy"):
        random.split(raw)
    with jax.enable_custom_prng(True):
        same(random.PRNGKey(0), [0, 0])


def test_raw_keys_that_are_none():
    """Their data is checked before the kind of key is refused."""
    with jax.legacy_prng_key("error"):
        for wrong in (np.zeros(3, np.uint32), np.zeros(2, np.int32), jnp.uint32(0), 3, "a"):
            for use in (random.split, random.key_data, random.uniform):
                with pytest.raises(TypeError, match="invalid PRNG key data"):
                    use(wrong)


def test_deleted():
    k = random.key(0)
    base = k._base_array
    k.delete()
    assert k.is_deleted() and base.is_deleted() and k._base_array.is_deleted()
    assert random.key_data(k) is base
    for use in (repr, random.split, copy.copy, pickle.dumps, jax.jit(lambda k: k), random.normal):
        with pytest.raises(RuntimeError, match="deleted"):
            use(k)


def test_a_generator_of_the_users():
    def of_seed(seed):
        return jnp.array([7, seed], jnp.uint32)

    mine = generators.define_prng_impl(
        key_shape=(2,),
        seed=of_seed,
        split=lambda k, shape: jnp.broadcast_to(k, (*shape, 2)),
        random_bits=lambda k, width, shape: jnp.full(shape, k[1]).astype(f"uint{width}"),
        fold_in=lambda k, x: k + x,
        name="mine",
        tag="me",
    )
    k = random.key(3, impl=mine)
    assert repr(k.dtype) == "key<me>" and random.key_impl(k) == mine
    same(k, [7, 3])
    same(random.split(k), [[7, 3]] * 2)
    same(random.fold_in(k, 4), [11, 7])
    assert random.bits(k, (2,)).tolist() == [3, 3]
    assert jax.vmap(random.bits)(random.split(k, 3)).tolist() == [3] * 3
    same(generators.seed_with_impl(mine, jnp.arange(2)), [[7, 0], [7, 1]])


def test_what_the_disk_knows_programs_by():
    """Programs of other bits are other programs to the cache of executables."""
    from hlofront.core.programs.digest import program_digest

    digests = set()
    for mode in (False, True):
        with jax.threefry_partitionable(mode):
            digests.add(program_digest(jax.make_jaxpr(random.bits)(key)))
    assert len(digests) == 2 and None not in digests
    mine = generators.define_prng_impl(
        **{name: getattr(generators.threefry_prng_impl, name) for name in _PARTS}, tag="fry"
    )
    assert program_digest(jax.make_jaxpr(random.bits)(random.key(0, impl=mine))) is None


_PARTS = ("key_shape", "seed", "split", "random_bits", "fold_in")


# ---- keys used twice -----------------------------------------------------------------------------


def test_key_reuse():
    with jax.debug_key_reuse(True):
        k = random.key(0)
        random.normal(k)
        for use in (random.normal, random.split, jax.jit(random.bits), jax.grad(_noisy(k))):
            with pytest.raises(jax.errors.KeyReuseError):
                use(1.0 if use.__name__ == "noisy" else k)
        random.normal(random.clone(k))
        random.fold_in(k, 1)
        assert k == k

        several = random.split(random.key(1), 3)
        random.normal(several[0])
        random.normal(several[1])
        with pytest.raises(jax.errors.KeyReuseError):
            several[0]
        with pytest.raises(jax.errors.KeyReuseError):
            jax.vmap(random.normal)(several)
        for each in random.split(random.key(2)):
            random.uniform(each)


def _noisy(k):
    def noisy(x):
        return x * random.normal(k)

    return noisy


@pytest.mark.long
def test_key_reuse_in_programs():
    def twice(k):
        return random.normal(k) + random.uniform(k)

    def carried(k):
        return lax.scan(lambda c, _: (c, random.normal(c)), k, length=3)

    def looped(k):
        return lax.fori_loop(0, 3, lambda i, c: c + random.normal(k), 0.0)

    def new_each_time(k):
        def step(c, _):
            c, sub = random.split(c)
            return c, random.normal(sub)

        return lax.scan(step, k, length=3)

    def in_a_branch(k):
        return lax.cond(True, random.normal, lambda k: 0.0, k)

    with jax.debug_key_reuse(True):
        for bad in (twice, carried, looped):
            with pytest.raises(jax.errors.KeyReuseError):
                jax.jit(bad)(random.key(0))
        for good in (new_each_time, in_a_branch):
            k = random.key(0)
            jax.jit(good)(k)
            with pytest.raises(jax.errors.KeyReuseError):
                random.normal(k)
        k = random.key(5)
        jax.jit(lambda: random.normal(k))()
        with pytest.raises(jax.errors.KeyReuseError):
            random.normal(k)
        random.poisson(random.key(1), 3.0)  # takes its key two ways
    twice(key)


def test_generators_by_name_as_dtype():
    for name in ("threefry2x32", "rbg"):
        key = jax.random.key(0, dtype=name)
        assert key.dtype == jax.random.key(0, impl=name).dtype
        data = jax.random.key_data(key)
        assert jax.random.wrap_key_data(data, dtype=name).dtype == key.dtype
    with pytest.raises(ValueError, match="unrecognized PRNG implementation"):
        jax.random.key(0, dtype="float32")


def test_the_highest_mode_of_gumbel_is_the_high_one():
    key = jax.random.key(0)
    for mode in ("high", "highest"):
        assert jax.random.gumbel(key, (3,), mode=mode).tolist() == pytest.approx(
            [-1.0818486, -1.3463638, 0.906579], rel=1e-5
        )


@pytest.mark.parametrize(
    ("cipher", "key_size", "encrypted_zeros"),
    [
        (counter_based.philox_2x32, 1, "ff1dae59 6cd10df2"),
        (counter_based.philox_4x32, 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (counter_based.threefry_4x32, 4, "9c6ca96a e17eae66 fc10ecd4 5256a7d8"),
    ],
)
def test_the_ciphers_of_counters(cipher, key_size, encrypted_zeros):
    """Random123 publishes these as known answers."""
    expected = [int(word, 16) for word in encrypted_zeros.split()]
    zero = jnp.uint32(0)
    assert [int(word) for word in cipher([zero] * key_size, [zero] * len(expected))] == expected


@pytest.mark.parametrize(
    ("name", "tag"), [("philox2x32", "phx2"), ("philox4x32", "phx4"), ("threefry4x32", "fry4")]
)
def test_the_generators_that_encrypt_counters(name, tag):
    k = random.key(0, impl=name)
    assert repr(k.dtype) == f"key<{tag}>" and random.key_impl(k) == name
    assert pickle.loads(pickle.dumps(k)).dtype == k.dtype
    drawn = jax.vmap(lambda k: random.bits(k, (3,)))(random.split(k, 2))
    alone = [random.bits(one, (3,)) for one in random.split(k, 2)]
    np.testing.assert_array_equal(drawn, alone)
    with pytest.raises(TypeError, match="must be an integer"):
        random.key(np.bool_(True), impl=name)
