"""The member of a consumer group: what happens when, and in which state.

Theory of operation
-------------------
``step`` does three things: refuse what is not allowed (before anything changes), take the event
into the state, then *settle*: start whatever has become possible or due, again and again until
nothing more is. Nothing waits inside: everything that takes time is a command whose answer comes
back as an event with the same number.

At most one piece of *work* for the application is open (``_callbacks``). New work replaces the
old; the number of the old one is then stale, and that is all that "abort" means here: the
assignment changes only when an answer to open work arrives. Answers to heartbeats of a former
membership are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.member import _commands as do
from kip848_client.core.member import _events as ev
from kip848_client.core.member import _states as st
from kip848_client.core.member._application import Application
from kip848_client.core.member._callbacks import CallbackWork, Ending
from kip848_client.core.member._coordinator import CoordinatorLink
from kip848_client.core.member._deadlines import Deadlines
from kip848_client.core.member._error_rules import (
    CHOSEN,
    Reaction,
    error_of,
    lookup_error,
    reaction,
)
from kip848_client.core.member._heartbeat import HeartbeatClock, IntentBuilder, Subscription
from kip848_client.core.member._instance import InstanceClaim
from kip848_client.core.member._invariants import check
from kip848_client.core.member._leave import Leave, LeaveAgain, leave_epoch
from kip848_client.core.member._membership import Membership, OpenHeartbeat
from kip848_client.core.member._model import (
    AssignedPartition,
    HeartbeatAccepted,
    HeartbeatIntent,
    HeartbeatRefused,
    LeaveMode,
    LossReason,
    MemberSettings,
    MemberSnapshot,
    Severity,
    sanitise,
)
from kip848_client.core.member._preconditions import Issued, refuse_if_illegal
from kip848_client.core.member._published_state import PublishedState
from kip848_client.core.member._reports import ErrorReports
from kip848_client.core.member._snapshot import take_snapshot
from kip848_client.core.member._states import MemberState
from kip848_client.core.member._topic_names import NameLookup
from kip848_client.core.outside import from_outside
from kip848_client.core.types import JOIN_EPOCH, LEAVE_EPOCH, MemberId
from kip848_client.errors import Kip848Error, LocalProtocolError

__all__ = ["MemberCore"]

_PASSES_MAX: Final = 50
"""How many actions one step may take; a few suffice, more means that one undoes another."""


class MemberCore:
    """A member of a KIP-848 consumer group, as pure state. See the package for the driver's loop.

    ``member_id``: made by the caller from real randomness, after any fork (KIP-1082). ``jitter``
    gets a pause in ms and returns it varied by up to 20 %; ``lambda ms: ms`` varies nothing.
    """

    def __init__(
        self, settings: MemberSettings, member_id: MemberId, jitter: Callable[[int], int]
    ) -> None:
        if not member_id:
            raise LocalProtocolError("a member needs an id of its own (KIP-1082)")
        jitter = from_outside(jitter)
        self.member_id: Final = member_id
        """The id that it was given; never changes."""
        self.closed = False
        """Whether a final leave has completed: no command will come any more."""
        self.fatal_error: Kip848Error | None = None
        """Why the member is FATAL, to be raised from every call; else ``None``."""
        self._settings = settings
        self._jitter = jitter
        self._now = 0
        self._out: list[do.Command] = []
        self._published = PublishedState(self._emit)
        """State and epoch, as others were told."""
        self._membership = Membership()
        """What ends with the membership; replaced when it does."""
        self._application = Application(settings.max_poll_interval_ms, self._emit)
        """What the user subscribed to, and whether the application polls."""
        self._work = CallbackWork(settings, self._emit)
        """The assignment, and what the application is asked to do about it."""
        self._link = CoordinatorLink(settings, jitter, self._emit)
        """Whether the coordinator is known, and since when it is silent."""
        self._clock = HeartbeatClock(settings, jitter)
        """When the next heartbeat may go."""
        self._fields = IntentBuilder(settings, member_id)
        """What the next heartbeat says. It outlives memberships, as sent patterns do."""
        self._instance = InstanceClaim(settings.unreleased_instance_limit_ms)
        """Whether a former join of ours may hold the instance id."""
        self._names = NameLookup(settings, jitter, self._emit)
        """Asking for the names of topics."""
        self._deadlines = Deadlines(
            self._link, self._clock, self._work, self._names, self._application
        )
        """When it has to be woken."""
        self._leave: Leave | None = None
        """The leave that is under way."""
        self._attempts = 0
        """The number of the newest heartbeat, leaves included. Never starts again."""
        self._reports = ErrorReports(self._emit)
        """Errors that would be reported too often."""
        self._stale_answers = 0

    # -- what a driver reads -----------------------------------------------------------------

    @property
    def state(self) -> MemberState:
        """Where the member is."""
        return self._published.state

    @property
    def commit_epoch(self) -> int | None:
        """The epoch for commits and offset fetches, ``None`` when not in the group."""
        return self._published.commit_epoch

    @property
    def wants_poll(self) -> bool:
        """Whether something waits for the next ``Polled``: a join, or a callback to repeat."""
        if self.state is MemberState.UNSUBSCRIBED:
            return self._application.join_wanted
        return self.state is MemberState.STALE or self._membership.retry_on_poll

    @property
    def assigned(self) -> tuple[AssignedPartition, ...]:
        """What the user sees as assigned, sorted by name and number."""
        return self._work.assignment.describe(self._work.assignment.assigned)

    @property
    def fetchable(self) -> tuple[AssignedPartition, ...]:
        """The partitions of which records may be handed out now. A driver that makes its fetch set
        equal to this after every step, before it awaits, has done all synchronous duties."""
        return self._work.assignment.describe(self._work.assignment.fetchable)

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if nothing happens before; ``None`` for never."""
        return self._deadlines.next_ms(self._now, self.state, self._membership, self._leave)

    def snapshot(self, now_ms: int = 0) -> MemberSnapshot:
        """Everything the member knows, frozen; what it measures from now, or the last step, if that
        is later."""
        return take_snapshot(
            self.member_id,
            self._published,
            self._application,
            self._work.assignment,
            self._link,
            self._clock,
            now_ms=max(self._now, now_ms),
            stale_answers=self._stale_answers,
            closed=self.closed,
        )

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: ev.Event) -> tuple[do.Command, ...]:
        """Take one event; returns what to do, in order.

        Raises ``LocalProtocolError``, with nothing changed, for an event that the state does not
        allow or that answers a question which was never asked.
        """
        asked = Issued(self._link.lookups, self._attempts, self._names.queries, self._work.issued)
        closing = self._leave is not None and self._leave.final
        refuse_if_illegal(event, asked, fatal=self.fatal_error, closing=closing, closed=self.closed)
        self._now = max(self._now, now_ms)
        self._out = []
        if not isinstance(event, ev.HeartbeatAnswered):  # which may show that the session is alive
            self._end_session()
        self._take(event)
        self._settle()
        if __debug__:
            check(
                self._published,
                self._work.assignment,
                self._work.purpose,
                heartbeat_is_open=self._membership.open is not None,
                now_ms=self._now,
                deadline_ms=self.deadline_ms,
            )
        return tuple(self._out)

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.Subscribed():
                self._on_subscribed(Subscription.of(event))
            case ev.Polled():
                self._on_polled(waiting=event.waiting)
            case ev.PollEnded():
                self._application.poll_ended(self._now)
            case ev.LeaveRequested():
                self._on_leave_requested(event)
            case ev.HeartbeatWanted():
                self._membership.expedite |= self.commit_epoch is not None
            case ev.AssignorsOffered():
                self._membership.expedite |= self._fields.offer(event.assignors)
            case ev.CoordinatorLost():
                self._lose_coordinator()
            case ev.CoordinatorFound() | ev.CoordinatorLookupFailed():
                self._on_lookup(event)
            case ev.HeartbeatAnswered() | ev.HeartbeatLost() | ev.HeartbeatFailed():
                self._on_heartbeat(event)
            case ev.TopicsResolved():
                self._on_names(event)
            case ev.OffsetsFlushed():
                self._on_work(self._work.flushed(event))
            case ev.PartitionsReleased():
                self._on_work(self._work.released(event))
            case ev.PartitionsStarted():
                self._on_work(self._work.started(event))
            case _:
                pass  # TimerFired: what is due is found by settling, as after every event

    def _settle(self) -> None:
        """Start what can be started. Each action makes itself impossible, so this ends."""
        passes = 0
        while (
            self._leave_if_not_polled()
            or self._end_session()
            or self._cut_callbacks_short()
            or self._work.give_flush_up(self._now)
            or self._reconcile()
            or self._resolve()
            or self._look_up()
            or self._send()
            or self._give_leave_up()
        ):
            passes += 1
            assert passes < _PASSES_MAX, "the member does not settle"
        self._link.report_silence(self._now, self.state.value)
        if self.state in st.TAKES_ASSIGNMENT:
            self._application.report_stall(self._now)

    # -- the application ---------------------------------------------------------------------

    def _on_subscribed(self, subscription: Subscription) -> None:
        if self._leave is not None:
            self._application.subscribe_later(subscription)
            return
        self._application.subscription = subscription
        if self.state is MemberState.UNSUBSCRIBED:
            self._application.join_wanted = True
            if self._application.polling:
                self._join("subscribed while polling")
        elif self.state in st.TAKES_ASSIGNMENT and self._fields.is_news(subscription):
            self._membership.expedite = True

    def _on_polled(self, *, waiting: bool) -> None:
        self._application.polled(self._now, waiting=waiting)
        self._membership.retry_on_poll = False
        if self.state is MemberState.UNSUBSCRIBED and self._application.join_wanted:
            self._join("first poll after subscribing")
        elif self.state is MemberState.STALE and self._work.purpose is None:
            self._join("the application polls again")

    def _on_work(self, ending: Ending) -> None:
        match ending:
            case Ending.STALE:
                self._stale_answers += 1
            case Ending.FAILED:
                self._membership.retry_on_poll = True
            case Ending.RECONCILED:
                self._clock.reconciled(self._now)
                self._move(st.Reconciled, "reconciled")
            case Ending.EMPTIED if self.state is MemberState.PREPARE_LEAVING:
                self._callbacks_done("callbacks done")
            case Ending.EMPTIED if self.state is MemberState.FENCED:
                self._join("lost callback done")
            case Ending.EMPTIED if self.state is MemberState.STALE:
                if self._application.polled_meanwhile:
                    self._join("lost callback done and polled again")
            case _:
                pass  # it goes on, or nothing waits for the end of it

    # -- in and out of the group -------------------------------------------------------------

    def _join(self, why: str) -> None:
        self._application.join_wanted = False
        self._application.restart_interval(self._now)
        self._end_membership()
        self._work.clear()
        self._published.adopt(JOIN_EPOCH)
        self._move(st.Joined, why)
        self._link.asked(self._now)  # from here on its silence matters, a lookup may be open yet
        self._clock.joining(self._now)

    def _end_membership(self) -> None:
        """Forget all questions of the present membership; their answers will be stale."""
        if self._membership.open is not None:
            self._instance.may_be_ours = True  # the broker may act on it yet
        self._membership = Membership()
        self._names.reset()
        self._fields.forget()

    def _fence(self, cause: str) -> None:
        self._emit(do.Fenced(cause, self._published.epoch))
        self._end_membership()
        self._clock.fenced()
        self._published.adopt(JOIN_EPOCH)
        self._move(st.FencedOut, f"fenced by {cause}")
        if self.state is MemberState.UNSUBSCRIBED:
            # It was leaving anyway: the goal is reached, callbacks that run may finish.
            self._work.abandon(lost=True)
            self._application.subscription = None
            self._finish_leave(None)
        else:
            self._on_work(self._work.drop())

    def _end_session(self) -> bool:
        """Others may have our partitions by now, and nobody can tell us."""
        over = self.state in st.TAKES_ASSIGNMENT and self._membership.is_over(self._now)
        if over:
            self._fence("the end of the session")
        return over

    def _fail(self, error: Kip848Error) -> None:
        self._emit(do.Report(error, Severity.FATAL))
        self.fatal_error = error
        self._end_membership()
        self._published.adopt(JOIN_EPOCH)
        self._move(st.Failed, str(error))
        if self._leave is not None:
            self._work.abandon(lost=True)
            self._finish_leave(error)
        else:
            self._work.drop()

    def _leave_if_not_polled(self) -> bool:
        """``max.poll.interval.ms``: give the partitions to members that work. Without a coordinator
        the leave could not be sent, and no other member would take over."""
        due = self._application.is_overdue(self._now)
        if not due or self.state not in st.TAKES_ASSIGNMENT or not self._link.known:
            return False
        self._application.tell_stall(self._now)
        must_tell = self._leave_group(LeaveMode.DEFAULT)
        self._move(st.LeaveAsked, "the application has not polled for max.poll.interval.ms")
        self._move(st.CallbacksDone, "leaving without callbacks")
        self._application.polled_meanwhile = False
        self._work.drop()  # first: what is dropped must not be handed out while the leave goes out
        if must_tell:
            self._emit_heartbeat(self._fields.build_leave(self._published.epoch))
        self._move(st.PollOverdue, "waiting for the application to poll")
        return True

    # -- leaving -----------------------------------------------------------------------------

    def _on_leave_requested(self, event: ev.LeaveRequested) -> None:
        if self._leave is not None:
            self._leave.share(event)
            self._application.leaving()
            return
        self._leave = leave = Leave(event, self._settings, self._jitter)
        self._application.leaving()
        self._application.polled_meanwhile = False
        if self.state not in st.TAKES_ASSIGNMENT:
            if self.state in (MemberState.FENCED, MemberState.STALE):
                self._move(st.LeaveAsked, "left while out of the group")
                self._work.abandon(lost=True)
            self._application.subscription = None
            self._finish_leave(None)
            return
        self._move(st.LeaveAsked, "closing" if event.final else "unsubscribed")
        flush = leave.flush and leave.deadline_ms > self._now
        self._on_work(self._work.leave(leave.deadline_ms if flush else None))

    def _cut_callbacks_short(self) -> bool:
        """At its deadline a leave is sent even though a callback still runs (KAFKA-16985)."""
        leave = self._leave if self.state is MemberState.PREPARE_LEAVING else None
        if leave is None or self._now < leave.deadline_ms:
            return False
        self._callbacks_done("the time to leave is over")
        return True

    def _callbacks_done(self, why: str) -> None:
        """Nothing is held any more: send the leave, if one is needed."""
        leave = self._leave
        assert leave is not None, "callbacks of a leave without a leave"
        self._work.abandon(lost=False)
        self._application.subscription = None
        must_tell = self._leave_group(leave.mode)
        self._move(st.CallbacksDone, why)
        leave.seek(self._now)
        if not must_tell:
            self._finish_leave(None)

    def _leave_group(self, mode: LeaveMode) -> bool:
        """End the membership; returns whether a leave has to be sent."""
        was_sent = self._membership.join_was_sent
        self._end_membership()
        epoch = leave_epoch(mode, self._settings.instance_id)
        self._published.adopt(LEAVE_EPOCH if epoch is None else epoch)
        return was_sent and epoch is not None

    def _finish_leave(self, error: Kip848Error | None) -> None:
        leave, self._leave = self._leave, None
        assert leave is not None, "no leave to finish"
        if self.state is MemberState.LEAVING:
            self._move(st.LeaveDone, "left" if error is None else str(error))
        self._emit(do.LeaveCompleted(error))
        if leave.final:
            self.closed = True
            return
        subscribed = self.state is MemberState.UNSUBSCRIBED and self._application.take_next()
        if subscribed and self._application.polled_meanwhile:
            self._join("subscribed while leaving")

    def _send_leave(self) -> bool:
        leave = self._leave
        if leave is None or not leave.may_send(self._now):
            return False
        intent = self._fields.build_leave(self._published.epoch)
        leave.sent(self._emit_heartbeat(intent, leave.timeout_ms(self._now)))
        return True

    def _give_leave_up(self) -> bool:
        """After everything else was tried in this step."""
        if self._leave is None or self.state is not MemberState.LEAVING:
            return False
        error = self._leave.expired(self._now, coordinator_known=self._link.known)
        if error is not None:
            self._finish_leave(error)
        return error is not None

    # -- heartbeats --------------------------------------------------------------------------

    def _send(self) -> bool:
        if self.state not in st.HEARTBEATING or not self._link.known:
            return False
        if self.state is MemberState.LEAVING:
            return self._send_leave()
        urgent, is_open = self._membership.is_urgent(self.state), self._membership.open is not None
        if is_open or self._clock.next_ms(self._now, urgent=urgent) > self._now:
            return False
        subscription = self._application.subscription
        assert subscription is not None, "in the group without a subscription"
        claim, reconciled = self._work.claimed, self._work.assignment.current
        intent = self._fields.build(self._published.epoch, subscription, claim, reconciled)
        number = self._emit_heartbeat(intent)
        self._membership.sent(OpenHeartbeat(number, self._published.epoch, self._now))
        self._clock.sent(self._now, urgent=urgent)
        if self.state is MemberState.ACKNOWLEDGING and self._work.assignment.is_met:
            self._move(st.Acknowledged, "acknowledged")
        elif self.state is MemberState.ACKNOWLEDGING:
            self._move(st.AcknowledgedInPart, "acknowledged in part")
        return True

    def _emit_heartbeat(self, intent: HeartbeatIntent, timeout_ms: int | None = None) -> int:
        self._attempts += 1
        self._link.asked(self._now)
        timeout_ms = timeout_ms or self._settings.request_timeout_ms
        self._emit(do.SendHeartbeat(self._attempts, intent, timeout_ms))
        return self._attempts

    def _on_heartbeat(
        self, event: ev.HeartbeatAnswered | ev.HeartbeatLost | ev.HeartbeatFailed
    ) -> None:
        self._link.took(event)
        if self._leave is not None and self._leave.owns(event.attempt):
            result = self._leave.answered(self._now, event)
            if not isinstance(result, LeaveAgain):
                self._finish_leave(result)
            elif result.rediscover:
                self._lose_coordinator("the leave was not answered by the coordinator")
            return
        heartbeat = self._membership.open
        if heartbeat is None or heartbeat.number != event.attempt:
            self._stale_answers += 1
            return
        self._membership.open = None
        match event:
            case ev.HeartbeatFailed():
                self._fail(event.error)
            case ev.HeartbeatLost():
                self._on_no_answer(event.reason)
            case ev.HeartbeatAnswered():
                if isinstance(event.outcome, HeartbeatRefused):
                    self._on_refused(heartbeat, event.outcome)
                else:
                    self._on_accepted(heartbeat, event.outcome)

    def _on_no_answer(self, reason: LossReason) -> None:
        self._fields.forget()
        self._clock.failed(self._now)
        self._instance.may_be_ours |= reason is not LossReason.NOT_SENT
        self._lose_coordinator(f"heartbeat {reason.value}")  # one not sent: a broker may be gone

    def _on_accepted(self, sent: OpenHeartbeat, accepted: HeartbeatAccepted) -> None:
        if not accepted.is_for(self.member_id):
            self._fields.forget()
            self._clock.failed(self._now)
            return
        self._link.heard(self._now)
        self._instance.accepted()
        self._membership.accepted(sent, self._settings.session_timeout_ms)
        self._clock.accepted(self._now, accepted.heartbeat_interval_ms)
        self._published.adopt(accepted.member_epoch)
        if accepted.assignors is not None:
            self._emit(do.AssignorsHeard(sent.number, self._published.epoch, accepted.assignors))
        if self.state not in st.TAKES_ASSIGNMENT:
            return
        if accepted.assignment is None:
            if self.state is MemberState.JOINING:
                # Keep asking for the assignment, completely, but not in a loop.
                self._fields.forget()
                self._clock.postpone(self._now + self._settings.retry_backoff_max_ms)
            return
        if self._work.retarget(sanitise(accepted.assignment)):
            self._names.ask_now()
            self._clock.target_changed(self._now)
            self._move(st.TargetChanged, f"new target at epoch {self._published.epoch}")

    def _on_refused(self, heartbeat: OpenHeartbeat, refused: HeartbeatRefused) -> None:
        self._fields.forget()
        verdict = reaction(
            refused,
            member_epoch=heartbeat.member_epoch,
            may_hold_instance=self._instance.may_be_ours,
        )
        if verdict is Reaction.WAIT_FOR_INSTANCE and self._instance.refused(self._now):
            verdict = Reaction.FATAL  # our own former session would have expired by now
        if verdict not in (Reaction.RETRY, Reaction.REDISCOVER):
            self._link.heard(self._now)
        match verdict:
            case Reaction.FATAL:
                self._fail(error_of(refused))
            case Reaction.FENCE:
                self._fence(refused.name)
            case Reaction.WAIT_FOR_INSTANCE:
                self._clock.failed(self._now, self._settings.rejoin_backoff_max_ms)
            case Reaction.SURFACE:
                error, interval_ms = error_of(refused), self._clock.interval_ms
                self._reports.tell(self._now, refused.name, error, interval_ms)
                self._clock.failed(self._now)
            case Reaction.COMPUTE:
                self._membership.accepted(heartbeat, self._settings.session_timeout_ms)
                self._clock.failed(self._now)
                self._emit(do.AssignorsHeard(heartbeat.number, self._published.epoch, CHOSEN))
            case Reaction.REDISCOVER:
                self._clock.coordinator_moved(self._now)
                self._lose_coordinator(refused.name)
            case Reaction.RETRY:
                self._clock.failed(self._now)

    # -- reconciliation ----------------------------------------------------------------------

    def _reconcile(self) -> bool:
        if self.state is not MemberState.RECONCILING or self._membership.retry_on_poll:
            return False
        ending = self._work.reconcile(self._now)
        if ending is Ending.RECONCILED:
            self._move(st.Reconciled, "nothing to change")
        return ending is not None

    def _resolve(self) -> bool:
        wanted = self.state in st.TAKES_ASSIGNMENT
        return wanted and self._names.ask(self._now, self._work.assignment.unresolved())

    def _on_names(self, event: ev.TopicsResolved) -> None:
        asked = self._names.answered(self._now, event.query)
        if asked is None:
            self._stale_answers += 1
        else:
            self._work.name(asked, event.names)

    # -- the coordinator ---------------------------------------------------------------------

    def _look_up(self) -> bool:
        over = self._leave is not None and self._now >= self._leave.deadline_ms
        return self.state in st.HEARTBEATING and not over and self._link.look_up(self._now)

    def _on_lookup(self, event: ev.CoordinatorFound | ev.CoordinatorLookupFailed) -> None:
        if not self._link.answered(self._now, event):
            self._stale_answers += 1
            return
        error = lookup_error(event)
        if error is not None and self.state in st.HEARTBEATING:
            self._reports.tell(self._now, "lookup", error, self._clock.interval_ms)

    def _lose_coordinator(self, why: str = "") -> None:
        self._link.lost(why, self._clock.look_up_ms if self._leave is None else 0)
        if self._leave is not None:
            self._leave.seek(self._now)

    # -- what everything uses ----------------------------------------------------------------

    def _emit(self, command: do.Command) -> None:
        self._out.append(command)

    def _move(self, trigger: type[st.Trigger], why: str) -> None:
        self._published.move(trigger, why)
        if self.state not in st.HEARTBEATING:
            self._link.stop_expecting_answers()
