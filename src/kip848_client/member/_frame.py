"""What every part of the member stands on: its variables, its views, and what must hold of them.

``MemberCore`` adds the control flow. Here nothing reacts to anything: a reader who wants to know
what a member *is* reads this file, and one who wants to know what it *does* reads ``_core``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kip848_client._types import JOIN_EPOCH, MemberId
from kip848_client.errors import Kip848Error, LocalProtocolError
from kip848_client.member import _commands as do
from kip848_client.member import _events as ev
from kip848_client.member import _states as st
from kip848_client.member._coordinator import CoordinatorLink
from kip848_client.member._heartbeat import HeartbeatClock, IntentBuilder, Subscription
from kip848_client.member._leave import Leave
from kip848_client.member._model import (
    AssignedPartition,
    MemberSettings,
    MemberSnapshot,
    group_by_topic,
)
from kip848_client.member._names import NameLookup
from kip848_client.member._states import MemberState
from kip848_client.member._work import Bench, Purpose

__all__ = ["MemberFrame", "OpenHeartbeat"]

_EVENT_TYPES: Final = frozenset(
    value for value in vars(ev).values() if isinstance(value, type) and issubclass(value, ev.Event)
) - {ev.Event}
"""The event classes themselves; anything else is refused."""

_WORK_OF: Final[dict[MemberState, tuple[Purpose | None, ...]]] = {
    MemberState.UNSUBSCRIBED: (None,),
    MemberState.JOINING: (None,),
    MemberState.RECONCILING: (None, Purpose.RECONCILE),
    MemberState.ACKNOWLEDGING: (None,),
    MemberState.STABLE: (None,),
    MemberState.FENCED: (Purpose.DROP,),
    MemberState.PREPARE_LEAVING: (Purpose.LEAVE,),
    MemberState.LEAVING: (None,),
    MemberState.STALE: (None, Purpose.DROP),
    MemberState.FATAL: (None, Purpose.DROP),
}
"""Which work for the application may be open in which state."""


@dataclass(frozen=True, slots=True)
class OpenHeartbeat:
    """The heartbeat whose answer counts for the present membership."""

    number: int
    member_epoch: int


class MemberFrame:
    """The variables of a member. All protected names are for ``MemberCore`` alone."""

    def __init__(
        self, settings: MemberSettings, member_id: MemberId, jitter: Callable[[int], int]
    ) -> None:
        if not member_id:
            raise LocalProtocolError("a member needs an id of its own (KIP-1082)")
        self._settings = settings
        self._member_id = member_id
        self._jitter = jitter
        self._now = 0
        self._out: list[do.Command] = []
        self._state = MemberState.UNSUBSCRIBED
        self._epoch = JOIN_EPOCH
        self._told_epoch: int | None = None
        self._link = CoordinatorLink(settings, jitter)
        self._clock = HeartbeatClock(settings, jitter)
        self._fields = IntentBuilder(settings, member_id)
        self._bench = Bench(settings, self._emit)
        self._ledger = self._bench.ledger
        self._names = NameLookup(settings, self._ledger, jitter)
        # heartbeats
        self._attempts = 0
        self._open: OpenHeartbeat | None = None
        self._expedite = False
        self._join_was_sent = False
        self._may_hold_instance = False
        self._fences = 0
        self._unreleased_since_ms: int | None = None
        # the application
        self._subscription: Subscription | None = None
        self._next_subscription: Subscription | None = None
        self._join_wanted = False
        self._polling = False
        self._polled_meanwhile = False
        self._poll_by_ms: int | None = None
        self._retry_on_poll = False
        # the end
        self._leave: Leave | None = None
        self._closed = False
        self._fatal: Kip848Error | None = None
        # bookkeeping
        self._reported_ms: dict[str, int] = {}
        self._stale_answers = 0

    # -- what a driver reads -----------------------------------------------------------------

    @property
    def state(self) -> MemberState:
        """Where the member is."""
        return self._state

    @property
    def member_id(self) -> MemberId:
        """The id that it was given; never changes."""
        return self._member_id

    @property
    def closed(self) -> bool:
        """Whether a final leave has completed: no command will come any more."""
        return self._closed

    @property
    def fatal_error(self) -> Kip848Error | None:
        """Why the member is FATAL, to be raised from every call; else ``None``."""
        return self._fatal

    @property
    def commit_epoch(self) -> int | None:
        """The epoch for commits and offset fetches, ``None`` when not in the group."""
        return self._epoch if self._epoch > 0 and self._state in st.IN_GROUP else None

    @property
    def assigned(self) -> tuple[AssignedPartition, ...]:
        """What the user sees as assigned, sorted by name and number."""
        return self._ledger.describe(self._ledger.assigned)

    @property
    def fetchable(self) -> tuple[AssignedPartition, ...]:
        """The partitions of which records may be handed out now. A driver that makes its fetch set
        equal to this after every step, before it awaits, has done all synchronous duties."""
        return self._ledger.describe(self._ledger.fetchable)

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if nothing happens before; ``None`` for never."""
        return min(self._due_times(), default=None)

    def snapshot(self) -> MemberSnapshot:
        """Everything the member knows, frozen."""
        subscription = self._subscription or Subscription((), None)
        current, target = self._ledger.current, self._ledger.target
        return MemberSnapshot(
            state=self._state,
            member_id=self._member_id,
            member_epoch=self._epoch,
            subscribed_topics=subscription.topics,
            subscribed_regex=subscription.pattern,
            assigned=self.assigned,
            current=None if current is None else group_by_topic(current.partitions),
            target=None if target is None else group_by_topic(target.partitions),
            unresolved=self._ledger.unresolved(),
            coordinator_known=self._link.known,
            coordinator_silent_ms=self._link.silent_ms(self._now),
            heartbeat_interval_ms=self._clock.interval_ms,
            consecutive_failures=self._clock.failures,
            consecutive_fences=self._fences,
            stale_answers=self._stale_answers,
            closed=self._closed,
        )

    # -- what handlers use -------------------------------------------------------------------

    def _emit(self, command: do.Command) -> None:
        self._out.append(command)

    def _move(self, trigger: type[st.Trigger], why: str) -> None:
        old = self._state
        self._state = st.advance(old, trigger)
        if self._state is not old:
            self._emit(do.Announce(old, self._state, why))
        if self._state not in st.HEARTBEATING:
            self._link.hush()

    def _set_epoch(self, epoch: int) -> None:
        """Adopt ``epoch``; committers hear of it only when it changes for them."""
        self._epoch = epoch
        told = epoch if epoch > 0 else None
        if told != self._told_epoch:
            self._told_epoch = told
            self._emit(do.EpochChanged(told))

    def _is_urgent(self) -> bool:
        immediate = self._state in (MemberState.JOINING, MemberState.ACKNOWLEDGING)
        return immediate or self._expedite

    # -- what is allowed, when it is due, and what holds -------------------------------------

    def _vet(self, event: ev.Event) -> None:
        """Refuse, before anything changes."""
        match event:
            case ev.Subscribed() if self._state is MemberState.FATAL:
                raise LocalProtocolError(f"the member is FATAL ({self._fatal}); close it")
            case ev.Subscribed() if self._closed or (self._leave and self._leave.final):
                raise LocalProtocolError("the member is closing or closed")
            case ev.LeaveRequested() if self._closed:
                raise LocalProtocolError("the member is closed already")
            case ev.CoordinatorFound() | ev.CoordinatorLookupFailed():
                number, issued = event.lookup, self._link.lookups
            case ev.HeartbeatAnswered() | ev.HeartbeatLost() | ev.HeartbeatFailed():
                number, issued = event.attempt, self._attempts
            case ev.TopicsResolved():
                number, issued = event.query, self._names.queries
            case ev.OffsetsFlushed() | ev.PartitionsReleased() | ev.PartitionsStarted():
                number, issued = event.plan, self._bench.issued
            case _ if type(event) not in _EVENT_TYPES:
                raise LocalProtocolError(f"not an event of a member: {event!r}")
            case _:
                return
        if not 0 < number <= issued:
            name = type(event).__name__
            raise LocalProtocolError(f"{name} answers {number}, and only {issued} were asked")

    def _due_times(self) -> list[int]:
        state, link, leave = self._state, self._link, self._leave
        times = [self._bench.flush_by_ms]
        if state in st.HEARTBEATING:
            times += [link.next_lookup_ms(), link.report_due_ms()]
        if state in st.TAKES_ASSIGNMENT:
            times.append(self._names.due_ms())
            if link.known:
                times.append(self._poll_by_ms)
        if link.known and state in st.IN_GROUP and self._open is None:
            times.append(self._clock.next_ms(self._now, urgent=self._is_urgent()))
        if leave is not None:
            leaving = state is MemberState.LEAVING
            known = link.known
            times.append(leave.due_ms(coordinator_known=known) if leaving else leave.deadline_ms)
        return [time for time in times if time is not None]

    def _check(self) -> None:
        """What holds after every step."""
        ledger, state, purpose = self._ledger, self._state, self._bench.purpose
        if self._epoch < 0:
            assert state in (MemberState.LEAVING, MemberState.UNSUBSCRIBED, MemberState.STALE)
        if state in (MemberState.RECONCILING, MemberState.ACKNOWLEDGING, MemberState.STABLE):
            assert self._epoch > 0, "in the group without an epoch"
        if state not in st.IN_GROUP:
            assert self._open is None, "a heartbeat is open outside of the group"
            assert ledger.current is None, "something is owned outside of the group"
            assert not ledger.fetchable, "something is fetched outside of the group"
        assert self.commit_epoch == self._told_epoch, "committers have the wrong epoch"
        assert (state is not MemberState.STABLE) or ledger.is_met, "STABLE and not done"
        assert ledger.fetchable <= ledger.assigned, "fetching what is not assigned"
        assert not ledger.fetchable & ledger.releasing, "fetching what is on its way out"
        assert purpose in _WORK_OF[state], f"{purpose} in {state}"
        if purpose is None and ledger.settled and ledger.current is not None:
            assert ledger.assigned == ledger.current.partitions, "owned is not what is assigned"
        deadline = self.deadline_ms
        assert deadline is None or deadline > self._now, "a deadline in the past would spin"
        assert deadline is not None or state not in st.HEARTBEATING, "nothing can make progress"
