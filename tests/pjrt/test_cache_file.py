"""Entries of the cache as bytes: what goes in comes out, and nothing else does."""

import hashlib
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hlofront.pjrt.cache_file import HEAD, MAGIC, DamagedEntry, NewerEntry, locate, pack, unpack

SMALL = {"key": b'{"name":"f"}', "executable": b"\x00\x01binary", "hlo": b""}


def signed(body):
    """Bytes with a checksum that holds, as only a defect or an attacker would make them."""
    return body + hashlib.sha256(body).digest()


def made(*fields, version=1, count=None, values=b""):
    head = struct.pack("<8sII", MAGIC, version, len(fields) if count is None else count)
    for name, length in fields:
        head += struct.pack("<HQ", len(name), length) + name
    return signed(head + values)


@given(st.dictionaries(st.text(max_size=40), st.binary(max_size=300), max_size=8))
@settings(max_examples=150, deadline=None)
def test_what_is_packed_is_unpacked(fields):
    data = pack(fields)
    assert unpack(data) == fields
    assert list(unpack(data)) == list(fields)
    places = locate(data, len(data))
    assert {name: data[start:stop] for name, (start, stop) in places.items()} == fields


@given(st.binary(max_size=300), st.booleans())
@settings(max_examples=200, deadline=None)
def test_foreign_bytes_are_damaged_whatever_they_are(data, with_start):
    with pytest.raises(DamagedEntry):
        unpack(MAGIC + data if with_start else data)
    with pytest.raises(DamagedEntry):
        locate(MAGIC + data if with_start else data, 400)


@given(st.binary(max_size=200), st.integers(0, 3), st.integers(0, 70))
@settings(max_examples=200, deadline=None)
def test_a_checksum_that_holds_does_not_excuse_the_rest(body, version, count):
    data = signed(struct.pack("<8sII", MAGIC, version, count) + body)
    try:
        fields = unpack(data)
    except DamagedEntry as error:
        assert error.reason
    else:
        assert pack(fields) == data


def test_truncation_at_every_byte():
    data = pack(SMALL)
    for length in range(len(data)):
        with pytest.raises(DamagedEntry):
            unpack(data[:length])
        with pytest.raises(DamagedEntry):
            locate(data[:length], length)


def test_every_single_bit_flip():
    data = pack(SMALL)
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedEntry) as caught:
            unpack(bytes(flipped))
        assert not isinstance(caught.value, NewerEntry)


def test_random_bit_flips_of_a_large_entry():
    rng = random.Random(0)
    data = pack({"key": b"{}", "executable": rng.randbytes(200_000)})
    for _ in range(200):
        flipped = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 16))):
            flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        if flipped != data:
            with pytest.raises(DamagedEntry):
                unpack(bytes(flipped))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"\x7fELF" + bytes(200), "is not an entry of this cache"),
        (MAGIC[:5], "was cut off after 5 bytes"),
        (pack(SMALL) + b"x", "checksum"),
        (pack(SMALL).replace(b"\r\n", b"\n"), "is not an entry"),
        (made((b"a", 10), values=b"short"), "has 64 bytes, and its fields need 69"),
        (made((b"a", 2**64 - 1)), "fields need"),
        (made((b"a", 1), values=b"xx"), "has 61 bytes, and its fields need 60"),
        (made((b"a", 1), (b"a", 1), values=b"xy"), "has two fields with the name 'a'"),
        (made((b"\xff", 0)), "has a field with the name"),
        (made((b"n" * 300, 0)), "within its table"),
        (made(count=3), "within its table"),
        (made(count=2001), "claims format version 1 and 2001 fields"),
        (made(version=0), "claims format version 0"),
    ],
)
def test_each_kind_of_damage_says_what_it_is(data, reason):
    with pytest.raises(DamagedEntry) as caught:
        unpack(data)
    assert reason in caught.value.reason
    assert str(caught.value) == caught.value.reason


def test_a_version_from_the_future_is_whole_and_of_no_use():
    with pytest.raises(NewerEntry, match="has format version 2, of a newer hlofront"):
        unpack(made(version=2, values=b"whatever comes next"))
    # One whose checksum does not hold is only damaged.
    with pytest.raises(DamagedEntry) as caught:
        unpack(made(version=2)[:-1] + b"?")
    assert not isinstance(caught.value, NewerEntry)


def test_what_cannot_be_packed():
    with pytest.raises(ValueError, match="at most 2000 fields, and was given 2001"):
        pack({str(i): b"" for i in range(2001)})
    with pytest.raises(ValueError, match="at most 255 bytes"):
        pack({"n" * 256: b""})
    # The longest table there can be is within what readers take for it.
    widest = pack({f"{i:0255d}": b"" for i in range(247)})
    assert len(widest) - 32 <= HEAD
    assert len(unpack(widest)) == 247
    with pytest.raises(ValueError, match="the table of 248 fields has 65736 bytes, and at most"):
        pack({f"{i:0255d}": b"" for i in range(248)})
