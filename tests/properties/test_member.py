"""Random lives of one member, against a small coordinator, an application and a bad network.

The coordinator here knows one member. It validates every request as a broker does (a violation
fails the test, since a member must never send INVALID_REQUEST), accepts epochs as brokers from 4.2
on do, and takes partitions away only when the member reports that it has let go of them. After
every step the promises of the protocol are checked; at the end everything is healed and the member
must arrive at STABLE with what the coordinator wants it to have, without spinning.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kip848_client.core.member import (
    AssignedPartition,
    Command,
    CoordinatorFound,
    CoordinatorLookupFailed,
    CoordinatorLost,
    Event,
    FindCoordinator,
    FlushOffsets,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatIntent,
    HeartbeatLost,
    HeartbeatOutcome,
    HeartbeatRefused,
    HeartbeatWanted,
    LeaveMode,
    LeaveRequested,
    LossReason,
    MemberCore,
    MemberSettings,
    MemberState,
    OffsetsFlushed,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    PollEnded,
    ReleasePartitions,
    ResolveTopics,
    SendHeartbeat,
    StartPartitions,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.core.member._model import group_by_topic, sanitise
from kip848_client.core.types import MemberId, TopicId, TopicIdPartition
from kip848_client.error_codes import ErrorCode
from tests.support.examples import examples

TOPICS = [TopicId(bytes([n]) * 16) for n in (1, 2, 3)]
NAMES = {topic: f"topic-{topic[0]}" for topic in TOPICS}
URGENT_PER_SECOND = 10
FENCES = (25, 110)
Set = frozenset[TopicIdPartition]


@dataclass
class TinyCoordinator:
    """A coordinator of one group with one member."""

    static: bool
    known: bool = False
    epoch: int = 0
    previous: int = 0
    group_epoch: int = 1
    target: Set = frozenset()
    assigned: Set = frozenset()
    revoking: Set = frozenset()
    left_for_a_while: bool = False

    def retarget(self, target: Set) -> None:
        self.group_epoch += 1
        self.target = target

    def forget(self) -> None:
        """The session or the rebalance time ran out."""
        self.known = False
        self.assigned = self.revoking = frozenset()
        self.group_epoch += 1

    def heartbeat(self, intent: HeartbeatIntent) -> HeartbeatOutcome:
        self.validate(intent)
        if intent.member_epoch < 0:
            return self.leave(intent)
        refused = self.fence(intent)
        if refused is not None:
            return refused
        before = self.assigned
        owned = None if intent.owned is None else sanitise(intent.owned)
        if intent.member_epoch == 0:
            if not self.known:
                self.assigned = frozenset()
            self.known, self.left_for_a_while = True, False
            self.revoking = frozenset()
        self.reconcile(owned)
        news = intent.is_complete or before != self.assigned
        grouped = group_by_topic(self.assigned) if news else None
        return HeartbeatAccepted(intent.member_id, self.epoch, 5_000, grouped)

    def validate(self, intent: HeartbeatIntent) -> None:
        """What a broker answers INVALID_REQUEST to, a member must never send."""
        assert intent.member_id
        assert intent.member_epoch >= -2
        assert intent.member_epoch != -2 or intent.instance_id
        if intent.member_epoch == 0:
            assert intent.rebalance_timeout_ms is not None
            assert intent.owned == ()
            assert intent.subscribed_topic_names is not None or intent.subscribed_topic_regex

    def leave(self, intent: HeartbeatIntent) -> HeartbeatOutcome:
        if not self.known:
            return HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID")
        if intent.member_epoch == -2:
            self.left_for_a_while = True
        else:
            self.forget()
        return HeartbeatAccepted(intent.member_id, intent.member_epoch, 0)

    def fence(self, intent: HeartbeatIntent) -> HeartbeatRefused | None:
        epoch = intent.member_epoch
        if epoch == 0:
            held = self.static and self.known and not self.left_for_a_while
            return (
                HeartbeatRefused(ErrorCode.UNRELEASED_INSTANCE_ID, "UNRELEASED_INSTANCE_ID")
                if held
                else None
            )
        if not self.known:
            return HeartbeatRefused(ErrorCode.UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID")
        if epoch == self.epoch and not self.left_for_a_while:
            return None
        owned = None if intent.owned is None else sanitise(intent.owned)
        if epoch == self.previous and owned is not None and owned <= self.assigned:
            return None
        return HeartbeatRefused(ErrorCode.FENCED_MEMBER_EPOCH, "FENCED_MEMBER_EPOCH")

    def reconcile(self, owned: Set | None) -> None:
        if self.revoking and (owned is None or owned & self.revoking):
            return
        self.revoking = frozenset()
        gone = self.assigned - self.target
        if gone and (owned is None or owned & gone):
            self.revoking = gone
            self.assigned -= gone
            self.previous, self.epoch = self.epoch, max(self.epoch, 1)
            return
        self.assigned = self.target
        self.previous, self.epoch = self.epoch, self.group_epoch


@dataclass
class MemberHarness:
    """The member, its driver and application, the network and the coordinator."""

    static: bool
    auto_commit: bool
    now: int = 10_000
    wire: list[SendHeartbeat] = field(default_factory=list[SendHeartbeat])
    answers: list[tuple[int, HeartbeatOutcome]] = field(
        default_factory=list[tuple[int, HeartbeatOutcome]]
    )
    lookups: list[int] = field(default_factory=list[int])
    queries: list[ResolveTopics] = field(default_factory=list[ResolveTopics])
    work: list[Command] = field(default_factory=list[Command])
    nameless: set[TopicId] = field(default_factory=set[TopicId])
    app: set[AssignedPartition] = field(default_factory=set[AssignedPartition])
    prepared: set[AssignedPartition] = field(default_factory=set[AssignedPartition])
    """Those of ``app`` for which the assigned callback succeeded."""
    sent_at: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    wakeups: int = 0

    def __post_init__(self) -> None:
        self.coordinator = TinyCoordinator(self.static)
        member_settings = MemberSettings(
            instance_id="i1" if self.static else None,
            max_poll_interval_ms=15_000,
            auto_commit=self.auto_commit,
        )
        self.core = MemberCore(member_settings, MemberId("m"), lambda pause: pause)

    # -- the driver --------------------------------------------------------------------------

    def feed(self, event: Event) -> None:
        for command in self.core.step(self.now, event):
            match command:
                case SendHeartbeat():
                    self.check_heartbeat(command.intent)
                    self.sent_at.append((self.now, command.intent.member_epoch))
                    self.wire.append(command)
                case FindCoordinator():
                    self.lookups.append(command.lookup)
                case ResolveTopics():
                    self.queries.append(command)
                case FlushOffsets() | ReleasePartitions() | StartPartitions():
                    self.work.append(command)
                case _:
                    pass
        assert len(self.lookups) <= 1, "one lookup at a time"
        assert set(self.core.fetchable) <= set(self.core.assigned)

    def check_heartbeat(self, intent: HeartbeatIntent) -> None:
        """Nothing that is still handed out may be reported as not owned."""
        if intent.owned is not None and intent.member_epoch > 0:
            owned = sanitise(intent.owned)
            assert {(p.topic_id, p.partition) for p in self.core.fetchable} <= owned

    def finish_work(self, *, fail: bool) -> None:
        """The oldest thing that the application was asked to do ends."""
        if not self.work:
            return
        command = self.work.pop(0)
        match command:
            case FlushOffsets():
                self.feed(OffsetsFlushed(command.plan))
            case ReleasePartitions():
                named = set(command.partitions)
                assert named <= self.app, "taken twice, or without being given"
                if command.last:
                    self.app.clear()
                elif not fail:
                    self.app -= named
                self.prepared &= self.app
                self.feed(PartitionsReleased(command.plan, fail))
            case StartPartitions():
                assert not set(command.partitions) & self.prepared, "given twice"
                self.app |= set(command.partitions)
                assert self.app == set(command.assignment)
                assert set(command.partitions) | self.prepared == self.app, "not given again"
                if not fail:
                    self.prepared |= set(command.partitions)
                self.feed(PartitionsStarted(command.plan, fail))
            case _:
                raise AssertionError(command)

    # -- the network -------------------------------------------------------------------------

    def deliver_request(self, *, lose: bool, twice: bool) -> None:
        if not self.wire:
            return
        request = self.wire.pop(0)
        outcome = self.coordinator.heartbeat(request.intent)
        if twice:
            self.coordinator.heartbeat(request.intent)
        if lose:
            self.feed(HeartbeatLost(request.attempt, LossReason.DISCONNECTED))
        else:
            self.answers.append((request.attempt, outcome))

    def lose_request(self, reason: LossReason) -> None:
        if self.wire:
            self.feed(HeartbeatLost(self.wire.pop(0).attempt, reason))

    def refuse(self, code: int) -> None:
        if self.wire:
            refused = HeartbeatRefused(code, f"CODE_{code}")
            self.feed(HeartbeatAnswered(self.wire.pop(0).attempt, refused))

    def deliver_answer(self, *, twice: bool = False) -> None:
        if not self.answers:
            return
        attempt, outcome = self.answers.pop(0)
        for _ in range(1 + twice):
            self.feed(HeartbeatAnswered(attempt, outcome))

    def answer_lookup(self, *, found: bool) -> None:
        for number in self.lookups[:1]:
            del self.lookups[0]
            self.feed(CoordinatorFound(number) if found else CoordinatorLookupFailed(number))

    def answer_query(self) -> None:
        for query in self.queries[:1]:
            del self.queries[0]
            found = {i: NAMES[i] for i in query.ids if i not in self.nameless}
            self.feed(TopicsResolved(query.query, found))

    def advance(self, ms: int) -> None:
        end = self.now + ms
        while (deadline := self.core.deadline_ms) is not None and deadline <= end:
            assert deadline > self.now
            self.now = deadline
            self.wakeups += 1
            self.feed(TimerFired())
        self.now = end

    def leave(self, mode: LeaveMode, budget_ms: int, *, flush: bool) -> None:
        self.feed(LeaveRequested(mode, self.now + budget_ms, flush))

    # -- the end -----------------------------------------------------------------------------

    def run_healthy(self, ms: int) -> None:
        """Everything works, with a little latency."""
        end = self.now + ms
        while self.now < end:
            self.answer_lookup(found=True)
            self.answer_query()
            self.finish_work(fail=False)
            self.deliver_request(lose=False, twice=False)
            self.deliver_answer()
            busy = self.lookups or self.queries or self.work or self.wire or self.answers
            deadline = self.core.deadline_ms
            until = self.now + 2 if busy or deadline is None else deadline
            self.advance(min(until, end) - self.now)

    def check_rate(self) -> None:
        """Never more than the budget of urgent heartbeats a second, plus a regular one and the
        leaves that the user asked for."""
        times = [at for at, epoch in self.sent_at if epoch >= 0]
        for first in range(len(times)):
            window = [at for at in times[first:] if at < times[first] + 1_000]
            assert len(window) <= 2 * URGENT_PER_SECOND + 2, "heartbeats spin"


Op = tuple[str, int]
OPS = (
    *("poll", "wait", "poll-ended", "subscribe", "unsubscribe", "wanted", "lost"),
    *("work", "work", "work", "fail-work", "lookup", "lookup", "lookup-fails", "names", "names"),
    *("send", "send", "send", "send-lose", "send-twice", "lose", "answer", "answer", "answer"),
    *("answer-twice", "refuse", "retarget", "retarget", "forget", "hide", "advance", "advance"),
    *("flow", "flow"),
)
ops = st.lists(st.tuples(st.sampled_from(OPS), st.integers(0, 63)), max_size=120)
NOT_FATAL = (14, 15, 16, 25, 29, 110)


def target_of(number: int) -> Set:
    """A set of partitions for each number."""
    bits = [(topic, p) for topic in TOPICS for p in (0, 1)]
    return frozenset(tp for n, tp in enumerate(bits) if number >> n & 1)


def perform(harness: MemberHarness, op: str, number: int) -> None:
    match op:
        case "poll":
            harness.feed(Polled())
        case "wait":
            harness.feed(Polled(waiting=True))
        case "poll-ended":
            harness.feed(PollEnded())
        case "subscribe":
            pattern = "x.*" if number % 3 == 0 else None
            harness.feed(Subscribed(frozenset({f"topic-{number % 4}"}), pattern))
        case "unsubscribe":
            budget = (0, 10, 1_000, 30_000)[number % 4]
            harness.leave(list(LeaveMode)[number % 3], budget, flush=number % 2 == 0)
        case "wanted":
            harness.feed(HeartbeatWanted())
        case "lost":
            harness.feed(CoordinatorLost("said another request"))
        case "work" | "fail-work":
            harness.finish_work(fail=op == "fail-work")
        case "lookup" | "lookup-fails":
            harness.answer_lookup(found=op == "lookup")
        case "names":
            harness.answer_query()
        case "send" | "send-lose" | "send-twice":
            harness.deliver_request(lose=op == "send-lose", twice=op == "send-twice")
        case "lose":
            harness.lose_request(list(LossReason)[number % 3])
        case "answer" | "answer-twice":
            harness.deliver_answer(twice=op == "answer-twice")
        case "refuse":
            harness.refuse(NOT_FATAL[number % len(NOT_FATAL)])
        case "retarget":
            harness.coordinator.retarget(target_of(number))
        case "forget":
            harness.coordinator.forget()
        case "hide":
            harness.nameless ^= {TOPICS[number % len(TOPICS)]}
        case "flow":
            harness.run_healthy(40)
        case _:
            harness.advance((1, 50, 1_000, 5_000, 10_000, 20_000)[number % 6])


LIFE: list[Op] = [
    *[("subscribe", 1), ("poll", 0), ("lookup", 0), ("send", 0), ("answer", 0), ("names", 0)],
    *[("work", 0), ("retarget", 63), ("advance", 3), ("send", 0), ("answer", 0), ("names", 0)],
    *[("work", 0), ("work", 0), ("send", 0), ("answer", 0)],
]


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.too_slow])
@given(
    story=st.one_of(ops, ops.map(lambda more: [*LIFE, *more])),
    static=st.booleans(),
    auto_commit=st.booleans(),
    final=st.integers(0, 63),
)
@example(
    story=[*LIFE, ("retarget", 1), ("advance", 3), ("send", 0), ("answer", 0), ("work", 0)],
    static=False,
    auto_commit=True,
    final=5,
)
@example(
    story=[*LIFE, ("unsubscribe", 2), ("subscribe", 1), ("work", 0)],
    static=True,
    auto_commit=True,
    final=9,
)
def test_a_member_keeps_its_promises_and_recovers(
    story: list[Op], static: bool, auto_commit: bool, final: int
) -> None:
    live(MemberHarness(static=static, auto_commit=auto_commit), story, final)


@pytest.mark.parametrize("block", range(10))
def test_long_lives(block: int) -> None:
    """The same with 200 events each; every seed draws how often each kind of event happens, so
    that some lives see much of one kind (swarm testing)."""
    reached: set[MemberState] = set()
    for seed in range(block * 40, block * 40 + 40):
        rng = random.Random(seed)
        weights = [rng.choice((0, 1, 1, 5)) for _ in OPS]
        drawn = rng.choices(OPS, [w + 0.01 for w in weights], k=200)
        story = [*LIFE, *[(op, rng.randrange(64)) for op in drawn]]
        harness = MemberHarness(static=rng.random() < 0.3, auto_commit=rng.random() < 0.5)
        try:
            reached |= live(harness, story, rng.randrange(64))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {story}") from error
    assert reached >= set(MemberState) - {MemberState.FATAL}


def live(harness: MemberHarness, story: list[Op], final: int) -> set[MemberState]:
    """Play a story, then heal the network; returns the states that were seen."""
    seen: set[MemberState] = set()
    for op, number in story:
        if harness.core.state is MemberState.FATAL:
            break
        perform(harness, op, number)
        seen.add(harness.core.state)
    harness.check_rate()
    if harness.core.state is MemberState.FATAL:
        # Only a static member dies here: UNRELEASED_INSTANCE_ID of somebody else's session.
        assert harness.static
        return seen
    heal(harness, final)
    return seen


def heal(harness: MemberHarness, final: int) -> None:
    """Events stop; a healthy coordinator and application remain."""
    harness.nameless.clear()
    harness.coordinator.retarget(target_of(final))
    harness.sent_at.clear()
    harness.feed(Subscribed(frozenset({"topic-1"})))
    harness.feed(Polled(waiting=True))
    if harness.static:
        # A session of its own that nobody told the coordinator about expires.
        harness.run_healthy(5_000)
        if harness.core.state is MemberState.JOINING:
            harness.coordinator.forget()
    harness.run_healthy(45_000)
    assert harness.core.state is MemberState.STABLE, harness.core.snapshot()
    assert {(p.topic_id, p.partition) for p in harness.core.assigned} == target_of(final)
    assert set(harness.core.fetchable) == set(harness.core.assigned) == harness.app
    assert harness.core.commit_epoch == harness.coordinator.epoch
    harness.check_rate()
    harness.sent_at.clear()
    before = harness.wakeups
    harness.run_healthy(60_000)
    assert len(harness.sent_at) in (11, 12, 13), "one heartbeat an interval, no more"
    assert harness.wakeups - before <= 30, "nothing to do, and still awake"
    assert harness.core.state is MemberState.STABLE
