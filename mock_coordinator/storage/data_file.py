"""One append-only file that survives a crash of its process at any moment.

Theory of operation
===================

The file is a line that names the format, followed by *groups*. A group is one write: all entries
between two flushes, after a header with its length, the checksum of the length, and that of the
content. A group counts as a whole or not at all, and a group is only begun when the previous one
was passed to the disk. So an incomplete group at the very end of the file is a *torn tail*: it was
not acknowledged to any client, and it is removed, with a line in the log. Anything wrong before the
end is damage, which no crash of this program leaves behind. It is an error with the position, and
the file is not changed.

A file that has become much larger than its content is rewritten: the new one is written beside it
and renamed when it is safe.
"""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import crc32c

from kip848_client.errors import ConfigError
from mock_coordinator.storage.entries import Entry, read_entries, write_entry

__all__ = ["DataDamaged", "DataFile", "DataUnwritable"]

_log: Final = logging.getLogger("mock_coordinator")

_MAGIC: Final = b"kip848-mock-data 2\n"
_OLD_MAGIC: Final = b"kip848-mock-data 1\n"
_HEAD: Final = struct.Struct(">QII")
"""Length of the content, checksum of these eight bytes, checksum of the content."""
_LENGTH: Final = struct.Struct(">Q")
_GROUP_BYTES: Final = 1 << 20


class DataUnwritable(OSError):
    """The data folder cannot be written, for instance because the disk is full."""


class DataDamaged(ConfigError):
    """The data folder has invalid content; the message says what and where."""


class DataFile:
    """The file at ``path``, made when it does not exist. One of format 1 can be read, and must be
    rewritten before anything else is written (``is_old``).

    Iterate ``read`` to its end once, then ``append`` and ``sync``. Every method raises ``OSError``
    for what the file system refuses.
    """

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self._file = self._opened(path)
        self.size_bytes = 0
        self.is_old = False

    def _opened(self, path: Path) -> BinaryIO:
        new = not path.exists()
        file = path.open("r+b" if not new else "w+b", buffering=0)
        if new:
            file.write(_MAGIC)
            os.fsync(file.fileno())
            _sync_folder(path.parent)
        return file

    def read(self) -> Iterator[Entry]:
        """All entries, oldest first; a torn tail is cut off.

        Raises ``DataDamaged`` for a file that is damaged or not one of ours.
        """
        file, size = self._file, self._path.stat().st_size
        file.seek(0)
        magic = file.read(len(_MAGIC))
        self.is_old = magic == _OLD_MAGIC
        if magic != _MAGIC and not self.is_old:
            if _MAGIC.startswith(magic):  # it was being made when the process died
                self._cut(0, size)
                file.write(_MAGIC)
                os.fsync(file.fileno())
                self.size_bytes = len(_MAGIC)
                return
            raise DataDamaged(f"{self._path} is not a data file of this version of kip848 mock")
        position = len(_MAGIC)
        while position < size:
            content = self._group(position, size)
            if content is None:
                self._cut(position, size)
                break
            try:
                yield from read_entries(content)
            except ValueError as err:
                raise self._damaged(position, str(err)) from err
            position += _HEAD.size + len(content)
            file.seek(position)
        self.size_bytes = position

    def _group(self, position: int, size: int) -> bytes | None:
        """The content of the group at a position, ``None`` when it is a torn tail."""
        self._file.seek(position)
        head = self._file.read(_HEAD.size)
        if len(head) < _HEAD.size or self._only_zeros(position):
            return None
        length, head_checksum, checksum = _HEAD.unpack(head)
        if crc32c.crc32c(head[: _LENGTH.size]) != head_checksum:
            raise self._damaged(position, "the header of a group has a wrong checksum")
        end = position + _HEAD.size + length
        if end > size:
            return None
        content = _read_fully(self._file, length)
        if crc32c.crc32c(content) != checksum:
            if end == size:
                return None
            raise self._damaged(position, "a group has a wrong checksum")
        return content

    def _only_zeros(self, position: int) -> bool:
        """Some file systems lengthen a file before its content is there."""
        self._file.seek(position)
        while chunk := self._file.read(_GROUP_BYTES):
            if chunk.count(0) != len(chunk):
                self._file.seek(position + _HEAD.size)
                return False
        return True

    def _cut(self, position: int, size: int) -> None:
        _log.warning(
            "%s: removed %d bytes at %d, an incomplete last write",
            self._path,
            size - position,
            position,
        )
        self._file.truncate(position)
        os.fsync(self._file.fileno())
        self._file.seek(position)

    def _damaged(self, position: int, what: str) -> DataDamaged:
        return DataDamaged(
            f"{self._path} is damaged at byte {position}: {what}. Nothing was changed. Restore the "
            f"file from a copy, or give another folder."
        )

    def append(self, entries: Iterable[Entry]) -> None:
        """Write one group to the operating system: a crash of the process does not lose it any
        more."""
        self.append_content(b"".join(map(write_entry, entries)))

    def append_content(self, content: bytes) -> None:
        """As ``append``, for entries that are bytes already."""
        self._file.seek(self.size_bytes)
        _write_fully(self._file, _group(content))
        self.size_bytes += _HEAD.size + len(content)

    def sync(self) -> None:
        """Wait until everything written is on the disk: a crash of the machine does not lose it any
        more."""
        os.fsync(self._file.fileno())

    def rewrite(self, entries: Iterable[Entry]) -> None:
        """Replace the content by these entries, all at once."""
        new_path = self._path.with_suffix(".new")
        size = len(_MAGIC)
        file = new_path.open("w+b", buffering=0)
        _write_fully(file, _MAGIC)
        for content in _grouped(entries):
            _write_fully(file, _group(content))
            size += _HEAD.size + len(content)
        os.fsync(file.fileno())
        new_path.replace(self._path)
        _sync_folder(self._path.parent)
        self._file.close()
        self._file, self.size_bytes = file, size
        self.is_old = False

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _group(content: bytes) -> bytes:
    length = _LENGTH.pack(len(content))
    return _HEAD.pack(len(content), crc32c.crc32c(length), crc32c.crc32c(content)) + content


def _grouped(entries: Iterable[Entry]) -> Iterator[bytes]:
    content = bytearray()
    for entry in entries:
        content += write_entry(entry)
        if len(content) >= _GROUP_BYTES:
            yield bytes(content)
            content.clear()
    if content:
        yield bytes(content)


def _read_fully(file: BinaryIO, size: int) -> bytes:
    pieces: list[bytes] = []
    while size > 0 and (piece := file.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _write_fully(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        written = file.write(view)
        view = view[written:]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
