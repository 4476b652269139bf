"""Metadata: what the cores mean, through the bytes of every version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.cluster import (
    METADATA_VERSIONS,
    LeadersLearnt,
    LearnLeaders,
    PartitionLeader,
    TopicLeaders,
    leaders_learnt,
    learnt_together,
    metadata_request,
    questions_of,
)
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId
from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kip848_client.error_codes import ErrorCode

T = TopicId(b"t" * 16)
U = TopicId(b"u" * 16)


def again(message: Any, version: int) -> Any:
    """What the other side reads."""
    return decode(type(message), version, encode(message, version))


class TestMetadata:
    command = LearnLeaders(6, frozenset([U, T]), frozenset(["b", "a"]), "because")

    @pytest.mark.parametrize("version", range(METADATA_VERSIONS[0], METADATA_VERSIONS[1] + 1))
    def test_by_id_and_by_name(self, version: int) -> None:
        request: MetadataRequest = again(metadata_request(self.command), version)
        assert request.topics is not None
        assert [(each.topic_id, each.name) for each in request.topics] == [
            (T, None),
            (U, None),
            (ZERO_TOPIC_ID, "a"),
            (ZERO_TOPIC_ID, "b"),
        ]
        assert not request.allow_auto_topic_creation

    def test_asking_for_nothing_is_not_asking_for_everything(self) -> None:
        request = metadata_request(LearnLeaders(1, frozenset(), frozenset(), ""))
        assert again(request, 12).topics == ()

    def answer(self, *topics: MetadataResponseTopic) -> MetadataResponse:
        brokers = tuple(
            MetadataResponseBroker(node_id=node, host="h", port=1, rack=None) for node in (3, 1)
        )
        sent = MetadataResponse(brokers=brokers, topics=topics)
        found: MetadataResponse = again(sent, 13)
        return found

    def test_leaders(self) -> None:
        part = MetadataResponsePartition
        topic = MetadataResponseTopic(
            name="a",
            topic_id=T,
            partitions=(
                part(
                    partition_index=1,
                    leader_id=3,
                    leader_epoch=8,
                    replica_nodes=(1, 2, 3),
                    isr_nodes=(3, 1),
                ),
                part(
                    partition_index=0,
                    error_code=ErrorCode.LEADER_NOT_AVAILABLE,
                    leader_id=-1,
                    leader_epoch=4,
                    replica_nodes=(2,),
                    isr_nodes=(2,),
                ),
                part(partition_index=2, leader_id=-7, replica_nodes=(), isr_nodes=()),
            ),
        )
        learnt = leaders_learnt(self.answer(topic), self.command)
        assert (learnt.number, sorted(learnt.gone), sorted(learnt.nodes)) == (6, [], [1, 3])
        assert learnt.topics == (
            TopicLeaders(
                "a",
                T,
                {
                    1: PartitionLeader(3, 8, (3, 1)),
                    0: PartitionLeader(-1, 4, (2,)),
                    2: PartitionLeader(-1, -1, ()),
                },
            ),
        )

    def test_topics_that_are_not_there(self) -> None:
        def missing(name: str | None, topic_id: TopicId, code: ErrorCode) -> MetadataResponseTopic:
            return MetadataResponseTopic(
                name=name, topic_id=topic_id, error_code=code, partitions=()
            )

        stranger = TopicId(b"s" * 16)
        answer = self.answer(
            missing(None, T, ErrorCode.UNKNOWN_TOPIC_ID),
            missing(None, U, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            missing(None, stranger, ErrorCode.UNKNOWN_TOPIC_ID),
            missing("a", ZERO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        )
        learnt = leaders_learnt(answer, self.command)
        assert learnt.gone == {T}
        assert [(each.topic, each.topic_id, each.error_code) for each in learnt.topics] == [
            ("", T, ErrorCode.UNKNOWN_TOPIC_ID),
            ("", U, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
            ("", stranger, ErrorCode.UNKNOWN_TOPIC_ID),
            ("a", ZERO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]

    def test_somebody_else_asked(self) -> None:
        gone = MetadataResponseTopic(
            name=None, topic_id=T, error_code=ErrorCode.UNKNOWN_TOPIC_ID, partitions=()
        )
        learnt = leaders_learnt(self.answer(gone))
        assert (learnt.number, learnt.gone) == (0, frozenset())

    def test_a_broker_that_finds_an_id_does_not_look_at_names(self) -> None:
        by_id, by_name = questions_of(self.command)
        assert (sorted(by_id.topic_ids), sorted(by_id.topics)) == ([T, U], [])
        assert (sorted(by_name.topic_ids), sorted(by_name.topics)) == ([], ["a", "b"])
        assert by_id.number == by_name.number == 6

    def test_what_may_be_created_is_asked_for_apart(self) -> None:
        command = replace(self.command, to_create=frozenset({"b"}))
        asked = [
            ([each.name for each in request.topics or ()], request.allow_auto_topic_creation)
            for request in map(metadata_request, questions_of(command))
        ]
        assert asked == [([None, None], False), (["a"], False), (["b"], True)]

    def test_asked_for_together_nothing_is_created(self) -> None:
        command = replace(self.command, topic_ids=frozenset(), to_create=frozenset({"b"}))
        assert not metadata_request(command).allow_auto_topic_creation

    def test_who_wants_nothing_asks_for_the_brokers(self) -> None:
        (question,) = questions_of(LearnLeaders(1, frozenset(), frozenset(), ""))
        assert metadata_request(question).topics == ()

    def test_the_answers_are_one(self) -> None:
        one, other = TopicLeaders("a", T, {}), TopicLeaders("b", U, {}, 3)
        answers = [
            LeadersLearnt(6, (one,), frozenset({T}), frozenset({1})),
            LeadersLearnt(6, (other,), frozenset({U}), frozenset({1, 2})),
        ]
        assert learnt_together(6, answers) == LeadersLearnt(
            6, (one, other), frozenset({T, U}), frozenset({1, 2})
        )
