"""Produce (key 0): checks batches as a leader does, assigns offsets and appends them.

Theory of operation
===================

A partition's data passes the checks of a real broker in its order, because a client sees only the
first failure: the shape of the request (exactly one batch, format 2), whether the partition exists,
size, checksum, the records against their header, timestamps, and last the sequence numbers of
idempotent producers. A refusal is a ``RecordsRefused`` exception with the error as it appears in
the response. Partitions fail individually; the others are appended.

Transactional batches are verified by the transaction coordinator before anything is appended
(``transactions.verification``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
    ProduceResponseBatchIndexAndErrorMessage,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.logs.record_batch import (
    HEADER_BYTES,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchError,
    BatchHeader,
    RecordFields,
    UnreadableBatchError,
    checksum_is_right,
    read_header,
    records_of,
    restamped,
)
from mock_coordinator.core.map_orders import (
    id_partition_code,
    partition_code,
    scala_map_order,
    scala_mutable_order,
)
from mock_coordinator.core.outputs import CloseConnection, NoReply
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.settings.topic_config import topic_integer, topic_value
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.state.leadership import current_leader, endpoints, leader_problem
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.core.topics.topic_names import INTERNAL_TOPICS
from mock_coordinator.core.transaction_coordinator.coordinator import TransactionCoordinator
from mock_coordinator.core.transaction_coordinator.records import TxnPartition
from mock_coordinator.core.transactions.verification import (
    Refusal,
    is_transactional,
    must_verify,
    refused_partitions,
    refused_request,
)

__all__ = ["produce"]

_FAILED_UNHEARD: Final = (
    "a produce request with acks=0 failed, which only a closed connection can report"
)

_ZSTD: Final = 4
_IDS_SINCE: Final = 13
_LEADER_TOLD_SINCE: Final = 10
"""From this version on errors name the current leader (KIP-951)."""
_MAGIC_AT: Final = 16
_ALL_IN_SYNC: Final = -1
_ERRORS_SHOWN: Final = 3


class RecordsRefused(Refused):
    """One partition's records are not appended; the answer can say where the log begins and which
    records are wrong."""

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        *,
        log_start_offset: int = -1,
        record_errors: tuple[tuple[int, str], ...] = (),
    ) -> None:
        super().__init__(code, message)
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors


@dataclass(frozen=True, slots=True)
class _Checked:
    """A batch that may be appended."""

    header: BatchHeader
    data: bytes
    max_timestamp: int
    log_append_time_ms: int


def produce(call: ApiCall[ProduceRequest]) -> ProduceResponse | NoReply | CloseConnection:
    """Append what can be appended; the response says for each partition what happened. With acks=0
    there is none: a failure closes the producer's connection."""
    coordinator = call.services.transactions.coordinator
    response = _appended(call.broker, coordinator, call.now_ms, call.version, call.request)
    if call.request.acks != 0:
        return response
    received = call.received
    if _has_failed(response):
        return CloseConnection(received.connection, _FAILED_UNHEARD)
    return NoReply(received.connection, received.correlation)


def _appended(
    broker: Broker,
    coordinator: TransactionCoordinator,
    now_ms: int,
    version: int,
    request: ProduceRequest,
) -> ProduceResponse:
    refusals: dict[TxnPartition, Refusal] = {}
    if is_transactional(request):
        batches = _transactional_batches(broker, version, request)
        headers = {partition: header for partition, (header, _) in batches.items()}
        code = refused_request(request, headers)
        if code is not None:
            return _refused_everywhere(request, code)
        if must_verify(broker):
            refusals = refused_partitions(
                coordinator,
                now_ms,
                version,
                request,
                headers,
                lambda partition: batches[partition][1].producers,
                broker.profile,
            )
    topics = _answers(broker, now_ms, version, request, refusals)
    told = (p.current_leader.leader_id for t in topics for p in t.partition_responses)
    return ProduceResponse(
        responses=topics,
        node_endpoints=tuple(
            ProduceResponseNodeEndpoint(
                node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
            )
            for node in endpoints(broker, told)
        ),
    )


def _transactional_batches(
    broker: Broker, version: int, request: ProduceRequest
) -> dict[TxnPartition, tuple[BatchHeader, PartitionLog]]:
    """The batches that are well-formed and for partitions that exist, and the partitions' logs."""
    found: dict[TxnPartition, tuple[BatchHeader, PartitionLog]] = {}
    for data in request.topic_data:
        topic = _topic(broker, version, data)
        for partition in data.partition_data:
            log = None if topic is None else broker.logs.of(topic, partition.index)
            if topic is not None and log is not None:
                with contextlib.suppress(RecordsRefused):
                    header, _ = _only_batch(version, partition.records)
                    found[topic.name, partition.index] = (header, log)
    return found


def _refused_everywhere(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    return ProduceResponse(
        responses=tuple(
            ProduceResponseTopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    _refusal(partition.index, RecordsRefused(code))
                    for partition in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def _topic(broker: Broker, version: int, data: ProduceRequestTopicProduceData) -> Topic | None:
    if version >= _IDS_SINCE:
        return broker.catalog.topic_by_id(data.topic_id)
    return broker.catalog.topic(data.name)


def _has_failed(response: ProduceResponse) -> bool:
    return any(
        partition.error_code
        for topic in response.responses
        for partition in topic.partition_responses
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is to become of one partition. ``said`` is how its topic was named."""

    said: tuple[str, TopicId]
    topic: Topic | None
    data: ProduceRequestPartitionProduceData
    problem: RecordsRefused | None


_Key = tuple[str, TopicId, int]
"""A topic's name and id, and the number of the partition."""


def _answers(
    broker: Broker,
    now_ms: int,
    version: int,
    request: ProduceRequest,
    refusals: Mapping[TxnPartition, Refusal],
) -> tuple[ProduceResponseTopicProduceResponse, ...]:
    """Of two entries for one partition only the later one counts, unless one of them is refused:
    Kafka notes these in maps of their own, and puts them over what was appended."""
    good, missing, bad = _sorted_out(broker, version, request)
    code = _code_with_id if broker.profile.produce_knows_topic_ids else _code
    topics: dict[tuple[str, TopicId], list[ProduceResponsePartitionProduceResponse]] = {}
    found: dict[_Key, ProduceResponsePartitionProduceResponse] = {}
    for kind in (good, missing, bad):
        for key in scala_mutable_order(kind, code):
            found[key] = _produced(broker, now_ms, version, request, kind[key], refusals)
    for key in scala_map_order(found, code):
        asked = bad.get(key) or missing.get(key) or good[key]
        topics.setdefault(asked.said, []).append(found[key])
    return tuple(
        ProduceResponseTopicProduceResponse(
            name=name, topic_id=topic_id, partition_responses=tuple(responses)
        )
        for (name, topic_id), responses in topics.items()
    )


def _code(key: _Key) -> int:
    return partition_code((key[0], key[2]))


def _code_with_id(key: _Key) -> int:
    return id_partition_code(key[1], (key[0], key[2]))


def _sorted_out(
    broker: Broker, version: int, request: ProduceRequest
) -> tuple[dict[_Key, _Asked], dict[_Key, _Asked], dict[_Key, _Asked]]:
    """Partitions that may be appended to, that do not exist, and that no batch was sent for."""
    good: dict[_Key, _Asked] = {}
    missing: dict[_Key, _Asked] = {}
    bad: dict[_Key, _Asked] = {}
    for data in request.topic_data:
        topic = _topic(broker, version, data)
        said = (data.name, TopicId(data.topic_id))
        name, topic_id = said if topic is None else (topic.name, topic.topic_id)
        for part in data.partition_data:
            key = (name, topic_id, part.index)
            if topic is None and version >= _IDS_SINCE:
                problem = RecordsRefused(ErrorCode.UNKNOWN_TOPIC_ID)
                missing[key] = _Asked(said, topic, part, problem)
            elif topic is None or broker.logs.of(topic, part.index) is None:
                problem = RecordsRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                missing[key] = _Asked(said, topic, part, problem)
            else:
                try:
                    _only_batch(version, part.records)
                    good[key] = _Asked(said, topic, part, None)
                except RecordsRefused as problem:
                    bad[key] = _Asked(said, topic, part, problem)
    return good, missing, bad


def _produced(
    broker: Broker,
    now_ms: int,
    version: int,
    request: ProduceRequest,
    asked: _Asked,
    refusals: Mapping[TxnPartition, Refusal],
) -> ProduceResponsePartitionProduceResponse:
    """Append one partition's batch, or say why not."""
    topic, partition = asked.topic, asked.data
    try:
        if asked.problem is not None or topic is None:
            raise asked.problem or RecordsRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return _produce_partition(broker, now_ms, version, request, topic, partition, refusals)
    except RecordsRefused as refused:
        refusal = _refusal(partition.index, refused)
        if refused.code is ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= _LEADER_TOLD_SINCE:
            refusal.current_leader = _leader_now(broker, topic, partition.index)
        return refusal


def _produce_partition(
    broker: Broker,
    now_ms: int,
    version: int,
    request: ProduceRequest,
    topic: Topic,
    partition: ProduceRequestPartitionProduceData,
    refusals: Mapping[TxnPartition, Refusal],
) -> ProduceResponsePartitionProduceResponse:
    log = broker.logs.of(topic, partition.index)
    if log is None:
        raise RecordsRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    header, data = _only_batch(version, partition.records)
    refused = refusals.get((topic.name, partition.index))
    if refused is not None:
        raise RecordsRefused(*refused)
    if request.acks not in (-1, 0, 1):
        raise RecordsRefused(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic.name in INTERNAL_TOPICS:
        raise RecordsRefused(ErrorCode.INVALID_TOPIC_EXCEPTION)
    problem = leader_problem(broker, topic, partition.index, log)
    if problem is not None:
        raise RecordsRefused(problem)
    if request.acks == _ALL_IN_SYNC and _too_few_in_sync(broker, topic, partition.index):
        raise RecordsRefused(ErrorCode.NOT_ENOUGH_REPLICAS, log_start_offset=log.log_start_offset)
    checked = _check(broker, now_ms, topic, partition.index, log, header, data)
    if len(data) > topic_integer(broker.config, topic, "segment.bytes"):
        raise RecordsRefused(ErrorCode.RECORD_LIST_TOO_LARGE)
    return _append(broker, topic, partition.index, log, checked)


def _too_few_in_sync(broker: Broker, topic: Topic, partition: int) -> bool:
    """Whether fewer replicas are in sync than ``min.insync.replicas``, which Kafka limits to the
    number of replicas."""
    state = broker.partition_state(topic, partition)
    wanted = topic_integer(broker.config, topic, "min.insync.replicas")
    return len(state.isr) < min(wanted, len(state.replicas))


def _only_batch(version: int, records: bytes | None) -> tuple[BatchHeader, bytes]:
    """The one batch of format 2 that a request may carry for a partition (KIP-98)."""
    data = records or b""
    if len(data) > _MAGIC_AT and data[_MAGIC_AT] > 2:
        magic = data[_MAGIC_AT]
        raise RecordsRefused(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    if len(data) < HEADER_BYTES:
        raise RecordsRefused(ErrorCode.INVALID_RECORD)
    header = read_header(data)
    size = header.size_bytes
    if header.magic != 2 or not HEADER_BYTES <= size <= len(data):
        raise RecordsRefused(ErrorCode.INVALID_RECORD)
    if version < 7 and header.compression == _ZSTD:
        raise RecordsRefused(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    if _starts_a_batch(data, size):
        raise RecordsRefused(ErrorCode.INVALID_RECORD)
    return header, data[:size]


def _starts_a_batch(data: bytes, position: int) -> bool:
    """Whether a whole second batch follows; loose bytes after the first are ignored, as by
    Kafka."""
    if len(data) - position < HEADER_BYTES:
        return False
    return len(data) - position >= read_header(data, position).size_bytes


def _check(
    broker: Broker,
    now_ms: int,
    topic: Topic,
    partition: int,
    log: PartitionLog,
    header: BatchHeader,
    data: bytes,
) -> _Checked:
    if header.size_bytes > topic_integer(broker.config, topic, "max.message.bytes"):
        raise RecordsRefused(ErrorCode.MESSAGE_TOO_LARGE)
    if not checksum_is_right(header, data):
        raise RecordsRefused(ErrorCode.CORRUPT_MESSAGE)
    invalid = RecordsRefused(ErrorCode.INVALID_RECORD, log_start_offset=log.log_start_offset)
    offsets = header.last_offset_delta + 1
    if header.base_offset != 0 or offsets <= 0 or header.count != offsets or header.is_control:
        raise invalid
    if header.producer_id != NO_PRODUCER_ID and header.base_sequence < 0:
        raise invalid
    if topic_value(broker.config, topic, "message.timestamp.type") == "LogAppendTime":
        _check_records(broker, now_ms, topic, partition, log, header, data, by_producer=False)
        stamped = restamped(data, log_append_time=True, max_timestamp=now_ms)
        return _Checked(header, stamped, now_ms, now_ms)
    newest = _check_records(broker, now_ms, topic, partition, log, header, data, by_producer=True)
    if newest != header.max_timestamp or header.is_log_append_time:
        data = restamped(data, log_append_time=False, max_timestamp=newest)
    return _Checked(header, data, newest, -1)


def _check_records(
    broker: Broker,
    now_ms: int,
    topic: Topic,
    partition: int,
    log: PartitionLog,
    header: BatchHeader,
    data: bytes,
    *,
    by_producer: bool,
) -> int:
    """Check each record; returns the largest timestamp. ``by_producer``: timestamps are theirs."""
    start = log.log_start_offset
    try:
        records = records_of(header, data)
        if records is None:
            return header.max_timestamp
        checks = _RecordChecks(broker, now_ms, topic, partition, header, by_producer=by_producer)
        newest = checks.run(records)
    except UnreadableBatchError as err:
        raise RecordsRefused(ErrorCode.UNKNOWN_SERVER_ERROR, log_start_offset=start) from err
    except BatchError as err:
        raise RecordsRefused(ErrorCode.INVALID_RECORD, log_start_offset=start) from err
    if checks.late:
        raise RecordsRefused(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            log_start_offset=start,
            record_errors=tuple(checks.late),
        )
    if checks.keyless:
        shown = ", ".join(
            f"RecordError(batchIndex={index}, message='{text}')"
            for index, text in checks.keyless[:_ERRORS_SHOWN]
        )
        raise RecordsRefused(
            ErrorCode.INVALID_RECORD,
            f"One or more records have been rejected due to {len(checks.keyless)} record errors "
            f"in total, and only showing the first three errors at most: [{shown}]",
            log_start_offset=start,
            record_errors=tuple(checks.keyless),
        )
    return newest


class _RecordChecks:
    """The checks that look at every record of a batch, and what they found."""

    def __init__(
        self,
        broker: Broker,
        now_ms: int,
        topic: Topic,
        partition: int,
        header: BatchHeader,
        *,
        by_producer: bool,
    ) -> None:
        config = broker.config
        policy = topic_value(config, topic, "cleanup.policy")
        self._compacted = isinstance(policy, tuple) and "compact" in policy
        self._where = f"{topic.name}-{partition}"
        self._base = header.base_timestamp
        self._compressed = bool(header.compression)
        self._by_producer = by_producer
        self._low = now_ms - topic_integer(config, topic, "message.timestamp.before.max.ms")
        self._high = now_ms + topic_integer(config, topic, "message.timestamp.after.max.ms")
        self.late: list[tuple[int, str]] = []
        self.keyless: list[tuple[int, str]] = []

    def run(self, records: Iterable[RecordFields]) -> int:
        """Check them all; returns the largest timestamp."""
        newest = NO_TIMESTAMP
        for index, record in enumerate(records):
            if self._compressed and record.offset_delta != index:
                # Kafka tries to rewrite such a batch and fails; in other batches it ignores the
                # offsets
                raise UnreadableBatchError("offsets within the batch are not consecutive")
            if self._compacted and record.key is None:
                text = "Compacted topic cannot accept message without key in topic partition "
                self.keyless.append((index, text + self._where))
                continue
            timestamp = self._base + record.timestamp_delta
            newest = max(newest, timestamp)
            in_range = timestamp == NO_TIMESTAMP or self._low <= timestamp <= self._high
            if self._by_producer and not in_range:
                text = (
                    f"Timestamp {timestamp} of message with offset {index} is out of range. "
                    f"The timestamp should be within [{self._low}, {self._high}]"
                )
                self.late.append((index, text))
        return newest


def _append(
    broker: Broker, topic: Topic, partition: int, log: PartitionLog, checked: _Checked
) -> ProduceResponsePartitionProduceResponse:
    header = checked.header
    idempotent = header.producer_id != NO_PRODUCER_ID
    if idempotent:
        again = log.producers.duplicate_of(header)
        if again is not None:
            return ProduceResponsePartitionProduceResponse(
                index=partition,
                base_offset=again.base_offset,
                log_append_time_ms=again.timestamp,
                log_start_offset=log.log_start_offset,
            )
        refusal = log.producers.refusal(header)
        if refusal is not None:
            raise RecordsRefused(refusal, log_start_offset=log.log_start_offset)
    base = log.append(checked.data, header.count, checked.max_timestamp)
    if idempotent:
        log.producers.appended(header, base, checked.max_timestamp)
    broker.logs.note_growth(topic, partition)
    return ProduceResponsePartitionProduceResponse(
        index=partition,
        base_offset=base,
        log_append_time_ms=checked.log_append_time_ms,
        log_start_offset=log.log_start_offset,
    )


def _leader_now(
    broker: Broker, topic: Topic | None, partition: int
) -> ProduceResponseLeaderIdAndEpoch:
    if topic is None:
        return ProduceResponseLeaderIdAndEpoch()
    leader, epoch = current_leader(broker, topic, partition)
    return ProduceResponseLeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)


def _refusal(index: int, refused: RecordsRefused) -> ProduceResponsePartitionProduceResponse:
    return ProduceResponsePartitionProduceResponse(
        index=index,
        error_code=refused.code,
        base_offset=-1,
        log_start_offset=refused.log_start_offset,
        record_errors=tuple(
            ProduceResponseBatchIndexAndErrorMessage(
                batch_index=batch_index, batch_index_error_message=text
            )
            for batch_index, text in refused.record_errors
        ),
        error_message=refused.message,
    )
