"""Frames out of bytes that come in pieces."""

from __future__ import annotations

import asyncio
import resource
import struct
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.runtime.net._frames import FrameProtocol
from tests.unit.waiting import some_rounds

SMALL = 8192


def framed(frames: Iterable[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(frame)) + frame for frame in frames)


def bytes_of(size: int) -> bytes:
    return bytes(number % 251 for number in range(size))


class Receiving:
    """A protocol, and what it has handed out. ``stop_after``: frames until it is told to stop."""

    def __init__(self, stop_after: int = 1 << 30) -> None:
        self.loop = asyncio.new_event_loop()
        self.reader = asyncio.StreamReader(loop=self.loop)
        inner = asyncio.StreamReaderProtocol(self.reader, loop=self.loop)
        self.frames: list[bytes] = []
        self._stop_after = stop_after
        self._soon: list[Callable[[], None]] = []
        self.protocol = FrameProtocol(inner, self.reader, self._take, self._soon.append)

    def _take(self, frame: bytes) -> bool:
        self.frames.append(frame)
        return len(self.frames) < self._stop_after

    def feed(self, data: bytes, pieces: Iterator[int], *, at_once: bool = False) -> None:
        """As a transport does: never more at once than there is room for. ``at_once``: without a
        turn of the loop between, as TLS does."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._read(rest, next(pieces)) :]
            if not at_once:
                self.turn()
        self.turn()

    def _read(self, data: memoryview, most: int) -> int:
        room = self.protocol.get_buffer(-1)
        assert len(room) > 0
        count = min(len(room), most, len(data))
        room[:count] = data[:count]
        self.protocol.buffer_updated(count)
        return count

    def turn(self) -> None:
        """A turn of the loop."""
        while self._soon:
            self._soon.pop(0)()

    def close(self) -> None:
        self.loop.close()


@pytest.fixture
def receiving() -> Iterator[Receiving]:
    made = Receiving()
    yield made
    made.close()


@given(
    sizes=st.lists(
        st.one_of(
            st.integers(0, 40), st.integers(SMALL - 20, SMALL + 20), st.integers(0, 5 * SMALL)
        ),
        max_size=8,
    ),
    pieces=st.lists(st.integers(1, 3 * SMALL), min_size=1, max_size=30),
    at_once=st.booleans(),
)
def test_frames_come_out_as_they_went_in_however_they_are_cut(
    sizes: list[int], pieces: list[int], at_once: bool
) -> None:
    receiving = Receiving()
    frames = [bytes_of(size) for size in sizes]
    receiving.feed(framed(frames), chain.from_iterable(repeat(pieces)), at_once=at_once)
    receiving.close()
    assert receiving.frames == frames


def test_a_byte_at_a_time(receiving: Receiving) -> None:
    frames = [b"", b"a", bytes_of(SMALL), bytes_of(3 * SMALL), b"z"]
    receiving.feed(framed(frames), repeat(1))
    assert receiving.frames == frames


def test_the_next_frame_is_not_read_into_a_large_one(receiving: Receiving) -> None:
    data = framed([bytes_of(2 * SMALL)])
    receiving.feed(data[:-1], repeat(SMALL))
    assert len(receiving.protocol.get_buffer(-1)) == 1


@pytest.mark.parametrize("before", [[], [b"answer"]])
def test_a_size_below_zero_ends_the_connection(receiving: Receiving, before: list[bytes]) -> None:
    receiving.feed(framed(before) + struct.pack(">i", -5) + b"more" * 5000, repeat(SMALL))
    assert receiving.frames == before
    with pytest.raises(ConnectionError, match="a frame of -5 bytes"):
        receiving.loop.run_until_complete(receiving.reader.readexactly(4))


@pytest.mark.parametrize("size", [2, 2 * SMALL])
def test_an_error_while_a_frame_is_taken_ends_the_connection(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    def take(frame: bytes) -> bool:
        raise IndexError(frame)

    monkeypatch.setattr(receiving.protocol, "_on_frame", take)
    receiving.feed(framed([bytes(size)] * 2), repeat(SMALL))
    with pytest.raises(ConnectionError, match="IndexError"):
        receiving.loop.run_until_complete(receiving.reader.readexactly(4))


def test_a_size_that_lies_takes_no_memory_before_the_bytes_come(receiving: Receiving) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    receiving.feed(struct.pack(">i", 2**31 - 1) + b"x" * 100, repeat(SMALL))
    assert receiving.frames == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000


def test_nothing_is_handed_out_after_it_was_told_to_stop() -> None:
    receiving = Receiving(stop_after=2)
    receiving.feed(framed([b"1", b"2", b"3"]) + bytes_of(5 * SMALL), repeat(SMALL))
    receiving.close()
    assert receiving.frames == [b"1", b"2"]


def test_a_large_frame_is_not_copied(receiving: Receiving) -> None:
    size = 8 << 20
    data = framed([bytes(size)])
    receiving.feed(data[:SMALL], repeat(SMALL))
    tracemalloc.start()
    receiving.feed(data[SMALL:], repeat(1 << 20))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [len(frame) for frame in receiving.frames] == [size]
    assert most < size + size // 2  # the slice of what is fed, and no more


async def _end(receiving: Receiving) -> bytes:
    waiting = asyncio.ensure_future(receiving.reader.read(1))
    await some_rounds()
    receiving.protocol.eof_received()
    return await waiting


def test_the_end_of_the_stream_reaches_whoever_waits_there(receiving: Receiving) -> None:
    receiving.feed(struct.pack(">i", 100) + b"half", repeat(SMALL))
    assert receiving.loop.run_until_complete(_end(receiving)) == b""
    assert receiving.reader.at_eof()
