"""What a producer asks and hears: what the core means, through the bytes of every version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.produce import (
    NO_PRODUCER,
    AddOffsets,
    AddPartitions,
    CommitOffsets,
    CoordinatorFound,
    CoordinatorKind,
    CoordinatorNotFound,
    DescribeTransaction,
    EndTransaction,
    FindCoordinator,
    Group,
    InitProducerId,
    OffsetToCommit,
    Produced,
    ProducerId,
    ProducerIdAnswered,
    SealedBatch,
    SendProduce,
    TransactionDescribed,
    TransactionNotDescribed,
    TransactionVersion,
    TxnAnswered,
)
from kip848_client.core.produce._wire import (
    ADD_OFFSETS_VERSIONS,
    ADD_PARTITIONS_VERSIONS,
    FEATURES_VERSIONS,
    FIND_COORDINATOR_VERSIONS,
    add_offsets_request,
    add_partitions_request,
    commit_offsets_request,
    commit_offsets_versions,
    coordinator_answer,
    describe_transaction_request,
    end_transaction_answer,
    end_transaction_request,
    end_transaction_versions,
    features_request,
    find_coordinator_request,
    init_producer_id_request,
    init_producer_id_versions,
    node_endpoints,
    offsets_added_answer,
    offsets_answer,
    partitions_added_answer,
    produce_answer,
    produce_request,
    produce_versions,
    producer_id_answer,
    transaction_described_answer,
    transaction_level,
)
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicPartition
from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.api_versions import (
    ApiVersionsResponse,
    ApiVersionsResponseFinalizedFeatureKey,
)
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kip848_client.core.wire.messages.produce import (
    ProduceResponse,
    ProduceResponseBatchIndexAndErrorMessage,
    ProduceResponseLeaderIdAndEpoch,
    ProduceResponseNodeEndpoint,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
)
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult,
    EndTxnResponse,
    InitProducerIdResponse,
)
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kip848_client.error_codes import ErrorCode

T, U = TopicId(b"t" * 16), TopicId(b"u" * 16)
IDS = {"t": T, "u": U}
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
ME = ProducerId(7, 3)
BUSY, STALE = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.ILLEGAL_GENERATION
GONE = ErrorCode.UNKNOWN_TOPIC_ID
V1, V2 = TransactionVersion.V1, TransactionVersion.V2
GROUP = Group("g", 5, "me", "instance")
OFFSETS = {T1: OffsetToCommit(10, 4, "said", T), U0: OffsetToCommit(20, -1, "", U)}


def again(message: Any, version: int) -> Any:
    """What the other side reads."""
    return decode(type(message), version, encode(message, version))


def versions(limits: tuple[int, int]) -> range:
    return range(limits[0], limits[1] + 1)


def produce(
    version: TransactionVersion = V2, *, transactional_id: str | None = None, ids: bool = True
) -> SendProduce:
    batches = [SealedBatch(tp, IDS[tp[0]] if ids else None, tp[0].encode()) for tp in (U0, T1, T0)]
    return SendProduce(1, 2, -1, transactional_id, version, tuple(batches), 500)


class TestProduce:
    @pytest.mark.parametrize("version", range(3, 14))
    def test_the_request(self, version: int) -> None:
        request = again(produce_request(produce(transactional_id="x")), version)
        assert (request.transactional_id, request.acks, request.timeout_ms) == ("x", -1, 500)
        named = [(each.name, each.topic_id) for each in request.topic_data]
        by_name = [("t", ZERO_TOPIC_ID), ("u", ZERO_TOPIC_ID)]
        assert named == ([("", T), ("", U)] if version >= 13 else by_name)
        assert [
            [(each.index, bytes(each.records)) for each in topic.partition_data]
            for topic in request.topic_data
        ] == [[(0, b"t"), (1, b"t")], [(0, b"u")]]

    @pytest.mark.parametrize(
        ("command", "expected"),
        [
            (produce(), (3, 13)),
            (produce(ids=False), (3, 12)),
            (produce(V2, transactional_id="x"), (12, 13)),
            (produce(V2, transactional_id="x", ids=False), (12, 12)),
            (produce(V1, transactional_id="x"), (3, 11)),
        ],
    )
    def test_the_versions(self, command: SendProduce, expected: tuple[int, int]) -> None:
        assert produce_versions(command) == expected

    @pytest.mark.parametrize("version", range(3, 14))
    def test_the_answer(self, version: int) -> None:
        response = ProduceResponse(
            responses=(
                ProduceResponseTopicProduceResponse(
                    name="t",
                    topic_id=T,
                    partition_responses=(
                        ProduceResponsePartitionProduceResponse(
                            index=1, base_offset=9, log_append_time_ms=8, log_start_offset=7
                        ),
                        ProduceResponsePartitionProduceResponse(index=5),  # was not asked for
                    ),
                ),
                ProduceResponseTopicProduceResponse(
                    name="other", topic_id=b"o" * 16, partition_responses=()
                ),
            ),
        )
        answer = produce_answer(produce(), again(response, version))
        start = 7 if version >= 5 else -1
        expected = Produced(base_offset=9, log_append_time_ms=8, log_start_offset=start)
        assert (answer.produce, answer.partitions) == (1, {T1: expected})
        assert type(next(iter(answer.partitions))) is TopicPartition

    def test_an_error_names_rows_and_the_leader(self) -> None:
        told = ProduceResponsePartitionProduceResponse(
            index=0,
            error_code=ErrorCode.INVALID_RECORD,
            error_message="no",
            record_errors=(
                ProduceResponseBatchIndexAndErrorMessage(
                    batch_index=2, batch_index_error_message="bad"
                ),
            ),
            current_leader=ProduceResponseLeaderIdAndEpoch(leader_id=4, leader_epoch=6),
        )
        response: ProduceResponse = again(
            ProduceResponse(
                responses=(
                    ProduceResponseTopicProduceResponse(topic_id=T, partition_responses=(told,)),
                ),
                node_endpoints=(
                    ProduceResponseNodeEndpoint(node_id=4, host="h", port=1, rack=None),
                ),
            ),
            13,
        )
        found = produce_answer(produce(), response).partitions[T0]
        assert (found.error_code, found.error_message) == (ErrorCode.INVALID_RECORD, "no")
        assert (found.record_errors, found.leader) == ({2: "bad"}, (4, 6))
        assert node_endpoints(response) == ((4, "h", 1),)


class TestWhoWeAre:
    @pytest.mark.parametrize("version", range(6))
    def test_a_first_id(self, version: int) -> None:
        command = InitProducerId(1, None, None, 60_000, NO_PRODUCER)
        assert init_producer_id_versions(command) == (0, 5)
        request = again(init_producer_id_request(command), version)
        assert (request.transactional_id, request.transaction_timeout_ms) == (None, 60_000)
        assert (request.producer_id, request.producer_epoch) == (-1, -1)

    @pytest.mark.parametrize("version", range(3, 6))
    def test_another_epoch(self, version: int) -> None:
        command = InitProducerId(1, 2, "x", 60_000, ME)
        assert init_producer_id_versions(command) == (3, 5)
        request = again(init_producer_id_request(command), version)
        assert (request.transactional_id, request.producer_id, request.producer_epoch) == (
            "x",
            7,
            3,
        )

    def test_the_answer(self) -> None:
        command = InitProducerId(1, 2, "x", 60_000, ME)
        response = InitProducerIdResponse(error_code=0, producer_id=7, producer_epoch=4)
        assert producer_id_answer(command, again(response, 5)) == ProducerIdAnswered(
            1, 0, ProducerId(7, 4)
        )


class TestCoordinators:
    command = FindCoordinator(3, CoordinatorKind.TRANSACTION, "x")

    @pytest.mark.parametrize("version", versions(FIND_COORDINATOR_VERSIONS))
    def test_the_request(self, version: int) -> None:
        request = again(find_coordinator_request(self.command), version)
        assert (request.key_type, request.coordinator_keys) == (1, ("x",))

    @pytest.mark.parametrize("version", versions(FIND_COORDINATOR_VERSIONS))
    def test_found(self, version: int) -> None:
        rows = (
            FindCoordinatorResponseCoordinator(key="other", node_id=1, host="o", port=1),
            FindCoordinatorResponseCoordinator(key="x", node_id=2, host="h", port=9),
        )
        response = again(FindCoordinatorResponse(coordinators=rows), version)
        assert coordinator_answer(self.command, response) == (
            CoordinatorFound(3, 2),
            ((2, "h", 9),),
        )

    def test_not_found(self) -> None:
        row = FindCoordinatorResponseCoordinator(
            key="x", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE, error_message=None
        )
        told, addresses = coordinator_answer(
            self.command, FindCoordinatorResponse(coordinators=(row,))
        )
        assert told == CoordinatorNotFound(
            3, ErrorCode.COORDINATOR_NOT_AVAILABLE, "COORDINATOR_NOT_AVAILABLE"
        )
        assert addresses == ()
        told, _ = coordinator_answer(self.command, FindCoordinatorResponse(coordinators=()))
        assert isinstance(told, CoordinatorNotFound)
        assert told.error_code == 0


class TestFeatures:
    @pytest.mark.parametrize("version", versions(FEATURES_VERSIONS))
    def test_the_request(self, version: int) -> None:
        assert again(features_request(), version).client_software_name == "kip848-client"

    @pytest.mark.parametrize("version", versions(FEATURES_VERSIONS))
    def test_the_level(self, version: int) -> None:
        features = [
            ApiVersionsResponseFinalizedFeatureKey(
                name=name, max_version_level=level, min_version_level=1
            )
            for name, level in (("group.version", 1), ("transaction.version", 2))
        ]

        def level(*found: Any, **fields: Any) -> int | None:
            response = ApiVersionsResponse(api_keys=(), finalized_features=found, **fields)
            return transaction_level(again(response, version))

        assert level(*features, finalized_features_epoch=3) == 2
        assert level(features[0], finalized_features_epoch=3) == 0
        assert level(finalized_features_epoch=-1) is None  # the broker does not know (yet)
        assert (
            level(*features, error_code=ErrorCode.UNSUPPORTED_VERSION, finalized_features_epoch=3)
            is None
        )


class TestTransactions:
    @pytest.mark.parametrize("version", versions(ADD_PARTITIONS_VERSIONS))
    def test_partitions_are_added(self, version: int) -> None:
        command = AddPartitions(4, 2, "x", ME, (U0, T1, T0))
        request = again(add_partitions_request(command), version)
        assert request.v3_and_below_transactional_id == "x"
        assert (request.v3_and_below_producer_id, request.v3_and_below_producer_epoch) == ME
        assert [(each.name, each.partitions) for each in request.v3_and_below_topics] == [
            ("u", (0,)),
            ("t", (1, 0)),
        ]
        rows = tuple(
            AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult(
                partition_index=number, partition_error_code=code
            )
            for number, code in ((1, BUSY), (9, 0))
        )
        response = AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=(
                AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult(
                    name="t", results_by_partition=rows
                ),
            )
        )
        assert partitions_added_answer(command, again(response, version)) == TxnAnswered(
            4, partitions={T1: BUSY}
        )

    @pytest.mark.parametrize("version", versions(ADD_OFFSETS_VERSIONS))
    def test_a_group_is_added(self, version: int) -> None:
        command = AddOffsets(4, 2, "x", ME, "g")
        request = again(add_offsets_request(command), version)
        assert (request.transactional_id, request.group_id) == ("x", "g")
        assert (request.producer_id, request.producer_epoch) == ME
        response = again(AddOffsetsToTxnResponse(error_code=BUSY), version)
        assert offsets_added_answer(command, response) == TxnAnswered(4, BUSY)

    @pytest.mark.parametrize("version", range(3, 7))
    def test_offsets_are_sent(self, version: int) -> None:
        command = CommitOffsets(4, 2, "x", ME, V2, GROUP, OFFSETS)
        request = again(commit_offsets_request(command), version)
        assert (request.transactional_id, request.group_id, request.member_id) == ("x", "g", "me")
        assert (request.producer_id, request.producer_epoch) == ME
        assert request.generation_id_or_member_epoch == 5
        assert request.group_instance_id == "instance"
        named = [(each.name, each.topic_id) for each in request.topics]
        by_name = [("t", ZERO_TOPIC_ID), ("u", ZERO_TOPIC_ID)]
        assert named == ([("", T), ("", U)] if version >= 6 else by_name)
        (said,), (other,) = (each.partitions for each in request.topics)
        assert (said.partition_index, said.committed_offset) == (1, 10)
        assert (said.committed_leader_epoch, said.committed_metadata) == (4, "said")
        assert (other.committed_leader_epoch, other.committed_metadata) == (-1, "")
        response = TxnOffsetCommitResponse(
            topics=(
                TxnOffsetCommitResponseTopic(
                    name="t",
                    topic_id=T,
                    partitions=(
                        TxnOffsetCommitResponsePartition(partition_index=1, error_code=STALE),
                        TxnOffsetCommitResponsePartition(partition_index=8, error_code=0),
                    ),
                ),
            )
        )
        answer = offsets_answer(command, again(response, version))
        assert answer == TxnAnswered(4, partitions={T1: STALE})

    @pytest.mark.parametrize(
        ("version", "topic_id", "expected"),
        [(V1, U, (3, 4)), (V2, U, (5, 6)), (V2, None, (5, 5))],
    )
    def test_the_versions_of_offsets(
        self, version: TransactionVersion, topic_id: TopicId | None, expected: tuple[int, int]
    ) -> None:
        offsets = OFFSETS | {U0: OffsetToCommit(20, -1, "", topic_id)}
        command = CommitOffsets(4, 2, "x", ME, version, GROUP, offsets)
        assert commit_offsets_versions(command) == expected

    def test_offsets_of_a_topic_and_of_its_namesake_are_told_apart(self) -> None:
        """It was created again between two records."""
        new = TopicId(b"n" * 16)
        offsets = {T0: OffsetToCommit(1, -1, "", new), T1: OffsetToCommit(10, 4, "", T)}
        command = CommitOffsets(4, 2, "x", ME, V2, GROUP, offsets)
        request = again(commit_offsets_request(command), 6)
        assert [
            (each.topic_id, [one.partition_index for one in each.partitions])
            for each in request.topics
        ] == [(new, [0]), (T, [1])]
        told = tuple(
            TxnOffsetCommitResponseTopic(
                topic_id=topic_id,
                partitions=(
                    TxnOffsetCommitResponsePartition(partition_index=number, error_code=code),
                ),
            )
            for topic_id, number, code in ((T, 1, GONE), (new, 0, 0), (T, 0, STALE))
        )
        answer = offsets_answer(command, again(TxnOffsetCommitResponse(topics=told), 6))
        assert answer == TxnAnswered(4, partitions={T1: GONE, T0: 0})

    @pytest.mark.parametrize(("kind", "expected"), [(V1, (0, 4)), (V2, (5, 5))])
    def test_the_end(self, kind: TransactionVersion, expected: tuple[int, int]) -> None:
        command = EndTransaction(4, 2, "x", ME, kind, commit=True)
        assert end_transaction_versions(command) == expected
        for version in versions(expected):
            request = again(end_transaction_request(command), version)
            assert (request.transactional_id, request.committed) == ("x", True)
            assert (request.producer_id, request.producer_epoch) == ME
            response = EndTxnResponse(error_code=0, producer_id=7, producer_epoch=4)
            told = ProducerId(7, 4) if kind is V2 else None
            answer = end_transaction_answer(command, again(response, version))
            assert answer == TxnAnswered(4, 0, producer=told)

    def test_how_far_it_is(self) -> None:
        command = DescribeTransaction(4, 2, "x")
        request = again(describe_transaction_request(command), 0)
        assert request.transactional_ids == ("x",)
        told = DescribeTransactionsResponseTransactionState(
            error_code=0, transactional_id="x", transaction_state="PrepareCommit"
        )
        answer = again(DescribeTransactionsResponse(transaction_states=(told,)), 0)
        described = transaction_described_answer(command, answer)
        assert described == TransactionDescribed(4, 0, "PrepareCommit")
        for other in ((), (replace(told, transactional_id="y"),)):
            answer = again(DescribeTransactionsResponse(transaction_states=other), 0)
            missing = TransactionNotDescribed(4, for_good=False)
            assert transaction_described_answer(command, answer) == missing
