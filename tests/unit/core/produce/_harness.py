"""A producer core in virtual time, and a cluster that answers what the test does not want to see.

Metadata and producer ids are answered at once unless the test switches that off. Requests wait
until the test answers. Batches are of ``PlainBuilder``: their bytes say what is in them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kip848_client.core.cluster import LeadersLearnt, LearnLeaders, PartitionLeader, TopicLeaders
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._core import Command, Event, ProducerCore
from kip848_client.core.produce._model import (
    Place,
    Placed,
    Produced,
    ProducerId,
    ProduceSettings,
)
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.errors import Kip848Error
from tests.support.produced_batches import PlainBatch, PlainBuilder, plain_batch

__all__ = ["RECORD_BYTES", "Harness", "batch_bytes", "tid", "tp"]

RECORD_BYTES = 10
"""Of a record with a value of three characters."""
_Kind = TypeVar("_Kind", bound=Command)


def tid(number: int = 1) -> TopicId:
    """A topic id."""
    return TopicId(number.to_bytes(16, "big"))


def tp(partition: int = 0, topic: str = "t") -> TopicPartition:
    """A partition of the topic ``t``."""
    return TopicPartition(topic, partition)


def batch_bytes(records: int) -> int:
    """The size of a batch of so many records with values of three characters."""
    return 61 + RECORD_BYTES * records


class Harness:
    """The core, the time, and what it has asked for."""

    def __init__(
        self,
        settings: ProduceSettings | None = None,
        *,
        partitions: int = 1,
        nodes: tuple[int, ...] = (1, 2, 3),
        leader: Callable[[int], int] = lambda _: 1,
        choose: Callable[[int], int] = lambda _: 0,
        start: bool = True,
    ) -> None:
        self.settings = settings or ProduceSettings()
        self.core = ProducerCore(self.settings, lambda ms: ms, choose, PlainBuilder)
        self.now = 1_000
        self.nodes = nodes
        self.topics = {"t": (tid(), {n: (leader(n), 5) for n in range(partitions)})}
        self.codes: dict[str, int] = {}
        """Topics that metadata tells an error of."""
        self.answers_metadata = True
        self.answers_ids = True
        self.commands: list[Command] = []
        """All that was ever asked."""
        self.open: list[do.SendProduce] = []
        """Requests that are not answered, the oldest first."""
        self._ids = 6
        if start:
            self.post(ev.StartRequested(1, self.now + 1_000))
            self.want("t")

    # -- events ------------------------------------------------------------------------------

    def post(self, event: Event) -> tuple[Command, ...]:
        """Deliver an event; returns what it led to, answers of the cluster apart."""
        commands = self.core.step(self.now, event)
        self.commands.extend(commands)
        for command in commands:
            match command:
                case do.SendProduce():
                    self.open.append(command)
                case LearnLeaders() if self.answers_metadata:
                    self.learn(command)
                case do.InitProducerId() if self.answers_ids:
                    self.give_id(command)
                case _:
                    pass
        return commands

    def learn(self, asked: LearnLeaders | None = None) -> tuple[Command, ...]:
        """Answer a metadata request, or tell everything unasked."""
        topics: list[TopicLeaders] = []
        for name in sorted(self.topics if asked is None else asked.topics):
            code = self.codes.get(name, 0 if name in self.topics else 3)
            topic_id, leaders = self.topics.get(name, (tid(0), {}))
            told = {n: PartitionLeader(*at) for n, at in leaders.items()}
            topics.append(TopicLeaders(name, topic_id, {} if code else told, code))
        number = 0 if asked is None else asked.number
        return self.post(LeadersLearnt(number, tuple(topics), frozenset(), frozenset(self.nodes)))

    def give_id(self, asked: do.InitProducerId) -> tuple[Command, ...]:
        """Answer an InitProducerId: the ids are 7, 8, ..."""
        self._ids += 1
        return self.post(ev.ProducerIdAnswered(asked.number, 0, ProducerId(self._ids, 0)))

    def advance(self, ms: int) -> list[Command]:
        """Let time pass; the timer fires when it is due. Returns what that led to."""
        end, before = self.now + ms, len(self.commands)
        steps = 0
        while (due := self.core.deadline_ms) is not None and due <= end:
            self.now = max(self.now, due)
            self.post(ev.TimerFired())
            steps += 1
            assert steps < 5_000, "the timer never ends"
        self.now = end
        return self.commands[before:]

    def want(self, topic: str, ticket: int = 2, ms: int = 1_000) -> tuple[Command, ...]:
        """Ask how many partitions a topic has."""
        return self.post(ev.TopicWanted(ticket, topic, self.now + ms))

    # -- records -----------------------------------------------------------------------------

    def append(self, *values: str, to: TopicPartition | None = None) -> list[Placed]:
        """Append records, and step where the core wants it."""
        placed = [self.try_append(value, to=to) for value in values]
        assert None not in placed, "no room"
        return [each for each in placed if each is not None]

    def try_append(self, value: str, *, to: TopicPartition | None = None) -> Placed | None:
        """The same for one that may find no room."""
        at = to or tp()
        placed = self.core.append(self.now, at, self.now, None, value.encode(), ())
        if placed is None or placed.notify:
            self.post(ev.Appended())
        return placed

    def append_anywhere(self, value: str) -> Placed:
        """The same for one record without a key: the core says where it goes."""
        placed = self.try_append_anywhere(value)
        assert placed is not None, "no room"
        return placed

    def try_append_anywhere(self, value: str) -> Placed | None:
        """The same for one that may find no room."""
        route = self.core.routes["t"]
        placed = self.core.append(
            self.now, route.of(None), self.now, None, value.encode(), (), route
        )
        if placed is None or placed.notify:
            self.post(ev.Appended())
        return placed

    def send(self, *values: str, to: TopicPartition | None = None) -> PlainBatch:
        """Append records and have them sent, as a batch of their own."""
        self.append(*values, to=to)
        self.advance(self.settings.linger_ms)
        assert self.open, "nothing was sent"
        return self.batch(to or tp(), self.open[-1])

    def batch(
        self, at: TopicPartition | None = None, request: do.SendProduce | None = None
    ) -> PlainBatch:
        """What is in a request, the newest, for a partition."""
        found = request or self.open[-1]
        return next(plain_batch(each.data) for each in found.batches if each.tp == (at or tp()))

    # -- answers -----------------------------------------------------------------------------

    def answer(
        self,
        code: int = 0,
        *,
        base: int = 10,
        request: do.SendProduce | None = None,
        **fields: object,
    ) -> tuple[Command, ...]:
        """Answer a request, the oldest, for all its partitions."""
        found = request or self.open[0]
        self.open.remove(found)
        said = Produced(
            code,
            -1 if code else base,
            **fields,  # type: ignore[arg-type]  # its fields, by name
        )
        told = {} if self.settings.acks == 0 else {each.tp: said for each in found.batches}
        return self.post(ev.ProduceAnswered(found.produce, told))

    def lose(
        self,
        *,
        maybe_sent: bool = True,
        fatal: Kip848Error | None = None,
        request: do.SendProduce | None = None,
    ) -> tuple[Command, ...]:
        """No answer to a request, the oldest."""
        found = request or self.open[0]
        self.open.remove(found)
        return self.post(ev.ProduceLost(found.produce, "it broke", maybe_sent, fatal))

    # -- looking back ------------------------------------------------------------------------

    def all(self, kind: type[_Kind]) -> list[_Kind]:
        """The commands of a kind, of all times."""
        return [each for each in self.commands if isinstance(each, kind)]

    @property
    def done(self) -> dict[int, Place]:
        """Batches that succeeded."""
        return {each.batch: each.place for each in self.all(do.BatchDone)}

    @property
    def failed(self) -> dict[int, Kip848Error]:
        """Batches that did not."""
        return {each.batch: each.error for each in self.all(do.BatchFailed)}

    @property
    def tickets(self) -> list[int]:
        """What is done of what was asked for."""
        return [each.ticket for each in self.all(do.Done)]

    @property
    def refused(self) -> dict[int, Kip848Error]:
        """What was asked for in vain."""
        return {each.ticket: each.error for each in self.all(do.Failed)}
