"""Topic ids and names, what is told of leaders, and when to begin anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.cluster import (
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.recovery import Recovery
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import RemoteProtocolError
from kip848_client.runtime._backoff import Backoff
from kip848_client.runtime._topics import TopicDirectory
from tests.unit.consumer.fakes import FakeClock, FakeTransport
from tests.unit.waiting import until

pytestmark = pytest.mark.asyncio

OLD, NEW = TopicId(b"o" * 16), TopicId(b"n" * 16)


class Cluster:
    """Topics by name: (id, partitions); answers as a broker does."""

    def __init__(self, *, allow_auto_create: bool = True, trigger_ms: int | None = 5_000) -> None:
        self.topics: dict[str, tuple[TopicId, int]] = {"t": (OLD, 2)}
        self.requests: list[MetadataRequest] = []
        self.learnt: list[LeadersLearnt] = []
        self.begun_anew: list[int] = []
        self.error_code = 0
        self.nameless = False
        self.clock = FakeClock()
        self.transport = FakeTransport(self._answer)
        self.directory = TopicDirectory(
            self.transport,
            self.clock,
            self.learnt.append,
            lambda: self.begun_anew.append(self.clock.ms),
            allow_auto_create=allow_auto_create,
            recovery=Recovery(trigger_ms),
            backoff=Backoff(1, 1),
            max_age_ms=20,
            fields={"client_id": "c"},
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
        brokers = () if self.nameless else (broker,)
        return MetadataResponse(brokers=brokers, topics=tuple(rows), error_code=self.error_code)

    def _row(self, name: str) -> MetadataResponseTopic:
        if name not in self.topics:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=name)
        topic_id, count = self.topics[name]
        partitions = tuple(
            MetadataResponsePartition(
                partition_index=n, leader_id=1, leader_epoch=7, replica_nodes=(1,), isr_nodes=(1,)
            )
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
    assert cluster.transport.brokers == {1: ("h", 9)}
    assert cluster.transport.versions == [(12, 13)]
    leader = PartitionLeader(1, 7, (1,))
    told = TopicLeaders("t", OLD, {0: leader, 1: leader})
    assert cluster.learnt == [LeadersLearnt(0, (told,), frozenset(), frozenset({1}))]


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
    sizes = [len(each) for each in vars(directory).values() if isinstance(each, dict | set)]
    assert max(sizes) == 1


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
    assert directory.name_of(OLD) == "t"
    assert len(caplog.records) == 1
    assert "UNKNOWN_TOPIC_OR_PARTITION" in caplog.text
    assert "consume" not in caplog.text, "a producer says it, too"
    cluster.topics["t"] = row
    await directory.refresh()
    del cluster.topics["t"]
    await directory.refresh()
    assert len(caplog.records) == 2


async def test_a_topic_that_is_only_asked_about_is_not_complained_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Offsets can be asked for of any topic: nobody is going to consume it."""
    cluster = Cluster()
    told = await cluster.directory.look_up(LearnLeaders(5, frozenset(), frozenset({"no"}), "why"))
    assert isinstance(told, LeadersLearnt)
    assert not caplog.records
    cluster.directory.want(["no"])
    await cluster.directory.refresh()
    assert "topic no" in caplog.text


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


async def test_the_core_is_answered_by_id_and_by_name() -> None:
    """A broker that is asked for ids does not look at names."""
    cluster = Cluster()
    cluster.topics["u"] = (NEW, 1)
    told = await cluster.directory.look_up(
        LearnLeaders(5, frozenset({OLD, TopicId(b"g" * 16)}), frozenset({"u"}), "why")
    )
    assert isinstance(told, LeadersLearnt)
    assert told.number == 5
    assert [each.topic for each in told.topics if not each.error_code] == ["t", "u"]
    assert told.gone == {TopicId(b"g" * 16)}
    assert told.nodes == {1}
    by_id, by_name = cluster.requests
    assert {each.name for each in by_id.topics or ()} == {None}
    assert [each.name for each in by_name.topics or ()] == ["u"]
    assert cluster.creating() == []
    assert cluster.learnt == []
    assert cluster.directory.id_of("u") == NEW  # all that comes in is kept


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_core_may_have_topics_created(*, allowed: bool) -> None:
    cluster = Cluster(allow_auto_create=allowed)
    wanted = LearnLeaders(5, frozenset(), frozenset({"new", "t"}), "why", frozenset({"new"}))
    told = await cluster.directory.look_up(wanted)
    assert isinstance(told, LeadersLearnt)
    assert {each.topic: each.error_code for each in told.topics} == {
        "t": 0,
        "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert cluster.creating() == ([{"new"}] if allowed else [])
    assert len(cluster.requests) == (2 if allowed else 1)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
    ],
)
async def test_a_core_hears_what_is_wrong_with_a_topic(
    code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Cluster()
    brokers = (MetadataResponseBroker(node_id=1, host="h", port=9),)
    rows = (MetadataResponseTopic(error_code=code, name="u"),)
    answer = MetadataResponse(brokers=brokers, topics=rows)
    cluster.transport.answer = lambda _where, _request: answer
    u = frozenset({"u"})
    told = await cluster.directory.look_up(LearnLeaders(5, frozenset(), u, "why", u))
    assert isinstance(told, LeadersLearnt)
    assert [(each.topic, each.error_code) for each in told.topics] == [("u", code)]
    assert not caplog.records, "the core says it to whom it concerns"


async def test_what_only_the_core_asks_for_is_not_kept_for_ever() -> None:
    """A topic that is created again has another id."""
    cluster = Cluster()
    await cluster.directory.look_up(LearnLeaders(5, frozenset(), frozenset({"t"}), "why"))
    assert cluster.directory.id_of("t") == OLD
    await cluster.directory.refresh()
    assert (cluster.directory.id_of("t"), cluster.directory.name_of(OLD)) == (None, None)


async def test_what_was_told_before_the_assignment_is_not_asked_for_again() -> None:
    cluster = Cluster()
    directory, wanted = cluster.directory, LearnLeaders(5, frozenset({OLD}), frozenset(), "why")
    directory.want(["t"])
    await directory.refresh()
    told = await directory.look_up(wanted)
    assert told == replace(cluster.learnt[0], number=5)
    assert len(cluster.requests) == 1
    await directory.look_up(wanted)  # now it wants to know whether that still holds
    assert len(cluster.requests) == 2
    directory.watch(["t"])
    await directory.refresh()  # which the core has heard
    await directory.look_up(wanted)
    assert len(cluster.requests) == 4


async def test_old_news_are_none() -> None:
    cluster = Cluster()
    await cluster.directory.refresh(["t"])
    cluster.clock.ms += 10_001
    await cluster.directory.look_up(LearnLeaders(5, frozenset({OLD}), frozenset(), "why"))
    assert len(cluster.requests) == 2


async def test_the_core_is_told_that_nobody_answered() -> None:
    cluster = Cluster()
    spoil(cluster, NotSent("nobody there"))
    told = await cluster.directory.look_up(LearnLeaders(5, frozenset(), frozenset({"t"}), "why"))
    assert told == LeadersNotLearnt(5, "nobody there")


async def test_what_is_wanted_is_kept_fresh(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(trigger_ms=None)
    directory = cluster.directory
    directory.watch(["t"])
    task = asyncio.get_running_loop().create_task(directory.run())
    await until(lambda: len(cluster.requests) >= 2)  # by age
    asked = len(cluster.transport.asked)
    answer = spoil(cluster, NotSent("nobody there"))
    await until(lambda: len(cluster.transport.asked) >= asked + 5)  # it does not end
    assert caplog.text.count("nobody there") == 1, "while it lasts it is said once a minute"
    cluster.clock.ms += 60_000
    await until(lambda: caplog.text.count("nobody there") == 2)
    cluster.transport.answer = answer
    directory.want(["new"])
    directory.refresh_soon()
    await until(lambda: {"new"} in cluster.creating())
    task.cancel()


# -- beginning anew (KIP-899, KIP-1102) ----------------------------------------------------------


async def ask(cluster: Cluster, after_ms: int = 0) -> str:
    """Ask for metadata; returns what went wrong."""
    cluster.clock.ms += after_ms
    try:
        await cluster.directory.refresh()
    except (NotSent, ConnectionBroken, RemoteProtocolError) as err:
        return str(err)
    return ""


async def test_brokers_that_are_of_no_use_for_long_are_given_up() -> None:
    """librdkafka #5178."""
    cluster = Cluster()
    assert await ask(cluster) == ""
    answer = spoil(cluster, NotSent("nobody there"))
    await ask(cluster, after_ms=600_000)  # nobody was asked in between, and nobody has failed
    await ask(cluster, after_ms=4_999)
    assert cluster.begun_anew == []
    await ask(cluster, after_ms=1)
    assert cluster.begun_anew == [cluster.clock.ms]
    assert cluster.transport.begun_anew == 1
    await ask(cluster, after_ms=4_999)  # the new beginning has as much time
    await ask(cluster, after_ms=4_999)
    assert len(cluster.begun_anew) == 1
    cluster.transport.answer = answer
    assert await ask(cluster) == ""
    spoil(cluster, NotSent("nobody there"))
    await ask(cluster, after_ms=4_999)
    assert len(cluster.begun_anew) == 1


async def test_an_answer_without_brokers_is_none() -> None:
    """librdkafka #5301."""
    cluster = Cluster()
    cluster.nameless = True
    assert "names no brokers" in await ask(cluster)
    await ask(cluster, after_ms=5_000)
    assert len(cluster.begun_anew) == 1
    assert cluster.learnt == []


async def test_a_broker_may_ask_for_it() -> None:
    cluster = Cluster()
    cluster.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    assert "starts over" in await ask(cluster)
    assert len(cluster.begun_anew) == 1
    assert cluster.transport.brokers == {}


async def test_without_the_strategy_nothing_begins_anew() -> None:
    cluster = Cluster(trigger_ms=None)
    cluster.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
    assert "REBOOTSTRAP_REQUIRED" in await ask(cluster)
    spoil(cluster, NotSent("nobody there"))
    await ask(cluster, after_ms=1_000_000)
    await ask(cluster, after_ms=1_000_000)
    assert cluster.begun_anew == []


async def test_a_late_answer_of_a_former_broker_does_not_count() -> None:
    """librdkafka #5605."""
    cluster = Cluster()
    late: list[str] = []

    def answer_late(_where: str, request: MetadataRequest) -> MetadataResponse:
        cluster.directory._beginnings += 1  # while it was under way
        return cluster._answer(_where, request)

    cluster.transport.answer = answer_late
    late.append(await ask(cluster))
    assert "restarted from its bootstrap servers" in late[0]
    assert cluster.learnt == []


def spoil(cluster: Cluster, error: Exception) -> Callable[[str, Any], Any]:
    """Let every request fail; returns what answered before."""

    def fail(_where: str, _request: Any) -> Any:
        raise error

    answer = cluster.transport.answer
    cluster.transport.answer = fail
    return answer


async def test_a_line_of_the_log_says_whose_it_is_and_which_topic_it_is_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = Cluster()
    cluster.directory.watch(["missing"])
    await cluster.directory.refresh()
    (line,) = caplog.records
    fields = vars(line)
    assert (fields["client_id"], fields["topic"]) == ("c", "missing")
