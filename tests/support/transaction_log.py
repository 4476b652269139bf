"""What a broker wrote into ``__transaction_state``, read by ``Fetch`` and decoded with the
definitions in the release's own jar: of a real broker and of the bundled one alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from mock_coordinator.core.logs.record_batch import read_header, records_of
from mock_coordinator.core.topics.topic_names import TRANSACTIONS_TOPIC
from tests.support.jar_codec import JarCodec
from tests.support.kafka_jars import kafka_jar
from tests.support.wire_connection import Requester

__all__ = ["LoggedTransaction", "TransactionLogReader", "told"]

_FETCH_BYTES = 10_000_000
_IDS = ("ProducerId", "PreviousProducerId", "NextProducerId")
_TIMES = ("TransactionLastUpdateTimestampMs", "TransactionStartTimestampMs")


@dataclass(frozen=True, slots=True)
class LoggedTransaction:
    """One record. ``batch`` is what its batch says of itself, ``fields`` the value by Kafka's
    names, ``None`` for a tombstone."""

    batch: tuple[int, ...]
    key: bytes
    transactional_id: str
    version: int
    fields: Mapping[str, Any] | None


class TransactionLogReader:
    """A partition of the topic, with the definitions of a release."""

    def __init__(self, connection: Requester, release: str, partition: int = 0) -> None:
        self._connection = connection
        self._codec = JarCodec(kafka_jar(release, "kafka-transaction-coordinator"))
        self._partition = partition
        self._next_offset = 0

    def read(self) -> list[LoggedTransaction]:
        """What was written since the last call."""
        found: list[LoggedTransaction] = []
        while True:
            data, end = self._fetch()
            position = 0
            while position < len(data):
                header = read_header(data, position)
                batch = data[position : position + header.size_bytes]
                position += header.size_bytes
                shape = (
                    header.count,
                    header.attributes,
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                )
                for record in records_of(header, batch) or ():
                    offset = header.base_offset + record.offset_delta
                    if offset >= self._next_offset:
                        self._next_offset = offset + 1
                        found.append(self._decode(shape, record.key or b"", record.value))
            if self._next_offset >= end:
                return found

    def _fetch(self) -> tuple[bytes, int]:
        partition = FetchRequestFetchPartition(
            partition=self._partition,
            fetch_offset=self._next_offset,
            partition_max_bytes=_FETCH_BYTES,
        )
        topic = FetchRequestFetchTopic(topic=TRANSACTIONS_TOPIC, partitions=(partition,))
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_FETCH_BYTES, topics=(topic,))
        answer = self._connection.request(request, 12).responses[0].partitions[0]
        assert answer.error_code == 0, answer
        return bytes(answer.records or b""), answer.high_watermark

    def _decode(self, batch: tuple[int, ...], key: bytes, value: bytes | None) -> LoggedTransaction:
        transactional_id = self._codec.decode("TransactionLogKey", 0, key[2:])["TransactionalId"]
        if value is None:
            return LoggedTransaction(batch, key, transactional_id, -1, None)
        version = int.from_bytes(value[:2], "big")
        fields = self._codec.decode("TransactionLogValue", version, value[2:])
        assert self._codec.encode("TransactionLogValue", version, fields) == value[2:]
        return LoggedTransaction(batch, key, transactional_id, version, fields)


def told(
    label: Callable[[int], str], records: Iterable[LoggedTransaction], prefix: str
) -> list[Any]:
    """Records of transactional ids with a prefix, without ids and times, to be compared."""
    lines: list[Any] = []
    for record in records:
        if not record.transactional_id.startswith(prefix):
            continue
        if record.fields is None:
            lines.append((record.batch, record.key, None))
            continue
        fields = dict(record.fields)
        fields |= {name: label(fields[name]) for name in _IDS}
        fields |= {name: "never" if fields[name] < 0 else "some time" for name in _TIMES}
        topics = fields["TransactionPartitions"]
        if topics is not None:
            fields["TransactionPartitions"] = [(t["Topic"], t["PartitionIds"]) for t in topics]
        lines.append((record.batch, record.key, record.version, sorted(fields.items())))
    return lines
