"""Converts state records to bytes and back.

Theory of operation
===================

``encode_record`` and ``decode_record`` are inverse for every record that a coordinator of the
profile can write. What a release does not store is filled in as that release would: brokers before
4.3 store no assignment epochs; a partition's epoch is then that of the member.

An unknown key type belongs to another component (share and streams groups use the same log) and is
skipped, as by a broker that was downgraded. Everything else that cannot be read is an error: a
coordinator must not start from a part of its records.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from kip848_client.core.wire import decode, encode
from kip848_client.errors import WireError
from mock_coordinator.core.groups.record_format import connect, reading, writing
from mock_coordinator.core.groups.record_format.keys import (
    GroupKey,
    GroupMemberKey,
    OffsetCommitKey,
    RegularExpressionKey,
)
from mock_coordinator.core.groups.record_format.values import (
    CurrentMemberAssignmentValue,
    GroupEpochValue,
    GroupMetadataValue,
    LegacyOffsetCommitValue,
    MemberMetadataValue,
    OffsetCommitValue,
    PartitionMetadataValue,
    RegularExpressionValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)
from mock_coordinator.core.groups.records.connect_records import (
    ConnectCurrentAssignment,
    ConnectGroupEpoch,
    ConnectTargetMember,
    ConnectTargetMetadata,
    ConnectWorkerMetadata,
)
from mock_coordinator.core.groups.records.state_records import (
    CurrentMemberAssignment,
    GroupEpochMetadata,
    GroupMetadata,
    MemberMetadata,
    OffsetCommit,
    PartitionMetadata,
    RegularExpression,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from mock_coordinator.core.profile import Profile

__all__ = ["RecordFormatError", "decode_record", "encode_record"]

_INT16: Final = struct.Struct(">h")

Writer = Callable[[Profile, Any], tuple[Any, int, Any]]
"""(profile, record) -> (key, value version, value or None)"""
Reader = Callable[[Any, Any], StateRecord]
"""(key, value or None) -> record"""

_WRITERS: Final[dict[type[StateRecord], Writer]] = {
    OffsetCommit: writing.offset_commit,
    GroupMetadata: writing.group_metadata,
    GroupEpochMetadata: writing.group_epoch,
    PartitionMetadata: writing.partition_metadata,
    MemberMetadata: writing.member_metadata,
    TargetAssignmentMetadata: writing.target_epoch,
    TargetAssignmentMember: writing.target_member,
    CurrentMemberAssignment: writing.current_assignment,
    RegularExpression: writing.regular_expression,
    ConnectGroupEpoch: connect.write_epoch,
    ConnectWorkerMetadata: connect.write_worker,
    ConnectTargetMetadata: connect.write_target_epoch,
    ConnectTargetMember: connect.write_target,
    ConnectCurrentAssignment: connect.write_current,
}

_READERS: Final[dict[int, tuple[type[Any], type[Any], Reader]]] = {
    0: (OffsetCommitKey, LegacyOffsetCommitValue, reading.legacy_offset_commit),
    1: (OffsetCommitKey, OffsetCommitValue, reading.offset_commit),
    2: (GroupKey, GroupMetadataValue, reading.group_metadata),
    3: (GroupKey, GroupEpochValue, reading.group_epoch),
    4: (GroupKey, PartitionMetadataValue, reading.partition_metadata),
    5: (GroupMemberKey, MemberMetadataValue, reading.member_metadata),
    6: (GroupKey, TargetAssignmentMetadataValue, reading.target_epoch),
    7: (GroupMemberKey, TargetAssignmentMemberValue, reading.target_member),
    8: (GroupMemberKey, CurrentMemberAssignmentValue, reading.current_assignment),
    16: (RegularExpressionKey, RegularExpressionValue, reading.regular_expression),
    10483: (GroupKey, connect.EpochValue, connect.read_epoch),
    10485: (GroupMemberKey, connect.WorkerValue, connect.read_worker),
    10486: (GroupKey, connect.TargetEpochValue, connect.read_target_epoch),
    10487: (GroupMemberKey, connect.TargetValue, connect.read_target),
    10488: (GroupMemberKey, connect.CurrentValue, connect.read_current),
}


class RecordFormatError(ValueError):
    """The bytes are not a record of ``__consumer_offsets`` that this version can read."""


def encode_record(profile: Profile, record: StateRecord) -> tuple[bytes, bytes | None]:
    """The key and the value (``None``: a tombstone) as a broker of the profile's release writes
    them.

    Raises ``RecordFormatError`` for a record whose fields do not fit the format (a group id of more
    than 32,767 bytes, say) and ``KeyError`` for a type that is not a record of this log.
    """
    key, version, value = _WRITERS[type(record)](profile, record)
    try:
        written = _INT16.pack(record.KEY_TYPE) + encode(key, 0)
        if value is None:
            return written, None
        return written, _INT16.pack(version) + encode(value, version)
    except WireError as err:
        raise RecordFormatError(f"cannot write {type(record).__name__}: {err}") from err


def decode_record(key: bytes, value: bytes | None) -> StateRecord | None:
    """The record, whichever release wrote it; ``None`` for a key type that is not known.

    Raises ``RecordFormatError`` for anything else that cannot be read.
    """
    if len(key) < _INT16.size:
        raise RecordFormatError("a key of less than two bytes")
    (key_type,) = _INT16.unpack_from(key)
    if key_type not in _READERS:
        return None
    key_class, value_class, reader = _READERS[key_type]
    try:
        read_key = decode(key_class, 0, key[_INT16.size :])
        if value is None:
            return reader(read_key, None)
        if len(value) < _INT16.size:
            raise RecordFormatError(f"key type {key_type}: a value of less than two bytes")
        (version,) = _INT16.unpack_from(value)
        return reader(read_key, decode(value_class, version, value[_INT16.size :]))
    except (WireError, ValueError) as err:
        raise RecordFormatError(f"cannot read a record of key type {key_type}: {err}") from err
