"""The targets of events: a file of lines, or a topic."""

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
    """Takes events. What it cannot take is lost: the consumer does not wait for it."""

    async def write(self, event: HistoryEvent) -> None:
        """Take an event.

        Args:
            event: With ``writer``, ``seq`` and ``host``.

        Raises:
            OSError: It cannot be written.
            Kip848Error: It cannot be sent.
        """
        ...

    async def close(self) -> None:
        """End: no event follows. Raises nothing."""
        ...


class Stamp:
    """Marks events with their writer: a random name, a rising number, this host.

    Args:
        writer: The name. Default: 16 random hexadecimal digits.
        host: Default: the name of this machine.
    """

    def __init__(self, writer: str | None = None, host: str | None = None) -> None:
        self._writer = secrets.token_hex(8) if writer is None else writer
        self._host = socket.gethostname() if host is None else host
        self._seq = 0

    def on(self, event: HistoryEvent) -> HistoryEvent:
        """Add who wrote the event. Raises nothing.

        Each event gets the next number, written or not.

        Args:
            event: Any.

        Returns:
            The event with ``writer``, ``seq`` and ``host``.
        """
        stamped = replace(event, writer=self._writer, seq=self._seq, host=self._host)
        self._seq += 1
        return stamped


class HistoryFile:
    """Lines at the end of a file, which several processes of one machine may share.

    Each line is one write to the file, at once: the lines of a killed process are there.

    Args:
        path: The file; it is created if need be.

    Raises:
        OSError: The file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        size = os.fstat(self._file).st_size
        if size and os.pread(self._file, 1, size - 1) != b"\n":
            os.write(self._file, b"\n")  # the last writer was killed in the middle of a line

    def append(self, event: HistoryEvent) -> None:
        """Write an event now.

        Args:
            event: With ``writer``, ``seq`` and ``host``.

        Raises:
            OSError: It cannot be written, or only a part of it: the disk is full.
        """
        line = line_of(event)
        written = os.write(self._file, line)
        if written < len(line):  # the disk is full: the rest could end up in another line
            raise OSError(f"{written} of {len(line)} bytes were written")

    def end(self) -> None:
        """Close the file. You may call it more than once. Raises nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    async def write(self, event: HistoryEvent) -> None:
        """Write an event now. See ``HistoryFile.append``."""
        self.append(event)

    async def close(self) -> None:
        """Close the file. Raises nothing."""
        self.end()


class HistoryTopic:
    """Records of a topic, with the group as key.

    Events of a group are in order of writing. What a broker refuses is logged, once.

    Args:
        producer: For bytes. Start it before the recording, and stop it after that.
        topic: Name of the topic.
    """

    def __init__(self, producer: Producer[bytes, bytes], topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._waiting: set[asyncio.Future[Any]] = set()
        self._has_told = False

    async def write(self, event: HistoryEvent) -> None:
        """Send an event, without waiting for its acknowledgement.

        Args:
            event: With ``writer``, ``seq`` and ``host``.

        Raises:
            Kip848Error: What ``Producer.send`` raises.
        """
        line = line_of(event).rstrip(b"\n")
        sent = await self._producer.send(self._topic, line, event.group_id.encode())
        future = asyncio.ensure_future(sent)
        self._waiting.add(future)
        future.add_done_callback(self._ended)

    async def close(self) -> None:
        """Wait until all records are written or refused. Raises nothing."""
        if self._waiting:
            await asyncio.wait(self._waiting)

    def _ended(self, future: asyncio.Future[Any]) -> None:
        self._waiting.discard(future)
        error = None if future.cancelled() else future.exception()
        if error is not None and not self._has_told:
            self._has_told = True
            _log.warning("events of groups are lost: topic %s: %s", self._topic, error)


LOSSES: Final = (OSError, Kip848Error)
"""The errors that a sink may raise."""
