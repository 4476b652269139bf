"""What is asked of the leaders of partitions when they move between two requests."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.admin import _offsets
from kip848_client.admin._request_router import RequestRouter
from kip848_client.core.types import TopicPartition
from kip848_client.core.wire import request_api
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from kip848_client.core.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.runtime._backoff import Backoff
from tests.unit.consumer.fakes import FakeClock, FakeTransport

pytestmark = pytest.mark.asyncio

LATEST = -1
Leaders = dict[int, tuple[int, int]]
"""By partition, the leader and its epoch."""


class Cluster:
    """Partitions of ``t``. ``moves`` is applied after the first look at metadata."""

    def __init__(self, leaders: Leaders, moves: Leaders) -> None:
        self.leaders = leaders
        self._moves = moves
        self.asked: list[tuple[str, dict[int, int]]] = []
        """Whom, and by partition the epoch that the request names."""
        self.refuses: list[int] = []
        """What the next rows are refused with, one after the other."""
        transport: Any = FakeTransport(self._answer)
        self.router = RequestRouter(transport, FakeClock(), Backoff(1, 1), 5_000)

    def _answer(self, where: str, request: Any) -> Any:
        if request_api(request).name == "Metadata":
            answer = self._metadata()
            self.leaders, self._moves = self.leaders | self._moves, {}
            return answer
        (topic,) = request.topics
        assert len(self.asked) < 5, "it is asked for ever"
        self.asked.append(
            (where, {each.partition_index: each.current_leader_epoch for each in topic.partitions})
        )
        rows = tuple(
            ListOffsetsResponseListOffsetsPartitionResponse(
                partition_index=each.partition_index,
                error_code=self._code(where, each),
                offset=40 + each.partition_index,
            )
            for each in topic.partitions
        )
        return ListOffsetsResponse(
            topics=(ListOffsetsResponseListOffsetsTopicResponse(name="t", partitions=rows),)
        )

    def _code(self, where: str, asked: Any) -> int:
        if self.refuses:
            return self.refuses.pop()
        leader, epoch = self.leaders[asked.partition_index]
        if where != f"broker {leader}":
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return 0 if asked.current_leader_epoch == epoch else ErrorCode.FENCED_LEADER_EPOCH

    def _metadata(self) -> MetadataResponse:
        nodes = (1, 2)
        return MetadataResponse(
            brokers=tuple(MetadataResponseBroker(node_id=n, host="h", port=n) for n in nodes),
            topics=(
                MetadataResponseTopic(
                    name="t",
                    partitions=tuple(
                        MetadataResponsePartition(
                            partition_index=n, leader_id=leader, leader_epoch=epoch
                        )
                        for n, (leader, epoch) in self.leaders.items()
                    ),
                ),
            ),
        )


@pytest.mark.parametrize("leader", [1, 2])
async def test_a_leader_that_moves_is_asked_again_under_its_new_epoch(leader: int) -> None:
    """Also the same broker: it may have lost its office and got it back."""
    cluster = Cluster({0: (1, 4), 1: (1, 4)}, {0: (leader, 6)})
    tps = [TopicPartition("t", 0), TopicPartition("t", 1)]
    found = await _offsets.list_offsets(
        cluster.router, dict.fromkeys(tps, LATEST), cluster.router.deadline_ms(5_000)
    )
    assert {tp.partition: each.offset for tp, each in found.items()} == {0: 40, 1: 41}
    assert cluster.asked == [("broker 1", {0: 4, 1: 4}), (f"broker {leader}", {0: 6})]
    assert cluster.router.node(leader).port == leader, "where it is was in the same answer"


async def test_a_leader_that_has_not_heard_of_its_topic_is_looked_up_again() -> None:
    cluster = Cluster({0: (1, 4)}, {})
    cluster.refuses = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    found = await _offsets.list_offsets(
        cluster.router, {TopicPartition("t", 0): LATEST}, cluster.router.deadline_ms(5_000)
    )
    assert [each.offset for each in found.values()] == [40]
    assert len(cluster.asked) == 2
