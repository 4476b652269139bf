"""``Admin`` on groups whose members compute: consumers with assignors of their own, and Connect
workers, on both group protocols."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from kip848_client import Admin, AdminFailed, Consumer, TopicPartition
from kip848_client.admin import AssignorMessage, GroupDescription, WorkerState
from kip848_client.connect import Worker
from kip848_client.connect.core import ConnectorTasks
from kip848_client.core.client_assignors import (
    AssignorMetadata,
    GroupAssignment,
    GroupMember,
    MemberAssignment,
)
from kip848_client.errors import GroupIdNotFound
from mock_coordinator import MockBroker
from tests.support.real_kafka import RealKafka

pytestmark = pytest.mark.asyncio

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
PATIENCE_S = 30


class Speaking:
    """Gives everything to the first member, or, once it has an error, nothing to anyone."""

    name = "speaking"
    minimum_version = 0
    maximum_version = 7
    error = 0

    def assign(self, members: Mapping[str, GroupMember], topics: Mapping[str, Any]) -> Any:
        if self.error:
            return GroupAssignment(error=self.error)
        everything = [tp for name, topic in topics.items() for tp in topic.partitions(name)]
        said = MemberAssignment(everything, data=b"hello", version=3)
        return GroupAssignment({min(members): said})

    def metadata(self) -> Any:
        return AssignorMetadata(b"me", version=3, reason=self.error)

    def on_assignment(self, assignment: Any) -> None:
        pass


class Idle:
    """Items that need nothing to start and stop."""

    async def on_assigned(self, items: Any) -> None:
        pass

    on_revoked = on_lost = on_assigned


@asynccontextmanager
async def working(bootstrap: str, *urls: str, **settings: Any) -> AsyncGenerator[list[Worker]]:
    async with AsyncExitStack() as stack:
        workers: list[Worker] = []
        for url in urls:
            worker = Worker(
                {"a": ConnectorTasks(3, generation=4)},
                Idle(),
                group_id="w",
                bootstrap_servers=bootstrap,
                rest_advertised_url=url,
                **settings,
            )
            workers.append(await stack.enter_async_context(worker))
        yield workers


async def described(admin: Admin, group: str, wanted: Any) -> GroupDescription:
    """The group as soon as it is as ``wanted``."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                found = (await admin.describe_groups([group]))[group]
            except AdminFailed:
                continue
            if wanted(found):
                return found
            await asyncio.sleep(0.05)


def has_all(group: GroupDescription) -> bool:
    return (
        group.state == "Stable"
        and sum(len(each.worker.assignment) for each in group.members if each.worker is not None)
        == 4
    )


async def test_what_a_client_side_assignor_says() -> None:
    assignor = Speaking()
    async with (
        MockBroker(topics={"t": 2}, config=FAST) as broker,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
        Consumer(
            "t",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            group_local_assignors=[assignor],
        ) as consumer,
    ):
        await consumer.wait_assigned()
        found = await described(admin, "g", lambda group: group.state == "Stable")
        (member,) = found.members
        said = AssignorMessage(0, 3, b"hello")
        assert (found.assignor, found.is_client_assignor) == ("speaking", True)
        assert (member.said, member.target_said) == (said, said)
        assert member.assignment == (TopicPartition("t", 0), TopicPartition("t", 1))
        assignor.error = 5
        refused = await described(
            admin, "g", lambda group: group.members[0].target_said.error == assignor.error
        )
        assert refused.members[0].target_assignment == member.assignment


async def test_where_the_broker_computes_no_assignor_says_anything() -> None:
    async with (
        MockBroker(topics={"t": 2}, config=FAST) as broker,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
        Consumer("t", bootstrap_servers=broker.bootstrap, group_id="g") as consumer,
    ):
        await consumer.wait_assigned()
        found = (await admin.describe_groups(["g"]))["g"]
        assert (found.is_client_assignor, found.connect) == (False, None)
        assert (found.members[0].said, found.members[0].target_said) == (None, None)


async def test_a_connect_group() -> None:
    async with (
        MockBroker(config=FAST) as broker,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
        working(broker.bootstrap, "http://one", "http://two") as workers,
    ):
        found = await described(admin, "w", lambda group: has_all(group) and len(group.members) > 1)
        listed = [each for each in await admin.list_groups() if each.group_id == "w"]
        assert [(each.type, each.protocol_type) for each in listed] == [("Connect", "connect")]
        assert (found.type, found.protocol_type) == ("Connect", "connect")
        assert (found.assignor, found.is_client_assignor) == ("incremental-cooperative", True)
        assert found.group_epoch == found.target_assignment_epoch
        described_workers = [each.worker for each in found.members if each.worker is not None]
        assert {each.url for each in described_workers} == {"http://one", "http://two"}
        assert {each.state for each in described_workers} == {WorkerState.STABLE}
        assert all(each.assignment == each.target_assignment for each in described_workers)
        items = sorted(map(str, (item for each in described_workers for item in each.assignment)))
        assert items == ["a", "a-0", "a-1", "a-2"]
        assert {4} == {
            item.generation
            for each in described_workers
            for item in each.assignment
            if item.task is not None
        }
        assert found.connect is not None
        assert found.connect.leader_url == workers[0].leader_url
        assert (found.connect.deferred, found.connect.delay_ms) == ((), 0)
        assert {each.epoch for each in found.members} == {found.group_epoch}
        with pytest.raises(AdminFailed) as failed:
            await admin.describe_groups(["none"])
        assert isinstance(failed.value.errors["none"], GroupIdNotFound)


async def test_items_that_wait_for_a_worker_to_return() -> None:
    async with (
        MockBroker(config=FAST) as broker,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
        working(broker.bootstrap, "http://one", "http://two") as workers,
    ):
        both = await described(admin, "w", lambda group: has_all(group) and len(group.members) > 1)
        assert both.connect is not None
        other = next(each for each in workers if each.member_id != both.connect.leader)
        had = next(each.worker for each in both.members if each.member_id == other.member_id)
        assert had is not None
        await other.stop()
        left = await described(
            admin, "w", lambda group: len(group.members) == 1 and group.connect.deferred
        )
        assert left.connect is not None
        assert left.connect.deferred == had.assignment
        assert 0 < left.connect.delay_ms <= 300_000


async def workers_of_a_classic_group(bootstrap: str) -> None:
    async with (
        Admin(bootstrap_servers=bootstrap) as admin,
        working(
            bootstrap,
            "http://one",
            "http://two",
            group_protocol="classic",
            heartbeat_interval_ms=200,
        ) as workers,
    ):
        found = await described(admin, "w", lambda group: has_all(group) and len(group.members) > 1)
        assert (found.type, found.protocol_type, found.assignor) == (
            "Classic",
            "connect",
            "sessioned",
        )
        described_workers = [each.worker for each in found.members if each.worker is not None]
        assert {each.url for each in described_workers} == {"http://one", "http://two"}
        assert sorted(str(item) for each in described_workers for item in each.assignment) == [
            "a",
            "a-0",
            "a-1",
            "a-2",
        ]
        assert all(each.state is None for each in described_workers)
        assert found.connect is not None
        assert found.connect.leader_url == workers[0].leader_url
        assert found.connect.leader in {each.member_id for each in found.members}


@pytest.mark.parametrize("drafts", [True, False])
async def test_a_classic_group_of_workers(drafts: bool) -> None:
    async with MockBroker(config=FAST, draft_protocols=drafts) as broker:
        await workers_of_a_classic_group(broker.bootstrap)


@pytest.mark.real_kafka
async def test_a_classic_group_of_workers_on_kafka(real_kafka: RealKafka) -> None:
    await workers_of_a_classic_group(real_kafka.bootstrap)
