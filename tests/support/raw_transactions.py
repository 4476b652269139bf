"""Transactions spoken by hand: one method a request, plain data back, the same on every broker.

``RawTransactions`` sends the requests of producers, consumers and admins that have to do with
transactions, and turns each answer into nested tuples in which nothing is left that differs
between two brokers that behave alike: producer ids become ``P1``, ``P2``, .. in order of their
first appearance, topic ids the topics' names, times are left out. So the answers of a real broker
and of the bundled one can be compared with ``==``.

Brokers finish a transaction after they have answered EndTxn; ``settle`` waits for it.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.fetch import (
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeProducersRequestTopicRequest,
    WriteTxnMarkersRequestWritableTxnMarker,
    WriteTxnMarkersRequestWritableTxnMarkerTopic,
)
from kip848_client.core.wire.messages.transactions import (
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
    AddPartitionsToTxnRequestAddPartitionsToTxnTransaction,
)
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from mock_coordinator.batches import NewRecord, encode_batch
from mock_coordinator.core.logs.record_batch import read_header, records_of
from tests.support.raw_broker import CLOSED
from tests.support.raw_offsets import RawOffsets

__all__ = ["Producer", "RawTransactions", "committed_values"]

_TRANSACTIONAL: Final = 0x10
_SETTLE_TIMEOUT_S: Final = 20
_POLL_S: Final = 0.02
_UNDER_WAY: Final = ("PrepareCommit", "PrepareAbort")

Producer = tuple[int, int]
"""Producer id and epoch."""


class RawTransactions(RawOffsets):
    """Requests about transactions to one broker."""

    # -- producers -----------------------------------------------------------------------------

    def init(
        self,
        transactional_id: str | None,
        timeout_ms: int = 60_000,
        producer: Producer = (-1, -1),
        version: int = 5,
    ) -> tuple[Any, Producer]:
        """InitProducerId; the answer, and the producer that came of it."""
        request = api_named("InitProducerId").request(
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED, (-1, -1)
        got = (answer.producer_id, answer.producer_epoch)
        return (answer.error_code, self.label(got[0]), got[1]), got

    def produce(
        self,
        transactional_id: str | None,
        producer: Producer,
        sequence: int,
        partitions: Mapping[tuple[str, int], Sequence[bytes]],
        version: int = 12,
        *,
        transactional: bool = True,
        acks: int = -1,
    ) -> Any:
        """Produce one batch to each partition."""
        topics: dict[str, list[Any]] = {}
        for (topic, partition), values in partitions.items():
            data = encode_batch(
                [NewRecord(value) for value in values],
                self._now_ms(),
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=sequence,
                attributes=_TRANSACTIONAL if transactional else 0,
            )
            topics.setdefault(topic, []).append(
                ProduceRequestPartitionProduceData(index=partition, records=data)
            )
        request = api_named("Produce").request(
            transactional_id=transactional_id,
            acks=acks,
            timeout_ms=10_000,
            topic_data=tuple(
                ProduceRequestTopicProduceData(
                    **self._id("Produce", version, topic), partition_data=tuple(data)
                )
                for topic, data in topics.items()
            ),
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED
        return tuple(
            (
                self._name(topic),
                each.index,
                each.error_code,
                each.base_offset,
                each.log_start_offset,
                each.error_message,
                tuple(
                    (error.batch_index, error.batch_index_error_message)
                    for error in each.record_errors
                ),
            )
            for topic in sorted(answer.responses, key=self._name)
            for each in sorted(topic.partition_responses, key=lambda found: found.index)
        )

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Sequence[tuple[str, int]],
        version: int = 3,
        *,
        verify_only: bool = False,
    ) -> Any:
        """AddPartitionsToTxn, as a client (up to version 3) or as a broker."""
        topics = tuple(
            AddPartitionsToTxnRequestAddPartitionsToTxnTopic(
                name=name, partitions=tuple(index for topic, index in partitions if topic == name)
            )
            for name in dict.fromkeys(topic for topic, _ in partitions)
        )
        if version < 4:
            request = api_named("AddPartitionsToTxn").request(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=topics,
            )
        else:
            request = api_named("AddPartitionsToTxn").request(
                transactions=(
                    AddPartitionsToTxnRequestAddPartitionsToTxnTransaction(
                        transactional_id=transactional_id,
                        producer_id=producer[0],
                        producer_epoch=producer[1],
                        verify_only=verify_only,
                        topics=topics,
                    ),
                )
            )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED
        found = [("", answer.results_by_topic_v3_and_below)]
        if version >= 4:
            found = [
                (each.transactional_id, each.topic_results)
                for each in answer.results_by_transaction
            ]
        return (
            answer.error_code,
            tuple(
                sorted(
                    (name, topic.name, each.partition_index, each.partition_error_code)
                    for name, results in found
                    for topic in results
                    for each in topic.results_by_partition
                )
            ),
        )

    def add_offsets(
        self, transactional_id: str, producer: Producer, group: str, version: int = 3
    ) -> Any:
        """AddOffsetsToTxn."""
        request = api_named("AddOffsetsToTxn").request(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id=group,
        )
        answer = self._request(request, version)
        return CLOSED if answer is None else answer.error_code

    def txn_commit(
        self,
        transactional_id: str,
        producer: Producer,
        group: str,
        offsets: Mapping[tuple[str, int], int],
        version: int = 5,
        *,
        member: tuple[str, int] = ("", -1),
        instance: str | None = None,
        metadata: str | None = "",
    ) -> Any:
        """TxnOffsetCommit."""
        topics: dict[str, list[Any]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                TxnOffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=metadata
                )
            )
        request = api_named("TxnOffsetCommit").request(
            transactional_id=transactional_id,
            group_id=group,
            producer_id=producer[0],
            producer_epoch=producer[1],
            generation_id_or_member_epoch=member[1],
            member_id=member[0],
            group_instance_id=instance,
            topics=tuple(
                TxnOffsetCommitRequestTopic(
                    **self._id("TxnOffsetCommit", version, topic), partitions=tuple(partitions)
                )
                for topic, partitions in topics.items()
            ),
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED
        return tuple(
            (self._name(topic), each.partition_index, each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        )

    def end(
        self, transactional_id: str, producer: Producer, *, commit: bool, version: int = 5
    ) -> tuple[Any, Producer]:
        """EndTxn; the answer, and the producer as it is from now on."""
        request = api_named("EndTxn").request(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED, producer
        got = (answer.producer_id, answer.producer_epoch)
        after = got if version >= 5 and not answer.error_code else producer
        return (answer.error_code, self.label(got[0]), got[1]), after

    # -- consumers -----------------------------------------------------------------------------

    def fetch(
        self,
        topic: str,
        partition: int = 0,
        offset: int = 0,
        *,
        committed: bool = True,
        version: int = 12,
    ) -> Any:
        """Fetch what is there, decoded: the error, offsets, aborted transactions and batches."""
        request = api_named("Fetch").request(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1_000_000,
            isolation_level=int(committed),
            session_id=0,
            session_epoch=-1,
            topics=(
                FetchRequestFetchTopic(
                    **self._id("Fetch", version, topic),
                    partitions=(
                        FetchRequestFetchPartition(
                            partition=partition,
                            fetch_offset=offset,
                            partition_max_bytes=1_000_000,
                        ),
                    ),
                ),
            ),
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED
        found = answer.responses[0].partitions[0]
        aborted = found.aborted_transactions
        return (
            found.error_code,
            found.high_watermark,
            found.last_stable_offset,
            found.log_start_offset,
            None
            if aborted is None
            else tuple((self.label(each.producer_id), each.first_offset) for each in aborted),
            tuple(self._batches(bytes(found.records or b""))),
        )

    def _batches(self, data: bytes) -> list[Any]:
        batches: list[Any] = []
        position = 0
        while position < len(data):
            header = read_header(data, position)
            batch = data[position : position + header.size_bytes]
            position += header.size_bytes
            values: list[Any] = []
            for record in records_of(header, batch) or ():
                if header.is_control:
                    kind = struct.unpack(">hh", record.key or b"")
                    # the coordinator epoch is the leader epoch of the transaction's own partition
                    values.append((kind, struct.unpack(">hi", record.value or b"")))
                else:
                    values.append((record.key, record.value))
            batches.append(
                (
                    header.base_offset,
                    header.attributes,
                    self.label(header.producer_id),
                    header.producer_epoch,
                    header.base_sequence,
                    header.last_offset_delta,
                    tuple(values),
                )
            )
        return batches

    def list_offsets(
        self,
        topic: str,
        partition: int = 0,
        timestamp: int = -1,
        *,
        committed: bool = True,
        version: int = 7,
    ) -> Any:
        """ListOffsets for one partition."""
        request = api_named("ListOffsets").request(
            replica_id=-1,
            isolation_level=int(committed),
            topics=(
                ListOffsetsRequestListOffsetsTopic(
                    name=topic,
                    partitions=(
                        ListOffsetsRequestListOffsetsPartition(
                            partition_index=partition, timestamp=timestamp
                        ),
                    ),
                ),
            ),
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED
        found = answer.topics[0].partitions[0]
        return (found.error_code, found.offset, found.leader_epoch)

    # -- administration ------------------------------------------------------------------------

    def describe(self, *transactional_ids: str) -> Any:
        """DescribeTransactions."""
        answer = self._describe(transactional_ids)
        if answer is None:
            return CLOSED
        return tuple(
            (
                each.transactional_id,
                each.error_code,
                each.transaction_state,
                each.transaction_timeout_ms,
                each.transaction_start_time_ms > 0,
                self.label(each.producer_id),
                each.producer_epoch,
                tuple(
                    sorted((topic.topic, tuple(sorted(topic.partitions))) for topic in each.topics)
                ),
            )
            for each in answer.transaction_states
        )

    def _describe(self, transactional_ids: Sequence[str]) -> Any:
        request = api_named("DescribeTransactions").request(
            transactional_ids=tuple(transactional_ids)
        )
        return self._request(request, 0)

    def settle(self, transactional_id: str, *, until: str | None = None) -> None:
        """Return when the transaction is not being ended any more, or is in a state."""
        deadline = time.monotonic() + _SETTLE_TIMEOUT_S
        state = None
        while time.monotonic() < deadline:
            answer = self._describe((transactional_id,))
            state = answer.transaction_states[0].transaction_state
            if state not in _UNDER_WAY if until is None else state == until:
                return
            time.sleep(_POLL_S)
        raise AssertionError(f"{transactional_id} stays in {state}")

    def list(
        self,
        states: Sequence[str] = (),
        producers: Sequence[int] = (),
        version: int = 1,
        **more: Any,
    ) -> Any:
        """ListTransactions."""
        request = api_named("ListTransactions").request(
            state_filters=tuple(states), producer_id_filters=tuple(producers), **more
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED
        return (
            answer.error_code,
            tuple(answer.unknown_state_filters),
            tuple(
                sorted(
                    (each.transactional_id, self.label(each.producer_id), each.transaction_state)
                    for each in answer.transaction_states
                )
            ),
        )

    def producers(self, topic: str, partition: int = 0) -> Any:
        """DescribeProducers of one partition."""
        request = api_named("DescribeProducers").request(
            topics=(
                DescribeProducersRequestTopicRequest(name=topic, partition_indexes=(partition,)),
            )
        )
        answer = self._request(request, 0)
        if answer is None:
            return CLOSED
        found = answer.topics[0].partitions[0]
        return (
            found.error_code,
            found.error_message,
            tuple(
                sorted(
                    (
                        self.label(each.producer_id),
                        each.producer_epoch,
                        each.last_sequence,
                        each.coordinator_epoch,
                        each.current_txn_start_offset,
                    )
                    for each in found.active_producers
                )
            ),
        )

    def write_markers(
        self,
        producer: Producer,
        partitions: Sequence[tuple[str, int]],
        *,
        commit: bool,
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
        version: int = 1,
    ) -> Any:
        """WriteTxnMarkers, which brokers send, and administrators to end a hanging transaction."""
        request = api_named("WriteTxnMarkers").request(
            markers=(
                WriteTxnMarkersRequestWritableTxnMarker(
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    transaction_result=commit,
                    coordinator_epoch=coordinator_epoch,
                    transaction_version=transaction_version,
                    topics=tuple(
                        WriteTxnMarkersRequestWritableTxnMarkerTopic(
                            name=name,
                            partition_indexes=tuple(
                                index for topic, index in partitions if topic == name
                            ),
                        )
                        for name in dict.fromkeys(topic for topic, _ in partitions)
                    ),
                ),
            )
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED
        return tuple(
            (
                self.label(marker.producer_id),
                tuple(
                    sorted(
                        (topic.name, each.partition_index, each.error_code)
                        for topic in marker.topics
                        for each in topic.partitions
                    )
                ),
            )
            for marker in answer.markers
        )


def committed_values(fetched: Any) -> list[bytes]:
    """What a read_committed consumer gets to see of what ``fetch`` returned."""
    _, _, _, _, aborted, batches = fetched
    begins = sorted(aborted, key=lambda each: each[1])
    hidden: set[str] = set()
    seen: list[bytes] = []
    for base, attributes, producer, _, _, _, records in batches:
        while begins and begins[0][1] <= base:
            hidden.add(begins.pop(0)[0])
        if attributes & 0x20:
            hidden.discard(producer)
        elif not (attributes & _TRANSACTIONAL and producer in hidden):
            seen += [value for _, value in records]
    return seen
