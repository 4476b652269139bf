"""Bytes that nobody meant: whatever arrives, the wire layer raises ``WireError`` or nothing.

200,000 seeded byte strings over all messages and versions: pure noise, and real messages that
were cut, stretched, spliced or had bytes changed, which get much deeper into a decoder than noise
does. Every message that does decode must also encode again: a decoder may not make up values that
have no wire form.
"""

from __future__ import annotations

import functools
import random
import struct
from collections.abc import Callable
from typing import Any, Final

import pytest

from kip848_client.core.wire import (
    APIS,
    MAX_FRAME_BYTES,
    Framer,
    decode,
    encode,
    read_request,
    read_response,
    write_request,
    write_response,
)
from kip848_client.errors import WireError
from tests.fuzz.random_messages import RandomMessages, mutated

PARTS: Final = 8
STRINGS: Final = 200_000 // PARTS
FRAMES: Final = 20_000

EVERY: Final = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1)
]


def survives(read: Callable[[bytes], Any], data: bytes, what: str) -> Any:
    """What was read, ``None`` for a refusal. Anything but ``WireError`` fails, with the bytes."""
    try:
        return read(data)
    except WireError:
        return None
    except BaseException as err:
        err.add_note(f"{what} of bytes.fromhex({data.hex()!r})")
        raise


@pytest.mark.parametrize("part", range(PARTS))
def test_random_bytes_give_only_wire_errors(part: int) -> None:
    rng = random.Random(f"wire-fuzz-{part}")
    source = RandomMessages(rng)
    decoded = fed = 0
    while fed < STRINGS:
        cls, version = rng.choice(EVERY)
        read = functools.partial(decode, cls, version)
        raw = encode(source.message(cls, version), version)
        assert read(raw) is not None
        for _ in range(8):
            noise = rng.random() < 0.25
            data = rng.randbytes(rng.randrange(120)) if noise else mutated(raw, rng)
            message = survives(read, data, f"decode {cls.__name__} v{version}")
            fed += 1
            if message is not None:
                encode(message, version)
                decoded += 1
    # Both outcomes must be common, or the mutations do not reach what they should.
    assert STRINGS * 0.05 < decoded < STRINGS * 0.7


def test_random_frames_give_only_wire_errors() -> None:
    rng = random.Random("wire-fuzz-frames")
    source = RandomMessages(rng)
    apis = list(APIS.values())
    read_well = 0
    for _ in range(FRAMES):
        api = rng.choice(apis)
        version = rng.randint(*api.versions)
        read: Callable[[bytes], Any]
        if rng.random() < 0.5:
            frame = write_request(source.message(api.request, version), version, 7, "client")
            read = read_request
        else:
            frame = write_response(source.message(api.response, version), api, version, 7)
            read = functools.partial(read_response, api=api, version=version)
        assert read(frame[4:]) is not None
        found = survives(read, mutated(frame[4:], rng), f"frame {api.name} v{version}")
        read_well += found is not None
    assert FRAMES * 0.05 < read_well < FRAMES * 0.7


def test_every_cut_of_every_message_is_refused() -> None:
    """A message ends where its bytes end: no proper prefix of one is another."""
    rng = random.Random("wire-fuzz-cuts")
    source = RandomMessages(rng)
    for cls, version in EVERY:
        raw = encode(source.message(cls, version), version)
        for size in range(len(raw)):
            with pytest.raises(WireError):
                decode(cls, version, raw[:size])
        with pytest.raises(WireError):
            decode(cls, version, raw + b"\0")


def some_frames() -> list[bytes]:
    rng = random.Random("wire-fuzz-stream")
    source = RandomMessages(rng)
    messages = [(cls, version) for cls, version in EVERY if cls.__name__.endswith("Request")]
    return [
        write_request(source.message(cls, version), version, number, None)
        for number, (cls, version) in enumerate(rng.sample(messages, 12))
    ]


def test_a_stream_may_be_split_at_every_byte() -> None:
    frames = some_frames()
    payloads = [frame[4:] for frame in frames]
    stream = b"".join(frames)
    for cut in range(len(stream) + 1):
        framer = Framer()
        assert framer.feed(stream[:cut]) + framer.feed(stream[cut:]) == payloads
        assert framer.buffered_bytes == 0
    one_by_one = Framer()
    found = [frame for byte in stream for frame in one_by_one.feed(bytes([byte]))]
    assert found == payloads


def test_a_stream_may_come_in_random_pieces() -> None:
    rng = random.Random("wire-fuzz-pieces")
    frames = some_frames()
    stream = b"".join(frames)
    for _ in range(300):
        framer = Framer()
        found: list[bytes] = []
        at = 0
        while at < len(stream):
            size = rng.choice((0, 1, 3, 4, 5, 17, 300, 5000))
            found += framer.feed(stream[at : at + size])
            at += size
        assert found == [frame[4:] for frame in frames]


@pytest.mark.parametrize("size", [-1, -(2**31), MAX_FRAME_BYTES + 1, 2**31 - 1])
def test_a_garbage_size_is_refused_before_its_bytes_arrive(size: int) -> None:
    framer = Framer()
    good = some_frames()[0]
    assert framer.feed(good) == [good[4:]]
    raw = struct.pack(">i", size)
    assert framer.feed(raw[:3]) == []
    with pytest.raises(WireError, match=str(size)):
        framer.feed(raw[3:])


def test_random_streams_give_frames_or_wire_errors() -> None:
    rng = random.Random("wire-fuzz-streams")
    for _ in range(3_000):
        framer = Framer(max_bytes=1000)
        stream = rng.randbytes(rng.randrange(60))
        if rng.random() < 0.5:
            stream = struct.pack(">i", rng.randrange(40)) + stream
        try:
            for at in range(0, len(stream), 7):
                for frame in framer.feed(stream[at : at + 7]):
                    survives(read_request, frame, "request")
        except WireError:
            continue
        assert framer.buffered_bytes <= len(stream)
