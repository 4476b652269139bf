"""The membership of a worker in a group of Connect workers on the classic protocol, as Kafka has
it: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, with Java workers in the same group.

Theory of operation
-------------------
As ``MemberCore``: ``step`` takes the event into the state, then *settles*: does whatever has become
possible or due, until nothing more is. What takes time is a command whose answer comes back as an
event with the same number; the answer to a question that is not open any more is ignored.

One question is open that waits at the coordinator (JoinGroup or SyncGroup), and one heartbeat
beside it. A round begins when the coordinator says so, or because this worker wants one: it had to
stop something, which others get in the next round (the rule of the incremental cooperative
protocol); the delay that an assignment announced is over; its tasks were configured anew; or its
driver says so. Whatever it has to stop is stopped before it joins.

A worker that hears nothing of the coordinator for as long as its session stops everything, as on
the new protocol: an item that runs twice is worse than one that rests.
"""

from __future__ import annotations

from typing import Final

from kip848_client.connect.core import _classic_messages as ms
from kip848_client.connect.core import _classic_states as st
from kip848_client.connect.core._classic_errors import ClassicVerdict, classic_error, judge
from kip848_client.connect.core._classic_membership import ClassicMembership
from kip848_client.connect.core._classic_states import ClassicState
from kip848_client.connect.core._commands import ReadConfiguration
from kip848_client.connect.core._core import Output
from kip848_client.connect.core._events import (
    ConfigurationRead,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    RebalanceRequested,
    WorkerEvent,
)
from kip848_client.connect.core._model import Configuration
from kip848_client.core.connect import ConnectProtocol, Led, WorkerAssignment, WorkerMetadata
from kip848_client.core.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    CoordinatorLost,
    Event,
    LeaveRequested,
    Report,
    Severity,
    TimerFired,
)
from kip848_client.errors import LocalProtocolError, RemoteProtocolError, WireError

__all__ = ["ClassicWorkerCore"]

_PASSES_MAX: Final = 50
_JOIN_GRACE_MS: Final = 5_000
"""What a JoinGroup gets beyond the rebalance timeout."""


class ClassicWorkerCore(ClassicMembership):
    """A worker's membership in a classic group, as pure state; driven as ``WorkerCore`` is.

    ``jitter`` gets a pause in ms and returns it varied by up to 20 %.
    """

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: Event | WorkerEvent) -> tuple[Output, ...]:
        """Take one event; returns what to do, in order.

        Raises ``LocalProtocolError``, with nothing changed, for an event that the state does not
        allow or that answers a question which was never asked.
        """
        self._refuse_if_illegal(event)
        self._now = max(self._now, now_ms)
        self._out = []
        if not isinstance(event, ms.ClassicAnswer):  # which may show that the session is alive
            self._end_session()
        self._take(event)
        self._settle()
        return tuple(self._out)

    def _refuse_if_illegal(self, event: Event | WorkerEvent) -> None:
        match event:
            case JoinRequested() if self.closed or self._state is not ClassicState.UNSUBSCRIBED:
                raise LocalProtocolError(f"a worker that is {self._state.value} cannot join")
            case LeaveRequested() if self.closed:
                raise LocalProtocolError("the worker is closed already")
            case CoordinatorFound() | CoordinatorLookupFailed():
                number, issued = event.lookup, self._link.lookups
            case ms.ClassicAnswer():
                number, issued = event.attempt, self._attempts
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
                self._know(event.configuration)
                self._join("the worker is ready")
            case ConfigurationRead():
                self._know(event.configuration)
            case RebalanceRequested() if self._state in st.IN_GROUP:
                self._want_round(f"reason {event.reason}")
            case ItemsStopped():
                self._items.stopped(event.plan)
            case LeaveRequested():
                self._on_leave_requested(event)
            case CoordinatorLost():
                self._lose_coordinator(event.why)
            case CoordinatorFound() | CoordinatorLookupFailed():
                self._on_lookup(event)
            case ms.ClassicAnswer():
                self._on_answer(event)
            case _:
                pass  # ItemsStarted; TimerFired: what is due is found by settling

    def _settle(self) -> None:
        """Do what can be done. Each action makes itself impossible, so this ends."""
        passes = 0
        while (
            self._end_session()
            or self._give_up_leading()
            or self._come_back()
            or self._end_delay()
            or self._go_on()
            or self._give_leave_up()
            or self._send_leave()
            or (self._state in st.TALKING and self._link.look_up(self._now))
            or self._send_join()
            or self._send_heartbeat()
        ):
            passes += 1
            assert passes < _PASSES_MAX, "the worker does not settle"
        if self._state in st.TALKING:
            self._link.report_silence(self._now, self._state.value)

    # -- rounds ------------------------------------------------------------------------------

    def _go_on(self) -> bool:
        """What waits for the end of stops; and the next round, if it is due."""
        state, items = self._state, self._items
        if items.is_stopping:
            return False
        match state:
            case ClassicState.RECONCILING:
                self._move(st.Stopped, "nothing runs that was to be stopped")
                self._start()
            case ClassicState.PREPARE_LEAVING:
                self._beat.drop()
                self._move(st.CallbacksDone, "nothing runs any more")
            case ClassicState.FENCED:
                self._join("everything was dropped")
            case ClassicState.STABLE:
                return self._begin_round()
            case _:
                return False
        return True

    def _begin_round(self) -> bool:
        items = self._items
        outdated = items.outdated(self._configuration)
        if outdated:
            self._want_round("tasks were configured anew")
            self._move(st.Revokes, "tasks were configured anew")
            items.stop(outdated)
            return True
        if not self._wants_round or self._now < self._not_before_ms:
            return False
        if not self._protocol.is_incremental and items.runs_something:
            self._move(st.Revokes, "on the eager protocol everything stops before a round")
            items.stop_all()
        else:
            self._join(self._wants_round)
        return True

    def _send_join(self) -> bool:
        if self._state is not ClassicState.JOINING or not self._may_ask():
            return False
        if not self._link.known or self._now < self._not_before_ms:
            return False
        settings = self._settings
        self._ask(
            ms.SendJoin(
                self._number(),
                settings.rebalance_timeout_ms + _JOIN_GRACE_MS,
                self._member_id,
                settings.session_timeout_ms,
                settings.rebalance_timeout_ms,
                self._offered(),
                self._wants_round or "the worker joins",
            )
        )
        self._wants_round = ""
        return True

    def _offered(self) -> tuple[tuple[str, bytes], ...]:
        url, offset, runs = self._settings.url, self._configuration.offset, self._items.reported
        return tuple(
            (each.group_protocol, WorkerMetadata(url, offset, runs, each).encode())
            for each in self._settings.connect_protocol.offered
        )

    def _on_joined(self, joined: ms.Joined) -> None:
        try:
            protocol = ConnectProtocol.of_group_protocol(joined.protocol)
        except ValueError as err:
            self._fail(RemoteProtocolError(f"JoinGroup: {err}"))
            return
        self._member_id, self._generation = joined.member_id, joined.generation
        self._beat.joined(self._now)
        self._move(st.MembersKnown, f"generation {joined.generation}")
        turns_eager = self._protocol.is_incremental and not protocol.is_incremental
        self._protocol = protocol
        if turns_eager and self._items.runs_something:
            self._want_round("the group has become eager")
            self._move(st.Revokes, "the group has become eager: everything stops before a round")
            self._items.stop_all()
        elif joined.leader != joined.member_id:
            self._leading.follow()
            self._sync(joined, None)
        else:
            led = self._leading.compute(self._now, joined, self._configuration, self._completed)
            if led is None:
                self._emit(ReadConfiguration(self._leading.wanted_offset))
            else:
                self._sync(joined, led)

    def _sync(self, joined: ms.Joined, led: Led | None) -> None:
        if led is not None:
            for error in self._leading.complaints(led):
                self._emit(Report(error, Severity.NOTICE))
        self._ask(
            ms.SendSync(
                self._number(),
                self._settings.rebalance_timeout_ms + _JOIN_GRACE_MS,
                joined.member_id,
                joined.generation,
                joined.protocol,
                {} if led is None else led.assignments,
            )
        )

    def _on_synced(self, raw: bytes) -> None:
        self._beat.live(self._asked_ms)
        try:
            said = WorkerAssignment.decode(raw)
        except WireError as err:
            self._emit(Report(err, Severity.NOTICE))
            self._again(f"the assignment cannot be read: {err}")
            return
        self._said, self._completed = said, self._generation
        if said.error:
            if said.config_offset > self._configuration.offset:
                self._emit(ReadConfiguration(said.config_offset))
            self._again(f"the leader could not assign (error {said.error})")
            return
        self._failures = 0
        self._delay_ends_ms = self._now + said.delay_ms if said.delay_ms else None
        self._move(st.Assigned, f"assigned in generation {self._generation}")
        if said.revoked:
            self._want_round("what was revoked here is to be assigned anew")
        self._items.take(said, incremental=self._protocol.is_incremental)

    def _start(self) -> None:
        """Start what was assigned, once the configuration is known that it was assigned from."""
        if not self._items.wait_to_start or self._items.is_stopping:
            return
        if self._wants_round and not self._protocol.is_incremental:
            return  # it would be stopped at once
        if self._configuration.offset < self._said.config_offset:
            self._emit(ReadConfiguration(self._said.config_offset))
        else:
            self._items.start(self._configuration)

    def _end_delay(self) -> bool:
        if self._state is not ClassicState.STABLE or self._delay_ends_ms is None:
            return False
        if self._now < self._delay_ends_ms:
            return False
        self._delay_ends_ms = None
        self._want_round("the scheduled delay is over")
        return True

    # -- the configuration -------------------------------------------------------------------

    def _know(self, configuration: Configuration) -> None:
        if configuration.offset < self._configuration.offset:
            return
        self._configuration = configuration
        if self._state is ClassicState.SYNCING:
            ready = self._leading.go_on(self._now, configuration, self._completed)
            if ready is not None:
                self._sync(*ready)
        if self._state in (ClassicState.STABLE, ClassicState.JOINING, ClassicState.SYNCING):
            self._start()

    def _give_up_leading(self) -> bool:
        """The group waits for a leader that does not know what others know: leave, and let one of
        them lead."""
        due_ms = self._leading.gives_up_ms
        if self._state is not ClassicState.SYNCING or due_ms is None or self._now < due_ms:
            return False
        self._leave.give_up_leading(self._leading.wanted_offset)
        self._prepare_leave("it leads, and does not know the configuration that others know")
        return True

    def _come_back(self) -> bool:
        back = self._state is ClassicState.STALE and self._leave.is_back(
            self._now, self._configuration.offset
        )
        if not back or self._items.is_stopping:
            return False
        self._leave.back_ms = None
        self._join("it knows the configuration, or has waited long enough")
        return True

    # -- answers -----------------------------------------------------------------------------

    def _on_answer(self, answer: ms.ClassicAnswer) -> None:
        number, asking, leave = answer.attempt, self._asking, self._leave.open
        if asking is not None and number == asking.attempt:
            self._asking = None
            self._on_waited(answer)
        elif self._beat.open is not None and number == self._beat.open.attempt:
            self._on_heartbeat(answer)
        elif leave is not None and number == leave.attempt:
            self._leave.open = None
            self._on_leave_answer(answer)

    def _on_waited(self, answer: ms.ClassicAnswer) -> None:
        self._hear(answer)
        match answer:
            case ms.Joined() if self._state is ClassicState.JOINING:
                self._link.heard(self._now)
                self._on_joined(answer)
            case ms.Synced() if self._state is ClassicState.SYNCING:
                self._link.heard(self._now)
                self._on_synced(answer.assignment)
            case ms.RequestRefused():
                self._on_refused(answer)
            case ms.RequestFailed():
                self._fail(answer.error)
            case _:
                self._lose_coordinator("the group's round was not answered")

    def _on_refused(self, refused: ms.RequestRefused) -> None:
        error = classic_error(refused.api, refused.code)
        match judge(refused.code):
            case ClassicVerdict.TAKE_ID if refused.member_id:
                self._member_id = refused.member_id
            case ClassicVerdict.FENCE:
                self._fence(error.name, forget_id=True)
            case ClassicVerdict.FATAL:
                self._fail(error)
            case ClassicVerdict.REDISCOVER:
                self._lose_coordinator(error.name)
            case ClassicVerdict.REJOIN if self._state is ClassicState.SYNCING:
                self._want_round(error.name)
                self._join(error.name)
            case _ if self._state is ClassicState.SYNCING:
                self._again(error.name)
            case _:
                self._pause()
