"""Reads a real broker's ``__consumer_offsets`` and decodes it with the broker's own schemas.

Brokers of the oracle have one partition of it. The bytes are decoded by the definitions inside
the release's group coordinator jar, so a record format that we misunderstand cannot hide. Whatever
a broker wrote must also be what we make of it and write again, byte for byte.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from aiokafka.record.memory_records import MemoryRecords

from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from mock_coordinator.core.groups.record_format import decode_record, encode_record
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    ClassicGeneration,
    ClassicGroupMember,
    ClassicMemberMetadata,
    ClassicProtocol,
    CurrentAssignment,
    CurrentMemberAssignment,
    GroupEpoch,
    GroupEpochMetadata,
    GroupMetadata,
    MemberMetadata,
    MemberSubscription,
    OffsetAndMetadata,
    OffsetCommit,
    PartitionMetadata,
    RegularExpression,
    ResolvedRegex,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TargetEpoch,
    TopicShape,
)
from mock_coordinator.core.profiles import profile_named
from tests.support.jar_codec import JarCodec
from tests.support.kafka_jars import kafka_jar
from tests.support.wire_connection import Requester

__all__ = ["KEY_NAMES", "BrokerLog", "read_by_definitions"]

_TOPIC: Final = "__consumer_offsets"
_PATIENCE_S: Final = 10
_POLL_S: Final = 0.05
_FETCH_BYTES: Final = 1 << 20
KEY_NAMES: Final = {
    0: "LegacyOffsetCommit",
    1: "OffsetCommit",
    2: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    16: "ConsumerGroupRegularExpression",
}
Fields = Mapping[str, Any]


class BrokerLog:
    """Everything that was appended so far, growing with each ``read``. ``connection`` may be
    replaced after the broker was started again."""

    def __init__(self, connection: Requester, release: str) -> None:
        self.connection = connection
        self._codec = JarCodec(kafka_jar(release, "kafka-group-coordinator"))
        self._profile = profile_named(release.rpartition(".")[0])
        self._topic_id = self._find_topic()
        self._next_offset = 0
        self.records: list[StateRecord] = []

    def _find_topic(self) -> bytes:
        request = MetadataRequest(topics=(MetadataRequestTopic(name=_TOPIC),))
        answer = self.connection.request(request, 12).topics[0]
        until = time.monotonic() + _PATIENCE_S
        while not answer.partitions and time.monotonic() < until:
            time.sleep(_POLL_S)  # a topic that was just created has no partitions for a moment
            answer = self.connection.request(request, 12).topics[0]
        assert answer.error_code == 0, answer
        assert len(answer.partitions) == 1, "the oracle needs offsets.topic.num.partitions=1"
        topic_id: bytes = answer.topic_id
        return topic_id

    def read(self) -> None:
        """Take in what is new; returns when the end of the log is reached."""
        while True:
            partition = FetchRequestFetchPartition(
                partition=0, fetch_offset=self._next_offset, partition_max_bytes=_FETCH_BYTES
            )
            topic = FetchRequestFetchTopic(topic_id=self._topic_id, partitions=(partition,))
            request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=(topic,))
            data = self.connection.request(request, 16).responses[0].partitions[0]
            assert data.error_code == 0, data
            self._take(data.records or b"")
            if self._next_offset >= data.high_watermark:
                return

    def _take(self, raw: bytes) -> None:
        batches = MemoryRecords(bytes(raw))
        while batches.has_next():
            batch: Any = batches.next_batch()
            for record in batch:
                if record.offset >= self._next_offset:
                    self._next_offset = record.offset + 1
                    decoded = None if batch.is_control_batch else self._decode(record)
                    if isinstance(decoded, OffsetCommit) and batch.is_transactional:
                        producer = (batch.producer_id, batch.producer_epoch)
                        decoded = dataclasses.replace(decoded, producer=producer)
                    self.records += [] if decoded is None else [decoded]

    def _decode(self, record: Any) -> StateRecord | None:
        key, value = bytes(record.key), None if record.value is None else bytes(record.value)
        decoded = read_by_definitions(self._codec, key, value)
        if decoded is not None:
            ours = decode_record(key, value)
            assert ours is not None
            assert ours == decoded, (ours, decoded)
            written = encode_record(self._profile, ours)
            # 4.0 writes the topics of key type 4 in the order of a hash table
            if not isinstance(ours, PartitionMetadata):
                assert written == (key, value), (written, key, value)
        return decoded


def read_by_definitions(codec: JarCodec, key: bytes, value: bytes | None) -> StateRecord | None:
    """A record by the definitions inside a jar; ``None`` for those of share and streams groups."""
    key_type = int.from_bytes(key[:2], "big")
    name = KEY_NAMES.get(key_type)
    if name is None:
        return None
    key_version = codec.schemas[f"{name}Key"].versions.low
    read_key = codec.decode(f"{name}Key", key_version, key[2:])
    read_value = None
    if value is not None:
        version = int.from_bytes(value[:2], "big")
        read_value = codec.decode(f"{name}Value", version, value[2:])
    return _READERS[key_type](read_key, read_value)


def _owned(topics: Sequence[Fields], member_epoch: int) -> dict[TopicId, dict[int, int]]:
    owned: dict[TopicId, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.get("AssignmentEpochs") or [max(member_epoch, 0)] * len(topic["Partitions"])
        owned[TopicId(topic["TopicId"])] = dict(zip(topic["Partitions"], epochs, strict=True))
    return owned


def _offset_commit(key: Fields, value: Fields | None) -> StateRecord:
    stored = None
    if value is not None:
        expires = value.get("expireTimestamp", -1)
        stored = OffsetAndMetadata(
            offset=value["offset"],
            leader_epoch=value.get("leaderEpoch", -1),
            metadata=value["metadata"],
            commit_timestamp_ms=value["commitTimestamp"],
            expire_timestamp_ms=None if expires == -1 else expires,
            topic_id=TopicId(value.get("topicId") or bytes(16)),
        )
    return OffsetCommit(key["group"], key["topic"], key["partition"], stored)


def _group_metadata(key: Fields, value: Fields | None) -> StateRecord:
    if value is None:
        return GroupMetadata(key["group"])
    members = tuple(
        ClassicGroupMember(
            member_id=member["memberId"],
            instance_id=member["groupInstanceId"],
            client_id=member["clientId"],
            client_host=member["clientHost"],
            rebalance_timeout_ms=member["rebalanceTimeout"],
            session_timeout_ms=member["sessionTimeout"],
            subscription=member["subscription"],
            assignment=member["assignment"],
        )
        for member in value["members"]
    )
    generation = ClassicGeneration(
        protocol_type=value["protocolType"],
        generation=value["generation"],
        protocol=value["protocol"],
        leader=value["leader"],
        state_timestamp_ms=value["currentStateTimestamp"],
        members=members,
    )
    return GroupMetadata(key["group"], generation)


def _group_epoch(key: Fields, value: Fields | None) -> StateRecord:
    epoch = None if value is None else GroupEpoch(value["Epoch"], value.get("MetadataHash", 0))
    return GroupEpochMetadata(key["GroupId"], epoch)


def _partition_metadata(key: Fields, value: Fields | None) -> StateRecord:
    shapes = None
    if value is not None:
        shapes = tuple(
            TopicShape(topic["TopicName"], TopicId(topic["TopicId"]), topic["NumPartitions"])
            for topic in sorted(value["Topics"], key=lambda each: str(each["TopicName"]))
        )
    return PartitionMetadata(key["GroupId"], shapes)


def _member_metadata(key: Fields, value: Fields | None) -> StateRecord:
    said = None
    if value is not None:
        said = MemberSubscription(
            instance_id=value["InstanceId"],
            rack_id=value["RackId"],
            client_id=value["ClientId"],
            client_host=value["ClientHost"],
            rebalance_timeout_ms=value["RebalanceTimeoutMs"],
            subscribed_topic_names=tuple(value["SubscribedTopicNames"]),
            subscribed_topic_regex=value["SubscribedTopicRegex"] or "",
            server_assignor=value["ServerAssignor"],
            classic=_classic(value["ClassicMemberMetadata"]),
        )
    return MemberMetadata(key["GroupId"], key["MemberId"], said)


def _classic(value: Fields | None) -> ClassicMemberMetadata | None:
    if value is None:
        return None
    protocols = tuple(
        ClassicProtocol(each["Name"], each["Metadata"]) for each in value["SupportedProtocols"]
    )
    return ClassicMemberMetadata(value["SessionTimeoutMs"], protocols)


def _target_epoch(key: Fields, value: Fields | None) -> StateRecord:
    epoch = None
    if value is not None:
        epoch = TargetEpoch(value["AssignmentEpoch"], value.get("AssignmentTimestamp", 0))
    return TargetAssignmentMetadata(key["GroupId"], epoch)


def _target_member(key: Fields, value: Fields | None) -> StateRecord:
    partitions = None
    if value is not None:
        partitions = {
            TopicId(topic["TopicId"]): tuple(topic["Partitions"])
            for topic in value["TopicPartitions"]
        }
    return TargetAssignmentMember(key["GroupId"], key["MemberId"], partitions)


def _current_assignment(key: Fields, value: Fields | None) -> StateRecord:
    current = None
    if value is not None:
        epoch: int = value["MemberEpoch"]
        current = CurrentAssignment(
            member_epoch=epoch,
            previous_member_epoch=value["PreviousMemberEpoch"],
            state=MemberState(value["State"]),
            assigned=_owned(value["AssignedPartitions"], epoch),
            pending_revocation=_owned(value["PartitionsPendingRevocation"], epoch),
        )
    return CurrentMemberAssignment(key["GroupId"], key["MemberId"], current)


def _regular_expression(key: Fields, value: Fields | None) -> StateRecord:
    resolved = None
    if value is not None:
        resolved = ResolvedRegex(tuple(value["Topics"]), value["Version"], value["Timestamp"])
    return RegularExpression(key["GroupId"], key["RegularExpression"], resolved)


_READERS: Final[Mapping[int, Callable[[Fields, Fields | None], StateRecord]]] = {
    0: _offset_commit,
    1: _offset_commit,
    2: _group_metadata,
    3: _group_epoch,
    4: _partition_metadata,
    5: _member_metadata,
    6: _target_epoch,
    7: _target_member,
    8: _current_assignment,
    16: _regular_expression,
}
