"""Where events are written to: a file of lines, or a topic."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from dataclasses import replace
from typing import Any, Final, Protocol

from kip848_client.errors import Kip848Error
from kip848_client.history.core import HistoryEvent, line_of
from kip848_client.producer import Producer

__all__ = ["HistoryFile", "HistoryTopic", "Sink", "Stamp"]

_log: Final = logging.getLogger("kip848_client")


class Sink(Protocol):
    """What takes lines. What it cannot take is lost: nobody waits for it."""

    async def write(self, event: HistoryEvent) -> None:
        """Take an event, or raise ``OSError`` or ``Kip848Error``."""
        ...

    async def close(self) -> None:
        """Nothing comes any more."""
        ...


class Stamp:
    """Makes events those of one writer: a random name, a number that counts up, this host."""

    def __init__(self, writer: str | None = None, host: str | None = None) -> None:
        self._writer = secrets.token_hex(8) if writer is None else writer
        self._host = socket.gethostname() if host is None else host
        self._seq = 0

    def on(self, event: HistoryEvent) -> HistoryEvent:
        """The event with who wrote it; each has the next number, written or not."""
        stamped = replace(event, writer=self._writer, seq=self._seq, host=self._host)
        self._seq += 1
        return stamped


class HistoryFile:
    """Lines at the end of a file, which several processes of a machine may share. Each line is
    one write to the file, at once: what a killed process has told is there. Raises ``OSError``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # whoever wrote before was killed amid a line

    def append(self, event: HistoryEvent) -> None:
        """Write it. Raises ``OSError``."""
        line = line_of(event)
        written = os.write(self._file, line)
        if written < len(line):  # the disk is full: the rest would be another's line
            raise OSError(f"{written} of {len(line)} bytes were written")

    def end(self) -> None:
        """Close the file. Calling it twice is harmless."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    async def write(self, event: HistoryEvent) -> None:
        """Write it now. Raises ``OSError``."""
        self.append(event)

    async def close(self) -> None:
        """Close the file."""
        self.end()


class HistoryTopic:
    """Records of a topic, whose keys are the group: events of a group are in order of writing.
    ``producer`` takes bytes, and is started and stopped by whoever made it, after the recording has
    ended. What a broker refuses is told in the log, once."""

    def __init__(self, producer: Producer[bytes, bytes], topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._waiting: set[asyncio.Future[Any]] = set()
        self._has_told = False

    async def write(self, event: HistoryEvent) -> None:
        """Hand it to the producer. Raises ``Kip848Error``."""
        line = line_of(event).rstrip(b"\n")
        sent = await self._producer.send(self._topic, line, event.group_id.encode())
        future = asyncio.ensure_future(sent)
        self._waiting.add(future)
        future.add_done_callback(self._ended)

    async def close(self) -> None:
        """Wait until what was handed over is written, or refused."""
        if self._waiting:
            await asyncio.wait(self._waiting)

    def _ended(self, future: asyncio.Future[Any]) -> None:
        self._waiting.discard(future)
        error = None if future.cancelled() else future.exception()
        if error is not None and not self._has_told:
            self._has_told = True
            _log.warning("events of groups are lost: topic %s: %s", self._topic, error)


LOSSES: Final = (OSError, Kip848Error)
"""What a sink may raise."""
