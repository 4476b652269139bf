"""A worker's membership in a group of Kafka's classic Connect protocol: JoinGroup, SyncGroup,
Heartbeat, LeaveGroup. The group may include Java workers.

Theory of operation
-------------------
As in ``MemberCore``: ``step`` applies the event, then *settles*: it does whatever has become
possible or due, until nothing is left. Everything that takes time is a command; its answer comes
back as an event with the same number. An answer whose request is not open any more is ignored.

At most one request waits at the coordinator (JoinGroup or SyncGroup), besides one heartbeat. A
round begins when the coordinator announces it, or because this worker wants one: it had to stop
items, which other workers get in the next round (the rule of the incremental cooperative protocol);
the delay announced by an assignment is over; its tasks were reconfigured; or its driver requests
it. A worker stops the items it has to stop before it joins.

A worker that receives nothing from the coordinator for the length of its session stops everything,
as on the new protocol: it is worse for an item to run twice than not at all.

The core receives events and calls its parts: ``Rounds`` (JoinGroup, SyncGroup and the consequences
of an assignment), ``ClassicHeartbeat``, ``ClassicLeave``, ``HeldItems`` (the running items),
``Leading``, and ``CoordinatorLink``, which consumers use as well. ``ClassicMember`` has the state
shared by the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.connect.core import _classic_messages as ms
from kip848_client.connect.core import _classic_states as st
from kip848_client.connect.core._classic_heartbeat import ClassicHeartbeat
from kip848_client.connect.core._classic_items import HeldItems
from kip848_client.connect.core._classic_leading import Leading
from kip848_client.connect.core._classic_leave import ClassicLeave
from kip848_client.connect.core._classic_member import ClassicMember
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._classic_rounds import Rounds
from kip848_client.connect.core._classic_states import ClassicState
from kip848_client.connect.core._core import Output
from kip848_client.connect.core._error_rules import (
    Reaction,
    classic_error,
    is_at_work,
    reaction,
)
from kip848_client.connect.core._events import (
    ConfigurationRead,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    RebalanceRequested,
    WorkerEvent,
)
from kip848_client.connect.core._model import AssignedItem
from kip848_client.core.connect import ConnectProtocol
from kip848_client.core.member import (
    CoordinatorFound,
    CoordinatorLink,
    CoordinatorLookupFailed,
    CoordinatorLost,
    Event,
    Fenced,
    LeaveRequested,
    MemberState,
    Report,
    Severity,
    TimerFired,
    lookup_error,
)
from kip848_client.core.outside import from_outside
from kip848_client.core.types import Wait
from kip848_client.errors import Kip848Error, LocalProtocolError, RemoteProtocolError

__all__ = ["ClassicWorkerCore"]

_PASSES_MAX: Final = 50


class ClassicWorkerCore:
    """A worker's membership in a classic group; driven like ``WorkerCore``.

    Args:
        settings: The settings of the membership.
        jitter: Takes a pause in milliseconds, and returns it varied by up to 20 %.
    """

    def __init__(self, settings: ClassicWorkerSettings, jitter: Callable[[int], int]) -> None:
        jitter = from_outside(jitter)
        self._settings = settings
        self._member = member = ClassicMember(settings, jitter)
        self._link = CoordinatorLink(settings.of_link(), jitter, member.emit)
        self._items = HeldItems(member.emit)
        self._leading = Leading(settings)
        self._rounds = Rounds(settings, member, self._items, self._leading)
        self._beat = ClassicHeartbeat(settings, jitter, member)
        self._leave = ClassicLeave(
            settings, member, self._link, self._items, self._rounds, self._beat
        )

    # -- queries of the driver ---------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether a final leave has completed: no more commands will follow."""
        return self._leave.closed

    @property
    def member_id(self) -> str:
        """The id that the coordinator assigned; empty before."""
        return self._member.member_id

    @property
    def state(self) -> MemberState:
        """The state of the membership."""
        return self._member.state.seen_as

    @property
    def member_epoch(self) -> int | None:
        """The generation, ``None`` if not in the group."""
        return self._member.generation if self._member.generation >= 0 else None

    @property
    def assigned(self) -> tuple[AssignedItem, ...]:
        """The items that this worker runs, or is about to stop."""
        return self._items.assigned

    @property
    def leader(self) -> str:
        """The member that computed the newest assignment; empty before the first."""
        return self._rounds.assignment.leader

    @property
    def leader_url(self) -> str:
        """The URL of that member."""
        return self._rounds.assignment.leader_url

    @property
    def waits(self) -> Mapping[str, Wait]:
        """What the worker waits for: the coordinator.

        A coordinator that holds back the answer to JoinGroup or SyncGroup until the other workers
        have sent theirs is working, and does not count as a wait.
        """
        is_in_round = self._rounds.is_waiting and not self._link.is_in_trouble
        return {} if is_in_round else self._link.waits()

    @property
    def heartbeat_interval_ms(self) -> int:
        """How often a heartbeat is sent."""
        return self._settings.heartbeat_interval_ms

    def remaining_delay_ms(self, now_ms: int) -> int:
        """Get the rest of the newest assignment's delay. Raises nothing.

        Args:
            now_ms: The driver's clock, in milliseconds.

        Returns:
            Milliseconds; 0 for no delay.
        """
        return self._rounds.remaining_delay_ms(now_ms)

    @property
    def connect_protocol(self) -> ConnectProtocol:
        """The embedded protocol that the group has agreed on."""
        return self._rounds.protocol

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if no other event comes first; ``None`` for never."""
        member, link, leave, rounds = self._member, self._link, self._leave, self._rounds
        times = [leave.deadline_ms, rounds.due_ms]
        if member.state in st.TALKING:
            times += [link.next_lookup_ms(), link.report_due_ms()]
        if link.known and self._beat.may_be_sent():
            times.append(self._beat.due_ms)
        if link.known and (rounds.may_join or leave.may_be_sent):
            times.append(member.not_before_ms)
        if member.is_in_group:
            times.append(self._session_ends_ms())
        return min((time for time in times if time is not None), default=None)

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: Event | WorkerEvent) -> tuple[Output, ...]:
        """Apply one event.

        Args:
            now_ms: The driver's clock, in milliseconds. It never runs backwards: an earlier time is
                replaced by the last one.
            event: What happened.

        Returns:
            The commands, in order.

        Raises:
            LocalProtocolError: The state does not allow the event, or the event answers a request
                that was never made. Nothing has changed then.
        """
        self._refuse_if_illegal(event)
        member = self._member
        member.now_ms = max(member.now_ms, now_ms)
        member.out.clear()
        if not isinstance(event, ms.ClassicAnswer):  # an answer may show that the session is alive
            self._end_session()
        self._take(event)
        self._settle()
        return tuple(member.out)

    def _refuse_if_illegal(self, event: Event | WorkerEvent) -> None:
        state = self._member.state
        match event:
            case JoinRequested() if self.closed or state is not ClassicState.UNSUBSCRIBED:
                raise LocalProtocolError(f"a worker that is {state.value} cannot join")
            case LeaveRequested() if self.closed:
                raise LocalProtocolError("the worker is closed already")
            case CoordinatorFound() | CoordinatorLookupFailed():
                number, issued = event.lookup, self._link.lookups
            case ms.ClassicAnswer():
                number, issued = event.attempt, self._member.attempts
            case ItemsStopped() | ItemsStarted():
                number, issued = event.plan, self._items.plans
            case (
                JoinRequested()
                | LeaveRequested()
                | ConfigurationRead()
                | RebalanceRequested()
                | CoordinatorLost()
                | TimerFired()
            ):
                return
            case _:
                raise LocalProtocolError(f"a worker of a classic group knows nothing of {event!r}")
        if not 0 < number <= issued:
            name = type(event).__name__
            raise LocalProtocolError(f"{name} answers {number}, and only {issued} were asked")

    def _take(self, event: Event | WorkerEvent) -> None:
        match event:
            case JoinRequested():
                self._rounds.know(event.configuration)
                self._rounds.join("the worker is ready")
            case ConfigurationRead():
                self._rounds.know(event.configuration)
            case RebalanceRequested() if self._member.is_in_group:
                self._rounds.want(f"reason {event.reason}")
            case ItemsStopped():
                self._items.stopped(event.plan)
            case LeaveRequested():
                self._leave.request(event)
            case CoordinatorLost():
                self._lose_coordinator(event.why)
            case CoordinatorFound() | CoordinatorLookupFailed():
                self._on_lookup(event)
            case ms.ClassicAnswer():
                self._on_answer(event)
            case _:
                pass  # ItemsStarted, TimerFired: settling finds what is due

    def _settle(self) -> None:
        """Do everything that is possible. Each action makes itself impossible, so this ends."""
        passes, member, link = 0, self._member, self._link
        while (
            self._end_session()
            or self._give_up_leading()
            or self._leave.come_back()
            or self._rounds.end_delay()
            or self._go_on()
            or self._leave.give_up()
            or self._leave.send()
            or (member.state in st.TALKING and link.look_up(member.now_ms))
            or self._send_join()
            or self._send_heartbeat()
        ):
            passes += 1
            assert passes < _PASSES_MAX, "the worker does not settle"
        if member.state in st.TALKING:
            link.report_silence(member.now_ms, member.state.value)

    # -- actions that are due ----------------------------------------------------------------

    def _go_on(self) -> bool:
        """Continue after everything has stopped, or begin the next round if it is due."""
        member = self._member
        if self._items.is_stopping:
            return False
        match member.state:
            case ClassicState.RECONCILING:
                member.move(st.Stopped, "nothing runs that was to be stopped")
                self._rounds.start()
            case ClassicState.PREPARE_LEAVING:
                self._beat.drop()
                member.move(st.CallbacksDone, "nothing runs any more")
            case ClassicState.FENCED:
                self._rounds.join("everything was dropped")
            case ClassicState.STABLE:
                return self._rounds.begin()
            case _:
                return False
        return True

    def _give_up_leading(self) -> bool:
        """The group waits for a leader that lacks a configuration that others know: leave, and let
        one of them lead."""
        due_ms = self._leading.gives_up_ms
        is_due = due_ms is not None and self._member.now_ms >= due_ms
        if self._member.state is not ClassicState.SYNCING or not is_due:
            return False
        self._leave.give_up_leading(self._leading.wanted_offset)
        return True

    def _send_join(self) -> bool:
        may_join = self._rounds.may_join and self._link.known and not self._member.is_pausing
        if may_join:
            self._rounds.send_join()
        return may_join

    def _send_heartbeat(self) -> bool:
        now_ms, beat = self._member.now_ms, self._beat
        if not self._link.known or not beat.may_be_sent() or now_ms < beat.due_ms:
            return False
        self._link.asked(now_ms)
        beat.send()
        return True

    # -- answers -----------------------------------------------------------------------------

    def _on_answer(self, answer: ms.ClassicAnswer) -> None:
        number = answer.attempt
        if self._rounds.take_answer(number):
            self._hear(answer)
            if not self._ends_membership(answer):
                self._on_round_answer(answer)
        elif self._beat.take_answer(number):
            self._hear(answer)
            if not self._ends_membership(answer):
                self._on_heartbeat(answer)
        elif self._leave.take_answer(number):
            self._hear(answer)
            self._leave.answered(answer)

    def _hear(self, answer: ms.ClassicAnswer) -> None:
        """Record whether the coordinator has given a proper answer, or still owes one."""
        match answer:
            case ms.RequestRefused() if is_at_work(answer.code):
                self._link.heard(self._member.now_ms)
            case ms.RequestRefused():
                self._link.failed(str(classic_error(answer.api, answer.code)))
            case ms.RequestLost():
                self._link.failed(answer.why)
            case _:
                pass

    def _ends_membership(self, answer: ms.ClassicAnswer) -> bool:
        """Whether this answer to a JoinGroup, SyncGroup or Heartbeat fails or fences the worker."""
        match answer:
            case ms.RequestFailed():
                self._fail(answer.error)
            case ms.RequestRefused() if reaction(answer.code) is Reaction.FENCE:
                self._fence(classic_error(answer.api, answer.code).name, forget_id=True)
            case ms.RequestRefused() if reaction(answer.code) is Reaction.FATAL:
                self._fail(classic_error(answer.api, answer.code))
            case _:
                return False
        return True

    def _on_round_answer(self, answer: ms.ClassicAnswer) -> None:
        state, now_ms, rounds = self._member.state, self._member.now_ms, self._rounds
        match answer:
            case ms.Joined() if state is ClassicState.JOINING:
                self._link.heard(now_ms)
                try:
                    protocol = ConnectProtocol.of_group_protocol(answer.protocol)
                except ValueError as err:
                    self._fail(RemoteProtocolError(f"JoinGroup: {err}"))
                    return
                self._beat.joined()
                rounds.joined(answer, protocol)
            case ms.Synced() if state is ClassicState.SYNCING:
                self._link.heard(now_ms)
                self._beat.live(rounds.asked_ms)
                rounds.synced(answer.assignment)
            case ms.RequestRefused():
                name = classic_error(answer.api, answer.code).name
                match reaction(answer.code):
                    case Reaction.TAKE_ID if answer.member_id:
                        self._member.member_id = answer.member_id
                    case Reaction.REDISCOVER:
                        self._lose_coordinator(name)
                    case verdict:
                        rounds.refused(name, rejoins=verdict is Reaction.REJOIN)
            case _:
                self._lose_coordinator("the group's round was not answered")

    def _on_heartbeat(self, answer: ms.ClassicAnswer) -> None:
        match answer:
            case ms.HeartbeatTaken():
                self._link.heard(self._member.now_ms)
                self._beat.taken()
            case ms.RequestRefused() if reaction(answer.code) is Reaction.REJOIN:
                name = classic_error(answer.api, answer.code).name
                begins = name == "REBALANCE_IN_PROGRESS"
                if begins:
                    self._beat.taken()
                self._rounds.is_another(name, begins=begins)
            case ms.RequestRefused():
                self._beat.failed()
                if reaction(answer.code) is Reaction.REDISCOVER:
                    self._lose_coordinator(classic_error(answer.api, answer.code).name)
            case _:
                self._beat.failed()
                self._lose_coordinator("a heartbeat was not answered")

    # -- the coordinator ---------------------------------------------------------------------

    def _on_lookup(self, event: CoordinatorFound | CoordinatorLookupFailed) -> None:
        if not self._link.answered(self._member.now_ms, event):
            return
        error = lookup_error(event)
        if error is not None:
            self._member.emit(Report(error, Severity.NOTICE))

    def _lose_coordinator(self, why: str) -> None:
        """The coordinator moved or cannot be reached."""
        self._link.lost(why)
        self._beat.drop()
        self._rounds.lost_coordinator(why)

    def _session_ends_ms(self) -> int | None:
        """``None`` while this worker neither runs items nor waits to start any."""
        items = self._items
        return self._beat.session_ends_ms if items.assigned or items.wait_to_start else None

    def _end_session(self) -> bool:
        """At the end of the session, fence this worker: other workers may run its items by now, and
        it cannot find out."""
        ends_ms = self._session_ends_ms()
        is_due = ends_ms is not None and self._member.now_ms >= ends_ms
        over = self._member.is_in_group and is_due
        if over:
            self._link.lost("the coordinator was silent for the length of a session")
            self._fence("the end of the session", forget_id=False)
        return over

    # -- out of the group --------------------------------------------------------------------

    def _fence(self, cause: str, *, forget_id: bool) -> None:
        member = self._member
        member.emit(Fenced(cause, max(member.generation, 0)))
        self._end_membership()
        if forget_id:
            member.member_id = ""
        if member.state is ClassicState.PREPARE_LEAVING:
            self._leave.end(None)  # it has left already; stops in progress are completed
            return
        member.pause()
        member.move(st.PutOut, f"fenced by {cause}")
        self._items.stop_all(lost=True, last=True)

    def _end_membership(self) -> None:
        self._rounds.end_membership()
        self._beat.drop()

    def _fail(self, error: Kip848Error) -> None:
        self._member.emit(Report(error, Severity.FATAL))
        self._end_membership()
        self._member.move(st.Failed, str(error))
        self._items.stop_all(lost=True, last=True)
        self._leave.complete(error)
