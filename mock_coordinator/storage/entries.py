"""The entries of a data file as bytes: documents and record batches.

A document is a key with a JSON value; the last one of a key counts, and one without a value deletes
it. A batch belongs to a partition and contains its own offset.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from kip848_client.core.types import TopicId

__all__ = ["Batch", "Document", "Entry", "read_entries", "write_entry"]

_DOCUMENT: Final = 1
_BATCH: Final = 2
_DOCUMENT_HEAD: Final = struct.Struct(">BHI")
_BATCH_HEAD: Final = struct.Struct(">B16siI")
_DELETED: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Document:
    """``value`` is anything that JSON can say; ``None`` deletes the key."""

    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class Batch:
    """A record batch of a partition, with its final offset."""

    topic_id: TopicId
    partition: int
    data: bytes


Entry: TypeAlias = Document | Batch


def write_entry(entry: Entry) -> bytes:
    """The bytes of one entry."""
    if isinstance(entry, Batch):
        head = _BATCH_HEAD.pack(_BATCH, entry.topic_id, entry.partition, len(entry.data))
        return head + entry.data
    key = entry.key.encode()
    if entry.value is None:
        return _DOCUMENT_HEAD.pack(_DOCUMENT, len(key), _DELETED) + key
    value = json.dumps(entry.value, separators=(",", ":"), sort_keys=True).encode()
    return _DOCUMENT_HEAD.pack(_DOCUMENT, len(key), len(value)) + key + value


def read_entries(data: bytes) -> Iterator[Entry]:
    """The entries that follow each other in ``data``. Raises ``ValueError`` for anything else."""
    position = 0
    try:
        while position < len(data):
            if data[position] == _BATCH:
                _, topic_id, partition, size = _BATCH_HEAD.unpack_from(data, position)
                position += _BATCH_HEAD.size
                yield Batch(TopicId(topic_id), partition, _taken(data, position, size))
                position += size
            elif data[position] == _DOCUMENT:
                _, key_size, size = _DOCUMENT_HEAD.unpack_from(data, position)
                position += _DOCUMENT_HEAD.size
                key = _taken(data, position, key_size).decode()
                position += key_size
                value = None
                if size != _DELETED:
                    value = json.loads(_taken(data, position, size))
                    position += size
                yield Document(key, value)
            else:
                raise ValueError(f"unknown kind of entry: {data[position]}")
    except struct.error as err:
        raise ValueError("the bytes end inside an entry") from err


def _taken(data: bytes, position: int, size: int) -> bytes:
    piece = data[position : position + size]
    if len(piece) != size:
        raise ValueError("the bytes end inside an entry")
    return piece
