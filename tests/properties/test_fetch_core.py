"""Random lives of a fetch core among brokers that say anything, and an application that does.

Brokers here serve honest logs with honest sessions, and now and then answer garbage: error codes
that exist or not, partitions that nobody asked for, ids of other topics, bytes that are no records,
offsets that go back, replicas and leaders that are not there. The application assigns, seeks,
pauses, holds and reads in any order. Nothing may raise, and after every step the promises of the
core hold; in the end all is healed, and every partition must be read to its end.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.cluster import (
    ClusterChanged,
    Endpoint,
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.fetch import (
    EARLIEST,
    LATEST,
    AllButHeld,
    AssignmentChanged,
    BufferRead,
    Command,
    CommittedFailed,
    CommittedFound,
    ErrorDelivered,
    Event,
    FetchAnswer,
    FetchAnswered,
    FetchCore,
    FetchLost,
    FetchSettings,
    ListedOffset,
    ListOffsets,
    LookUpCommitted,
    OffsetsAsked,
    OffsetsFound,
    OffsetsListed,
    OffsetsNotFound,
    OffsetsNotListed,
    PartitionAnswer,
    Paused,
    Resumed,
    SeekBegun,
    SeekEnded,
    SendFetch,
    Sought,
    Started,
    StoredOffset,
    TimerFired,
    TopicsLimited,
    Undecodable,
    Wanted,
)
from kip848_client.core.fetch._model import EpochEnd
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    NoOffsetForPartition,
    RecordUnreadable,
    RequestTimedOut,
)
from tests.support.examples import examples
from tests.support.fetch_session import take_in
from tests.unit.core.fetch._bytes import batch

NODES = (1, 2, 3)
IDS = {"a": TopicId(b"a" * 16), "b": TopicId(b"b" * 16)}
NAMES = {topic_id: name for name, topic_id in IDS.items()}
FOREIGN = TopicId(b"z" * 16)
PARTITIONS = [TopicPartition(topic, n) for topic in IDS for n in range(3)]
END = 40
"""Where honest logs end."""
APPLICATION_MS = 1_000
"""So often at least the application does something."""
CODES = (*(code for code in ErrorCode if code not in (0, *range(10_480, 10_490))), 4_321)


@dataclass
class Open:
    command: SendFetch | ListOffsets | LearnLeaders | LookUpCommitted
    due_ms: int
    former: bool = False
    """Asked before the client began anew: its answer must change nothing."""


@dataclass
class Session:
    number: int
    epoch: int
    known: dict[TopicIdPartition, Wanted] = field(default_factory=dict)


@dataclass
class Life:
    rng: random.Random
    settings: FetchSettings
    trouble: float
    now: int = 1_000
    said: list[Command] = field(default_factory=list)
    open: list[Open] = field(default_factory=list)
    sessions: dict[int, Session] = field(default_factory=dict)
    leaders: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    assigned: set[TopicPartition] = field(default_factory=set)
    started: set[TopicPartition] = field(default_factory=set)
    paused: set[TopicPartition] = field(default_factory=set)
    held: set[TopicPartition] = field(default_factory=set)
    limit: frozenset[str] | None = None
    tickets: dict[int, int] = field(default_factory=dict)
    """Of look-ups: how often each was answered."""
    seeks: list[SeekBegun] = field(default_factory=list)
    numbers: int = 0
    lied: bool = False
    """A broker said what is not so: what the core believes of its session may be wrong."""

    def __post_init__(self) -> None:
        self.core = FetchCore(self.settings, self.jitter)
        self.leaders = {tp: (self.rng.choice(NODES), 3) for tp in PARTITIONS}

    def jitter(self, ms: int) -> int:
        return self.rng.randint(ms * 4 // 5, ms * 6 // 5)

    # -- steps -------------------------------------------------------------------------------

    def post(self, event: Event) -> None:
        commands = self.core.step(self.now, event)
        self.said.extend(commands)
        for command in commands:
            self.note(command)
        self.check()

    def note(self, command: Command) -> None:
        now_open = [each.command for each in self.open if not each.former]
        match command:
            case SendFetch():
                fetches = [each for each in now_open if isinstance(each, SendFetch)]
                assert all(each.node != command.node for each in fetches)
                intent = command.intent
                assert intent.add or intent.session_epoch > 0
                assert 0 < intent.max_bytes <= self.settings.max_bytes
                for each in intent.add:
                    assert each.offset >= 0
                    assert each.topic_id in NAMES
                    tp = TopicPartition(NAMES[each.topic_id], each.partition)
                    assert tp in self.readable()
            case LearnLeaders():
                assert not any(isinstance(each, LearnLeaders) for each in now_open)
                assert command.topics or command.topic_ids
            case ListOffsets():
                lists = [each for each in now_open if isinstance(each, ListOffsets)]
                assert all(each.node != command.node for each in lists)
            case LookUpCommitted():
                assert set(command.partitions) <= self.assigned
            case OffsetsFound() | OffsetsNotFound():
                self.tickets[command.ticket] += 1
                assert self.tickets[command.ticket] == 1
            case _:
                pass
        if isinstance(command, SendFetch | ListOffsets | LearnLeaders | LookUpCommitted):
            self.open.append(Open(command, self.now + self.delay(command)))

    def delay(self, command: Command) -> int:
        if isinstance(command, SendFetch) and self.rng.random() > self.trouble:
            return self.rng.choice((1, 20, command.intent.max_wait_ms))
        return self.rng.randint(0, 50)

    def readable(self) -> set[TopicPartition]:
        """What may be fetched and handed out now."""
        return {
            tp
            for tp in self.assigned & self.started - self.paused - self.held
            if self.limit is None or tp.topic in self.limit
        }

    def check(self) -> None:
        """What holds after every step."""
        core, seen = self.core, self.core.snapshot()
        due = core.deadline_ms
        assert due is None or due > self.now or core.is_taking_in
        assert core.assigned == self.assigned == set(seen.partitions)
        assert core.paused == self.paused
        buffered = 0
        for tp, each in seen.partitions.items():
            buffered += each.buffered_bytes
            if each.consumed is None:
                assert not each.slices
                assert each.fetch_offset == -1
                continue
            at = each.consumed
            for number, (first, after) in enumerate(each.slices):
                assert first >= at if number == 0 else first == at, tp
                assert after > first or after == first
                at = after
            assert each.fetch_offset == at
        assert buffered == seen.buffered_bytes
        in_flight = sum(each.reserved_bytes for each in seen.nodes.values())
        assert in_flight == seen.reserved_bytes
        for piece in core.slices():
            assert piece.tp in self.readable() | (self.assigned - self.started)
            assert piece.cursor.readable
            assert piece.cursor.generation == core.generation(piece.tp)

    # -- the application ---------------------------------------------------------------------

    def some(self, of: set[TopicPartition] | None = None) -> tuple[TopicPartition, ...]:
        among = sorted(self.assigned if of is None else of) or PARTITIONS
        return tuple(self.rng.sample(among, self.rng.randint(1, len(among))))

    def act(self) -> None:
        """The application, or the group, does something."""
        rng, tps = self.rng, self.some()
        match rng.randrange(13):
            case 0:
                self.assign(set(self.some(set(PARTITIONS))))
            case 1:
                self.started |= self.assigned.intersection(tps)
                self.post(Started(tps))
            case 2:
                self.paused |= self.assigned.intersection(tps)
                self.post(Paused(tps))
            case 3:
                self.paused -= set(tps)
                self.post(Resumed(tps))
            case 4:
                self.held = self.assigned.intersection(tps) if rng.random() < 0.5 else set()
                everything = frozenset(self.assigned)
                self.post(AllButHeld(everything, everything - self.held))
            case 5:
                self.limit = rng.choice((None, None, frozenset("a"), frozenset("ab")))
                self.post(TopicsLimited(self.limit))
            case 6:
                self.post(Sought(tps[0], rng.randrange(END + 5), rng.choice((-1, 3))))
            case 7:
                self.numbers += 1
                self.seeks.append(SeekBegun(self.numbers, tps))
                self.post(self.seeks[-1])
            case 8 if self.seeks:
                seek = self.seeks.pop(rng.randrange(len(self.seeks)))
                offsets = {tp: StoredOffset(rng.randrange(-1, END)) for tp in seek.partitions}
                self.post(SeekEnded(seek.ticket, offsets if rng.random() < 0.7 else {}))
            case 9:
                self.numbers += 1
                self.tickets[self.numbers] = 0
                times = dict.fromkeys(self.some(set(PARTITIONS)), rng.choice((EARLIEST, LATEST, 5)))
                self.post(OffsetsAsked(self.numbers, times, self.now + rng.randint(0, 5_000)))
            case 10:
                self.spoil()
            case 11 if rng.random() < 0.1:
                self.sessions.clear()
                for each in self.open:
                    each.former = isinstance(each.command, SendFetch | LearnLeaders)
                self.post(ClusterChanged())
            case _:
                self.read()

    def assign(self, wanted: set[TopicPartition]) -> None:
        fresh = {tp for tp in wanted if self.rng.random() < 0.2}
        kept = (self.assigned & wanted) - fresh
        self.assigned = wanted
        self.started &= kept
        self.paused &= kept
        self.held &= kept
        self.post(AssignmentChanged({tp: IDS[tp.topic] for tp in wanted}, frozenset(fresh)))

    def read(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            piece = self.core.next_slice()
            if piece is None:
                break
            before = self.core.position(piece.tp)
            assert before is not None
            assert before <= piece.next_offset
            self.core.finish(piece)
            assert self.core.position(piece.tp) == piece.next_offset
        told = self.core.pending_error()
        if told is not None:
            tp, error = told
            assert tp in self.assigned
            self.post(ErrorDelivered(tp))
            if isinstance(error, NoOffsetForPartition | RecordUnreadable) and not self.trouble:
                self.post(Sought(tp, 0))
        self.post(BufferRead())

    def spoil(self) -> None:
        """A slice cannot be decoded."""
        piece = self.core.next_slice()
        if piece is not None:
            tp = piece.tp
            offset = piece.first_offset
            error = RecordUnreadable(
                "garbage", topic=tp.topic, partition=tp.partition, offset=offset
            )
            generation = piece.cursor.generation - (self.rng.random() < 0.3)
            self.post(Undecodable(tp, generation, piece.first_offset, error))

    # -- the cluster -------------------------------------------------------------------------

    def answer(self, each: Open) -> None:
        self.open.remove(each)
        bad = self.rng.random() < self.trouble
        command = each.command
        if isinstance(command, SendFetch):
            self.post(self.bad_fetch(command) if bad else self.fetch(command))
        elif isinstance(command, ListOffsets):
            self.post(self.bad_offsets(command) if bad else self.offsets(command))
        elif isinstance(command, LearnLeaders):
            self.post(self.bad_metadata(command) if bad else self.metadata(command.number))
        else:
            self.post(self.committed(command, bad=bad))
        if bad and isinstance(command, SendFetch):
            before = self.core.snapshot()
            self.post(FetchAnswered(command.fetch, FetchAnswer()))
            after = self.core.snapshot()
            assert after == replace(before, stale_answers=after.stale_answers)

    def metadata(self, number: int) -> Event:
        topics = tuple(
            TopicLeaders(
                name,
                topic_id,
                {
                    tp.partition: PartitionLeader(*self.leaders[tp], NODES)
                    for tp in PARTITIONS
                    if tp.topic == name
                },
            )
            for name, topic_id in IDS.items()
        )
        return LeadersLearnt(number, topics, frozenset(), frozenset(NODES))

    def bad_metadata(self, command: LearnLeaders) -> Event:
        rng = self.rng
        match rng.randrange(4):
            case 0:
                return LeadersNotLearnt(command.number, "nobody answered")
            case 1:
                codes = tuple(TopicLeaders(name, IDS[name], {}, rng.choice(CODES)) for name in IDS)
                return LeadersLearnt(command.number, codes, frozenset(), frozenset(NODES))
            case 2:
                return LeadersLearnt(command.number, (), command.topic_ids, frozenset())
            case _:
                for tp in self.some(set(PARTITIONS)):
                    epoch = self.leaders[tp][1] + 1
                    self.leaders[tp] = (rng.choice(NODES), epoch)
                stale = {n: PartitionLeader(rng.choice((-1, 1, 9)), -1) for n in range(5)}
                told = TopicLeaders("a", IDS["a"], stale)
                return LeadersLearnt(command.number, (told,), frozenset(), frozenset(NODES))

    def offsets(self, command: ListOffsets) -> Event:
        rows: dict[TopicPartition, ListedOffset] = {}
        for tp, (time, _) in command.wanted.items():
            if self.leaders[tp][0] != command.node:
                rows[tp] = ListedOffset(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            else:
                rows[tp] = ListedOffset(0, 0 if time == EARLIEST else END, -1, 3)
        return OffsetsListed(command.query, rows)

    def bad_offsets(self, command: ListOffsets) -> Event:
        rng = self.rng
        match rng.randrange(4):
            case 0:
                return OffsetsNotListed(command.query, "connection lost")
            case 1:
                error = BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, "login")
                return OffsetsNotListed(command.query, "login", error)
            case 2:
                rows = {tp: ListedOffset(rng.choice(CODES)) for tp in PARTITIONS}
                return OffsetsListed(command.query, rows)
            case _:
                rows = {tp: ListedOffset(0, rng.randint(-2, END), -1, 3) for tp in self.some()}
                return OffsetsListed(command.query, rows)

    def committed(self, command: LookUpCommitted, *, bad: bool) -> Event:
        rng = self.rng
        if bad and rng.random() < 0.5:
            error = RequestTimedOut("the coordinator is away")
            return CommittedFailed(command.number, error, passing=rng.random() < 0.5)
        known = command.partitions if not bad else self.some()
        choice = (None, StoredOffset(3, 3), StoredOffset(0))
        wild = (StoredOffset(-7), StoredOffset(END + 99, 9))
        return CommittedFound(
            command.number, {tp: rng.choice((*choice, *wild) if bad else choice) for tp in known}
        )

    def fetch(self, command: SendFetch) -> Event:
        """As a broker that keeps the rules of sessions answers."""
        node, intent = command.node, command.intent
        session = self.sessions.get(node)
        if intent.session_epoch > 0:
            if session is None or session.number != intent.session_id:
                answer = FetchAnswer(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
                return FetchAnswered(command.fetch, answer)
            if session.epoch != intent.session_epoch:
                answer = FetchAnswer(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.number)
                return FetchAnswered(command.fetch, answer)
        else:
            self.numbers += 1
            session = self.sessions[node] = Session(self.numbers, 0)
        session.epoch += 1
        take_in(session.known, intent)
        if not session.known:
            assert self.lied, "an empty session"
            del self.sessions[node]
            return FetchAnswered(command.fetch, FetchAnswer())
        rows = [self.serve(node, want) for want in session.known.values()]
        if intent.session_epoch > 0:
            rows = [each for each in rows if each.error_code or each.records]
        return FetchAnswered(
            command.fetch, FetchAnswer(0, session.number, 0, tuple(rows), size_bytes=1)
        )

    def serve(self, node: int, want: Wanted) -> PartitionAnswer:
        leader, epoch = self.leaders[TopicPartition(NAMES[want.topic_id], want.partition)]
        code = 0
        if leader != node:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif want.leader_epoch != epoch:
            older = want.leader_epoch < epoch
            code = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        elif want.offset > END:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        if code:
            return PartitionAnswer(*want.key, code, leader=(leader, epoch))
        first = want.offset - want.offset % 4
        raw = batch(first, 4, epoch=3) if want.offset < END else b""
        return PartitionAnswer(*want.key, 0, END, END, 0, records=raw)

    def bad_fetch(self, command: SendFetch) -> Event:
        rng, self.lied = self.rng, True
        match rng.randrange(4):
            case 0:
                error = BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, "login")
                wrong = rng.choice((None, None, error))
                return FetchLost(command.fetch, "lost", sent=rng.random() < 0.5, error=wrong)
            case 1:
                answer = FetchAnswer(rng.choice(CODES), rng.choice((0, 7, -1)))
                return FetchAnswered(command.fetch, answer)
            case 2:
                throttled = FetchAnswer(0, command.intent.session_id, rng.choice((-5, 900)))
                return FetchAnswered(command.fetch, throttled)
            case _:
                return self.wild_fetch(command)

    def wild_fetch(self, command: SendFetch) -> Event:
        rng = self.rng
        honest = self.fetch(command)
        assert isinstance(honest, FetchAnswered)
        keys = [each.key for each in honest.answer.partitions]
        if rng.random() < 0.2:
            keys.append((rng.choice((FOREIGN, IDS["a"])), rng.randrange(-1, 9)))
        rows = tuple(self.wild_row(key) for key in keys)
        if rng.random() < 0.1:
            rows += rows[:1]
        if rng.random() < 0.1:
            rows = rows[1:]
        endpoints = (Endpoint(rng.choice((1, 4, -1)), "host", 9092),)
        answer = replace(honest.answer, partitions=rows, nodes=rng.choice(((), endpoints)))
        return FetchAnswered(command.fetch, answer)

    def wild_row(self, key: TopicIdPartition) -> PartitionAnswer:
        rng = self.rng

        def number() -> int:
            return rng.choice((-7, -1, 0, 3, 17, END, 2**62))

        good = batch(rng.randrange(END), rng.randint(1, 5), epoch=rng.randint(-1, 9))
        raws = (
            b"",
            b"",
            good,
            good + batch(rng.randrange(END), 2),
            good[: rng.randrange(len(good))],
            good + rng.randbytes(80),
            rng.randbytes(rng.randrange(100)),
            batch(number(), rng.randint(0, 3), length=rng.randint(-9, 99)),
        )
        return PartitionAnswer(
            *key,
            error_code=rng.choice((0, 0, 0, rng.choice(CODES))),
            high_watermark=number(),
            last_stable_offset=number(),
            log_start_offset=number(),
            diverging=rng.choice((None, None, EpochEnd(rng.randint(-1, 5), number()))),
            leader=rng.choice((None, (rng.choice((1, 2, 4, -1)), rng.randint(-1, 6)))),
            preferred_replica=rng.choice((-1, -1, 1, 2, 77)),
            aborted=rng.choice(((), ((rng.randint(-1, 9), number()),))),
            records=rng.choice(raws),
        )

    # -- time --------------------------------------------------------------------------------

    def live(self) -> None:
        """The next thing that is due happens."""
        due = [self.now + APPLICATION_MS, *(each.due_ms for each in self.open)]
        timer_ms = self.core.deadline_ms
        if timer_ms is not None:
            due.append(timer_ms)
        self.now = max(self.now, min(due))
        for each in tuple(self.open):
            if each in self.open and each.due_ms <= self.now:
                self.answer(each)
        if timer_ms is not None and timer_ms <= self.now:
            self.post(TimerFired())

    def heal(self) -> None:
        """All faults end, and the application reads on."""
        self.trouble = 0
        for tp in PARTITIONS:
            self.leaders[tp] = (self.leaders[tp][0], self.leaders[tp][1] + 10)
        self.assign(set(PARTITIONS))
        self.started, self.paused, self.held, self.limit = set(PARTITIONS), set(), set(), None
        for event in (
            Resumed(tuple(PARTITIONS)),
            TopicsLimited(None),
            AllButHeld(frozenset(PARTITIONS), frozenset(PARTITIONS)),
            Started(tuple(PARTITIONS)),
        ):
            self.post(event)
        for seek in self.seeks:
            self.post(SeekEnded(seek.ticket, {}))
        begun = self.now
        while any(self.core.position(tp) != END for tp in PARTITIONS):
            assert self.now < begun + 60_000, self.core.snapshot()
            self.live()
            self.read()
        while 0 in self.tickets.values():
            assert self.now < begun + 70_000
            self.live()


def run(seed: int, trouble: float, policy: str, *, committed: bool, rows_a_step: int = 500) -> Life:
    rng = random.Random(seed)
    life = Life(
        rng,
        FetchSettings(
            reset_policy=policy,
            read_committed=committed,
            has_group=True,
            rack=rng.choice(("", "r")),
            max_partition_bytes=rng.choice((1, 100, 1_000_000)),
            buffer_bytes=rng.choice((200, 1_000, 64_000_000)),
            metadata_max_age_ms=rng.choice((2_000, 300_000)),
            rows_a_step=rows_a_step,
        ),
        trouble,
    )
    life.assign(set(PARTITIONS))
    for _ in range(rng.randint(50, 250)):
        if rng.random() < 0.4:
            life.act()
        else:
            life.live()
    return life


@settings(max_examples=examples(400))
@given(
    seed=st.integers(0, 2**32),
    trouble=st.sampled_from([0.0, 0.1, 0.4, 0.8]),
    policy=st.sampled_from(["earliest", "latest", "none", "by_duration"]),
    committed=st.booleans(),
)
def test_whatever_brokers_say_the_core_keeps_its_promises(
    seed: int, trouble: float, policy: str, committed: bool
) -> None:
    run(seed, trouble, policy, committed=committed).heal()


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32))
def test_the_same_events_lead_to_the_same_commands(seed: int) -> None:
    first, second = (run(seed, 0.4, "earliest", committed=True) for _ in range(2))
    assert list(map(repr, first.said)) == list(map(repr, second.said))
