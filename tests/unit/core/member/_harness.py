"""Plays the driver and the coordinator for one member, by hand and in virtual time.

``MemberHarness`` feeds events and sorts the commands of each step by kind. Helpers bring a member
into each of its ten states by a legal history, so that tests start where they matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict, TypeVar, Unpack

from kip848_client.core.member import (
    AssignedPartition,
    Command,
    CoordinatorFound,
    Event,
    FindCoordinator,
    FlushOffsets,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatIntent,
    HeartbeatLost,
    HeartbeatRefused,
    LeaveMode,
    LeaveRequested,
    LossReason,
    MemberCore,
    MemberSettings,
    MemberState,
    OfferedAssignor,
    OffsetsFlushed,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    ReleasePartitions,
    Report,
    ResolveTopics,
    SendHeartbeat,
    StartPartitions,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.core.types import MemberId, TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode

__all__ = [
    "MEMBER",
    "NAMES",
    "REFUSALS",
    "MemberHarness",
    "Settings",
    "T",
    "U",
    "assignment",
    "exact",
    "in_state",
    "part",
]

T = TopicId(b"t" * 16)
U = TopicId(b"u" * 16)
NAMES: Mapping[TopicId, str] = {T: "t", U: "u"}
MEMBER = MemberId("member-1")
C = TypeVar("C", bound=Command)

REFUSALS: Mapping[int, str] = {
    code: code.name
    for code in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.UNSUPPORTED_ASSIGNOR,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.INVALID_REGULAR_EXPRESSION,
    )
}


def exact(pause_ms: int) -> int:
    """A jitter that varies nothing, so that tests can name the millisecond."""
    return pause_ms


def part(topic_id: TopicId, *partitions: int) -> tuple[AssignedPartition, ...]:
    """Partitions of one topic as commands name them."""
    return tuple(
        AssignedPartition(topic_id, TopicPartition(NAMES[topic_id], p)) for p in partitions
    )


def assignment(**topics: list[int]) -> tuple[tuple[TopicId, tuple[int, ...]], ...]:
    """``assignment(t=[0, 1])`` as the wire would group it."""
    ids = {"t": T, "u": U}
    return tuple((ids[name], tuple(numbers)) for name, numbers in topics.items())


class Settings(TypedDict, total=False):
    """The fields of MemberSettings that tests set."""

    instance_id: str | None
    rack_id: str | None
    server_assignor: str | None
    max_poll_interval_ms: int
    auto_commit: bool
    unreleased_instance_limit_ms: int
    session_timeout_ms: int | None
    extra_heartbeats: bool
    client_assignors: tuple[OfferedAssignor, ...]


class MemberHarness:
    """One member and everything it asked for."""

    def __init__(
        self,
        jitter: Callable[[int], int] = exact,
        now_ms: int = 1_000,
        **settings: Unpack[Settings],
    ) -> None:
        self.settings = MemberSettings(**settings)
        self.core = MemberCore(self.settings, MEMBER, jitter)
        self.now = now_ms
        self.history: list[Command] = []
        self.last: tuple[Command, ...] = ()
        self.names: dict[TopicId, str] = dict(NAMES)
        self.auto_names = True
        self.auto_lookup = True

    # -- feeding -----------------------------------------------------------------------------

    def feed(self, event: Event, *, after: int = 0) -> tuple[Command, ...]:
        """Deliver ``event`` after ``after`` ms (timers fire meanwhile); look-ups are answered at
        once unless switched off."""
        if after:
            self.advance(after)
        out = list(self.core.step(self.now, event))
        queue = list(out)
        while queue:
            command = queue.pop(0)
            more: tuple[Command, ...] = ()
            if isinstance(command, FindCoordinator) and self.auto_lookup:
                more = self.core.step(self.now, CoordinatorFound(command.lookup))
            elif isinstance(command, ResolveTopics) and self.auto_names:
                found = {i: self.names[i] for i in command.ids if i in self.names}
                more = self.core.step(self.now, TopicsResolved(command.query, found))
            out += more
            queue += more
        self.last = tuple(out)
        self.history += out
        return self.last

    def advance(self, ms: int) -> tuple[Command, ...]:
        """Let time pass: the timer fires whenever the member asked for it."""
        end = self.now + ms
        out: list[Command] = []
        while (deadline := self.core.deadline_ms) is not None and deadline <= end:
            assert deadline > self.now, "the member asks to be woken in the past"
            self.now = deadline
            out += self.feed(TimerFired())
        self.now = end
        self.last = tuple(out)
        return self.last

    def accept(
        self,
        epoch: int,
        assigned: tuple[tuple[TopicId, tuple[int, ...]], ...] | None = None,
        *,
        interval: int = 5_000,
        after: int = 0,
        member_id: str | None = MEMBER,
    ) -> tuple[Command, ...]:
        """The broker accepts the newest heartbeat."""
        who = None if member_id is None else MemberId(member_id)
        outcome = HeartbeatAccepted(who, epoch, interval, assigned)
        return self.feed(HeartbeatAnswered(self.attempt, outcome), after=after)

    def refuse(
        self, code: int, message: str | None = None, *, after: int = 0
    ) -> tuple[Command, ...]:
        """The broker refuses the newest heartbeat."""
        outcome = HeartbeatRefused(code, REFUSALS.get(code, f"UNKNOWN_ERROR_{code}"), message)
        return self.feed(HeartbeatAnswered(self.attempt, outcome), after=after)

    def lose(
        self, reason: LossReason = LossReason.DISCONNECTED, *, after: int = 0
    ) -> tuple[Command, ...]:
        """No answer to the newest heartbeat."""
        return self.feed(HeartbeatLost(self.attempt, reason), after=after)

    def subscribe(self, *topics: str, pattern: str | None = None) -> tuple[Command, ...]:
        return self.feed(Subscribed(frozenset(topics), pattern))

    def leave(
        self,
        mode: LeaveMode = LeaveMode.DEFAULT,
        *,
        within: int = 30_000,
        flush: bool = False,
        final: bool = False,
    ) -> tuple[Command, ...]:
        return self.feed(LeaveRequested(mode, self.now + within, flush, final))

    # -- answering the newest work -----------------------------------------------------------

    def flushed(self) -> tuple[Command, ...]:
        return self.feed(OffsetsFlushed(self.newest(FlushOffsets).plan))

    def released(self, *, failed: bool = False) -> tuple[Command, ...]:
        return self.feed(PartitionsReleased(self.newest(ReleasePartitions).plan, failed))

    def started(self, *, failed: bool = False) -> tuple[Command, ...]:
        return self.feed(PartitionsStarted(self.newest(StartPartitions).plan, failed))

    # -- looking -----------------------------------------------------------------------------

    def newest(self, kind: type[C]) -> C:
        """The newest command of a kind, ever."""
        return next(c for c in reversed(self.history) if isinstance(c, kind))

    def all(self, kind: type[C]) -> list[C]:
        """All commands of a kind, ever."""
        return [c for c in self.history if isinstance(c, kind)]

    def out(self, kind: type[C]) -> list[C]:
        """The commands of a kind of the last feeding."""
        return [c for c in self.last if isinstance(c, kind)]

    @property
    def attempt(self) -> int:
        return self.newest(SendHeartbeat).attempt

    @property
    def intent(self) -> HeartbeatIntent:
        return self.newest(SendHeartbeat).intent

    @property
    def heartbeats(self) -> list[HeartbeatIntent]:
        """The heartbeats of the last feeding."""
        return [c.intent for c in self.out(SendHeartbeat)]

    @property
    def errors(self) -> list[str]:
        """The classes of everything reported so far."""
        return [type(r.error).__name__ for r in self.all(Report)]

    @property
    def state(self) -> MemberState:
        return self.core.state

    def expect(self, state: MemberState) -> None:
        """Assert the state (a method, so that type checkers do not take it for settled)."""
        assert self.core.state is state, f"{self.core.state} and not {state}: {self.last}"

    # -- histories ---------------------------------------------------------------------------

    def join(self, *topics: str, pattern: str | None = None) -> MemberHarness:
        """To JOINING, with the join request under way."""
        self.subscribe(*(topics or ("t",)), pattern=pattern)
        self.feed(Polled())
        assert self.state is MemberState.JOINING
        return self

    def stable(self, *, epoch: int = 1, t: list[int] | None = None) -> MemberHarness:
        """To STABLE, holding partitions of ``t`` (0, 1, 2 unless told), nothing under way."""
        self.join()
        held = [0, 1, 2] if t is None else t
        self.accept(epoch, assignment(t=held) if held else ())
        self.started()
        self.accept(epoch)
        assert self.state is MemberState.STABLE
        return self

    def next_heartbeat(self) -> HeartbeatIntent:
        """Let the interval pass, up to the next heartbeat."""
        before = len(self.all(SendHeartbeat))
        while len(self.all(SendHeartbeat)) == before:
            deadline = self.core.deadline_ms
            assert deadline is not None, "no heartbeat will ever come"
            self.advance(deadline - self.now)
        return self.intent

    def calm(self, *, epoch: int = 1) -> MemberHarness:
        """Let the extra heartbeats pass that follow a change of the assignment; each is answered,
        the last one now."""
        before = self.now
        while self.now - before < self.core.snapshot().heartbeat_interval_ms:
            before = self.now
            self.next_heartbeat()
            self.accept(epoch)
        return self

    def target(self, epoch: int, **topics: list[int]) -> tuple[Command, ...]:
        """The next heartbeat brings a new target."""
        self.next_heartbeat()
        return self.accept(epoch, assignment(**topics))


def in_state(state: MemberState, **settings: Unpack[Settings]) -> MemberHarness:
    """A member that came into ``state`` by a legal history."""
    harness = MemberHarness(**settings)
    match state:
        case MemberState.UNSUBSCRIBED:
            pass
        case MemberState.JOINING:
            harness.join()
        case MemberState.RECONCILING:
            harness.join().accept(1, assignment(t=[0, 1]))
        case MemberState.ACKNOWLEDGING:
            # Seen from outside only while a heartbeat is under way; otherwise it passes at once.
            harness.join().accept(1, assignment(t=[0, 1]))
            harness.next_heartbeat()
            harness.started()
        case MemberState.STABLE:
            harness.stable()
        case MemberState.FENCED:
            harness.stable().next_heartbeat()
            harness.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
        case MemberState.PREPARE_LEAVING:
            harness.stable().leave()
        case MemberState.LEAVING:
            harness.stable().leave()
            harness.released()
        case MemberState.STALE:
            harness.stable().advance(harness.settings.max_poll_interval_ms)
        case MemberState.FATAL:
            harness.join().refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    assert harness.state is state, harness.state
    return harness
