"""What an admin asks when it asks again, whom, and what it remembers from one call to the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kip848_client.admin import (
    CommittedOffset,
    ListedOffset,
    NewTopic,
    OffsetReset,
    ToLatest,
    ToPlan,
    _offsets,
    _topics,
)
from kip848_client.admin._request_router import TRANSACTION_KEY, RequestRouter
from kip848_client.admin.core._retry_rounds import refusal
from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.types import TopicPartition
from kip848_client.core.wire import request_api
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kip848_client.core.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsResponse,
)
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsResponseCursor as NextPage,
)
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponsePartition as Described,
)
from kip848_client.core.wire.messages.topic_partitions import (
    DescribeTopicPartitionsResponseDescribeTopicPartitionsResponseTopic as DescribedTopic,
)
from kip848_client.core.wire.messages.topics import (
    CreateTopicsResponse,
    CreateTopicsResponseCreatableTopicResult,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import AdminFailed, BrokerError
from kip848_client.runtime._backoff import Backoff
from tests.unit.consumer.fakes import FakeClock, FakeTransport

pytestmark = pytest.mark.asyncio

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
Answers = Mapping[str, list[Any]]


class Cluster:
    """``answers``: by the name of an API what it is answered, one after the other, the last one
    for ever: a response, or an error to raise. Brokers 1 and 2 are there, and ``coordinators``
    says who coordinates."""

    def __init__(self, answers: Answers | None = None) -> None:
        self._answers = {name: list(each) for name, each in (answers or {}).items()}
        self.nodes: tuple[int, ...] = (1, 2)
        self.racks: dict[int, str] = {}
        self.coordinators: dict[tuple[int, str], int] = {}
        self.asked: list[tuple[str, str]] = []
        transport: Any = FakeTransport(self._answer)
        self.transport = transport
        self.clock = FakeClock()
        self.router = RequestRouter(transport, self.clock, Backoff(1, 1), 5_000)

    @property
    def deadline_ms(self) -> int:
        return self.router.deadline_ms(10_000)

    def _answer(self, where: str, request: Any) -> Any:
        name = request_api(request).name
        self.asked.append((where, name))
        assert len(self.asked) < 50, "it is asked for ever"
        if name in self._answers:
            answers = self._answers[name]
            answer = answers.pop(0) if len(answers) > 1 else answers[0]
            if isinstance(answer, Exception):
                raise answer
            return answer
        if name == "FindCoordinator":
            return FindCoordinatorResponse(
                coordinators=tuple(
                    FindCoordinatorResponseCoordinator(
                        key=key,
                        node_id=self.coordinators[request.key_type, key],
                        host="h",
                        port=1,
                        error_code=0,
                    )
                    for key in request.coordinator_keys
                )
            )
        assert name == "Metadata", f"nobody answers {name}"
        return MetadataResponse(
            brokers=tuple(
                MetadataResponseBroker(node_id=n, host="h", port=n, rack=self.racks.get(n))
                for n in self.nodes
            ),
            topics=(),
        )

    def where(self, name: str) -> list[str]:
        """Whom that was asked of."""
        return [where for where, each in self.asked if each == name]


Said = Mapping[str, str | BrokerError]


class Coordinators:
    """Asks the coordinators of ``names``, which refuse unless they are the right ones."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.asked: list[tuple[int, str]] = []

    async def ask(self, name: str, key_type: int = 0) -> None:
        async def ask(node: int, targets: tuple[str, ...]) -> Said:
            self.asked += [(node, target) for target in targets]
            wrong = refusal(ErrorCode.NOT_COORDINATOR, None, "Api")
            return {
                target: "done" if self.cluster.coordinators[key_type, target] == node else wrong
                for target in targets
            }

        cluster = self.cluster
        done, failed = await cluster.router.of_coordinators(
            (name,), ask, cluster.deadline_ms, key_type=key_type
        )
        assert done == {name: "done"}
        assert not failed


# -- coordinators --------------------------------------------------------------------------------


async def test_a_coordinator_that_moved_during_a_call_is_asked_by_the_next_one() -> None:
    cluster = Cluster()
    asked = Coordinators(cluster)
    for node in (1, 2):
        cluster.coordinators[0, "g"] = node
        await asked.ask("g")
    await asked.ask("g")
    assert asked.asked == [(1, "g"), (1, "g"), (2, "g"), (2, "g")]
    assert len(cluster.where("FindCoordinator")) == 2


async def test_a_coordinator_that_refused_is_looked_up_by_the_next_call() -> None:
    cluster = Cluster()
    cluster.coordinators[0, "g"] = 1
    asked = Coordinators(cluster)
    await asked.ask("g")

    async def refuse(_: int, targets: tuple[str, ...]) -> Said:
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        return dict.fromkeys(targets, refusal(code, None, "Api"))

    _, failed = await cluster.router.of_coordinators(("g",), refuse, cluster.deadline_ms)
    assert list(failed) == ["g"]
    await asked.ask("g")
    assert len(cluster.where("FindCoordinator")) == 2


async def test_a_group_and_a_transactional_id_of_one_name_have_their_own_coordinators() -> None:
    cluster = Cluster()
    cluster.coordinators = {(0, "x"): 1, (TRANSACTION_KEY, "x"): 2}
    asked = Coordinators(cluster)
    for _ in range(2):
        await asked.ask("x")
        await asked.ask("x", TRANSACTION_KEY)
    assert asked.asked == [(1, "x"), (2, "x"), (1, "x"), (2, "x")]


async def test_a_coordinator_keeps_the_rack_that_was_told_before() -> None:
    cluster = Cluster()
    cluster.racks = {1: "a"}
    cluster.coordinators[0, "g"] = 1
    await cluster.router.brokers(cluster.deadline_ms)
    await Coordinators(cluster).ask("g")
    assert cluster.router.node(1).rack == "a"


async def test_a_coordinator_is_known_though_metadata_does_not_name_it() -> None:
    """A broker that has just gone may still be in what was looked up before."""
    cluster = Cluster()
    cluster.coordinators[0, "g"] = 1
    await Coordinators(cluster).ask("g")
    cluster.nodes = (2,)
    await cluster.router.brokers(cluster.deadline_ms)
    assert cluster.router.node(1).node_id == 1


# -- each broker, any broker ---------------------------------------------------------------------


async def test_a_broker_that_left_is_not_asked_again() -> None:
    cluster = Cluster()

    async def ask(node: int, _: tuple[int, ...]) -> Mapping[int, str | BrokerError]:
        if node == 2:
            cluster.nodes = (1,)
            raise NotSent("broker 2 is down")
        return {node: "done"}

    done, failed = await cluster.router.of_each(ask, cluster.deadline_ms)
    assert done == {1: "done"}
    assert "broker 2 has left the cluster" in str(failed[2])


def created(code: int = 0) -> CreateTopicsResponse:
    row = CreateTopicsResponseCreatableTopicResult(name="t", error_code=code)
    return CreateTopicsResponse(topics=(row,))


async def create(cluster: Cluster, *, validate_only: bool = False) -> None:
    await _topics.create_topics(
        cluster.router, (NewTopic("t"),), cluster.deadline_ms, validate_only=validate_only
    )


async def test_a_change_that_was_lost_is_asked_of_another_broker() -> None:
    lost = ConnectionBroken("connection lost")
    for _ in range(10):
        cluster = Cluster({"CreateTopics": [lost, created()]})
        await create(cluster)
        assert sorted(cluster.where("CreateTopics")) == ["broker 1", "broker 2"]


async def test_when_all_were_asked_in_vain_any_is_asked_again() -> None:
    lost = NotSent("no connection")
    cluster = Cluster({"CreateTopics": [lost, lost, lost, created()]})
    await create(cluster)
    assert len(cluster.where("CreateTopics")) == 4


async def test_a_broker_that_answers_again_is_not_passed_over() -> None:
    """It has answered with what may pass: it is as good as the other one."""
    seen: set[str] = set()
    again = created(ErrorCode.LEADER_NOT_AVAILABLE)
    for _ in range(40):
        cluster = Cluster({"CreateTopics": [again, created()]})
        await create(cluster)
        first, second = cluster.where("CreateTopics")
        seen.add("same" if first == second else "other")
    assert seen == {"same", "other"}


EXISTS = created(ErrorCode.TOPIC_ALREADY_EXISTS)


@pytest.mark.parametrize(
    "tries",
    [
        [ConnectionBroken("lost"), EXISTS],
        [ConnectionBroken("lost"), NotSent("no connection"), EXISTS],
        [created(ErrorCode.REQUEST_TIMED_OUT), EXISTS],
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
async def test_what_is_there_after_a_lost_try_was_made_by_it(
    tries: list[Any], validate_only: bool
) -> None:
    """But not by one that only looked whether it could be made."""
    cluster = Cluster({"CreateTopics": tries})
    if not validate_only:
        await create(cluster)
        return
    with pytest.raises(AdminFailed) as failed:
        await create(cluster, validate_only=True)
    error = failed.value.errors["t"]
    assert isinstance(error, BrokerError)
    assert error.code == ErrorCode.TOPIC_ALREADY_EXISTS


async def test_a_request_takes_no_longer_than_the_call_may() -> None:
    cluster = Cluster()
    assert cluster.router.left_ms(cluster.clock.now_ms() + 70) == 70
    assert cluster.router.left_ms(cluster.clock.now_ms() - 70) == 1
    assert cluster.router.left_ms(cluster.clock.now_ms() + 70_000) == 5_000


# -- offsets -------------------------------------------------------------------------------------


def stored(code: int) -> OffsetCommitResponse:
    row = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=(OffsetCommitResponseTopic(name="t", partitions=(row,)),))


@pytest.mark.parametrize(
    "code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]
)
async def test_a_commit_is_sent_again_when_the_coordinator_refuses_it_by_partition(
    code: ErrorCode,
) -> None:
    cluster = Cluster({"OffsetCommit": [stored(code), stored(0)]})
    cluster.coordinators[0, "g"] = 1
    await _offsets.commit(cluster.router, "g", {A: CommittedOffset(4)}, cluster.deadline_ms)
    assert len(cluster.where("OffsetCommit")) == 2


@pytest.mark.parametrize(
    ("reset", "chosen", "planned"),
    [
        (ToPlan({A: 4, B: 5}), None, {A: 4, B: 5}),
        (ToPlan({A: 4, B: 5}), (B,), {B: 5}),
        (ToPlan({A: 4}), (A, B), {A: 4}),
        (ToLatest(), None, {A: 9}),
        (ToLatest(), (B,), {B: 9}),
    ],
)
async def test_which_partitions_are_reset(
    monkeypatch: pytest.MonkeyPatch,
    reset: OffsetReset,
    chosen: tuple[TopicPartition, ...] | None,
    planned: dict[TopicPartition, int],
) -> None:
    """A plan names its own partitions, another reset takes those that are committed; the user's
    choice comes before both, but a plan has no offset for what it does not name."""

    async def committed(*_: object) -> dict[str, dict[TopicPartition, CommittedOffset]]:
        return {"g": {A: CommittedOffset(3)}}

    async def listed(
        _router: RequestRouter, times: Mapping[TopicPartition, int], _deadline_ms: int
    ) -> dict[TopicPartition, ListedOffset]:
        return {tp: ListedOffset(9 if at == -1 else 0, -1, None) for tp, at in times.items()}

    async def is_inactive(*_: object, create: bool) -> None:
        assert not create

    monkeypatch.setattr(_offsets, "fetch", committed)
    monkeypatch.setattr(_offsets, "list_offsets", listed)
    monkeypatch.setattr(_offsets, "_check_inactive", is_inactive)
    cluster = Cluster()
    found = await _offsets.plan_reset(
        cluster.router, "g", reset, chosen, 0, cluster.deadline_ms, create=False
    )
    assert found == planned


# -- pages ---------------------------------------------------------------------------------------


def page(partition: int, *, more: bool) -> DescribeTopicPartitionsResponse:
    part = Described(
        partition_index=partition,
        leader_id=1,
        replica_nodes=(),
        isr_nodes=(),
        error_code=0,
        offline_replicas=(),
    )
    cursor = NextPage(topic_name="t", partition_index=partition + 1) if more else None
    topics = [DescribedTopic(name="t", error_code=0, partitions=(part,))]
    if not partition:
        topics.insert(0, DescribedTopic(name="s", error_code=0, partitions=()))
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


async def test_the_next_page_asks_for_the_topic_in_the_middle_of_which_the_last_one_ended() -> None:
    cluster = Cluster({"DescribeTopicPartitions": [page(0, more=True), page(1, more=False)]})
    found = await _topics.describe_topics(cluster.router, ("s", "t"), cluster.deadline_ms)
    assert len(found["t"].partitions) == 2
    first, second = [
        [each.name for each in request.topics]
        for request in cluster.transport.requests
        if request_api(request).name == "DescribeTopicPartitions"
    ]
    assert (first, second) == (["s", "t"], ["t"])
