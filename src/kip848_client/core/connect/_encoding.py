"""The encoding of Kafka Connect's worker metadata and assignments: versions 0 (eager),
1 (compatible) and 2 (sessioned), as written by Kafka's ``ConnectProtocol`` and
``IncrementalCooperativeConnectProtocol``.

All numbers are big-endian. Strings have a 16-bit length prefix, bytes and arrays a 32-bit one; -1
stands for null. The version comes first.

========== ===================== ===================== ===========================================
of         field                 type                  versions
========== ===================== ===================== ===========================================
metadata   url                   string                0, 1, 2
           config offset         int64                 0, 1, 2
           allocation            nullable bytes        1, 2: an assignment with its own version
           data                  bytes to the end      1, 2: not Kafka's
assignment error                 int16                 0, 1, 2
           leader, leader url    string, string        0, 1, 2
           config offset         int64                 0, 1, 2
           assigned              array of items        0, 1, 2; nullable in 1, 2
           revoked               nullable array        1, 2
           scheduled delay       int32                 1, 2
           data                  bytes to the end      1, 2: not Kafka's
========== ===================== ===================== ===========================================

Each entry of an array of items has a connector's name and an array of task numbers; the number -1
is the connector itself. Entries that contain the connector itself come first (in assignments, in
the order of Java's ``HashSet``); the others follow in the order of their first tasks.

Versions above 2 belong to custom assignors, or to later versions of Kafka; they are written and
read like 2. As in Kafka, readers ignore trailing bytes, and treat fields missing at the end of
versions 1 and up as null or 0. Any other error in the bytes raises ``WireError``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from kip848_client.core.assignors import string_set_order
from kip848_client.core.connect._items import ITSELF, NO_ITEMS, ConnectorTaskId, Items
from kip848_client.errors import WireError

__all__ = ["CONFIG_MISMATCH", "WorkerAssignment", "WorkerMetadata"]

CONFIG_MISMATCH: Final = 1
"""The error code of an assignment when the leader could not read the configuration up to the offset
that other workers have read."""

_MAX_STRING_BYTES: Final = 0x7FFF
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_HIGHEST: Final = 2
_METADATA: Final = "worker metadata"
_ASSIGNMENT: Final = "worker assignment"


@dataclass(frozen=True, slots=True)
class WorkerAssignment:
    """The assignment of one worker or, within metadata, the items it runs.

    ``assigned``: in version 0, all the items to run; in later versions, the items to start.
    ``revoked``: the items to stop.
    """

    leader: str = ""
    """The member id of the leader."""
    leader_url: str = ""
    config_offset: int = -1
    """The config offset that the assignment is based on."""
    assigned: Items | None = NO_ITEMS
    revoked: Items | None = NO_ITEMS
    delay_ms: int = 0
    """In how many milliseconds all workers are to request the next assignment; 0 for never."""
    error: int = 0
    """0 or ``CONFIG_MISMATCH``."""
    version: int = _HIGHEST
    data: bytes = b""
    """Additional data of a custom assignor, at the end; see ``WorkerMetadata.data``. Not present in
    an assignment within metadata."""

    def encode(self) -> bytes:
        """Encode in ``version``. Version 0 has no fields for ``revoked`` and ``delay_ms``; they are
        left out, as in Kafka. Raises ``WireError`` for a value that does not fit."""
        out = bytearray()
        _put(out, _INT16, _version(self.version, _ASSIGNMENT), "version")
        _put(out, _INT16, self.error, "error")
        _put_string(out, self.leader, "leader")
        _put_string(out, self.leader_url, "leader url")
        _put(out, _INT64, self.config_offset, "config offset")
        if self.assigned is None and self.version == 0:
            raise WireError("worker assignment: version 0 cannot do without assigned items")
        _put_items(out, self.assigned, string_set_order)
        if self.version > 0:
            _put_items(out, self.revoked, dict.fromkeys)
            _put(out, _INT32, self.delay_ms, "delay")
        elif self.data:
            raise WireError("worker assignment: version 0 cannot have more data")
        return bytes(out + self.data)

    @classmethod
    def decode(cls, raw: bytes, *, version: int | None = None) -> WorkerAssignment:
        """Decode the bytes. ``version``: the version received with them, if any. Raises
        ``WireError`` for bytes that cannot be read, or that are of another version."""
        reader = _Reader(raw, _ASSIGNMENT)
        found = reader.version(version)
        error = reader.number(_INT16, "error")
        leader, url = reader.string("leader"), reader.string("leader url")
        offset = reader.number(_INT64, "config offset")
        if found == 0:
            items = reader.items("assigned")
            if items is None:
                raise WireError("worker assignment: assigned items are null in version 0")
            return cls(leader, url, offset, items, NO_ITEMS, 0, error, 0)
        assigned = reader.items("assigned") if reader.has_more else None
        revoked = reader.items("revoked") if reader.has_more else None
        delay = reader.number(_INT32, "delay") if reader.has_more else 0
        if delay < 0:
            raise WireError(f"worker assignment: the delay is {delay} ms")
        return cls(leader, url, offset, assigned, revoked, delay, error, found, reader.rest())


@dataclass(frozen=True, slots=True)
class WorkerMetadata:
    """The metadata of one worker."""

    url: str
    """The URL where other workers reach it."""
    config_offset: int
    """The config offset up to which it has read."""
    allocation: WorkerAssignment | None = None
    """The items it runs, as ``assigned``. ``None`` for a worker that never had an assignment, and
    where this is reported elsewhere; never present in version 0."""
    version: int = _HIGHEST
    data: bytes = b""
    """Additional data of a custom assignor, at the end. Kafka writes nothing there, and its readers
    ignore it. Not in version 0, whose readers would not."""

    def encode(self) -> bytes:
        """Encode in ``version``, including the allocation. Version 0 has no field for one; it is
        left out, as in Kafka. Raises ``WireError`` for a value that does not fit."""
        out = bytearray()
        _put(out, _INT16, _version(self.version, _METADATA), "version")
        _put_string(out, self.url, "url")
        _put(out, _INT64, self.config_offset, "config offset")
        if self.version > 0:
            if self.allocation is None:
                _put(out, _INT32, -1, "allocation")
            else:
                raw = replace(self.allocation, version=self.version, data=b"").encode()
                _put(out, _INT32, len(raw), "allocation")
                out += raw
        elif self.data:
            raise WireError("worker metadata: version 0 cannot have more data")
        return bytes(out + self.data)

    @classmethod
    def decode(cls, raw: bytes, *, version: int | None = None) -> WorkerMetadata:
        """Decode the bytes. ``version``: the version received with them, if any. Raises
        ``WireError`` for bytes that cannot be read, or that are of another version."""
        reader = _Reader(raw, _METADATA)
        found = reader.version(version)
        url = reader.string("url")
        offset = reader.number(_INT64, "config offset")
        inner = reader.blob("allocation") if found > 0 and reader.has_more else None
        allocation = None if inner is None else replace(WorkerAssignment.decode(inner), data=b"")
        return cls(url, offset, allocation, found, reader.rest() if found > 0 else b"")


# -- writing ---------------------------------------------------------------------------------------


def _version(version: int, what: str) -> int:
    if version < 0:
        raise WireError(f"{what}: version {version} is negative")
    return version


def _put(out: bytearray, kind: struct.Struct, value: int, what: str) -> None:
    try:
        out += kind.pack(value)
    except struct.error as err:
        raise WireError(f"{what} = {value!r}: {err}") from err


def _put_string(out: bytearray, text: str, what: str) -> None:
    try:
        raw = text.encode()
    except UnicodeEncodeError as err:
        raise WireError(f"{what}: {err}") from err
    if len(raw) > _MAX_STRING_BYTES:
        raise WireError(f"{what} has {len(raw)} bytes; no string has more than {_MAX_STRING_BYTES}")
    _put(out, _INT16, len(raw), what)
    out += raw


def _put_items(
    out: bytearray, items: Items | None, order: Callable[[Iterable[str]], Iterable[str]]
) -> None:
    if items is None:
        _put(out, _INT32, -1, "items")
        return
    rows: dict[str, list[int]] = {name: [ITSELF] for name in order(items.connectors)}
    for connector, task in items.tasks:
        rows.setdefault(connector, []).append(task)
    _put(out, _INT32, len(rows), "items")
    for connector, tasks in rows.items():
        _put_string(out, connector, "connector")
        try:
            out += struct.pack(f">i{len(tasks)}i", len(tasks), *tasks)
        except struct.error as err:
            raise WireError(f"tasks of {connector}: {err}") from err


# -- reading ---------------------------------------------------------------------------------------


class _Reader:
    __slots__ = ("_at", "_raw", "_what")

    def __init__(self, raw: bytes, what: str) -> None:
        self._raw = bytes(raw)
        self._what = what
        self._at = 0

    @property
    def has_more(self) -> bool:
        return self._at < len(self._raw)

    def version(self, expected: int | None) -> int:
        found = self.number(_INT16, "version")
        if found < 0:
            raise self._bad(f"version {found} is negative")
        if expected is not None and found != expected:
            raise self._bad(f"it says version {found}, and was sent as version {expected}")
        return found

    def number(self, kind: struct.Struct, what: str) -> int:
        value: int
        (value,) = kind.unpack(self._take(kind.size, what))
        return value

    def string(self, what: str) -> str:
        length = self.number(_INT16, what)
        if length < 0:
            raise self._bad(f"{what} has a length of {length}")
        try:
            return self._take(length, what).decode()
        except UnicodeDecodeError as err:
            raise self._bad(f"{what} is not UTF-8: {err.reason}") from err

    def blob(self, what: str) -> bytes | None:
        length = self.number(_INT32, what)
        return None if length < 0 else self._take(length, what)

    def items(self, what: str) -> Items | None:
        count = self.number(_INT32, what)
        if count < 0:
            return None
        self._require(count * 6, what)  # an entry has at least a length and a count
        connectors: list[str] = []
        tasks: list[ConnectorTaskId] = []
        for _ in range(count):
            name = self.string(f"a connector in {what}")
            length = self.number(_INT32, f"tasks of {name}")
            if length < 0:
                raise self._bad(f"tasks of {name} in {what} have a length of {length}")
            raw = self._take(length * 4, f"tasks of {name}")
            for task in struct.unpack(f">{length}i", raw):
                if task == ITSELF:
                    connectors.append(name)
                elif task < 0:
                    raise self._bad(f"task {task} of {name} in {what}")
                else:
                    tasks.append(ConnectorTaskId(name, task))
        return Items(tuple(connectors), tuple(tasks))

    def rest(self) -> bytes:
        return self._raw[self._at :]

    def _take(self, size: int, what: str) -> bytes:
        self._require(size, what)
        end = self._at + size
        found = self._raw[self._at : end]
        self._at = end
        return found

    def _require(self, size: int, what: str) -> None:
        left = len(self._raw) - self._at
        if size > left:
            raise self._bad(f"{what} would have at least {size} bytes, and {left} are left")

    def _bad(self, problem: str) -> WireError:
        return WireError(f"{self._what}: {problem}")
