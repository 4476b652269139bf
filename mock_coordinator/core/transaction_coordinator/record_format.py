"""The records of ``__transaction_state`` as bytes, equal to those of brokers of each release.

Kafka's record definitions are ``TransactionLogKey`` and ``TransactionLogValue``. A key is two bytes
of type (0) and its fields, a value two bytes of version and its fields. Brokers with transaction
version 1 and later write version 1, in which later releases only add tagged fields (KIP-915).
Releases before 4.3 write neither the previous nor the next producer id, so after a fail-over their
coordinator does not know them. No release writes the epoch of the next producer id (tag 3,
KIP-939).

An empty transactional id has null for partitions; one whose transaction is complete has an empty
list. For the order of partitions see ``stored_order``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import ClassVar, Final

from kip848_client.core.wire import decode, encode
from kip848_client.core.wire._fields import array, int8, int16, int32, int64, string
from kip848_client.errors import WireError
from mock_coordinator.core.groups.record_format import RecordFormatError
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.transaction_coordinator.records import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ClientVersion,
    TransactionLog,
    TransactionMetadata,
    TransactionState,
)
from mock_coordinator.core.transaction_coordinator.stored_order import stored_partitions

__all__ = [
    "TransactionLogKey",
    "TransactionLogValue",
    "TransactionLogValuePartitions",
    "decode_transaction",
    "encode_transaction",
]

_INT16: Final = struct.Struct(">h")
_KEY_TYPE: Final = 0
_VALUE_VERSION: Final = 1
_NEVER_MS: Final = -1


@dataclass(slots=True, kw_only=True)
class TransactionLogKey:
    """Key type 0."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = -1

    transactional_id: str = string()


@dataclass(slots=True, kw_only=True)
class TransactionLogValuePartitions:
    """Part of ``TransactionLogValue``."""

    topic: str = string()
    partition_ids: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class TransactionLogValue:
    """The value of key type 0."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    producer_id: int = int64()
    previous_producer_id: int = int64("none", default=-1, tag=0, tagged="1+", ignorable=True)
    next_producer_id: int = int64("none", default=-1, tag=1, tagged="1+", ignorable=True)
    producer_epoch: int = int16()
    next_producer_epoch: int = int16("none", default=-1, tag=3, tagged="1+", ignorable=True)
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: tuple[TransactionLogValuePartitions, ...] | None = array(
        TransactionLogValuePartitions, default=None, nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("none", tag=2, tagged="1+", ignorable=True)


def encode_transaction(profile: Profile, record: TransactionLog) -> tuple[bytes, bytes | None]:
    """The key and the value (``None``: a tombstone) as a broker of the profile's release writes
    them. Raises ``RecordFormatError`` for what does not fit the format."""
    try:
        key = _INT16.pack(_KEY_TYPE) + encode(
            TransactionLogKey(transactional_id=record.transactional_id), 0
        )
        if record.value is None:
            return key, None
        value = _value(profile, record.value)
        return key, _INT16.pack(_VALUE_VERSION) + encode(value, _VALUE_VERSION)
    except WireError as err:
        raise RecordFormatError(f"cannot write the state of a transaction: {err}") from err


def decode_transaction(key: bytes, value: bytes | None) -> TransactionLog | None:
    """The record, whichever release wrote it; ``None`` for a key type that is not known, which a
    later release may have written.

    Raises ``RecordFormatError`` for anything else that cannot be read.
    """
    if len(key) < _INT16.size:
        raise RecordFormatError("a key of less than two bytes")
    if _INT16.unpack_from(key) != (_KEY_TYPE,):
        return None
    try:
        transactional_id = decode(TransactionLogKey, 0, key[_INT16.size :]).transactional_id
        if value is None:
            return TransactionLog(transactional_id, None)
        if len(value) < _INT16.size:
            raise RecordFormatError("the state of a transaction of less than two bytes")
        (version,) = _INT16.unpack_from(value)
        read = decode(TransactionLogValue, version, value[_INT16.size :])
        return TransactionLog(transactional_id, _metadata(read))
    except (WireError, ValueError) as err:
        raise RecordFormatError(f"cannot read the state of a transaction: {err}") from err


def _value(profile: Profile, stored: TransactionMetadata) -> TransactionLogValue:
    known = profile.neighbour_producer_ids_logged
    empty = stored.state is TransactionState.EMPTY
    forgets_start = empty and not profile.init_forgets_last_start  # in the log, not in memory
    return TransactionLogValue(
        producer_id=stored.producer_id,
        previous_producer_id=stored.previous_producer_id if known else NO_PRODUCER_ID,
        next_producer_id=stored.next_producer_id if known else NO_PRODUCER_ID,
        producer_epoch=stored.producer_epoch,
        transaction_timeout_ms=stored.timeout_ms,
        transaction_status=stored.state,
        transaction_partitions=None if empty else _grouped(profile, stored),
        transaction_last_update_timestamp_ms=stored.last_update_ms,
        transaction_start_timestamp_ms=_NEVER_MS if forgets_start else stored.start_ms,
        client_transaction_version=stored.client_version,
    )


def _grouped(
    profile: Profile, stored: TransactionMetadata
) -> tuple[TransactionLogValuePartitions, ...]:
    return tuple(
        TransactionLogValuePartitions(topic=topic, partition_ids=tuple(partitions))
        for topic, partitions in stored_partitions(profile.transaction_sets, stored)
    )


def _metadata(read: TransactionLogValue) -> TransactionMetadata:
    if read.next_producer_epoch != NO_PRODUCER_EPOCH:
        raise RecordFormatError("two-phase commit, which no Kafka release has yet (KIP-939)")
    return TransactionMetadata(
        producer_id=read.producer_id,
        previous_producer_id=read.previous_producer_id,
        next_producer_id=read.next_producer_id,
        producer_epoch=read.producer_epoch,
        timeout_ms=read.transaction_timeout_ms,
        state=TransactionState(read.transaction_status),
        partitions=tuple(
            (topic.topic, index)
            for topic in read.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        last_update_ms=read.transaction_last_update_timestamp_ms,
        start_ms=read.transaction_start_timestamp_ms,
        client_version=ClientVersion(read.client_transaction_version),
    )
