"""Server-side assignors of a user's own, plugged into the broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kip848_client._types import MemberId, TopicId
from kip848_client.assignors import (
    NO_PARTITIONS,
    Assignment,
    AssignorError,
    GroupSpec,
    TopicMetadata,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError
from kip848_client.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mock_coordinator import MockBroker

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


def join(at: MockBroker, assignor: str | None = None, member_id: str = "m") -> Any:
    return at.connect().ask(
        ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member_id,
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
        ("unknown member", "there is no member 'nobody'"),
        ("unknown topic", "does not subscribe"),
        ("no such partition", "partition t-4 of member m does not exist"),
        ("twice", "partition t-0 is given twice"),
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


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"assignors": [Mine(), Mine()]}, "already"),
        ({"assignors": [Mine()], "config": {"group.consumer.assignors": PATH}}, "already"),
        ({"config": {"group.consumer.assignors": "no.such.module:X"}}, "ModuleNotFoundError"),
        ({"config": {"group.consumer.assignors": f"{__name__}:Nobody"}}, "AttributeError"),
        ({"config": {"group.consumer.assignors": f"{__name__}:broker"}}, "its name is None"),
        ({"config": {"group.consumer.assignors": "mine"}}, "none of uniform, range"),
    ],
)
def test_what_cannot_be_meant_is_said_at_once(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        broker(**options)
