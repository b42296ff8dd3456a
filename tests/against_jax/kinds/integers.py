"""Integers that a dtype does not hold, given to all that makes or fills arrays of that dtype."""

import numpy as np

from tests.against_jax.describe import Corpus

KNOWN = {
    r"^(full|full_like|lax_full|convert)_(bfloat16|float8_e4m3fn)_": (
        "jax cannot make these floats of integers beyond 64 bits: TypeError"
    ),
    r"^(clamp|lax_add)_|^clip_complex64_": "both refuse: jax the size before the dtypes, we not",
    r"^randint_bytes_.*_wide": "jax takes a bound of 64 bits modulo 2**32 before it clips it",
    r"^tril?_2\*\*(31|63)-1": "k + 1 overflows in jax, which leaves rows of zeros",
    r"^diag_": "no elements so far from the diagonal; jax raises OverflowError beyond 64 bits",
    r"^roll_": "jax rolls by the number modulo 2**64 with a sign",
    r"^dynamic_(slice|index)_": "jax takes the index modulo 2**32, or refuses it; we clamp it",
    r"^step_": "jax's result has shape (1,) and no elements",
    r"^at_item_": "jax writes at the index modulo 2**32, or refuses it; we drop it",
    r"^take_positions_2\*\*32_wide": "jax takes the position modulo 2**32; we fill",
}
VALUES = [255, 256, -129, 2**16, 2**31 - 1, 2**31, -(2**31) - 1, 2**32 - 1, 2**32, 2**63 - 1]
VALUES += [2**63, -(2**63) - 1, 2**64 - 1, 2**64, 2**100, -(2**100), 2**128, 2**2000, -(2**2000)]
DTYPES = """bool int4 uint4 int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float8_e4m3fn
    float32 complex64 int64 uint64 float64""".split()
# Of these, functions of an array, fewer dtypes and values are tried.
FEW_DTYPES = "int8 uint8 int32 uint32 float16 float32 complex64".split()
FEW_VALUES = [300, -300, 2**31, 2**32 - 1, 2**64, -(2**100)]


def programs(jax, jnp, lax):
    corpus = Corpus(("value",))
    for name, make in makers(jax, jnp, lax).items():
        add(corpus, name, make, VALUES, DTYPES)
    for name, operation in operations(jax, jnp, lax).items():

        def of_ones(value, dtype, operation=operation):
            return operation(jnp.ones(3, dtype), value)

        add(corpus, name, of_ones, FEW_VALUES, FEW_DTYPES)
    for name, call in of_integers(jax, jnp, lax).items():
        for value in VALUES:
            corpus.add(f"{name}_{label(value)}", lambda call=call, value=value: call(value))
            corpus.add(
                f"{name}_{label(value)}_wide",
                lambda call=call, value=value: call(value),
                x64=True,
            )
    return corpus


def label(value):
    """Return an integer as text, in which that of a great one is short."""
    if abs(value) < 1000:
        return str(value)
    sign, size = "-" if value < 0 else "", abs(value)
    power = (size + 1).bit_length() - 1
    return f"{sign}2**{power}{size - 2**power:+d}" if size != 2**power else f"{sign}2**{power}"


def add(corpus, name, make, values, dtypes):
    for dtype in dtypes:
        wide = dtype in ("int64", "uint64", "float64")
        for value in values:

            def run(make=make, value=value, dtype=dtype):
                return make(value, dtype)

            corpus.add(f"{name}_{dtype}_{label(value)}", run, x64=wide)


def makers(jax, jnp, lax):
    """Functions of a value and a dtype that make an array of it."""
    return {
        "full": lambda value, dtype: jnp.full((2,), value, dtype),
        "full_like": lambda value, dtype: jnp.full_like(jnp.zeros(2, dtype), value),
        "lax_full": lambda value, dtype: lax.full((2,), value, dtype),
        "convert": lambda value, dtype: lax.convert_element_type(value, dtype),
        "array": lambda value, dtype: jnp.array(value, dtype),
        "array_of_list": lambda value, dtype: jnp.array([value, 1], dtype),
        "asarray": lambda value, dtype: jnp.asarray(value, dtype),
        "scalar_type": lambda value, dtype: getattr(jnp, f"{dtype.replace('bool', 'bool_')}")(
            value
        ),
    }


def operations(jax, jnp, lax):
    """Functions of an array and a value of its dtype."""
    places = np.array([0, 5])
    return {
        "add": lambda x, v: x + v,
        "subtract_from": lambda x, v: v - x,
        "multiply": lambda x, v: x * v,
        "divide": lambda x, v: x / v,
        "floor_divide": lambda x, v: jnp.floor_divide(jnp.real(x), v),
        "equal": lambda x, v: x == v,
        "less": lambda x, v: x < v,
        "maximum": jnp.maximum,
        "power": lambda x, v: x**v,
        "and": lambda x, v: jnp.real(x).astype(int) & v,
        "shift": lambda x, v: jnp.real(x).astype(int) << v,
        "clip": lambda x, v: jnp.clip(x, 0, v),
        "where": lambda x, v: jnp.where(x > 0, x, v),
        "select": lambda x, v: jnp.select([x > 2], [x], v),
        "pad": lambda x, v: jnp.pad(x, 1, constant_values=v),
        "set": lambda x, v: x.at[0].set(v),
        "add_at": lambda x, v: x.at[0].add(v),
        "mul_at": lambda x, v: x.at[0].multiply(v),
        "min_at": lambda x, v: x.at[0].min(v),
        "get": lambda x, v: x.at[places].get(mode="fill", fill_value=v),
        "take": lambda x, v: jnp.take(x, places, mode="fill", fill_value=v),
        "append": jnp.append,
        "insert": lambda x, v: jnp.insert(x, 1, v),
        "searchsorted": jnp.searchsorted,
        "isin": lambda x, v: jnp.isin(x, jnp.array([1, 2], x.dtype)) & (x == v),
        "nan_to_num": lambda x, v: jnp.nan_to_num(x, nan=v, posinf=v),
        "fill_diagonal": lambda x, v: jnp.fill_diagonal(x[None].repeat(3, 0), v, inplace=False),
        "unique": lambda x, v: jnp.unique(x, size=3, fill_value=v),
        "nonzero": lambda x, v: jnp.nonzero(x, size=5, fill_value=v),
        "put": lambda x, v: jnp.put(x, np.array([1]), v, inplace=False),
        "sum": lambda x, v: jnp.sum(x, initial=v),
        "max": lambda x, v: jnp.max(x, initial=v),
        "prod": lambda x, v: jnp.prod(x, initial=v, where=x > 1),
        "full_of": lambda x, v: jnp.full_like(x, v),
        "lax_pad": lambda x, v: lax.pad(x, lax.convert_element_type(v, x.dtype), [(1, 1, 0)]),
        "clamp": lambda x, v: lax.clamp(0, x, v),
        "lax_add": lax.add,
        "ldexp": lambda x, v: jnp.ldexp(jnp.real(x), v),
        "copysign": lambda x, v: jnp.copysign(jnp.real(x), v),
        "heaviside": lambda x, v: jnp.heaviside(jnp.real(x), v),
        "gcd": lambda x, v: jnp.gcd(jnp.real(x).astype(int), v),
        "linspace": lambda x, v: jnp.linspace(0, v, 3, dtype=x.dtype),
        "arange": lambda x, v: jnp.arange(v, v + 3, dtype=x.dtype),
        "extract_diagonal": lambda x, v: jnp.trace(x[None].repeat(3, 0), offset=v),
        "carry": lambda x, v: lax.fori_loop(0, 2, lambda i, c: c + v, x),
        "cond": lambda x, v: lax.cond(x[0] > 0, lambda: x, lambda: jnp.full_like(x, v)),
        "dot": lambda x, v: x @ jnp.full_like(x, v),
    }


def of_integers(jax, jnp, lax):
    """Functions of an integer that is a seed, a size, a position or a bound."""
    random = jax.random
    wave = np.arange(6.0, dtype=np.float32)
    square = wave.reshape(2, 3)
    return {
        "key": lambda v: random.key_data(random.key(v)),
        "fold_in": lambda v: random.key_data(random.fold_in(random.key(0), v)),
        "randint_to": lambda v: random.randint(random.key(0), (3,), 0, v),
        "randint_from": lambda v: random.randint(random.key(0), (3,), v, 10),
        "randint_bytes": lambda v: random.randint(random.key(0), (3,), v, 100, "uint8"),
        "one_hot": lambda v: jax.nn.one_hot(v, 3),
        "eye": lambda v: jnp.eye(3, k=v),
        "tri": lambda v: jnp.tri(3, k=v),
        "tril": lambda v: jnp.tril(square, v),
        "diag": lambda v: jnp.diagonal(square, v),
        "roll": lambda v: jnp.roll(wave, v),
        "rot90": lambda v: jnp.rot90(square, v),
        "item": lambda v: jnp.asarray(wave)[v],
        "dynamic_slice": lambda v: lax.dynamic_slice(wave, (v,), (2,)),
        "dynamic_index": lambda v: lax.dynamic_index_in_dim(wave, v),
        "slice": lambda v: jnp.asarray(wave)[v:],
        "slice_to": lambda v: jnp.asarray(wave)[:v],
        "step": lambda v: jnp.asarray(wave)[::v],
        "at_item": lambda v: jnp.asarray(wave).at[v].set(7),
        "fori": lambda v: lax.fori_loop(v, v, lambda i, c: c + i, 0),
        "arange": lambda v: jnp.arange(v, v + 2),
        "unravel": lambda v: jnp.unravel_index(v, (2, 3)),
        "ravel": lambda v: jnp.ravel_multi_index((v, 1), (2, 3), mode="clip"),
        "ravel_wrap": lambda v: jnp.ravel_multi_index((v, 1), (2, 3), mode="wrap"),
        "bincount": lambda v: jnp.bincount(jnp.array([1, 2]), minlength=2, length=3) + v,
        "segment_sum": lambda v: jax.ops.segment_sum(wave, jnp.array([v, 0, 0, 1, 1, 1]), 2),
        "take_positions": lambda v: jnp.take(wave, v),
        "popcount": lambda v: lax.population_count(v),
        "abs": jnp.abs,
        "sign": jnp.sign,
        "isfinite": jnp.isfinite,
        "sin": jnp.sin,
        "bit_count": jnp.bitwise_count,
        "invert": jnp.invert,
        "array_alone": jnp.array,
        "list_alone": lambda v: jnp.array([v, 1]),
        "mixed_list": lambda v: jnp.array([v, 1.0]),
        "result_type": jnp.result_type,
        "argument": lambda v: jax.jit(lambda x: x)(v),
        "squared": lambda v: jax.grad(lambda x: x * v)(1.0),
    }
