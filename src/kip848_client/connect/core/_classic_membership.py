"""Being in a classic group, whatever its rounds are about: the coordinator, heartbeats, being put
out, leaving. ``_classic_core`` adds the rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.connect.core import _classic_messages as ms
from kip848_client.connect.core import _classic_states as st
from kip848_client.connect.core._classic_errors import (
    ClassicVerdict,
    classic_error,
    is_at_work,
    judge,
)
from kip848_client.connect.core._classic_heartbeat import ClassicHeartbeat
from kip848_client.connect.core._classic_items import HeldItems
from kip848_client.connect.core._classic_leading import Leading
from kip848_client.connect.core._classic_leave import ClassicLeave
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._classic_states import ClassicState
from kip848_client.connect.core._commands import ReadConfiguration
from kip848_client.connect.core._core import Output
from kip848_client.connect.core._model import AssignedItem, Configuration
from kip848_client.core.backoff import backoff_ms
from kip848_client.core.connect import ConnectProtocol, WorkerAssignment
from kip848_client.core.member import (
    Announce,
    CoordinatorFound,
    CoordinatorLookupFailed,
    Fenced,
    LeaveCompleted,
    LeaveRequested,
    MemberState,
    Report,
    Severity,
)
from kip848_client.core.member._coordinator import CoordinatorLink
from kip848_client.core.member._policy import to_tell
from kip848_client.core.types import Wait
from kip848_client.errors import Kip848Error, LocalProtocolError

__all__ = ["ClassicMembership"]

_PASSES_MAX: Final = 50
_JOIN_GRACE_MS: Final = 5_000
"""What a JoinGroup gets beyond the rebalance timeout."""


class ClassicMembership:
    """What ``ClassicWorkerCore`` begins with."""

    def __init__(self, settings: ClassicWorkerSettings, jitter: Callable[[int], int]) -> None:
        self.closed = False
        """Whether a final leave has completed: no command will come any more."""
        self._settings = settings
        self._jitter = jitter
        self._now = 0
        self._out: list[Output] = []
        self._state = ClassicState.UNSUBSCRIBED
        self._link = CoordinatorLink(settings.of_link(), jitter, self._emit)
        self._items = HeldItems(self._emit)
        self._leading = Leading(settings)
        self._beat = ClassicHeartbeat(settings, jitter)
        self._leave = ClassicLeave()
        self._configuration = Configuration()
        self._said = WorkerAssignment()
        """The newest assignment."""
        self._protocol = settings.connect_protocol
        """The embedded protocol that the group agreed on last."""
        self._member_id = ""
        self._generation = -1
        """Of the newest answer to JoinGroup; -1 when out of the group."""
        self._completed = -1
        """The newest generation of which the assignment came."""
        self._attempts = 0
        self._asking: ms.WaitingRequest | None = None
        """What waits at the coordinator."""
        self._asked_ms = 0
        self._failures = 0
        """Rounds in a row that came to nothing."""
        self._not_before_ms = 0
        """No JoinGroup and no LeaveGroup before."""
        self._wants_round = ""
        """Why this worker wants another round; empty if it does not."""
        self._delay_ends_ms: int | None = None

    # -- what a driver reads -----------------------------------------------------------------

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave; empty before."""
        return self._member_id

    @property
    def state(self) -> MemberState:
        """Where the member is."""
        return self._state.seen_as

    @property
    def member_epoch(self) -> int | None:
        """The generation, ``None`` when not in the group."""
        return self._generation if self._generation >= 0 else None

    @property
    def assigned(self) -> tuple[AssignedItem, ...]:
        """What this worker runs, or is about to stop."""
        return self._items.assigned

    @property
    def leader(self) -> str:
        """The member that computed the newest assignment; empty before the first."""
        return self._said.leader

    @property
    def leader_url(self) -> str:
        """Where to reach it."""
        return self._said.leader_url

    @property
    def waits(self) -> Mapping[str, Wait]:
        """What is waited for: the coordinator. One that holds a JoinGroup or SyncGroup until the
        other workers have sent theirs does its work."""
        is_in_round = self._asking is not None and not self._link.is_in_trouble
        return {} if is_in_round else self._link.waits()

    def remaining_delay_ms(self, now_ms: int) -> int:
        """What is left of the delay that the newest assignment announced; 0 for none."""
        return 0 if self._delay_ends_ms is None else max(0, self._delay_ends_ms - now_ms)

    @property
    def connect_protocol(self) -> ConnectProtocol:
        """The embedded protocol that the group has agreed on."""
        return self._protocol

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if nothing happens before; ``None`` for never."""
        times: list[int | None] = [self._leave.deadline_ms]
        state, known = self._state, self._link.known
        if state in st.TALKING:
            times += [self._link.next_lookup_ms(), self._link.report_due_ms()]
        if known and self._may_beat():
            times.append(self._beat.due_ms)
        if known and self._may_ask():
            times.append(self._not_before_ms)
        if state in st.IN_GROUP:
            times.append(self._session_ends_ms())
        match state:
            case ClassicState.SYNCING:
                times.append(self._leading.gives_up_ms)
            case ClassicState.STABLE:
                times += [self._delay_ends_ms, self._not_before_ms if self._wants_round else None]
            case ClassicState.STALE if not self._items.is_stopping:
                times.append(self._leave.back_ms)
            case _:
                pass
        return min((time for time in times if time is not None), default=None)

    # -- rounds, as far as they begin again ----------------------------------------------------

    def _join(self, why: str) -> None:
        self._asking = None
        self._leading.drop()
        self._move(st.JoinsAgain, why)

    def _want_round(self, why: str) -> None:
        self._wants_round = self._wants_round or why

    def _again(self, why: str) -> None:
        """Join again, after a pause that grows."""
        self._pause()
        self._want_round(why)
        self._join(why)

    def _may_ask(self) -> bool:
        if self._state is ClassicState.JOINING:
            return self._asking is None
        return self._state is ClassicState.LEAVING and self._leave.open is None

    # -- heartbeats ----------------------------------------------------------------------------

    def _on_heartbeat(self, answer: ms.ClassicAnswer) -> None:
        self._beat.answered()
        self._hear(answer)
        match answer:
            case ms.HeartbeatTaken():
                self._link.heard(self._now)
                self._beat.taken()
            case ms.RequestRefused():
                self._on_heartbeat_refused(answer)
            case ms.RequestFailed():
                self._fail(answer.error)
            case _:
                self._beat.failed(self._now)
                self._lose_coordinator("a heartbeat was not answered")

    def _hear(self, answer: ms.ClassicAnswer) -> None:
        """A coordinator that does its work has answered; else it goes on owing an answer."""
        match answer:
            case ms.RequestRefused() if is_at_work(answer.code):
                self._link.heard(self._now)
            case ms.RequestRefused():
                self._link.failed(str(classic_error(answer.api, answer.code)))
            case ms.RequestLost():
                self._link.failed(answer.why)
            case _:
                pass

    def _on_heartbeat_refused(self, refused: ms.RequestRefused) -> None:
        error = classic_error(refused.api, refused.code)
        match judge(refused.code):
            case ClassicVerdict.FENCE:
                self._fence(error.name, forget_id=True)
            case ClassicVerdict.FATAL:
                self._fail(error)
            case ClassicVerdict.REDISCOVER:
                self._beat.failed(self._now)
                self._lose_coordinator(error.name)
            case ClassicVerdict.REJOIN:
                self._on_other_round(error.name)
            case _:
                self._beat.failed(self._now)

    def _on_other_round(self, cause: str) -> None:
        """The group is in another round than the one that the heartbeat was of."""
        begins = cause == "REBALANCE_IN_PROGRESS"
        if begins:
            self._beat.taken()
        if self._state in (ClassicState.STABLE, ClassicState.RECONCILING):
            self._want_round(cause)
        elif self._state is ClassicState.SYNCING and begins:
            self._want_round(cause)  # whatever SyncGroup is answered, if it is
            self._join(cause)
        # Else the answer to what it asked is on its way, and says more.

    # -- the coordinator ---------------------------------------------------------------------

    def _on_lookup(self, event: CoordinatorFound | CoordinatorLookupFailed) -> None:
        if not self._link.answered(self._now, event):
            return
        error = to_tell(event.error) if isinstance(event, CoordinatorLookupFailed) else None
        if error is not None:
            self._emit(Report(error, Severity.NOTICE))

    def _lose_coordinator(self, why: str) -> None:
        """It moved or cannot be reached: the round of this worker, if it has one open, begins
        again at the next one."""
        self._link.lost(why)
        self._beat.drop()
        if self._state is ClassicState.SYNCING:
            self._again(why)
        elif self._state is ClassicState.JOINING:
            self._asking = None
            self._want_round(why)
            self._pause()

    def _pause(self) -> None:
        settings = self._settings
        first, cap = settings.retry_backoff_ms, settings.retry_backoff_max_ms
        self._not_before_ms = self._now + backoff_ms(self._failures, first, cap, self._jitter)
        self._failures += 1

    def _may_beat(self) -> bool:
        is_member = self._generation >= 0 and self._state in st.HEARTBEATING
        return is_member and self._beat.open is None

    def _send_heartbeat(self) -> bool:
        if not self._link.known or not self._may_beat() or self._now < self._beat.due_ms:
            return False
        self._link.asked(self._now)
        number = self._number()
        self._emit(self._beat.send(self._now, number, self._member_id, self._generation))
        return True

    def _session_ends_ms(self) -> int | None:
        """``None`` while this worker neither runs an item nor waits to start one."""
        items = self._items
        return self._beat.session_ends_ms if items.assigned or items.wait_to_start else None

    def _end_session(self) -> bool:
        """Others may have what runs here by now, and nobody can tell us."""
        ends_ms = self._session_ends_ms()
        over = self._state in st.IN_GROUP and ends_ms is not None and self._now >= ends_ms
        if over:
            self._link.lost("the coordinator was silent for the length of a session")
            self._fence("the end of the session", forget_id=False)
        return over

    # -- out of the group --------------------------------------------------------------------

    def _fence(self, cause: str, *, forget_id: bool) -> None:
        self._emit(Fenced(cause, max(self._generation, 0)))
        self._end_membership()
        if forget_id:
            self._member_id = ""
        if self._state is ClassicState.PREPARE_LEAVING:
            self._end_leave(None)  # it is out; what is being stopped comes to its end
            return
        self._pause()
        self._move(st.PutOut, f"fenced by {cause}")
        self._items.stop_all(lost=True, last=True)

    def _end_membership(self) -> None:
        self._end_round()
        self._beat.drop()
        self._generation = self._completed = -1

    def _end_round(self) -> None:
        self._asking = None
        self._leading.follow()
        self._wants_round = ""
        self._delay_ends_ms = None

    def _fail(self, error: Kip848Error) -> None:
        self._emit(Report(error, Severity.FATAL))
        self._end_membership()
        self._move(st.Failed, str(error))
        self._items.stop_all(lost=True, last=True)
        self._complete_leave(error)

    def _on_leave_requested(self, leave: LeaveRequested) -> None:
        self._leave.requested = leave
        if self._state in st.IN_GROUP:
            self._prepare_leave("the worker leaves")
        elif self._state in (ClassicState.FENCED, ClassicState.STALE):
            self._move(st.LeaveAsked, "the worker leaves")
            self._complete_leave(None)
        elif self._state in (ClassicState.UNSUBSCRIBED, ClassicState.FATAL):
            self._complete_leave(None)
        # PREPARE_LEAVING, LEAVING: it shares the end of the leave that is under way.

    def _prepare_leave(self, why: str) -> None:
        self._end_round()
        self._not_before_ms = self._now
        self._move(st.LeaveAsked, why)
        self._items.stop_all(last=True)

    def _send_leave(self) -> bool:
        if self._state is not ClassicState.LEAVING or not self._may_ask():
            return False
        if not self._member_id or self._leave.stays:
            self._end_leave(None)
            return True
        if not self._link.known or self._now < self._not_before_ms:
            return False
        timeout_ms = self._settings.request_timeout_ms
        self._emit(self._leave.send(self._number(), timeout_ms, self._member_id))
        return True

    def _on_leave_answer(self, answer: ms.ClassicAnswer) -> None:
        self._hear(answer)
        match answer:
            case ms.RequestFailed():
                self._end_leave(answer.error)
            case ms.RequestLost():
                self._link.lost("the leave was not answered")
                self._pause()
            case ms.RequestRefused():
                self._on_leave_refused(answer)
            case _:
                self._end_leave(None)

    def _on_leave_refused(self, refused: ms.RequestRefused) -> None:
        error = classic_error(refused.api, refused.code)
        match judge(refused.code):
            case ClassicVerdict.RETRY:
                self._pause()
            case ClassicVerdict.REDISCOVER:
                self._link.lost(error.name)
                self._pause()
            case ClassicVerdict.FATAL:
                self._end_leave(error)
            case _:
                self._end_leave(None)  # it is not in the group

    def _give_leave_up(self) -> bool:
        """The time for the leave is over: the group finds out when the session ends."""
        deadline_ms = self._leave.deadline_ms
        if deadline_ms is None or self._now < deadline_ms:
            return False
        self._end_leave(LocalProtocolError("the time for the leave is over"))
        return True

    def _end_leave(self, error: Kip848Error | None) -> None:
        self._end_membership()
        self._link.stop_expecting_answers()
        self._member_id = ""
        if self._leave.ends_stale(self._now + self._settings.worker_unsync_backoff_ms):
            self._move(st.GaveUpLeading, "it has left, so that another leads")
            self._emit(ReadConfiguration(self._leave.wanted_offset))
        else:
            self._move(st.LeaveDone, "it has left")
            self._complete_leave(error)

    def _complete_leave(self, error: Kip848Error | None) -> None:
        leave = self._leave.take()
        if leave is not None:
            self.closed = leave.final
            self._emit(LeaveCompleted(error))

    # -- small parts -------------------------------------------------------------------------

    def _ask(self, request: ms.WaitingRequest) -> None:
        self._asking, self._asked_ms = request, self._now
        self._emit(request)

    def _number(self) -> int:
        self._attempts += 1
        return self._attempts

    def _move(self, trigger: type[st.Trigger], why: str) -> None:
        old = self._state
        self._state = st.advance(old, trigger)
        if old.seen_as is not self._state.seen_as:
            self._emit(Announce(old.seen_as, self._state.seen_as, why))

    def _emit(self, command: Output) -> None:
        self._out.append(command)
