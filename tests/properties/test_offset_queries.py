"""Random lives of look-ups by time: losses, refusals, leaders and topics that change, deadlines.

Whatever brokers and metadata do, each look-up of a user is answered exactly once and not after its
deadline, what it found was asked for after it was asked, of a leader of a topic that had the name,
no broker has two requests at once, and no partition is named twice in one. Nothing storms.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.cluster import (
    Leaders,
    LeadersLearnt,
    LeadersNotLearnt,
    MetadataQuestions,
    MetadataSettings,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.fetch._chunked_answers import ChunkedAnswers
from kip848_client.core.fetch._commands import Commands, ListOffsets, OffsetsFound, OffsetsNotFound
from kip848_client.core.fetch._events import OffsetsAsked, OffsetsListed, OffsetsNotListed
from kip848_client.core.fetch._model import EARLIEST, LATEST, FetchSettings, ListedOffset
from kip848_client.core.fetch._queries import Queries
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import RequestTimedOut
from tests.support.examples import examples

PARTITIONS = 4
NODES = (1, 2, 3)
METADATA_PAUSE_MS = 100
PASSING = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
FINAL = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_VERSION)
TopicNow = tuple[TopicId, dict[int, tuple[int, int]]]


class Wants(MetadataQuestions):
    """Passes on which leaders are wanted."""

    def __init__(self, wanted: Callable[[str, str], None]) -> None:
        super().__init__(MetadataSettings(), lambda ms: ms)
        self._wanted_by = wanted

    def want(self, topic: str, why: str, *, create: bool = False) -> None:
        del create
        self._wanted_by(topic, why)


@dataclass
class Ticket:
    times: dict[TopicPartition, int]
    asked_ms: int
    deadline_ms: int
    answered_ms: int | None = None


@dataclass
class Sent:
    command: ListOffsets
    at_ms: int
    arrives_ms: int


@dataclass
class World:
    """Brokers, metadata, users; offsets are the time at which the broker read them."""

    rng: random.Random
    trouble: float = 0.3
    now: int = 0
    topics: dict[str, TopicNow] = field(default_factory=dict)
    tickets: dict[int, Ticket] = field(default_factory=dict)
    flying: list[Sent] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    metadata_ms: int | None = None
    said: Commands = field(default_factory=list)
    ids: int = 0

    def __post_init__(self) -> None:
        self.leaders = Leaders()
        self.settings = FetchSettings(rows_a_step=self.rng.choice((1, 2, 500)))
        self.queries = Queries(
            self.settings,
            lambda ms: self.rng.randint(ms * 4 // 5, ms * 6 // 5),
            self.leaders,
            Wants(self.want),
            self.said,
        )
        for topic in ("a", "b"):
            self.create(topic)

    # -- the cluster -------------------------------------------------------------------------

    def create(self, topic: str) -> None:
        self.ids += 1
        partitions = {n: (self.rng.choice(NODES), 0) for n in range(PARTITIONS)}
        self.topics[topic] = (TopicId(bytes([self.ids]) * 16), partitions)

    def elect(self) -> None:
        _, partitions = self.topics[self.rng.choice(sorted(self.topics))]
        partition = self.rng.randrange(PARTITIONS)
        partitions[partition] = (self.rng.choice(NODES), partitions[partition][1] + 1)

    def want(self, _topic: str, why: str) -> None:
        assert why
        if self.metadata_ms is None:
            self.metadata_ms = self.now + self.rng.randint(METADATA_PAUSE_MS, 300)

    def tell_leaders(self) -> None:
        self.metadata_ms = None
        if self.rng.random() < self.trouble:
            self.want("a", "metadata is lost")
            self.queries.leaders_told(self.now, LeadersNotLearnt(1, "no broker answered"))
            return
        told = tuple(
            TopicLeaders(
                topic,
                topic_id,
                {n: PartitionLeader(node, epoch) for n, (node, epoch) in partitions.items()},
            )
            for topic, (topic_id, partitions) in self.topics.items()
        )
        for each in told:
            self.leaders.learn(each)
        self.queries.leaders_told(self.now, LeadersLearnt(1, told, frozenset(), frozenset(NODES)))

    # -- brokers -----------------------------------------------------------------------------

    def transmit(self) -> None:
        for each in self.said:
            if isinstance(each, ListOffsets):
                assert all(each.node != other.command.node for other in self.flying)
                assert each.wanted
                sent = Sent(each, self.now, self.now + self.rng.randint(0, 80))
                if self.rng.random() < self.trouble / 4:
                    sent.arrives_ms += 2_000
                self.flying.append(sent)
                self.sent.append(sent)
            elif isinstance(each, OffsetsFound | OffsetsNotFound):
                self.check(each)
        self.said.clear()

    def check(self, answer: OffsetsFound | OffsetsNotFound) -> None:
        ticket = self.tickets[answer.ticket]
        assert ticket.answered_ms is None, "answered twice"
        ticket.answered_ms = self.now
        assert self.now <= ticket.deadline_ms
        if isinstance(answer, OffsetsFound):
            assert set(answer.found) == set(ticket.times)
            for tp, found in answer.found.items():
                assert found.timestamp == ticket.times[tp], "of another question"
                assert found.offset >= ticket.asked_ms, "from before the question"
        elif isinstance(answer.error, RequestTimedOut):
            assert self.now == ticket.deadline_ms

    def arrive(self, sent: Sent) -> None:
        self.flying.remove(sent)
        command = sent.command
        dice = self.rng.random()
        if dice < self.trouble / 3:
            self.answer(OffsetsNotListed(command.query, "connection lost"))
            return
        rows = {
            tp: self.row(command.node, tp, time, epoch, sent.at_ms)
            for tp, (time, epoch) in command.wanted.items()
            if self.rng.random() > self.trouble / 10
        }
        if self.rng.random() < self.trouble:
            rows[TopicPartition("a", self.rng.randrange(PARTITIONS + 2))] = ListedOffset(0, 1, 1)
            rows |= {
                tp: self.row(command.node, tp, time, epoch, sent.at_ms)
                for tp, (time, epoch) in command.wanted.items()
            }
        self.answer(OffsetsListed(command.query, rows))
        if self.rng.random() < self.trouble:
            assert not self.queries.is_open(command.query)
            self.answer(OffsetsListed(command.query, {}))

    def answer(self, event: OffsetsListed | OffsetsNotListed) -> None:
        """All chunks of it; a step may come between two."""
        chunks = ChunkedAnswers(self.settings.rows_a_step)
        chunks.begin(self.queries.answered(self.now, event))
        while chunks.left:
            if self.rng.random() < 0.5:
                self.settle()
            chunks.go_on()

    def row(
        self, node: int, tp: TopicPartition, time: int, epoch: int, read_ms: int
    ) -> ListedOffset:
        leader, current = self.topics[tp.topic][1][tp.partition]
        dice = self.rng.random()
        if dice < self.trouble / 20:
            return ListedOffset(self.rng.choice(FINAL))
        if dice < self.trouble:
            return ListedOffset(self.rng.choice(PASSING))
        if leader != node:
            return ListedOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if epoch != current:
            older = epoch < current
            code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
            return ListedOffset(code)
        return ListedOffset(0, read_ms, time, current)

    # -- users and time ----------------------------------------------------------------------

    def ask(self, *choice: int) -> None:
        count = self.rng.randint(1, 2 * PARTITIONS)
        times = {
            TopicPartition(self.rng.choice("ab"), self.rng.randrange(PARTITIONS)): self.rng.choice(
                choice or (EARLIEST, LATEST, 1, 2, 3)
            )
            for _ in range(count)
        }
        number = len(self.tickets) + 1
        deadline_ms = self.now + self.rng.choice((50, 500, 5_000))
        self.tickets[number] = Ticket(times, self.now, deadline_ms)
        self.queries.asked_by_user(OffsetsAsked(number, times, deadline_ms))

    def step(self) -> None:
        """The next thing happens."""
        due = [each.arrives_ms for each in self.flying]
        due.extend(
            each for each in (self.metadata_ms, self.queries.deadline_ms) if each is not None
        )
        self.now = max(self.now, min(due, default=self.now + 10))
        if self.metadata_ms is not None and self.metadata_ms <= self.now:
            self.tell_leaders()
        for each in tuple(self.flying):
            if each.arrives_ms <= self.now:
                self.arrive(each)
        self.settle()

    def settle(self) -> None:
        self.queries.settle(self.now)
        self.transmit()
        assert self.queries.deadline_ms is None or self.queries.deadline_ms > self.now

    def heal(self) -> None:
        """No more faults: what is asked now is found."""
        self.trouble = 0
        self.tickets[10_000] = Ticket(
            {TopicPartition(t, n): LATEST for t in "ab" for n in range(PARTITIONS)},
            self.now,
            self.now + 10_000,
        )
        ticket = self.tickets[10_000]
        self.queries.asked_by_user(OffsetsAsked(10_000, ticket.times, ticket.deadline_ms))
        self.settle()
        while any(each.answered_ms is None for each in self.tickets.values()):
            self.step()


@settings(max_examples=examples(300))
@given(seed=st.integers(0, 2**32), trouble=st.sampled_from([0.0, 0.1, 0.3, 0.6, 0.9]))
def test_each_look_up_is_answered_once_by_its_deadline(seed: int, trouble: float) -> None:
    world = World(random.Random(seed), trouble)
    for _ in range(150):
        dice = world.rng.random()
        if dice < 0.15:
            world.ask()
        elif dice < 0.15 + trouble / 8:
            world.elect()
        elif dice < 0.15 + trouble / 6:
            world.create(world.rng.choice("ab"))
        world.settle()
        world.step()
    world.heal()
    assert world.tickets[10_000].answered_ms is not None
    assert world.tickets[10_000].answered_ms - world.tickets[10_000].asked_ms < 7_000
    assert not world.queries.topics
    assert world.queries.deadline_ms is None


@pytest.mark.parametrize("code", [*PASSING, None])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=examples(40))
def test_a_broker_that_answers_nothing_useful_is_not_stormed(
    code: ErrorCode | None, seed: int
) -> None:
    """Requests that carry nothing new go to a broker at most ten times a second, however many
    questions wait and whenever they began; ``None`` loses every request."""
    world = World(random.Random(seed), 0)
    world.settle()
    while world.now < 4_000:
        if world.rng.random() < 0.1 and world.now < 2_000:
            world.ask(len(world.tickets) + 1)
        world.settle()
        for each in tuple(world.flying):
            world.flying.remove(each)
            number = each.command.query
            if code is None:
                world.answer(OffsetsNotListed(number, "lost"))
            else:
                rows = dict.fromkeys(each.command.wanted, ListedOffset(code))
                world.answer(OffsetsListed(number, rows))
        if world.metadata_ms is not None and world.metadata_ms <= world.now:
            world.tell_leaders()
        world.settle()
        timer_ms = world.queries.deadline_ms
        world.now += world.rng.randint(1, 20)
        if timer_ms is not None:
            world.now = min(world.now, timer_ms)
    assert len(world.sent) > 30
    for node in NODES:
        seen: set[tuple[TopicPartition, int]] = set()
        again: list[int] = []
        for each in world.sent:
            if each.command.node == node:
                asked = {(tp, time) for tp, (time, _) in each.command.wanted.items()}
                if asked <= seen:
                    again.append(each.at_ms)
                seen |= asked
        assert all(b - a >= FetchSettings().retry_backoff_ms for a, b in pairwise(again))
