"""A fetch core in virtual time, and a cluster that answers what the test does not want to see.

Metadata, offsets by time and committed offsets are answered at once, from ``Harness.cluster``,
``log`` and ``committed``, unless the test switches that off. Fetches wait until the test answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kip848_client.core.cluster import (
    Endpoint,
    LeadersLearnt,
    LearnLeaders,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.fetch import (
    EARLIEST,
    AssignmentChanged,
    BufferRead,
    Command,
    CommittedFound,
    Event,
    FetchAnswer,
    FetchAnswered,
    FetchCore,
    FetchLost,
    FetchSettings,
    ListedOffset,
    ListOffsets,
    LookUpCommitted,
    Notice,
    OffsetsListed,
    PartitionAnswer,
    SendFetch,
    Started,
    StoredOffset,
    TimerFired,
    Wanted,
)
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition
from kip848_client.error_codes import ErrorCode
from tests.support.fetch_session import take_in
from tests.unit.core.fetch._bytes import batch

__all__ = ["Harness", "Topic", "data", "key", "row", "tid", "tp"]

_Kind = TypeVar("_Kind", bound=Command)


def tid(number: int) -> TopicId:
    """A topic id."""
    return TopicId(number.to_bytes(16, "big"))


def tp(partition: int = 0, topic: str = "t") -> TopicPartition:
    """A partition of the topic ``t``."""
    return TopicPartition(topic, partition)


def key(partition: int = 0, topic: int = 1) -> TopicIdPartition:
    """The same for brokers."""
    return (tid(topic), partition)


def data(base: int, offsets: int = 1, *, size: int = 7, epoch: int = 0) -> bytes:
    """One batch."""
    return batch(base, offsets, epoch=epoch, body=b"x" * size)


@dataclass
class Topic:
    """One topic of the cluster: its id, and (leader, epoch) of each partition."""

    topic_id: TopicId
    leaders: dict[int, tuple[int, int]]


class Harness:
    """The core, the time, and what it has asked for."""

    def __init__(
        self,
        settings: FetchSettings | None = None,
        *,
        partitions: int = 1,
        nodes: tuple[int, ...] = (1, 2, 3),
        leader: Callable[[int], int] = lambda _: 1,
        jitter: Callable[[int], int] = lambda ms: ms,
    ) -> None:
        self.settings = settings or FetchSettings(max_bytes=16_000_000)
        self.core = FetchCore(self.settings, jitter)
        self.now = 1_000
        self.nodes = nodes
        self.cluster = {"t": Topic(tid(1), {n: (leader(n), 5) for n in range(partitions)})}
        self.log: dict[TopicPartition, tuple[int, int]] = {}
        """(start, end), for ListOffsets; (0, 0) for what is not named."""
        self.committed: dict[TopicPartition, StoredOffset] = {}
        self.answers_metadata = True
        self.answers_offsets = True
        self.answers_committed = True
        self.commands: list[Command] = []
        """All that was ever asked."""
        self.open: dict[int, SendFetch] = {}
        """By node."""
        self.sessions: dict[int, dict[TopicIdPartition, Wanted]] = {}
        """What each broker has been told."""
        self._session_ids = 100

    # -- events ------------------------------------------------------------------------------

    def post(self, event: Event) -> tuple[Command, ...]:
        """Deliver an event; returns what it led to, answers of the cluster apart."""
        commands = self.core.step(self.now, event)
        self.commands.extend(commands)
        for command in commands:
            self._note(command)
        return commands

    def _note(self, command: Command) -> None:
        match command:
            case SendFetch():
                assert command.node not in self.open, "two requests to one broker"
                self.open[command.node] = command
                known = self.sessions.setdefault(command.node, {})
                take_in(known, command.intent)
                assert known, "an empty session"
                assert all(each.offset >= 0 for each in command.intent.add)
            case LearnLeaders() if self.answers_metadata:
                self.learn(command)
            case ListOffsets() if self.answers_offsets:
                self.list_offsets(command)
            case LookUpCommitted() if self.answers_committed:
                found = {each: self.committed.get(each) for each in command.partitions}
                self.post(CommittedFound(command.number, found))
            case _:
                pass

    def learn(self, asked: LearnLeaders | None = None) -> tuple[Command, ...]:
        """Answer a metadata request, or tell everything unasked."""
        topics: list[TopicLeaders] = []
        known = {topic.topic_id for topic in self.cluster.values()}
        for name, topic in self.cluster.items():
            if asked is None or name in asked.topics or topic.topic_id in asked.topic_ids:
                leaders = {
                    number: PartitionLeader(node, epoch, self.nodes)
                    for number, (node, epoch) in topic.leaders.items()
                }
                topics.append(TopicLeaders(name, topic.topic_id, leaders))
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        missing = () if asked is None else sorted(asked.topics - self.cluster.keys())
        topics.extend(TopicLeaders(name, tid(0), {}, code) for name in missing)
        gone = frozenset() if asked is None else asked.topic_ids - known
        number = 0 if asked is None else asked.number
        return self.post(LeadersLearnt(number, tuple(topics), gone, frozenset(self.nodes)))

    def list_offsets(self, asked: ListOffsets) -> tuple[Command, ...]:
        """Answer a ListOffsets."""
        rows = {
            each: ListedOffset(0, self.log.get(each, (0, 0))[0 if at == EARLIEST else 1], -1, 3)
            for each, (at, _) in asked.wanted.items()
        }
        return self.post(OffsetsListed(asked.query, rows))

    def advance(self, ms: int) -> list[Command]:
        """Let time pass; the timer fires when it is due. Returns what that led to."""
        end, before = self.now + ms, len(self.commands)
        steps = 0
        while (due := self.core.deadline_ms) is not None and due <= end:
            self.now = max(self.now, due)
            self.post(TimerFired())
            steps += 1
            assert steps < 10_000, "the timer never ends"
        self.now = end
        return self.commands[before:]

    # -- assignments -------------------------------------------------------------------------

    def assign(
        self, *numbers: int, by_hand: bool = False, topic_id: TopicId | None = None
    ) -> Harness:
        """Assign partitions of ``t`` and start them."""
        partitions = tuple(tp(number) for number in numbers)
        given = None if by_hand else topic_id or self.cluster["t"].topic_id
        self.post(AssignmentChanged(dict.fromkeys(partitions, given), frozenset()))
        self.post(Started(partitions))
        return self

    def read(self) -> list[tuple[TopicPartition, int, int]]:
        """Read all that can be read: (partition, first offset, next offset) of each slice."""
        seen: list[tuple[TopicPartition, int, int]] = []
        while (piece := self.core.next_slice()) is not None:
            assert piece.cursor.readable
            assert piece.cursor.consumed <= piece.next_offset
            seen.append((piece.tp, piece.first_offset, piece.next_offset))
            self.core.finish(piece)
        self.post(BufferRead())
        return seen

    # -- fetches -----------------------------------------------------------------------------

    def fetch(self, node: int = 1) -> SendFetch:
        """The request that is open at a broker."""
        assert node in self.open, f"broker {node} is not being asked"
        return self.open[node]

    def asked(self, node: int = 1) -> dict[int, int]:
        """What that broker is to serve: partition of ``t`` to offset."""
        assert node in self.sessions, f"broker {node} was never asked"
        return {partition: each.offset for (_, partition), each in self.sessions[node].items()}

    def answer(
        self,
        records: Mapping[int, bytes] | None = None,
        *rows: PartitionAnswer,
        node: int = 1,
        after_ms: int | None = None,
        error: int = 0,
        session_id: int | None = None,
        throttle_ms: int = 0,
        endpoints: tuple[Endpoint, ...] = (),
    ) -> tuple[Command, ...]:
        """Answer the request that is open: with ``records`` of partitions of ``t``, and ``rows``
        for what has more to say. A full request is told of the others, too. What says nothing comes
        when the time is over that it may wait, unless ``after_ms`` says otherwise."""
        if after_ms is None and not (records or rows or error or throttle_ms):
            after_ms = self.fetch(node).intent.max_wait_ms
        self.advance(after_ms or 0)
        request = self.fetch(node)
        del self.open[node]
        given = {each.key: each for each in rows}
        for number, raw in (records or {}).items():
            given[key(number)] = row(number, raw)
        intent = request.intent
        if session_id is None:
            session_id = intent.session_id
            if intent.session_epoch == 0 and not error:
                self._session_ids += 1
                session_id = self._session_ids
        if intent.session_epoch <= 0 and not error and not throttle_ms:
            for each in self.sessions[node]:
                given.setdefault(each, PartitionAnswer(*each, high_watermark=100))
        answer = FetchAnswer(error, session_id, throttle_ms, tuple(given.values()), endpoints)
        return self.post(FetchAnswered(request.fetch, answer))

    def lose(self, node: int = 1, *, sent: bool = True) -> tuple[Command, ...]:
        """The connection breaks."""
        return self.post(FetchLost(self.open.pop(node).fetch, "connection lost", sent))

    # -- looking back ------------------------------------------------------------------------

    def all(self, kind: type[_Kind]) -> list[_Kind]:
        """The commands of a kind, of all times."""
        return [each for each in self.commands if isinstance(each, kind)]

    @property
    def notices(self) -> list[str]:
        """What was logged."""
        return [each.text for each in self.all(Notice)]


def row(
    partition: int = 0,
    records: bytes = b"",
    *,
    high_watermark: int = 100,
    topic: int = 1,
    **fields: object,
) -> PartitionAnswer:
    """What a broker says of one partition of ``t``."""
    return PartitionAnswer(
        tid(topic),
        partition,
        high_watermark=high_watermark,
        records=records,
        **fields,  # type: ignore[arg-type]  # the fields of PartitionAnswer, by name
    )
