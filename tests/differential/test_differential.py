"""Our coordinator beside real Kafka, for the seeds that every test run plays.

The command line plays more of them: ``python -m tests.differential --kafka all --seeds 0..200``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from kip848_client.core.types import TopicId
from kip848_client.core.wire import request_api
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorResponse
from kip848_client.core.wire.messages.groups import (
    ListGroupsResponse,
    ListGroupsResponseListedGroup,
)
from kip848_client.error_codes import ErrorCode
from tests.differential._compare import differences
from tests.differential._outcome import Outcome
from tests.differential._plan import Kind, Plan, Steps, TooSlowError
from tests.differential._play import play
from tests.differential._report import story, summary
from tests.differential._run import run
from tests.differential._steps import Ask, CreateTopic, Topic
from tests.differential.kinds import KINDS, consumer, exists, kind_named, kind_of
from tests.support.kafka_jars import ALL_VERSIONS
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka

SEEDS = {"4.4.0": 50}
SEEDS_OF_OTHERS = 20
LEFT_OUT_BETWEEN = {"migration-upgrade", "migration-downgrade", "migration-disabled"}
"""Each of these starts a broker of its own. The oldest and the newest release play them here, those
between in ``tests.long``."""

OFFERED = {
    "DescribeConfigs": (1, 4),
    "IncrementalAlterConfigs": (0, 1),
    "ConsumerGroupDescribe": (0, 1),
    "ConsumerGroupHeartbeat": (0, 1),
    "DeleteGroups": (0, 2),
    "DescribeGroups": (0, 6),
    "FindCoordinator": (0, 6),
    "ListGroups": (0, 5),
    "OffsetCommit": (2, 9),
    "OffsetDelete": (0, 0),
    "OffsetFetch": (1, 9),
}


def check(version: str, outcomes: Iterator[Outcome], *, at_least: int) -> None:
    played = list(outcomes)
    stories = [story(each) for each in played if each.divergences or each.differing_texts]
    assert not stories, "\n".join([summary(version, played), *stories])
    assert not [each.too_slow for each in played if each.too_slow]
    requests = sum(len(each.exchanges) for each in played)
    assert requests >= at_least, "the sequences are too short to mean anything"


@pytest.mark.real_kafka
@pytest.mark.timeout(600)  # six brokers are started for it, one after the other
def test_the_mock_answers_as_kafka_does(kafka_version: str) -> None:
    seeds = seeds_of(kafka_version)
    check(kafka_version, run(kafka_version, seeds), at_least=len(seeds) * 20)


def seeds_of(version: str) -> list[int]:
    seeds = range(SEEDS.get(version, SEEDS_OF_OTHERS))
    left_out = LEFT_OUT_BETWEEN if version in ALL_VERSIONS[1:-1] else ()
    return [seed for seed in seeds if kind_of(seed, version).name not in left_out]


@pytest.mark.real_kafka
@pytest.mark.timeout(180)
def test_one_broker_asked_twice_agrees_with_itself(request: pytest.FixtureRequest) -> None:
    """The comparison finds nothing where there is nothing to find: not time, not chance."""
    newest = chosen_versions(request.config)[-1]
    with skip_without_kafka():
        found = run(newest, range(900, 908), "twin", kind_named("consumer"))
        check(newest, found, at_least=150)


# What follows needs no broker: the suite must be able to find a difference at all.


class Scripted:
    """A side that gives every member the same plain answer, or a wrong one once."""

    def __init__(self, *, wrong_at: int = -1) -> None:
        self.asked = 0
        self.topics: dict[str, int] = {}
        self._wrong_at = wrong_at

    def request(
        self, message: Any, version: int, channel: int = 0, dice: Sequence[bytes] | None = None
    ) -> Any:
        assert channel in (0, -2)
        assert not dice, "no request of these sequences draws ids that the other side could not"
        self.asked += 1
        api = request_api(message)
        assert version <= api.versions[1]
        if not isinstance(message, ConsumerGroupHeartbeatRequest):
            return api.response()
        epoch = 7 if self.asked == self._wrong_at else 1
        return ConsumerGroupHeartbeatResponse(member_id=message.member_id, member_epoch=epoch)

    def send(
        self, message: Any, version: int, channel: int, dice: Sequence[bytes] | None = None
    ) -> None:
        """Nothing that these sequences do."""

    def arrived_within(self, timeout_s: float, wanted: frozenset[int]) -> dict[int, Any]:
        assert timeout_s >= 0
        assert not wanted
        return {}

    def barrier(self) -> None:
        """Everything is answered at once."""

    def abandon(self) -> None:
        """Nothing waits."""

    def settle_metadata(self) -> None:
        """Everything has its effect at once."""

    def stir(self) -> None:
        """Nothing waits for it."""

    def new_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> TopicId:
        assert not configs
        self.topics[name] = partitions
        return TopicId(name.encode().ljust(16, b"-")[:16])

    def create_topic(
        self, name: str, partitions: int, topic_id: bytes, configs: Mapping[str, str]
    ) -> None:
        assert topic_id == self.new_topic(name, partitions, configs)

    def grow_topic(self, name: str, partitions: int) -> None:
        self.topics[name] = partitions

    def delete_topic(self, name: str) -> None:
        del self.topics[name]

    def close(self) -> None:
        """Nothing is open."""


def plan(seed: int) -> Plan:
    topics = [Topic("topic-a", b"a" * 16, 2), Topic("topic-b", b"b" * 16, 5)]
    return Plan(seed, topics, OFFERED, has_interval=False)


def test_a_different_epoch_ends_the_sequence_and_is_reported() -> None:
    outcome = play(consumer.KIND, plan(1), Scripted(), Scripted(wrong_at=1))
    assert len(outcome.exchanges) == 1
    (found,) = outcome.divergences[0].differences
    assert str(found) == "member_epoch: real 1, other 7"
    assert "member_epoch: real 1, other 7" in story(outcome)
    assert "divergences 1" in summary("4.4.0", [outcome])


def test_a_difference_that_came_too_late_to_mean_anything_is_played_again() -> None:
    late = iter([0.0, 2000.0])

    def steps(plan: Plan) -> Steps:
        began_ms = next(late, 0.0)
        heartbeat = ConsumerGroupHeartbeatRequest(group_id=plan.prefix, member_id="m")
        yield Ask("beat", heartbeat, 1)
        if began_ms:
            raise TooSlowError("a timer may have ended")

    kind = Kind("late", 1, steps)
    assert play(kind, plan(1), Scripted(), Scripted(wrong_at=1)).divergences  # in time
    assert not play(kind, plan(1), Scripted(), Scripted(wrong_at=1)).divergences


def test_what_was_not_played_is_told() -> None:
    text = summary("4.4.0", [Outcome(1, "timers", too_slow="so long"), Outcome(2, "timers")])
    assert text.endswith("differing error texts 0, not played 1")
    assert "sequences 1," in text


def test_equal_sides_play_to_the_end() -> None:
    outcome = play(consumer.KIND, plan(1), Scripted(), Scripted())
    assert not outcome.divergences
    assert len(outcome.exchanges) > 25


@pytest.mark.parametrize("seed", range(20))
def test_a_seed_and_the_same_answers_give_the_same_sequence(seed: int) -> None:
    def steps() -> list[Any]:
        found: list[Any] = []
        side = Scripted()
        generator = consumer.sequence(dataclasses.replace(plan(seed), now_ms=lambda: 0.0))
        result: Any = None
        try:
            while True:
                step = generator.send(result)
                found.append(step)
                result = None
                if isinstance(step, Ask):
                    result = side.request(step.message, step.version)
                elif isinstance(step, CreateTopic):
                    result = Topic(step.name, b"n" * 16, step.partitions)
        except StopIteration:
            return found

    first = steps()
    assert first == steps()
    assert len(first) > 25


def assigned(*topics: tuple[bytes, tuple[int, ...]]) -> ConsumerGroupHeartbeatResponse:
    given = tuple(
        ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=numbers)
        for topic_id, numbers in topics
    )
    return ConsumerGroupHeartbeatResponse(
        assignment=ConsumerGroupHeartbeatResponseAssignment(topic_partitions=given)
    )


A, B = b"a" * 16, b"b" * 16


def test_the_order_of_an_assignment_does_not_matter() -> None:
    assert not differences(assigned((A, (1, 2)), (B, (3,))), assigned((B, (3,)), (A, (2, 1))))
    assert differences(assigned((A, (1, 2))), assigned((A, (1, 3))))
    assert differences(assigned((A, (1,))), assigned((A, (1,)), (B, (3,))))
    assert differences(assigned(), ConsumerGroupHeartbeatResponse())


def test_where_the_broker_is_does_not_matter() -> None:
    here = FindCoordinatorResponse(node_id=1, host="localhost", port=1)
    there = FindCoordinatorResponse(node_id=2, host="127.0.0.1", port=2)
    assert not differences(here, there)
    assert differences(
        here, dataclasses.replace(there, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    )


def test_an_error_text_is_told_apart_from_the_rest() -> None:
    real = ConsumerGroupHeartbeatResponse(
        error_code=ErrorCode.FENCED_MEMBER_EPOCH, error_message="one"
    )
    (text,) = differences(real, dataclasses.replace(real, error_message="two"))
    assert text.is_text
    (code,) = differences(real, dataclasses.replace(real, error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    assert not code.is_text


def test_other_groups_of_a_listing_are_not_compared() -> None:
    def listing(*ids: str) -> ListGroupsResponse:
        return ListGroupsResponse(
            groups=tuple(ListGroupsResponseListedGroup(group_id=each) for each in ids)
        )

    assert not differences(listing("diff-1", "diff-12"), listing("other", "diff-1"), "diff-1")
    assert differences(listing("diff-1", "diff-1-side"), listing("diff-1"), "diff-1")


def test_every_release_plays_every_kind_that_is_not_left_to_the_long_runs() -> None:
    for version in ALL_VERSIONS:
        played = {kind_of(seed, version).name for seed in seeds_of(version)}
        there = {kind.name for kind in KINDS if exists(kind, version)}
        between = version not in (ALL_VERSIONS[0], ALL_VERSIONS[-1])
        assert there - played == (LEFT_OUT_BETWEEN if between else set())


def test_a_few_neighbouring_seeds_have_all_kinds_among_them() -> None:
    assert {kind_of(seed, "4.4.0").name for seed in range(20)} == {kind.name for kind in KINDS}
    later = [kind_of(seed, "4.4.0").name for seed in range(1000)]
    assert later.count("consumer") > 200
    assert later.count("migration-disabled") > 5
    assert "interval" not in {kind_of(seed, "4.0.2").name for seed in range(200)}
    assert not exists(kind_named("interval"), "4.2.2")
