"""Every codec packs and unpacks, never more than its limit, and reads what Kafka's clients read."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress

import cramjam
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh32_intdigest

from kip848_client.core.compression import (
    NAMES,
    SMALL_BYTES,
    CorruptPayload,
    UnknownCodec,
    pack,
    unpack,
    unpack_small,
)
from tests.support.examples import examples

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
TEXT = b"".join(b"a record of many, number %d; " % number for number in range(5_000))
LIMIT = 1 << 20


def member(data: bytes) -> bytes:
    """Without the time, so that tests have the same name in each process."""
    return gzip.compress(data, mtime=0)


each_codec = pytest.mark.parametrize("number", CODECS, ids=NAMES[1:])


def read(number: int, payload: bytes, *, magic: int = 2) -> bytes:
    """Both ways, which agree: but what looks large is not unpacked by the quick one."""
    small = unpack_small(number, payload, LIMIT, magic=magic)
    data, is_whole = unpack(number, payload, LIMIT, magic=magic)
    assert is_whole
    assert small in (data, None)
    return data


def refused(number: int, payload: bytes) -> str:
    """By both ways; returns why."""
    with pytest.raises(CorruptPayload) as caught:
        unpack(number, payload, LIMIT)
    with suppress(CorruptPayload):
        assert unpack_small(number, payload, LIMIT) is None
    return str(caught.value)


@each_codec
@pytest.mark.parametrize(
    "data", [b"", b"x", TEXT, random.Random(1).randbytes(200_000), bytes(700_000)]
)
def test_what_is_packed_is_unpacked(number: int, data: bytes) -> None:
    payload = pack(number, data)
    assert read(number, payload) == data
    assert unpack_small(number, payload, LIMIT) == data


def test_codec_0_leaves_bytes_as_they_are() -> None:
    assert pack(0, b"x") == b"x"


@pytest.mark.parametrize("number", [5, 6, 7])
def test_a_number_that_no_codec_has(number: int) -> None:
    for way in (unpack, unpack_small):
        with pytest.raises(UnknownCodec, match=rf"codec {number} is unknown.* 3 lz4, 4 zstd"):
            way(number, b"x", LIMIT)
    with pytest.raises(UnknownCodec):
        pack(number, b"x")


# -- the limit -----------------------------------------------------------------------------------


@each_codec
@pytest.mark.parametrize("less", [1, 1_000, 100_000, len(TEXT) - 1])
def test_more_than_the_limit_is_not_unpacked(number: int, less: int) -> None:
    limit = len(TEXT) - less
    payload = pack(number, TEXT)
    assert unpack_small(number, payload, limit) is None
    data, is_whole = unpack(number, payload, limit, head=b"head")
    assert not is_whole
    assert len(data) <= limit + 4
    assert (b"head" + TEXT).startswith(data)
    if number != SNAPPY:  # which is cut between blocks
        assert len(data) == limit + 4
    assert unpack(number, payload, len(TEXT), head=b"head") == (b"head" + TEXT, True)


def bomb(number: int, size: int) -> bytes:
    """A few bytes that unpack to a lot, in the forms that say so and in those that do not."""
    return pack(number, bytes(size))


def small_trailer() -> bytes:
    """gzip: the last member is empty, and so is what its trailer says."""
    return bomb(GZIP, 50 << 20) + member(b"")


def without_a_size() -> bytes:
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    return compressor.compress(bytes(50 << 20))


def bare_snappy() -> bytes:
    return bytes(cramjam.snappy.compress_raw(bytes(50 << 20)))


BOMBS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "gzip": (GZIP, lambda: bomb(GZIP, 50 << 20)),
    "gzip whose trailer says 0": (GZIP, small_trailer),
    "snappy": (SNAPPY, lambda: bomb(SNAPPY, 50 << 20)),
    "bare snappy": (SNAPPY, bare_snappy),
    "lz4": (LZ4, lambda: bomb(LZ4, 50 << 20)),
    "zstd": (ZSTD, lambda: bomb(ZSTD, 50 << 20)),
    "zstd without a size": (ZSTD, without_a_size),
}


@pytest.mark.parametrize("name", BOMBS)
def test_memory_stays_below_the_limit(name: str) -> None:
    """By what the system says of the process: the libraries do not tell Python what they take."""
    number, make = BOMBS[name]
    payload = make()
    limit = 5 << 20
    _forget_peak()
    before = _peak_bytes()
    assert unpack_small(number, payload, limit) is None
    data, is_whole = unpack(number, payload, limit)
    assert not is_whole
    assert len(data) <= limit
    assert _peak_bytes() - before < 20 << 20


def _forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123 - it is no file of ours
        file.write("5")


def _peak_bytes() -> int:
    with open("/proc/self/status") as file:  # noqa: PTH123 - it is no file of ours
        line = next(each for each in file if each.startswith("VmHWM"))
    return int(line.split()[1]) << 10


@each_codec
def test_what_is_large_is_for_a_thread(number: int) -> None:
    assert unpack_small(number, pack(number, bytes(SMALL_BYTES + 1)), 1 << 30) is None
    assert unpack_small(number, pack(number, random.Random(1).randbytes(2 << 20)), 1 << 30) is None


def test_a_frame_that_says_too_little_is_corrupt() -> None:
    payload = bytearray(zstandard.ZstdCompressor().compress(TEXT))
    (said,) = struct.unpack_from("<I", payload, 5)
    assert said == len(TEXT)
    struct.pack_into("<I", payload, 5, said - 1)
    with pytest.raises(CorruptPayload):
        unpack(ZSTD, bytes(payload), LIMIT)


def test_a_frame_that_says_too_much_costs_nothing() -> None:
    block = bytes(cramjam.snappy.compress_raw(b"x"))
    claims = b"\xff\xff\xff\xff\x0f" + block[1:]
    assert unpack(SNAPPY, claims, LIMIT) == (b"", False)
    with pytest.raises(CorruptPayload):
        unpack(SNAPPY, claims, 1 << 33)


# -- gzip, as Java's GZIPInputStream reads it (17.0.15 was asked) ----------------------------------

ONE, TWO = member(b"one"), member(b"two")
LONG = member(random.Random(1).randbytes(300))


def changed(payload: bytes, at: int, value: int) -> bytes:
    copy = bytearray(payload)
    copy[at] = value
    return bytes(copy)


def with_everything_in_its_header() -> bytes:
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\3\0xyz" + b"name\0" + b"comment\0"
    header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    return header + ONE[10:]


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (ONE + TWO, b"onetwo"),
        (ONE + member(b"") + TWO, b"onetwo"),
        (member(b"") + TWO, b"two"),
        (member(b""), b""),
        *[(ONE + bytes(count), b"one") for count in (1, 4, 18, 19, 30, 100)],
        *[(ONE + b"\xab" * count, b"one") for count in (1, 4, 18, 19, 30, 100)],
        (ONE + bytes(4) + TWO, b"one"),
        (ONE + TWO[:9], b"one"),
        (ONE + changed(LONG, 2, 7), b"one"),  # another method
        (ONE + changed(LONG, 3, 2), b"one"),  # a checksum of the header, which is wrong
        (changed(ONE, 3, 0xE0), b"one"),  # flags that have no meaning
        (ONE + changed(TWO, 3, 0xE0), b"onetwo"),
        (with_everything_in_its_header() * 2, b"oneone"),
        (b"".join(member(b"%d," % i) for i in range(3_000)), None),
    ],
)
def test_gzip_as_java_reads_it(payload: bytes, expected: bytes | None) -> None:
    if expected is None:
        expected = b"".join(b"%d," % number for number in range(3_000))
    assert read(GZIP, payload) == expected


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        ONE[:-2],
        LONG[:-20],
        changed(LONG, len(LONG) - 6, LONG[-6] ^ 1),
        ONE + TWO[:19],
        ONE + TWO[:-1],
        ONE + LONG[:-20],
        ONE + changed(LONG, len(LONG) - 6, LONG[-6] ^ 1),
        ONE + changed(LONG, 10, 7),  # a block of a kind that there is not
        b"garbage that is no gzip",
    ],
)
def test_gzip_as_java_refuses_it(payload: bytes) -> None:
    assert "gzip" in refused(GZIP, payload)


# -- snappy --------------------------------------------------------------------------------------

BIG_ENDIAN_1, LITTLE_ENDIAN_1 = struct.pack(">i", 1), struct.pack("<i", 1)


def framed(data: bytes, versions: bytes = BIG_ENDIAN_1 * 2, block: int = 32_768) -> bytes:
    out = b"\x82SNAPPY\0" + versions
    for start in range(0, len(data), block):
        packed = bytes(cramjam.snappy.compress_raw(data[start : start + block]))
        out += struct.pack(">i", len(packed)) + packed
    return out


@pytest.mark.parametrize(
    "versions",
    [BIG_ENDIAN_1 * 2, LITTLE_ENDIAN_1 * 2, struct.pack(">ii", 2, 1), struct.pack(">ii", 9, 9)],
    ids=["Java's", "Redpanda's", "2, compatible with 1", "9"],
)
@pytest.mark.parametrize("block", [64, 32_768, 1 << 20])
def test_only_the_magic_of_snappys_header_is_looked_at(versions: bytes, block: int) -> None:
    assert read(SNAPPY, framed(TEXT, versions, block)) == TEXT


def test_other_forms_of_snappy() -> None:
    assert read(SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    assert read(SNAPPY, framed(b"one, ") + framed(b"two")) == b"one, two"
    assert read(SNAPPY, framed(b"")) == b""
    for count in (1, 2, 3):  # which are no length of a block
        assert read(SNAPPY, framed(TEXT) + b"\xab" * count) == TEXT


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x82SNAPPY\0\0",
        framed(TEXT)[:-1],
        framed(TEXT) + bytes(4),
        framed(TEXT) + framed(b"x")[:15],
        framed(TEXT) + framed(b"x", struct.pack(">ii", 0, 0)),
        framed(TEXT) + framed(b"x", struct.pack(">ii", -1, 1)),
        b"\xff" * 9,
        b"\5abcdefgh",
    ],
)
def test_snappy_that_is_damaged(payload: bytes) -> None:
    assert refused(SNAPPY, payload)


# -- lz4 -----------------------------------------------------------------------------------------


def frame(
    data: bytes,
    *,
    flags: int = 0,
    block: int = 65_536,
    sizes: int = 4,
    stored: bool = True,
    content_checksum: int | None = None,
) -> bytes:
    """A frame of independent blocks, with what ``flags`` says."""
    descriptor = bytes((0x60 | flags, sizes << 4))
    if flags & 0x08:
        descriptor += struct.pack("<Q", len(data))
    out = b"\x04\x22\x4d\x18" + descriptor + bytes((xxh32_intdigest(descriptor) >> 8 & 0xFF,))
    for start in range(0, len(data), block):
        part = data[start : start + block]
        packed = part
        if not stored:
            packed = bytes(cramjam.lz4.compress_block(part, store_size=False))
        out += struct.pack("<I", len(packed) | (0x8000_0000 if stored else 0)) + packed
        if flags & 0x10:
            out += struct.pack("<I", xxh32_intdigest(packed))
    out += bytes(4)
    if flags & 0x04:
        checksum = xxh32_intdigest(data) if content_checksum is None else content_checksum
        out += struct.pack("<I", checksum)
    return out


def with_header_checksum(payload: bytes, checksum: int) -> bytes:
    return changed(payload, 6, checksum)


def relabeled(payload: bytes, flags: int, sizes: int) -> bytes:
    """The frame with another descriptor, and the checksum that goes with it."""
    descriptor = bytes((flags, sizes))
    return (
        payload[:4] + descriptor + bytes((xxh32_intdigest(descriptor) >> 8 & 0xFF,)) + payload[7:]
    )


KAFKA_0_8 = with_header_checksum(
    frame(TEXT, stored=False), xxh32_intdigest(frame(TEXT, stored=False)[:6]) >> 8 & 0xFF
)
"""The checksum over the magic, too (KAFKA-3160)."""


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("flags", [0, 0x04, 0x08, 0x10, 0x1C])
@pytest.mark.parametrize(("block", "sizes"), [(100, 4), (65_536, 4), (65_536, 7), (1 << 18, 5)])
def test_the_forms_of_lz4(flags: int, block: int, sizes: int, *, stored: bool) -> None:
    payload = frame(TEXT, flags=flags, block=block, sizes=sizes, stored=stored)
    assert read(LZ4, payload) == TEXT


@pytest.mark.parametrize(
    "payload",
    [
        frame(TEXT, flags=0x04, content_checksum=7),  # which Kafka does not look at
        frame(TEXT) + b"garbage after the frame",
        frame(TEXT) + frame(b"more, which Kafka does not see"),
        frame(TEXT) + frame(b"more")[:-5],
        frame(TEXT) + with_header_checksum(frame(b"more"), 1),
        frame(TEXT)[:-4] + struct.pack("<I", 0x8000_0000),  # the end, in Kafka
        frame(TEXT)[:-4] + struct.pack("<I", 0x8000_0000) + frame(b"more")[7:],
    ],
)
def test_lz4_that_its_library_refuses(payload: bytes) -> None:
    assert read(LZ4, payload) == TEXT


def test_the_header_checksum_of_kafka_0_8() -> None:
    assert read(LZ4, KAFKA_0_8, magic=0) == TEXT
    assert read(LZ4, frame(TEXT, stored=False), magic=0) == TEXT
    for magic in (1, 2):
        with pytest.raises(CorruptPayload, match="checksum of a frame header"):
            unpack(LZ4, KAFKA_0_8, LIMIT, magic=magic)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"garbage that is no lz4",
        frame(TEXT)[:-1],
        frame(TEXT)[:5],
        frame(TEXT)[:40],
        frame(TEXT, flags=0x04)[:-9],
        frame(TEXT, block=70_000),
        changed(frame(TEXT, flags=0x10), 60, 0),  # a block does not have its checksum
        with_header_checksum(frame(TEXT), 1),
        b"\x04\x22\x4d\x18\x20\x40\x00" + bytes(4),
        b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"xyz" + frame(TEXT),
        frame(TEXT, flags=0x04)[:-4],
        frame(TEXT, flags=0x04)[:-1],
        relabeled(frame(TEXT), 0x40, 0x40),  # blocks that depend on each other
        relabeled(frame(TEXT), 0x61, 0x40),
        relabeled(frame(TEXT), 0x62, 0x40),
        relabeled(frame(TEXT), 0x60, 0x41),
        bytes(cramjam.lz4.compress(TEXT)),
    ],
)
def test_lz4_that_kafka_refuses(payload: bytes) -> None:
    assert refused(LZ4, payload)


# -- zstd ----------------------------------------------------------------------------------------


def streamed(data: bytes, step: int = 9_000, *, flush: bool = False) -> bytes:
    compressor = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    parts: list[bytes] = []
    for start in range(0, len(data), step):
        parts.append(compressor.compress(data[start : start + step]))
        if flush:
            parts.append(compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
    return b"".join(parts) + compressor.flush()


SKIPPED = struct.pack("<II", 0x184D_2A50, 5) + b"hello"


@pytest.mark.parametrize(
    "payload",
    [
        streamed(TEXT),
        streamed(TEXT, 50, flush=True),  # as many small blocks as would be 380 MB if they were full
        zstandard.ZstdCompressor(write_checksum=True, write_content_size=False).compress(TEXT),
        zstandard.ZstdCompressor().compress(TEXT),
        b"".join(zstandard.compress(TEXT[at : at + 999]) for at in range(0, len(TEXT), 999)),
        SKIPPED + zstandard.compress(TEXT),
        zstandard.compress(TEXT) + SKIPPED,
        zstandard.compress(b"") + zstandard.compress(TEXT),
        *[zstandard.compress(TEXT) + SKIPPED[:cut] for cut in range(len(SKIPPED))],
        *[zstandard.compress(TEXT) + streamed(b"more")[:cut] for cut in range(10)],
    ],
)
def test_the_forms_of_zstd(payload: bytes) -> None:
    assert read(ZSTD, payload) == TEXT


def test_zstd_of_nothing() -> None:
    for payload in (b"", SKIPPED, SKIPPED + SKIPPED[:3], zstandard.compress(b"")):
        assert read(ZSTD, payload) == b""


@pytest.mark.parametrize(
    "payload",
    [
        b"garbage that is no zstd",
        zstandard.compress(TEXT)[:-1],
        zstandard.compress(TEXT)[:6],
        zstandard.compress(TEXT) + b"garbage after the frame",
        changed(streamed(TEXT), 50, 0),
        zstandard.compress(TEXT) + b"\x28\xb5\x2e",
        zstandard.compress(TEXT) + b"\x61",
        zstandard.compress(TEXT) + streamed(TEXT, 50, flush=True)[:-200],
        SKIPPED[:9],
        SKIPPED[:2],
    ],
)
def test_zstd_that_is_damaged(payload: bytes) -> None:
    assert refused(ZSTD, payload)


# -- whatever comes ------------------------------------------------------------------------------


@given(st.sampled_from(CODECS), st.binary(max_size=300), st.data())
@settings(max_examples=examples(300))
def test_damaged_bytes_raise_one_error_or_unpack_within_the_limit(
    number: int, data: bytes, draw: st.DataObject
) -> None:
    payload = bytearray(pack(number, data * 20))
    for at in draw.draw(st.lists(st.integers(0, max(len(payload) - 1, 0)), max_size=4)):
        payload[at] = draw.draw(st.integers(0, 255))
    cut = draw.draw(st.integers(0, len(payload)))
    limit = draw.draw(st.sampled_from([50, 2_000, LIMIT]))
    magic = draw.draw(st.sampled_from([0, 1, 2]))
    for damaged in (bytes(payload), bytes(payload[:cut])):
        try:
            whole = unpack(number, damaged, limit, magic=magic)
        except CorruptPayload:
            whole = None
        try:
            small = unpack_small(number, damaged, limit, magic=magic)
        except CorruptPayload:
            assert whole is None
            continue
        assert small is None or whole == (small, True)
        assert whole is None or len(whole.data) <= limit


@given(st.sampled_from(CODECS), st.binary(max_size=300), st.sampled_from([50, LIMIT]))
@settings(max_examples=examples(200))
def test_garbage_raises_one_error_or_unpacks(number: int, payload: bytes, limit: int) -> None:
    for prefix in (b"", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18\x60\x40\x82", b"\x1f\x8b\x08\0"):
        try:
            data, _ = unpack(number, prefix + payload, limit)
        except CorruptPayload:
            continue
        assert len(data) <= limit
