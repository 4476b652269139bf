"""Fetch and ListOffsets: what the core means, through the bytes of every version."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.core.cluster import (
    Endpoint,
)
from kip848_client.core.fetch._commands import CloseSession, ListOffsets
from kip848_client.core.fetch._model import (
    EARLIEST,
    LATEST,
    EpochEnd,
    FetchAnswer,
    FetchIntent,
    ListedOffset,
    PartitionAnswer,
    Wanted,
)
from kip848_client.core.fetch._wire import (
    FETCH_VERSIONS,
    closing_request,
    fetch_answer,
    fetch_request,
    list_offsets_request,
    list_offsets_versions,
    listed_offsets,
)
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicPartition
from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchResponseAbortedTransaction,
    FetchResponseEpochEndOffset,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
)
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from kip848_client.error_codes import ErrorCode

T = TopicId(b"t" * 16)
U = TopicId(b"u" * 16)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
ALL_FETCH_VERSIONS = range(FETCH_VERSIONS[0], FETCH_VERSIONS[1] + 1)


def again(message: Any, version: int) -> Any:
    """What the other side reads."""
    return decode(type(message), version, encode(message, version))


def intent(*add: Wanted, **others: Any) -> FetchIntent:
    plain: dict[str, Any] = {
        "session_id": 7,
        "session_epoch": 3,
        "forget": (),
        "max_wait_ms": 500,
        "min_bytes": 1,
        "max_bytes": 1000,
        "read_committed": False,
        "rack": "",
    }
    return FetchIntent(add=add, **{**plain, **others})


class TestFetchRequest:
    @pytest.mark.parametrize("version", ALL_FETCH_VERSIONS)
    def test_every_field(self, version: int) -> None:
        request: FetchRequest = again(
            fetch_request(
                intent(
                    Wanted(T, 4, offset=10, leader_epoch=5, last_epoch=3, max_bytes=99),
                    forget=((U, 1), (T, 2), (U, 0)),
                    max_wait_ms=123,
                    min_bytes=45,
                    max_bytes=678,
                    read_committed=True,
                    rack="west",
                )
            ),
            version,
        )
        assert (request.session_id, request.session_epoch) == (7, 3)
        assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (123, 45, 678)
        assert (request.isolation_level, request.rack_id) == (1, "west")
        (topic,) = request.topics
        (asked,) = topic.partitions
        assert topic.topic_id == T
        assert (asked.partition, asked.fetch_offset, asked.partition_max_bytes) == (4, 10, 99)
        assert (asked.current_leader_epoch, asked.last_fetched_epoch) == (5, 3)
        assert asked.log_start_offset == -1  # of a follower's log
        assert [(each.topic_id, each.partitions) for each in request.forgotten_topics_data] == [
            (U, (1, 0)),
            (T, (2,)),
        ]

    @pytest.mark.parametrize("version", ALL_FETCH_VERSIONS)
    def test_we_are_no_replica(self, version: int) -> None:
        request: FetchRequest = again(fetch_request(intent()), version)
        assert (request.replica_id, request.replica_state.replica_id) == (-1, -1)
        assert (request.isolation_level, request.cluster_id) == (0, None)

    def test_partitions_are_named_in_the_order_in_which_they_are_to_be_served(self) -> None:
        order = [(T, 2), (T, 0), (U, 0), (T, 1)]
        request = fetch_request(intent(*(Wanted(*key, 0, -1, -1, 1) for key in order)))
        assert [len(topic.partitions) for topic in request.topics] == [2, 1, 1]
        assert [
            (topic.topic_id, each.partition)
            for topic in request.topics
            for each in topic.partitions
        ] == order

    @pytest.mark.parametrize("version", ALL_FETCH_VERSIONS)
    def test_a_session_is_closed(self, version: int) -> None:
        request: FetchRequest = again(closing_request(CloseSession(1, 77)), version)
        assert (request.session_id, request.session_epoch, request.max_wait_ms) == (77, -1, 0)
        assert (request.topics, request.forgotten_topics_data) == ((), ())


def response(*partitions: FetchResponsePartitionData, **fields: Any) -> FetchResponse:
    topic = FetchResponseFetchableTopicResponse(topic_id=T, partitions=partitions)
    return FetchResponse(responses=(topic,) if partitions else (), **fields)


class TestFetchAnswer:
    @pytest.mark.parametrize("version", ALL_FETCH_VERSIONS)
    def test_records(self, version: int) -> None:
        sent = response(
            FetchResponsePartitionData(
                partition_index=3,
                high_watermark=30,
                last_stable_offset=20,
                log_start_offset=2,
                aborted_transactions=(
                    FetchResponseAbortedTransaction(producer_id=8, first_offset=4),
                    FetchResponseAbortedTransaction(producer_id=7, first_offset=1),
                ),
                records=b"some bytes",
            ),
            session_id=9,
            throttle_time_ms=11,
        )
        assert fetch_answer(again(sent, version)) == FetchAnswer(
            session_id=9,
            throttle_time_ms=11,
            partitions=(
                PartitionAnswer(
                    T, 3, 0, 30, 20, 2, aborted=((8, 4), (7, 1)), records=b"some bytes"
                ),
            ),
            size_bytes=10,
        )

    @pytest.mark.parametrize("version", range(16, FETCH_VERSIONS[1] + 1))
    def test_who_leads_now(self, version: int) -> None:
        """KIP-951."""
        sent = response(
            FetchResponsePartitionData(
                partition_index=0,
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                current_leader=FetchResponseLeaderIdAndEpoch(leader_id=2, leader_epoch=6),
            ),
            node_endpoints=(
                FetchResponseNodeEndpoint(node_id=2, host="h", port=9, rack=None),
                FetchResponseNodeEndpoint(node_id=3, host="i", port=8, rack="r"),
            ),
        )
        answer = fetch_answer(again(sent, version))
        assert answer.partitions[0].leader == (2, 6)
        assert answer.nodes == (Endpoint(2, "h", 9), Endpoint(3, "i", 8, "r"))

    def test_nobody_leads_now(self) -> None:
        hint = FetchResponseLeaderIdAndEpoch(leader_id=-1, leader_epoch=6)
        sent = response(FetchResponsePartitionData(current_leader=hint))
        assert fetch_answer(sent).partitions[0].leader == (-1, 6)

    @pytest.mark.parametrize("version", ALL_FETCH_VERSIONS)
    def test_a_log_that_differs(self, version: int) -> None:
        """KIP-595. Fields that are not set say nothing; half-set ones are the core's to judge."""
        parts = [
            FetchResponsePartitionData(
                partition_index=number,
                diverging_epoch=FetchResponseEpochEndOffset(epoch=epoch, end_offset=end),
            )
            for number, (epoch, end) in enumerate([(2, 50), (-1, -1), (-1, 4), (4, -1)])
        ]
        answer = fetch_answer(again(response(*parts), version))
        assert [each.diverging for each in answer.partitions] == [
            EpochEnd(2, 50),
            None,
            EpochEnd(-1, 4),
            EpochEnd(4, -1),
        ]

    @pytest.mark.parametrize("version", ALL_FETCH_VERSIONS)
    def test_a_replica_that_is_nearer(self, version: int) -> None:
        sent = response(FetchResponsePartitionData(preferred_read_replica=5, records=None))
        (found,) = fetch_answer(again(sent, version)).partitions
        assert (found.preferred_replica, found.records, found.aborted) == (5, b"", ())

    def test_an_error_of_the_whole(self) -> None:
        sent = FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=4)
        assert fetch_answer(sent) == FetchAnswer(
            error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=4
        )

    @given(st.data())
    def test_whatever_a_broker_says(self, data: st.DataObject) -> None:
        number = st.integers(-(2**31), 2**31 - 1)
        sent = FetchResponse(
            error_code=data.draw(st.integers(-(2**15), 2**15 - 1)),
            session_id=data.draw(number),
            responses=tuple(
                FetchResponseFetchableTopicResponse(
                    topic_id=data.draw(st.sampled_from([T, U, ZERO_TOPIC_ID])),
                    partitions=tuple(
                        FetchResponsePartitionData(
                            partition_index=data.draw(number),
                            high_watermark=data.draw(number),
                            preferred_read_replica=data.draw(number),
                            records=data.draw(st.none() | st.binary()),
                        )
                        for _ in range(data.draw(st.integers(0, 3)))
                    ),
                )
                for _ in range(data.draw(st.integers(0, 3)))
            ),
        )
        answer = fetch_answer(again(sent, 18))
        assert len(answer.partitions) == sum(len(each.partitions) for each in sent.responses)
        assert answer.size_bytes == sum(len(each.records) for each in answer.partitions)


class TestListOffsets:
    def command(
        self, wanted: dict[TopicPartition, tuple[int, int]], *, read_committed: bool = False
    ) -> ListOffsets:
        return ListOffsets(5, 1, wanted, read_committed)

    def test_by_name_with_the_epoch_of_the_leader(self) -> None:
        command = self.command({B0: (LATEST, 3), A1: (1234, -1), A0: (EARLIEST, 0)})
        request: ListOffsetsRequest = again(list_offsets_request(command, 777), 11)
        assert (request.replica_id, request.isolation_level, request.timeout_ms) == (-1, 0, 777)
        assert [
            (topic.name, each.partition_index, each.timestamp, each.current_leader_epoch)
            for topic in request.topics
            for each in topic.partitions
        ] == [("a", 0, -2, 0), ("a", 1, 1234, -1), ("b", 0, -1, 3)]
        assert [topic.name for topic in request.topics] == ["a", "b"]

    @pytest.mark.parametrize(
        ("time", "lowest"), [(-1, 1), (-2, 1), (0, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11)]
    )
    def test_versions_that_know_what_is_asked(self, time: int, lowest: int) -> None:
        wanted = {A0: (LATEST, 3), A1: (time, 3)}
        assert list_offsets_versions(self.command(wanted)) == (lowest, 11)
        committed = self.command(wanted, read_committed=True)
        assert list_offsets_versions(committed) == (max(2, lowest), 11)
        for version in range(max(2, lowest), 12):
            request: ListOffsetsRequest = again(list_offsets_request(committed, 1), version)
            assert request.isolation_level == 1
            assert request.topics[0].partitions[1].timestamp == time

    @pytest.mark.parametrize("version", range(1, 12))
    def test_answers(self, version: int) -> None:
        row = ListOffsetsResponseListOffsetsPartitionResponse
        sent = ListOffsetsResponse(
            topics=(
                ListOffsetsResponseListOffsetsTopicResponse(
                    name="a",
                    partitions=(
                        row(partition_index=0, timestamp=5, offset=9, leader_epoch=2),
                        row(partition_index=1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
                        row(partition_index=7, offset=1),
                    ),
                ),
                ListOffsetsResponseListOffsetsTopicResponse(
                    name="nobody asked", partitions=(row(partition_index=0, offset=1),)
                ),
            )
        )
        for part in sent.topics[0].partitions:
            part.leader_epoch = part.leader_epoch if version >= 4 else -1
        command = self.command({A0: (5, 0), A1: (5, 0), B0: (5, 0)})
        assert listed_offsets(command, again(sent, version)) == {
            A0: ListedOffset(0, 9, 5, 2 if version >= 4 else -1),
            A1: ListedOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER),
        }
