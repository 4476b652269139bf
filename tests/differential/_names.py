"""What one side calls something that the other side calls otherwise.

Ids that a broker makes up (of members, producers, topics, fetch sessions) differ between brokers. A
``Names`` learns them from pairs of answers and rewrites messages: ``there`` from what the leading
side says to what the other one must hear, ``back`` for the answers.

Rewriting is exact for ids of topics, producers and sessions, which are fields of their own
(producer ids also in the headers of record batches), and by parts of strings for the rest.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import crc32c

__all__ = ["Names", "renamed"]

_PRODUCER_FIELDS: Final = frozenset(
    {"producer_id", "v3_and_below_producer_id", "ongoing_txn_producer_id"}
)
_SESSION_FIELD: Final = "session_id"
_BATCH_HEADER_BYTES: Final = 61
_CRC_AT: Final = 17
_CRC_FROM: Final = 21
_PRODUCER_AT: Final = 43


@dataclass(slots=True)
class Names:
    """Pairs of names: ours (the leading side's) to theirs."""

    strings: dict[str, str] = field(default_factory=dict[str, str])
    topic_ids: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    producers: dict[int, int] = field(default_factory=dict[int, int])
    sessions: dict[int, int] = field(default_factory=dict[int, int])
    """Of fetches."""

    def there(self, message: Any) -> Any:
        """A message as the other side has to hear it."""
        return _rewritten(message, self) if self else message

    def back(self, message: Any) -> Any:
        """What the other side said, in the leading side's names."""
        if not self:
            return message
        turned = Names(
            {theirs: ours for ours, theirs in self.strings.items()},
            {theirs: ours for ours, theirs in self.topic_ids.items()},
            {theirs: ours for ours, theirs in self.producers.items()},
            {theirs: ours for ours, theirs in self.sessions.items()},
        )
        return _rewritten(message, turned)

    def __bool__(self) -> bool:
        """Whether any name differs."""
        return bool(self.strings or self.topic_ids or self.producers or self.sessions)

    def note(self, request: Any, ours: Any, theirs: Any) -> None:
        """Learn from the answers of both sides which names they made up for the same thing."""
        kind = type(request).__name__
        if kind in ("ConsumerGroupHeartbeatRequest", "JoinGroupRequest"):
            if request.member_id == "":
                self._note_string(ours, theirs, "member_id")
        elif kind in ("InitProducerIdRequest", "EndTxnRequest"):
            self._note_producer(ours, theirs)
        elif kind == "CreateTopicsRequest":
            self._note_topics(ours, theirs)
        elif kind == "FetchRequest" and request.session_epoch == 0:
            self._note_session(ours, theirs)

    def _note_string(self, ours: Any, theirs: Any, name: str) -> None:
        left, right = getattr(ours, name, None), getattr(theirs, name, None)
        if left and right and left != right:
            self.strings[left] = right

    def _note_producer(self, ours: Any, theirs: Any) -> None:
        left, right = getattr(ours, "producer_id", -1), getattr(theirs, "producer_id", -1)
        if left >= 0 and right >= 0:
            self.producers[left] = right

    def _note_session(self, ours: Any, theirs: Any) -> None:
        left, right = getattr(ours, _SESSION_FIELD, 0), getattr(theirs, _SESSION_FIELD, 0)
        if left and right:
            self.sessions[left] = right

    def _note_topics(self, ours: Any, theirs: Any) -> None:
        theirs_by_name = {each.name: each.topic_id for each in getattr(theirs, "topics", ())}
        for each in getattr(ours, "topics", ()):
            other = theirs_by_name.get(each.name, bytes(16))
            if each.topic_id != bytes(16) and other not in (bytes(16), each.topic_id):
                self.topic_ids[each.topic_id] = other


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A copy of a message in which every string has had these parts replaced, in this order."""
    return _rewritten(value, Names(dict(names))) if names else value


def _rewritten(value: Any, names: Names) -> Any:
    if isinstance(value, str):
        for old, new in names.strings.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, bytes):
        return names.topic_ids.get(value, value) if len(value) == 16 else value
    if isinstance(value, tuple):
        return tuple(_rewritten(each, names) for each in value)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    changed: dict[str, Any] = {}
    for each in dataclasses.fields(value):
        item = getattr(value, each.name)
        if each.name in _PRODUCER_FIELDS:
            changed[each.name] = names.producers.get(item, item)
        elif each.name == _SESSION_FIELD:
            changed[each.name] = names.sessions.get(item, item)
        elif each.name == "records" and isinstance(item, bytes):
            changed[each.name] = _with_producers(item, names.producers)
        else:
            changed[each.name] = _rewritten(item, names)
    return dataclasses.replace(value, **changed)


def _with_producers(records: bytes, producers: Mapping[int, int]) -> bytes:
    """Record batches with the producer ids of their headers replaced, checksums made right."""
    if not producers:
        return records
    data = bytearray(records)
    position = 0
    while position + _BATCH_HEADER_BYTES <= len(data):
        (length,) = struct.unpack_from(">i", data, position + 8)
        end = position + 12 + length
        (producer,) = struct.unpack_from(">q", data, position + _PRODUCER_AT)
        if length < 0 or end > len(data):
            break
        if producer in producers:
            was = struct.unpack_from(">I", data, position + _CRC_AT)[0]
            right = was == crc32c.crc32c(bytes(data[position + _CRC_FROM : end]))
            struct.pack_into(">q", data, position + _PRODUCER_AT, producers[producer])
            if right:  # a checksum that was wrong on purpose stays so
                checksum = crc32c.crc32c(bytes(data[position + _CRC_FROM : end]))
                struct.pack_into(">I", data, position + _CRC_AT, checksum)
        position = end
    return bytes(data)
