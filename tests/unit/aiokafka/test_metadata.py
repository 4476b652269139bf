"""Topic ids and names, and the picture that aiokafka gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kip848_client import TopicPartition
from kip848_client._aiokafka._metadata import ClusterPicture, TopicDirectory, refresh_quietly
from kip848_client._ports import NotSent
from kip848_client._types import TopicId
from kip848_client.error_codes import ErrorCode
from kip848_client.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.consumer.fakes import FakeTransport

pytestmark = pytest.mark.asyncio

OLD, NEW = TopicId(b"o" * 16), TopicId(b"n" * 16)


class Cluster:
    """Topics by name: (id, partitions); answers as a broker does."""

    def __init__(self, *, allow_auto_create: bool = True) -> None:
        self.topics: dict[str, tuple[TopicId, int]] = {"t": (OLD, 2)}
        self.requests: list[MetadataRequest] = []
        self.pictures: list[ClusterPicture] = []
        self.brokers: list[tuple[int, str, int]] = []
        self.transport = FakeTransport(self._answer)
        self.directory = TopicDirectory(
            self.transport,
            self.brokers.extend,
            self.pictures.append,
            allow_auto_create=allow_auto_create,
        )

    def creating(self) -> list[set[str | None]]:
        """What was asked for in requests that may create it."""
        return [
            {each.name for each in request.topics or ()}
            for request in self.requests
            if request.allow_auto_topic_creation
        ]

    def _answer(self, _where: str, request: MetadataRequest) -> MetadataResponse:
        self.requests.append(request)
        if request.topics is None:
            rows = [self._row(name) for name in self.topics]
        else:
            names = {topic_id: name for name, (topic_id, _) in self.topics.items()}
            rows = [
                self._row(each.name)
                if each.name is not None
                else self._row(names[TopicId(each.topic_id)])
                if each.topic_id in names
                else MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=each.topic_id
                )
                for each in request.topics
            ]
        broker = MetadataResponseBroker(node_id=1, host="h", port=9)
        return MetadataResponse(brokers=(broker,), controller_id=1, topics=tuple(rows))

    def _row(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        topic_id, count = self.topics[name]
        partitions = tuple(
            MetadataResponsePartition(partition_index=n, leader_id=1, replica_nodes=(1,))
            for n in range(count)
        )
        return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)


async def test_a_watched_topic_is_known_by_name_and_id() -> None:
    cluster = Cluster()
    directory = cluster.directory
    directory.watch(["t"])
    await directory.refresh()
    assert (directory.id_of("t"), directory.name_of(OLD)) == (OLD, "t")
    assert directory.partitions_of("t") == frozenset({0, 1})
    assert directory.leader_of(TopicPartition("t", 1)) == 1
    assert directory.leader_of(TopicPartition("t", 2)) is None
    assert cluster.brokers == [(1, "h", 9)]
    (picture,) = cluster.pictures
    assert picture.topics[0][1] == "t"
    assert cluster.transport.versions == [(12, 32767)]


async def test_nothing_watched_asks_for_no_topic() -> None:
    cluster = Cluster()
    await cluster.directory.refresh()
    assert cluster.requests[0].topics == ()


async def test_names_are_asked_for_by_id_once() -> None:
    cluster = Cluster()
    assert await cluster.directory.resolve([OLD]) == {OLD: "t"}
    assert await cluster.directory.resolve([OLD]) == {OLD: "t"}
    assert len(cluster.requests) == 1
    assert await cluster.directory.resolve([OLD, NEW]) == {OLD: "t"}
    assert [each.topic_id for each in cluster.requests[1].topics or ()] == [NEW]


async def test_a_topic_created_again_has_a_new_id_and_the_old_one_keeps_its_name() -> None:
    cluster = Cluster()
    await cluster.directory.resolve([OLD])
    cluster.topics["t"] = (NEW, 1)
    await cluster.directory.refresh(["t"])
    assert cluster.directory.id_of("t") == NEW
    assert (cluster.directory.name_of(OLD), cluster.directory.name_of(NEW)) == ("t", "t")


async def test_a_name_may_be_created_by_asking_only_once() -> None:
    """A refresh must not bring back what somebody deleted."""
    cluster = Cluster()
    cluster.directory.want(["t"])
    for _ in range(3):
        await cluster.directory.refresh()
    await cluster.directory.resolve([NEW])
    assert cluster.creating() == [{"t"}]
    assert len(cluster.requests) == 4


async def test_a_new_name_is_asked_for_apart_from_those_that_may_be_deleted() -> None:
    cluster = Cluster()
    cluster.directory.want(["a"])
    await cluster.directory.refresh()
    cluster.directory.want(["a", "b"])
    await cluster.directory.refresh(["c"])
    assert cluster.creating() == [{"a"}, {"b"}]
    assert [each.name for each in cluster.requests[-1].topics or ()] == ["a", "c"]


async def test_what_the_user_did_not_name_is_never_created() -> None:
    """Topics that a pattern matched, that were looked up, or that are assigned."""
    cluster = Cluster()
    cluster.directory.watch(["matched"])
    await cluster.directory.refresh(["looked-up"])
    await cluster.directory.resolve([OLD])
    assert cluster.creating() == []


async def test_a_name_that_is_wanted_anew_may_be_created_anew() -> None:
    cluster = Cluster()
    for wanted in (["a"], [], ["a"]):
        cluster.directory.want(wanted)
        await cluster.directory.refresh()
    assert cluster.creating() == [{"a"}, {"a"}]


async def test_nothing_is_created_when_that_is_switched_off() -> None:
    cluster = Cluster(allow_auto_create=False)
    cluster.directory.want(["t"])
    await cluster.directory.refresh()
    assert cluster.creating() == []
    assert len(cluster.requests) == 1


async def test_topics_that_came_and_went_leave_nothing_behind() -> None:
    cluster = Cluster()
    directory = cluster.directory
    for number in range(50):
        cluster.topics = {f"t-{number}": (TopicId(bytes([number]) * 16), 3)}
        directory.watch([f"t-{number}"])
        directory.retain([f"t-{number}"])
        await directory.refresh([f"gone-{number}"])
    await directory.refresh()
    assert [each.name for each in cluster.requests[-1].topics or ()] == ["t-49"]
    assert [row[1] for row in cluster.pictures[-1].topics] == ["t-49"]
    sizes = [len(each) for each in vars(directory).values() if isinstance(each, dict | set)]
    assert max(sizes) == 3  # the leaders of three partitions


async def test_a_topic_that_is_gone_is_complained_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    directory = cluster.directory
    directory.watch(["t"])
    await directory.refresh()
    row = cluster.topics.pop("t")
    for _ in range(3):
        await directory.refresh()
    assert (directory.id_of("t"), directory.partitions_of("t")) == (None, None)
    assert directory.leader_of(TopicPartition("t", 0)) is None
    assert directory.name_of(OLD) == "t"
    assert len(caplog.records) == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in caplog.text
    cluster.topics["t"] = row
    await directory.refresh()
    del cluster.topics["t"]
    await directory.refresh()
    assert len(caplog.records) == 2


async def test_retain_forgets_the_rest() -> None:
    cluster = Cluster()
    cluster.directory.watch(["t", "u"])
    cluster.directory.retain(["u", "v"])
    await cluster.directory.refresh()
    assert [each.name for each in cluster.requests[0].topics or ()] == ["u"]


async def test_all_topics_leave_errors_out() -> None:
    cluster = Cluster()
    assert [each.name for each in await cluster.directory.list_topics()] == ["t"]
    assert cluster.requests[0].topics is None
    assert not cluster.requests[0].allow_auto_topic_creation


async def test_a_failed_refresh_is_only_logged(caplog: pytest.LogCaptureFixture) -> None:
    await _fails_quietly(NotSent("nobody there"), caplog)


async def test_a_refresh_survives_what_nobody_foresaw(caplog: pytest.LogCaptureFixture) -> None:
    """An exception would end aiokafka's synchroniser: no leader would ever be learnt again."""
    await _fails_quietly(KeyError("nobody there"), caplog)


async def _fails_quietly(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()

    def fail(_where: str, _request: Any) -> Any:
        raise error

    answer: Callable[[str, Any], Any] = cluster.transport.answer
    cluster.transport.answer = fail
    assert not await refresh_quietly(cluster.directory)
    assert "nobody there" in caplog.text
    cluster.transport.answer = answer
    assert await refresh_quietly(cluster.directory)
