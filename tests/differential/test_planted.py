"""The suite finds bugs: each is planted in our broker, which is then compared with itself.

No Kafka is needed: a broker of ours without the bug leads. That the same comparison of two sound
brokers finds nothing shows that what it finds is the bug.
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

from kip848_client.core.types import TopicId
from tests.differential._minimise import minimised, replayed
from tests.differential._outcome import Outcome
from tests.differential._plan import Kind, Plan
from tests.differential._play import play
from tests.differential._report import story
from tests.differential._run import configs_of
from tests.differential._sides import MOCK_COMMAND, MockSide, mock_process
from tests.differential._steps import Topic
from tests.differential._trace import read_trace
from tests.differential.kinds import kind_named
from tests.differential.planted import BUGS

PLANTED: Final = (sys.executable, "-m", "tests.differential.planted")
KINDS: Final = (
    "consumer",
    "classic",
    "offsets",
    "transactions",
    "migration",
    "admin",
    "log",
    "sessions",
)


class Leader:
    """A broker of ours in the place of the real one."""

    def __init__(self, side: MockSide) -> None:
        self._side = side

    def request(self, message: Any, version: int, channel: int = 0) -> Any:
        return self._side.request(message, version, channel)

    def send(self, message: Any, version: int, channel: int) -> None:
        self._side.send(message, version, channel)

    def arrived_within(self, timeout_s: float, wanted: frozenset[int]) -> dict[int, Any]:
        return self._side.arrived_within(timeout_s, wanted)

    def barrier(self) -> None:
        self._side.barrier()

    def abandon(self) -> None:
        self._side.abandon()

    def new_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> bytes:
        topic_id = TopicId(uuid.uuid4().bytes)
        self._side.create_topic(name, partitions, topic_id, configs)
        return topic_id

    def grow_topic(self, name: str, partitions: int) -> None:
        self._side.grow_topic(name, partitions)

    def delete_topic(self, name: str) -> None:
        self._side.delete_topic(name)

    def settle_metadata(self) -> None:
        """Everything has its effect at once."""

    def stir(self) -> None:
        """Nothing waits for it."""


@contextlib.contextmanager
def sides(kind: Kind, command: Sequence[str]) -> Generator[tuple[Leader, MockSide, list[Topic]]]:
    settings = configs_of(kind, "4.4.0")
    with contextlib.ExitStack() as stack:
        sound = MockSide(stack.enter_context(mock_process("4.4", settings)))
        stack.callback(sound.close)
        other = MockSide(stack.enter_context(mock_process("4.4", settings, command)))
        stack.callback(other.close)
        leader = Leader(sound)
        topics: list[Topic] = []
        for name, count in (("topic-a", 2), ("topic-b", 5), ("topic-c", 20)):
            topic_id = leader.new_topic(name, count, {})
            other.create_topic(name, count, topic_id, {})
            topics.append(Topic(name, topic_id, count))
        sound.warm_up()
        other.warm_up()
        yield leader, other, topics


def outcomes(
    kind: Kind, seeds: range, leader: Leader, other: MockSide, topics: list[Topic]
) -> Iterator[Outcome]:
    offered = dict(other.channels.versions())
    for seed in seeds:
        yield play(kind, Plan(seed, topics, offered, kind.has_interval), leader, other)


@pytest.mark.everything("two brokers of ours for each, in processes of their own")
@pytest.mark.parametrize("name", KINDS)
def test_two_sound_brokers_agree(name: str) -> None:
    kind = kind_named(name)
    with sides(kind, MOCK_COMMAND) as (leader, other, topics):
        played = list(outcomes(kind, range(3), leader, other, topics))
    assert not [story(each) for each in played if each.divergences or each.differing_texts]
    assert all(len(each.exchanges) > 15 for each in played)


@pytest.mark.everything("two brokers of ours for each, in processes of their own")
@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_planted_bug_is_found(bug: str) -> None:
    kind = kind_named(BUGS[bug][0])
    with sides(kind, [*PLANTED, bug]) as (leader, other, topics):
        for outcome in outcomes(kind, range(12), leader, other, topics):
            if outcome.divergences or outcome.differing_texts:
                return
    pytest.fail(f"{bug} was not found")


@pytest.mark.everything("two brokers of ours for each, in processes of their own")
def test_a_divergence_is_cut_down_to_a_trace_that_shows_it_again() -> None:
    kind = kind_named("consumer")
    with sides(kind, [*PLANTED, "other-assignor"]) as (leader, other, topics):
        found = next(
            each for each in outcomes(kind, range(20), leader, other, topics) if each.divergences
        )
        plan = Plan(found.seed, topics, {}, kind.has_interval)
        text = minimised(found, plan, leader, other)
        again = replayed(read_trace(text.splitlines()), topics, "77", leader, other)
    assert again.divergences
    assert len(again.exchanges) <= len(found.exchanges)
    assert again.divergences[0].ask.action == found.divergences[0].ask.action
