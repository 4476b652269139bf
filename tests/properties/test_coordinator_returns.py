"""A member that joins while its coordinator is away joins soon after it is back, whatever it was
told before: pauses do not add up, and an address that nobody answers at is not believed for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kip848_client.core.member import (
    Command,
    CoordinatorFound,
    CoordinatorLookupFailed,
    Event,
    FindCoordinator,
    ForgetCoordinator,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatLost,
    HeartbeatRefused,
    LossReason,
    MemberCore,
    MemberSettings,
    Polled,
    SendHeartbeat,
    Subscribed,
    TimerFired,
)
from kip848_client.core.types import MemberId
from kip848_client.error_codes import ErrorCode
from tests.support.examples import examples

ROUND_TRIP_MS = 7
REFUSALS = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
Trouble = LossReason | ErrorCode


@dataclass(slots=True)
class World:
    """A cluster without the coordinator until ``back_ms``, and the driver of one member."""

    back_ms: int
    found: list[bool]
    """For each look-up in turn, again and again: does it name a broker, the one that is gone?"""
    troubles: list[Trouble]
    """What becomes of each heartbeat in turn, again and again."""
    longest: bool
    """The jitter: always a fifth more, or none."""
    core: MemberCore = field(init=False)
    now_ms: int = 0
    lookups: int = 0
    heartbeats: int = 0
    address: str | None = None
    joined_ms: int | None = None
    waiting: list[tuple[int, Event, str | None]] = field(
        default_factory=list[tuple[int, Event, str | None]]
    )
    """When which answer arrives, and the address that it brings."""

    def __post_init__(self) -> None:
        self.core = MemberCore(MemberSettings(), MemberId("m"), self._jitter)

    def _jitter(self, pause_ms: int) -> int:
        return pause_ms * 6 // 5 if self.longest else pause_ms

    def play(self, end_ms: int) -> int | None:
        """When the member has joined, ``None`` if not before ``end_ms``."""
        self._feed(Subscribed(frozenset({"t"})))
        self._feed(Polled(waiting=True))
        while self.now_ms < end_ms and self.joined_ms is None:
            timer_ms = self.core.deadline_ms
            answer_ms = min((at_ms for at_ms, _, _ in self.waiting), default=None)
            if answer_ms is None or (timer_ms is not None and timer_ms < answer_ms):
                assert timer_ms is not None, "nothing will ever happen again"
                self.now_ms = max(self.now_ms, timer_ms)
                self._feed(TimerFired())
                continue
            self.now_ms = answer_ms
            place = next(i for i, each in enumerate(self.waiting) if each[0] == answer_ms)
            _, event, address = self.waiting.pop(place)
            self.address = address or self.address
            self._feed(event)
        return self.joined_ms

    def _feed(self, event: Event) -> None:
        if isinstance(event, HeartbeatAnswered) and isinstance(event.outcome, HeartbeatAccepted):
            self.joined_ms = self.now_ms
        for command in self.core.step(self.now_ms, event):
            self._perform(command)

    def _perform(self, command: Command) -> None:
        match command:
            case FindCoordinator(lookup=number):
                self._look_up(number)
            case SendHeartbeat(attempt=number):
                self._heartbeat(number)
            case ForgetCoordinator():
                self.address = None
            case _:
                pass

    def _look_up(self, number: int) -> None:
        if self.address is not None:  # the driver asks nobody for what it knows
            self._later(CoordinatorFound(number), self.address)
        elif self.now_ms >= self.back_ms:
            self._later(CoordinatorFound(number), "new")
        elif self.found[self.lookups % len(self.found)]:
            self._later(CoordinatorFound(number), "old")
        else:
            self._later(CoordinatorLookupFailed(number))
        self.lookups += 1

    def _heartbeat(self, number: int) -> None:
        trouble = self.troubles[self.heartbeats % len(self.troubles)]
        self.heartbeats += 1
        # A broker that was loading is the coordinator itself: it has not gone, it has loaded.
        loads = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS in self.troubles
        if self.address == "new" or (loads and self.now_ms >= self.back_ms):
            accepted = HeartbeatAccepted(MemberId("m"), 1, 5_000, ())
            self._later(HeartbeatAnswered(number, accepted))
        elif isinstance(trouble, LossReason) or self.now_ms >= self.back_ms:
            lost = trouble if isinstance(trouble, LossReason) else LossReason.NOT_SENT
            self._later(HeartbeatLost(number, lost))
        else:
            refused = HeartbeatRefused(trouble, trouble.name, None)
            self._later(HeartbeatAnswered(number, refused))

    def _later(self, event: Event, address: str | None = None) -> None:
        self.waiting.append((self.now_ms + ROUND_TRIP_MS, event, address))


@given(
    back_ms=st.integers(0, 60_000),
    found=st.lists(st.booleans(), min_size=1, max_size=8),
    troubles=st.lists(st.sampled_from([*LossReason, *REFUSALS]), min_size=1, max_size=8),
    longest=st.booleans(),
)
@example(back_ms=30_000, found=[False], troubles=[LossReason.NOT_SENT], longest=True)
@example(back_ms=30_000, found=[True], troubles=[LossReason.NOT_SENT], longest=True)
@settings(max_examples=examples(400))
def test_a_member_joins_soon_after_its_coordinator_is_back(
    back_ms: int, found: list[bool], troubles: list[Trouble], longest: bool
) -> None:
    world = World(back_ms, found, troubles, longest)
    joined_ms = world.play(back_ms + 60_000)
    assert joined_ms is not None, "it asks at the old address for ever"
    longest_pause_ms = MemberSettings().retry_backoff_max_ms * 6 // 5
    # An answer from before, a look-up, a heartbeat: each of them takes a way there and back.
    assert joined_ms - back_ms <= longest_pause_ms + 4 * ROUND_TRIP_MS
    # and it has not asked in a loop meanwhile
    assert world.heartbeats + world.lookups < 30 + 3 * back_ms // 1_000
