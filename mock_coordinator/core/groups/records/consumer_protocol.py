"""The opaque bytes of the classic protocol in groups of consumers (ConsumerProtocol 0 to 3).

Subscriptions are sent in JoinGroup, assignments in SyncGroup. The coordinator of a classic group
reads only the topics, and as version 0, which every later version begins with. For members of a
consumer group that still use the classic protocol everything is read and written (KIP-848, "Upgrade
to the New Protocol").

Both begin with a version number. Version 1 added the owned partitions (KIP-429), version 2 the
generation that they are from (KIP-792), version 3 the rack (KIP-881).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, TypeVar

from kip848_client.core.wire import encode
from kip848_client.core.wire._codec import decode_at
from kip848_client.core.wire._fields import Message, array, data, int32, string
from kip848_client.errors import WireError

__all__ = [
    "ConsumerAssignment",
    "ConsumerSubscription",
    "TopicPartitions",
    "has_impossible_length",
    "read_assignment",
    "read_subscription",
    "subscribed_topics",
    "write_assignment",
    "write_subscription",
]

M = TypeVar("M", bound=Message)

_NEWEST: Final = 3
_VERSION_BYTES: Final = 2
_INT16: Final = 2
_INT32: Final = 4


@dataclass(slots=True, kw_only=True)
class TopicPartitions:
    """Some partitions of a topic."""

    topic: str = string()
    partitions: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ConsumerSubscription:
    """ConsumerProtocolSubscription, versions 0 to 3."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, _NEWEST)
    FLEXIBLE: ClassVar[int] = _NEWEST + 1

    topics: tuple[str, ...] = array("string")
    user_data: bytes | None = data(default=None, nullable="0+")
    owned_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions, "1+", ignorable=True)
    generation_id: int = int32("2+", default=-1, ignorable=True)
    rack_id: str | None = string("3+", default=None, nullable="3+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class ConsumerAssignment:
    """ConsumerProtocolAssignment, versions 0 to 3, which are all alike."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, _NEWEST)
    FLEXIBLE: ClassVar[int] = _NEWEST + 1

    assigned_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)
    user_data: bytes | None = data(default=None, nullable="0+")


def read_subscription(raw: bytes) -> tuple[int, ConsumerSubscription]:
    """The version and the subscription; a version that is newer than ours is read as ours.

    Raises ``WireError`` for bytes that are neither.
    """
    return _read(ConsumerSubscription, raw)


def read_assignment(raw: bytes) -> tuple[int, ConsumerAssignment]:
    """The version and the assignment. Raises ``WireError``."""
    return _read(ConsumerAssignment, raw)


def write_subscription(subscription: ConsumerSubscription, version: int = _NEWEST) -> bytes:
    """The bytes for JoinGroup."""
    return version.to_bytes(_VERSION_BYTES, "big") + encode(subscription, min(version, _NEWEST))


def write_assignment(assignment: ConsumerAssignment, version: int = _NEWEST) -> bytes:
    """The bytes for SyncGroup."""
    return version.to_bytes(_VERSION_BYTES, "big") + encode(assignment, min(version, _NEWEST))


def subscribed_topics(raw: bytes) -> tuple[str, ...] | None:
    """The topics of a subscription, read as version 0; None when that fails."""
    try:
        subscription, end = decode_at(ConsumerSubscription, 0, raw, _VERSION_BYTES)
    except WireError:
        return None
    return subscription.topics if end <= len(raw) else None


def has_impossible_length(raw: bytes) -> bool:
    """Whether a subscription, read as version 0, says that something is longer than the bytes that
    follow, or shorter than nothing. One that just ends too early is not meant; and up to 4.3
    brokers make a difference between the two."""
    try:
        position = _VERSION_BYTES
        topics = _length(raw, position, _INT32)
        position += _INT32
        if not 0 <= topics <= len(raw) - position:
            return True
        for _ in range(topics):
            size = _length(raw, position, _INT16)
            position += _INT16
            if not 0 <= size <= len(raw) - position:
                return True
            position += size
        size = _length(raw, position, _INT32)
    except IndexError:
        return False
    return size > len(raw) - position - _INT32


def _length(raw: bytes, position: int, width: int) -> int:
    """The length that stands there. Raises ``IndexError`` where the bytes end before."""
    if position + width > len(raw):
        raise IndexError(position)
    return int.from_bytes(raw[position : position + width], "big", signed=True)


def _read(cls: type[M], raw: bytes) -> tuple[int, M]:
    version = int.from_bytes(raw[:_VERSION_BYTES], "big", signed=True)
    if len(raw) < _VERSION_BYTES or version < 0:
        raise WireError(f"{cls.__name__}: no version in {len(raw)} bytes")
    message, end = decode_at(cls, min(version, _NEWEST), raw, _VERSION_BYTES)
    if end > len(raw):
        raise WireError(f"{cls.__name__} v{version}: cut after {len(raw)} bytes")
    return version, message
