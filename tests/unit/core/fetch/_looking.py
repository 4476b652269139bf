"""Plays the driver and the core around look-ups and positions, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from kip848_client.core.cluster import (
    Leaders,
    LeadersLearnt,
    LeadersNotLearnt,
    MetadataQuestions,
    MetadataSettings,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.fetch._chunked_answers import ChunkedAnswer, ChunkedAnswers
from kip848_client.core.fetch._commands import Command, Commands, ListOffsets, LookUpCommitted
from kip848_client.core.fetch._events import (
    CommittedFailed,
    CommittedFound,
    OffsetsAsked,
    OffsetsListed,
    OffsetsNotListed,
)
from kip848_client.core.fetch._model import FetchSettings, ListedOffset, StoredOffset
from kip848_client.core.fetch._positions import Positions, Result
from kip848_client.core.fetch._queries import Queries
from kip848_client.core.types import TopicId, TopicPartition

__all__ = ["ID", "OTHER_ID", "Looking", "listed", "tp"]

ID, OTHER_ID = TopicId(b"t" * 16), TopicId(b"u" * 16)
START_MS = 5_000
C = TypeVar("C", bound=Command)


def tp(partition: int, topic: str = "t") -> TopicPartition:
    """A partition as users name it."""
    return TopicPartition(topic, partition)


def listed(offset: int, timestamp: int = -1) -> ListedOffset:
    """What a broker answers for a partition when all is well."""
    return ListedOffset(0, offset, timestamp, 3)


class Wants(MetadataQuestions):
    """Notes which leaders are wanted, and why."""

    def __init__(self, wanted: list[tuple[str, str]]) -> None:
        super().__init__(MetadataSettings(), lambda ms: ms)
        self._noted = wanted

    def want(self, topic: str, why: str, *, create: bool = False) -> None:
        del create
        self._noted.append((topic, why))


class Looking:
    """``leads`` says who leads the partitions of topic t from the beginning: partition to node."""

    def __init__(
        self, leads: Mapping[int, int] | None = None, settings: FetchSettings | None = None
    ) -> None:
        self.now = START_MS
        self.settings = settings or FetchSettings()
        self.leaders = Leaders()
        self.said: Commands = []
        self.wanted: list[tuple[str, str]] = []
        self.results: list[Result] = []
        self.queries = Queries(
            self.settings,
            lambda ms: ms,
            self.leaders,
            Wants(self.wanted),
            self.said,
        )
        self.positions = Positions(self.settings, lambda ms: ms, self.queries, self.said)
        if leads:
            self.lead(leads)

    # -- what happens ------------------------------------------------------------------------

    def lead(
        self,
        leads: Mapping[int, int],
        *,
        epoch: int = 1,
        topic: str = "t",
        topic_id: TopicId = ID,
        error: int = 0,
    ) -> None:
        """Metadata is learnt."""
        partitions = {n: PartitionLeader(node, epoch) for n, node in leads.items()}
        told = TopicLeaders(topic, topic_id, partitions, error)
        self.leaders.learn(told)
        self.queries.leaders_told(
            self.now, LeadersLearnt(0, (told,), frozenset(), frozenset({1, 2, 3}))
        )
        self.settle()

    def no_metadata(self, why: str) -> None:
        self.queries.leaders_told(self.now, LeadersNotLearnt(0, why))
        self.settle()

    def ask(
        self, times: Mapping[TopicPartition, int], within_ms: int = 60_000, ticket: int = 1
    ) -> None:
        """A user looks offsets up."""
        self.queries.asked_by_user(OffsetsAsked(ticket, times, self.now + within_ms))
        self.settle()

    def answer(
        self, rows: Mapping[TopicPartition, ListedOffset], request: ListOffsets | None = None
    ) -> None:
        """The request, or else the newest, is answered."""
        number = (request or self.newest(ListOffsets)).query
        self.deliver(OffsetsListed(number, rows))
        self.settle()

    def refuse(self, code: int, request: ListOffsets | None = None) -> None:
        """All of the request, or else of the newest, is refused."""
        asked = request or self.newest(ListOffsets)
        self.answer(dict.fromkeys(asked.wanted, ListedOffset(code)), asked)

    def lose(self, event: OffsetsNotListed) -> None:
        self.deliver(event)
        self.settle()

    def committed(self, offsets: Mapping[TopicPartition, StoredOffset | None]) -> None:
        """The newest look-up of committed offsets is answered."""
        number = self.newest(LookUpCommitted).number
        self.deliver(CommittedFound(number, offsets))
        self.settle()

    def not_committed(self, event: CommittedFailed) -> None:
        self.deliver(event)
        self.settle()

    def deliver(
        self, event: OffsetsListed | OffsetsNotListed | CommittedFound | CommittedFailed
    ) -> bool:
        """Without settling: all chunks; returns whether anybody waits for it."""
        answer: ChunkedAnswer[Any]
        if isinstance(event, OffsetsListed | OffsetsNotListed):
            is_open = self.queries.is_open(event.query)
            answer = self.queries.answered(self.now, event)
        else:
            is_open = self.positions.is_open(event.number)
            answer = self.positions.answered(self.now, event)
        chunks = ChunkedAnswers(self.settings.rows_a_step)
        chunks.begin(answer)
        while chunks.left:
            chunks.go_on()
        return is_open

    # -- time --------------------------------------------------------------------------------

    def settle(self) -> None:
        self.positions.settle(self.now)
        self.queries.settle(self.now)
        self.results.extend(self.positions.take())

    @property
    def deadline_ms(self) -> int | None:
        due = (self.positions.deadline_ms, self.queries.deadline_ms)
        return min((each for each in due if each is not None), default=None)

    def advance(self, ms: int) -> None:
        """Time goes by, timers fire when they are due."""
        end = self.now + ms
        while (due := self.deadline_ms) is not None and due <= end:
            assert due > self.now, "a timer that is due already"
            self.now = due
            self.settle()
        self.now = end

    # -- looking -----------------------------------------------------------------------------

    def all(self, kind: type[C]) -> list[C]:
        """All commands of this kind so far."""
        return [each for each in self.said if isinstance(each, kind)]

    def newest(self, kind: type[C]) -> C:
        return self.all(kind)[-1]

    def take(self, kind: type[C]) -> list[C]:
        """Those of this kind that were not taken yet."""
        taken = self.all(kind)
        self.said[:] = [each for each in self.said if not isinstance(each, kind)]
        return taken
