"""What a real broker wrote into ``__transaction_state``, as the bundled broker's record types."""

from __future__ import annotations

from typing import Any

from kip848_client.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from mock_coordinator.core.record_batch import read_header, records_of
from mock_coordinator.core.topic_names import TRANSACTIONS_TOPIC
from mock_coordinator.core.transactions.records import (
    ClientVersion,
    TransactionLog,
    TransactionMetadata,
    TransactionState,
)
from tests.support.jar_codec import JarCodec
from tests.support.kafka_jars import kafka_jar
from tests.support.wire_connection import Requester

__all__ = ["RealTransactionLog"]

_FETCH_BYTES = 10_000_000


class RealTransactionLog:
    """The only partition of the topic, read with the definitions in the release's own jar."""

    def __init__(self, connection: Requester, release: str) -> None:
        self._connection = connection
        self._codec = JarCodec(kafka_jar(release, "kafka-transaction-coordinator"))
        self._next_offset = 0

    def read(self) -> list[TransactionLog]:
        """What was written since the last call."""
        found: list[TransactionLog] = []
        while True:
            data, end = self._fetch()
            position = 0
            while position < len(data):
                header = read_header(data, position)
                batch = data[position : position + header.size_bytes]
                position += header.size_bytes
                for record in records_of(header, batch) or ():
                    offset = header.base_offset + record.offset_delta
                    if offset >= self._next_offset:
                        self._next_offset = offset + 1
                        found.append(self._decode(record.key or b"", record.value))
            if self._next_offset >= end:
                return found

    def _fetch(self) -> tuple[bytes, int]:
        partition = FetchRequestFetchPartition(
            partition=0, fetch_offset=self._next_offset, partition_max_bytes=_FETCH_BYTES
        )
        topic = FetchRequestFetchTopic(topic=TRANSACTIONS_TOPIC, partitions=(partition,))
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_FETCH_BYTES, topics=(topic,))
        answer = self._connection.request(request, 12).responses[0].partitions[0]
        assert answer.error_code == 0, answer
        return bytes(answer.records or b""), answer.high_watermark

    def _decode(self, key: bytes, value: bytes | None) -> TransactionLog:
        transactional_id = self._codec.decode("TransactionLogKey", 0, key[2:])["TransactionalId"]
        if value is None:
            return TransactionLog(transactional_id, None)
        version = int.from_bytes(value[:2], "big")
        fields: dict[str, Any] = self._codec.decode("TransactionLogValue", version, value[2:])
        partitions = [
            (topic["Topic"], index)
            for topic in fields["TransactionPartitions"] or ()
            for index in topic["PartitionIds"]
        ]
        metadata = TransactionMetadata(
            producer_id=fields["ProducerId"],
            previous_producer_id=fields["PreviousProducerId"],
            next_producer_id=fields["NextProducerId"],
            producer_epoch=fields["ProducerEpoch"],
            timeout_ms=fields["TransactionTimeoutMs"],
            state=TransactionState(fields["TransactionStatus"]),
            partitions=tuple(partitions),
            last_update_ms=fields["TransactionLastUpdateTimestampMs"],
            start_ms=fields["TransactionStartTimestampMs"],
            client_version=ClientVersion(fields["ClientTransactionVersion"]),
        )
        return TransactionLog(transactional_id, metadata)
