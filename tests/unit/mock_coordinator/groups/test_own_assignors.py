"""Server-side assignors of a user's own, plugged into the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kip848_client.core.assignors import (
    NO_PARTITIONS,
    Assignment,
    Assignor,
    AssignorError,
    GroupSpec,
    RangeAssignor,
    TopicMetadata,
)
from kip848_client.core.types import MemberId, TopicId
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError
from mock_coordinator import MockBroker, MockCluster

Topics = Mapping[TopicId, TopicMetadata]


class Mine:
    """Everything to the first member, or whatever ``how`` says."""

    name = "mine"
    how = ""

    def assign(self, group: GroupSpec, topics: Topics) -> Any:
        (topic_id,) = topics
        first = next(iter(group.members))
        match self.how:
            case "raises":
                raise OSError("no disk")
            case "gives up":
                raise AssignorError("not today")
            case "nothing":
                return None
            case "unknown member":
                return Assignment({MemberId("nobody"): NO_PARTITIONS})
            case "unknown topic":
                return Assignment({first: {TopicId(bytes(16)): (0,)}})
            case "no such partition":
                return Assignment({first: {topic_id: (4,)}})
            case "twice":
                return Assignment({first: {topic_id: (0, 0)}})
            case "no mapping":
                number: Any = len(topics)
                return Assignment({first: number})
            case _:
                partitions: Any = iter(range(4))  # which can be read once
                return Assignment({first: {topic_id: partitions}})


PATH = f"{__name__}:Mine"


def broker(**options: Any) -> MockBroker:
    return MockBroker(topics={"t": 4}, listen=False, profile="4.2", **options)


def join(
    at: MockBroker,
    assignor: str | None = None,
    member_id: str = "m",
    rack: str | None = None,
) -> Any:
    return at.connect().ask(
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
            rack_id=rack,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
            server_assignor=assignor,
        ),
        1,
    )


@pytest.mark.parametrize(
    ("options", "assignor"),
    [
        ({"assignors": [Mine()]}, "mine"),
        ({"assignors": [Mine()], "config": {"group.consumer.assignors": "mine,uniform"}}, None),
        ({"config": {"group.consumer.assignors": f"{PATH}, range"}}, None),
        ({"config": {"group.consumer.assignors": f"range, {PATH}"}}, "mine"),
    ],
)
def test_it_assigns(options: dict[str, Any], assignor: str | None) -> None:
    at = broker(**options)
    assert sorted(join(at, assignor).assignment.topic_partitions[0].partitions) == [0, 1, 2, 3]
    assert join(at, assignor, "n").assignment.topic_partitions == ()


def test_kafkas_are_there_beside_it() -> None:
    at = broker(assignors=[Mine()])
    assert join(at, "range").error_code == 0
    assert "mine" in (join(at, "other").error_message or "")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raises", "OSError: no disk"),
        ("gives up", "not today"),
        ("nothing", "it returned a NoneType"),
        ("unknown member", "unknown member 'nobody'"),
        ("unknown topic", "does not subscribe"),
        ("no such partition", "partition t-4 of member m does not exist"),
        ("twice", "partition t-0 is assigned twice"),
        ("no mapping", "AttributeError"),
    ],
)
def test_where_it_fails_the_heartbeat_is_refused_with_the_reason(how: str, reason: str) -> None:
    mine = Mine()
    mine.how = how
    at = broker(assignors=[mine])
    answer = join(at, "mine")
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert reason in answer.error_message
    assert at.snapshot("g") is None
    mine.how = ""
    assert join(at, "mine").error_code == 0


class Versioned(Mine):
    minimum_version: Any = 0
    maximum_version: Any = 3

    def __init__(self, **versions: Any) -> None:
        self.__dict__.update(versions)


def test_an_assignor_may_say_its_versions() -> None:
    assert join(broker(assignors=[Versioned()]), "mine").error_code == 0
    assert (RangeAssignor().minimum_version, RangeAssignor().maximum_version) == (0, 0)


class NearReplicas(Assignor):
    """Each partition to a member in a rack of its replicas."""

    @property
    def name(self) -> str:
        return "near"

    def __init__(self) -> None:
        self.seen: list[TopicMetadata] = []

    def assign(self, group: GroupSpec, topics: Topics) -> Assignment:
        given: dict[MemberId, dict[TopicId, tuple[int, ...]]] = {}
        for topic_id in next(iter(group.members.values())).topic_ids:
            topic = topics[topic_id]
            self.seen.append(topic)
            for partition, racks in topic.racks.items():
                near = [each for each, spec in group.members.items() if spec.rack_id in racks]
                had = given.setdefault((near or [*group.members])[0], {})
                had[topic_id] = (*had.get(topic_id, ()), partition)
        return Assignment(given)


@pytest.mark.parametrize("profile", ["4.0", "4.2"])
def test_it_places_partitions_by_rack(profile: str) -> None:
    """Three brokers in three racks, one replica each: a partition lives in one rack alone."""
    mine = NearReplicas()
    at = MockCluster(
        brokers=3,
        racks=["east", "west", "south"],
        listen=False,
        profile=profile,
        assignors=[mine],
    )
    at.create_topic("t", 6, replication_factor=1)
    at.move_coordinator("g", 1)
    for rack in ("east", "west", "south"):
        assert join(at, "near", f"in-{rack}", rack).error_code == 0
    group = at.snapshot("g")
    assert group is not None
    for node in at.nodes:
        lives = [each for each in range(6) if at.leader_of("t", each) == node.node_id]
        assert len(lives) == 2
        assert [*group.members[f"in-{node.rack}"].target.values()] == [tuple(lives)]
    assert all(len(topic.racks) == 6 for topic in mine.seen)


def test_without_racks_an_assignor_sees_none() -> None:
    mine = NearReplicas()
    assert join(broker(assignors=[mine]), "near").error_code == 0
    assert [dict(topic.racks) for topic in mine.seen] == [{}]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"assignors": [Mine(), Mine()]}, "already"),
        ({"assignors": [Mine()], "config": {"group.consumer.assignors": PATH}}, "already"),
        ({"config": {"group.consumer.assignors": "no.such.module:X"}}, "ModuleNotFoundError"),
        ({"config": {"group.consumer.assignors": f"{__name__}:Nobody"}}, "AttributeError"),
        ({"config": {"group.consumer.assignors": f"{__name__}:broker"}}, "name = None"),
        ({"config": {"group.consumer.assignors": "mine"}}, "known: uniform, range"),
        ({"assignors": [Versioned(minimum_version=4)]}, "minimum_version = 4, maximum_version = 3"),
        ({"assignors": [Versioned(minimum_version=-1)]}, "from 0 to 32767"),
        ({"assignors": [Versioned(maximum_version="3")]}, "maximum_version = '3'"),
        ({"assignors": [Versioned(maximum_version=True)]}, "maximum_version = True"),
        ({"assignors": [Versioned(maximum_version=40_000)]}, "from 0 to 32767"),
    ],
)
def test_what_cannot_be_meant_is_said_at_once(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        broker(**options)
