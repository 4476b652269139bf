"""What a consumer hands out and takes in: offsets, the identity of a member."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kip848_client._aiokafka._unreadable import Unreadable
from kip848_client.records import Deserializer, Record

__all__ = [
    "Deserializer",
    "GroupMetadata",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "Record",
    "record_builder",
]


class OffsetAndMetadata(NamedTuple):
    """A position to commit (the offset of the *next* record) with a text of the user's."""

    offset: int
    metadata: str = ""


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a moment: its offset and its timestamp."""

    offset: int
    timestamp: int


class GroupMetadata(NamedTuple):
    """Who this member is, for a transactional producer's ``send_offsets_to_transaction``.

    A snapshot: take it anew for each transaction, because the epoch moves. Out of a group the
    epoch is -1 and the member id empty.
    """

    group_id: str
    member_epoch: int
    member_id: str
    group_instance_id: str | None


def record_builder(
    key_deserializer: Deserializer | None, value_deserializer: Deserializer | None
) -> Callable[[Any, Any], Record[Any, Any] | Unreadable]:
    """A function from (topic partition, decoded record) to ``Record``.

    Deserializers get ``None`` for null keys and values, as in aiokafka. If one raises, the result
    is an ``Unreadable``.
    """
    make = tuple.__new__

    def build(tp: Any, raw: Any) -> Record[Any, Any] | Unreadable:
        key = raw.key
        value = raw.value
        try:
            return make(
                Record,
                (
                    tp[0],
                    tp[1],
                    raw.offset,
                    raw.timestamp,
                    raw.timestamp_type,
                    key if key_deserializer is None else key_deserializer(key),
                    value if value_deserializer is None else value_deserializer(value),
                    raw.checksum,
                    -1 if key is None else len(key),
                    -1 if value is None else len(value),
                    tuple(raw.headers),
                ),
            )
        except Exception as err:  # noqa: BLE001 - a deserializer may raise anything
            return Unreadable(raw, err)

    return build
