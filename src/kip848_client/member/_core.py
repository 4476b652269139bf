"""The member: control flow only. What to do is decided by the modules that it calls.

Theory of operation
-------------------
``step`` does three things: refuse what is not allowed (before anything changes), take the event
into the state, then *settle*: start whatever has become possible or due, again and again until
nothing more is. Nothing waits inside: everything that takes time is a command whose answer comes
back as an event with the same number.

At most one piece of *work* for the application is open (``_work``). New work replaces the old; the
number of the old one is then stale, and that is all that "abort" means here. There is no flag to
reset and no result to undo, since the ledger changes only when an answer to open work arrives. In
the same way a heartbeat that was under way when the member left or was fenced is forgotten; its
late answer, whatever it says, concerns a membership that does not exist any more.
"""

from __future__ import annotations

from typing import Final

from kip848_client._types import JOIN_EPOCH, LEAVE_EPOCH
from kip848_client.errors import CoordinatorUnavailable, Kip848Error
from kip848_client.member import _commands as do
from kip848_client.member import _events as ev
from kip848_client.member import _states as st
from kip848_client.member._frame import MemberFrame, OpenHeartbeat
from kip848_client.member._heartbeat import Subscription, backoff_ms
from kip848_client.member._leave import Leave, LeaveAgain, leave_epoch
from kip848_client.member._model import (
    HeartbeatAccepted,
    HeartbeatIntent,
    HeartbeatRefused,
    LeaveMode,
    LossReason,
    Severity,
    sanitise,
)
from kip848_client.member._policy import Verdict, error_of, judge
from kip848_client.member._reconcile import Acknowledge
from kip848_client.member._states import MemberState
from kip848_client.member._work import Ending

__all__ = ["MemberCore"]

REPORT_EVERY_MS: Final = 5_000
"""The same error is reported at most this often (or once an interval, if that is longer)."""
_PASSES_MAX: Final = 50
"""How many actions one step may take; a few suffice, more means that one undoes another."""


class MemberCore(MemberFrame):
    """A member of a KIP-848 consumer group, as pure state. See the package for the driver's loop.

    ``member_id``: made by the caller from real randomness, after any fork (KIP-1082). ``jitter``
    gets a pause in ms and returns it varied by up to 20 %; ``lambda ms: ms`` varies nothing.
    """

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: ev.Event) -> tuple[do.Command, ...]:
        """Take one event; returns what to do, in order.

        Raises ``LocalProtocolError``, with nothing changed, for an event that the state does not
        allow or that answers a question which was never asked.
        """
        self._vet(event)
        self._now = max(self._now, now_ms)
        self._out = []
        self._take(event)
        self._settle()
        if __debug__:
            self._check()
        return tuple(self._out)

    def _take(self, event: ev.Event) -> None:
        match event:
            case ev.Subscribed():
                self._on_subscribed(
                    Subscription(tuple(sorted(event.topics)), event.pattern or None)
                )
            case ev.Polled():
                self._on_polled(waiting=event.waiting)
            case ev.PollEnded():
                self._polling = False
                self._restart_poll_timer()
            case ev.LeaveRequested():
                self._on_leave_requested(event)
            case ev.HeartbeatWanted():
                self._expedite = self._expedite or self.commit_epoch is not None
            case ev.CoordinatorLost():
                self._lose_coordinator()
            case ev.CoordinatorFound() | ev.CoordinatorLookupFailed():
                self._on_lookup(event)
            case ev.HeartbeatAnswered() | ev.HeartbeatLost() | ev.HeartbeatFailed():
                self._on_heartbeat(event)
            case ev.TopicsResolved():
                if not self._names.answered(self._now, event.query, event.names):
                    self._stale_answers += 1
            case ev.OffsetsFlushed():
                self._on_work(self._bench.flushed(event))
            case ev.PartitionsReleased():
                self._on_work(self._bench.released(event))
            case ev.PartitionsStarted():
                self._on_work(self._bench.started(event))
            case _:
                pass  # TimerFired: what is due is found by settling, as after every event

    def _settle(self) -> None:
        """Start what can be started. Each action makes itself impossible, so this ends."""
        passes = 0
        while (
            self._leave_if_not_polled()
            or self._cut_callbacks_short()
            or self._give_flush_up()
            or self._reconcile()
            or self._resolve()
            or self._look_up()
            or self._send()
            or self._give_leave_up()
        ):
            passes += 1
            assert passes < _PASSES_MAX, "the member does not settle"
        self._report_silence()

    # -- the application ---------------------------------------------------------------------

    def _on_subscribed(self, subscription: Subscription) -> None:
        if self._leave is not None:
            self._next_subscription = subscription  # kept until the old membership is gone
            self._polled_meanwhile = self._polling
            return
        self._subscription = subscription
        if self._state is MemberState.UNSUBSCRIBED:
            self._join_wanted = True
            if self._polling:
                self._join("subscribed while polling")
        elif self._state in st.TAKES_ASSIGNMENT and self._fields.is_news(subscription):
            self._expedite = True

    def _on_polled(self, *, waiting: bool) -> None:
        self._polling = waiting
        self._restart_poll_timer()
        self._retry_on_poll = False
        self._polled_meanwhile = True
        if self._state is MemberState.UNSUBSCRIBED and self._join_wanted:
            self._join("first poll after subscribing")
        elif self._state is MemberState.STALE and self._bench.purpose is None:
            self._join("the application polls again")

    def _restart_poll_timer(self) -> None:
        interval = self._settings.max_poll_interval_ms
        self._poll_by_ms = None if self._polling else self._now + interval

    def _on_work(self, ending: Ending) -> None:
        match ending:
            case Ending.STALE:
                self._stale_answers += 1
            case Ending.GOING_ON:
                pass
            case Ending.FAILED:
                self._retry_on_poll = True
            case Ending.RECONCILED:
                self._move(st.Reconciled, "reconciled")
            case Ending.EMPTIED if self._state is MemberState.PREPARE_LEAVING:
                self._let_go("callbacks done")
            case Ending.EMPTIED if self._state is MemberState.FENCED:
                self._join("lost callback done")
            case Ending.EMPTIED if self._state is MemberState.STALE and self._polled_meanwhile:
                self._join("lost callback done and polled again")
            case Ending.EMPTIED:
                pass

    # -- in and out of the group -------------------------------------------------------------

    def _join(self, why: str) -> None:
        self._join_wanted = False
        self._join_was_sent = False
        self._end_membership()
        self._ledger.clear()
        self._set_epoch(JOIN_EPOCH)
        self._restart_poll_timer()
        self._move(st.Joined, why)
        self._link.asked(self._now)  # from here on its silence matters, a lookup may be open yet
        self._clock.free(self._now)
        if self._fences > 1:
            # The first join after a fence is free. A broker that fences joins (4.0 and 4.1 do so
            # until the old session has expired, KAFKA-19233) is asked more and more rarely.
            cap = self._settings.rejoin_backoff_max_ms
            base = self._settings.retry_backoff_ms
            pause = backoff_ms(self._fences - 2, base, cap, self._jitter)
            self._clock.postpone(self._now + pause)

    def _end_membership(self) -> None:
        """Forget all questions of the present membership; their answers will be stale."""
        if self._open is not None:
            self._may_hold_instance = True  # the broker may act on it yet
        self._open = None
        self._names.reset()
        self._retry_on_poll = False
        self._expedite = False
        self._fields.forget()

    def _fence(self, why: str) -> None:
        self._end_membership()
        self._fences += 1
        self._set_epoch(JOIN_EPOCH)
        self._move(st.FencedOut, why)
        if self._state is MemberState.UNSUBSCRIBED:
            # It was leaving anyway: the goal is reached, callbacks that run may finish.
            self._bench.vacate(lost=True)
            self._subscription = None
            self._finish_leave(None)
        else:
            self._on_work(self._bench.drop())

    def _doom(self, error: Kip848Error) -> None:
        self._emit(do.Report(error, Severity.FATAL))
        self._fatal = error
        self._end_membership()
        self._set_epoch(JOIN_EPOCH)
        self._move(st.Doomed, str(error))
        if self._leave is not None:
            self._bench.vacate(lost=True)
            self._finish_leave(error)
        else:
            self._bench.drop()

    def _leave_if_not_polled(self) -> bool:
        """``max.poll.interval.ms``: give the partitions to members that work. Without a
        coordinator nobody could be told, and nobody would take over."""
        due = self._poll_by_ms is not None and self._now >= self._poll_by_ms
        if not due or self._state not in st.TAKES_ASSIGNMENT or not self._link.known:
            return False
        was_sent = self._join_was_sent
        self._end_membership()
        epoch = leave_epoch(LeaveMode.DEFAULT, self._settings.instance_id)
        self._set_epoch(LEAVE_EPOCH if epoch is None else epoch)
        self._move(st.LeaveAsked, "the application has not polled for max.poll.interval.ms")
        self._move(st.LetGo, "leaving without callbacks")
        self._polled_meanwhile = False
        self._bench.drop()  # first: what is dropped must not be handed out while the leave goes out
        if was_sent:
            self._attempts += 1
            self._emit_heartbeat(self._fields.build_leave(self._epoch))
        self._move(st.PollOverdue, "waiting for the application to poll")
        return True

    # -- leaving -----------------------------------------------------------------------------

    def _on_leave_requested(self, event: ev.LeaveRequested) -> None:
        if self._leave is not None:
            self._leave.share(event)
            self._next_subscription = None  # whatever was subscribed to meanwhile is taken back
            return
        self._leave = leave = Leave(event, self._settings, self._jitter)
        self._join_wanted = False
        self._next_subscription = None
        self._polled_meanwhile = False
        if self._state not in st.TAKES_ASSIGNMENT:
            if self._state in (MemberState.FENCED, MemberState.STALE):
                self._move(st.LeaveAsked, "left while out of the group")
                self._bench.vacate(lost=True)
            self._subscription = None
            self._finish_leave(None)
            return
        self._move(st.LeaveAsked, "closing" if event.final else "unsubscribed")
        flush = leave.flush and leave.deadline_ms > self._now
        self._on_work(self._bench.leave(leave.deadline_ms if flush else None))

    def _cut_callbacks_short(self) -> bool:
        """At its deadline a leave is sent even though a callback still runs (KAFKA-16985)."""
        leave = self._leave
        if leave is None or self._state is not MemberState.PREPARE_LEAVING:
            return False
        if self._now < leave.deadline_ms:
            return False
        self._let_go("the time to leave is over")
        return True

    def _let_go(self, why: str) -> None:
        """Nothing is held any more: tell the coordinator, if it has to be told."""
        leave = self._leave
        assert leave is not None, "only a leave lets go"
        self._end_membership()
        self._bench.vacate(lost=False)
        self._subscription = None
        epoch = leave_epoch(leave.mode, self._settings.instance_id)
        self._set_epoch(LEAVE_EPOCH if epoch is None else epoch)
        self._move(st.LetGo, why)
        leave.seek(self._now)
        if epoch is None or not self._join_was_sent:
            self._finish_leave(None)

    def _finish_leave(self, error: Kip848Error | None) -> None:
        leave, self._leave = self._leave, None
        assert leave is not None, "no leave to finish"
        if self._state is MemberState.LEAVING:
            self._move(st.LeaveDone, "left" if error is None else str(error))
        self._emit(do.LeaveCompleted(error))
        if leave.final:
            self._closed = True
        elif self._next_subscription is not None and self._state is MemberState.UNSUBSCRIBED:
            self._subscription, self._next_subscription = self._next_subscription, None
            self._join_wanted = True
            if self._polled_meanwhile:
                self._join("subscribed while leaving")

    def _send_leave(self) -> bool:
        leave = self._leave
        assert leave is not None, "LEAVING without a leave"
        if not leave.may_send(self._now):
            return False
        self._attempts += 1
        leave.sent(self._attempts)
        intent = self._fields.build_leave(self._epoch)
        self._emit_heartbeat(intent, leave.timeout_ms(self._now))
        return True

    def _give_leave_up(self) -> bool:
        """After everything else was tried in this step."""
        if self._leave is None or self._state is not MemberState.LEAVING:
            return False
        error = self._leave.expired(self._now, coordinator_known=self._link.known)
        if error is None:
            return False
        self._finish_leave(error)
        return True

    # -- heartbeats --------------------------------------------------------------------------

    def _send(self) -> bool:
        if self._state not in st.HEARTBEATING or not self._link.known:
            return False
        if self._state is MemberState.LEAVING:
            return self._send_leave()
        urgent = self._is_urgent()
        if self._open is not None or self._clock.next_ms(self._now, urgent=urgent) > self._now:
            return False
        assert self._subscription is not None, "in the group without a subscription"
        claim, reconciled = self._bench.claimed, self._ledger.current
        intent = self._fields.build(self._epoch, self._subscription, claim, reconciled)
        self._attempts += 1
        self._open = OpenHeartbeat(self._attempts, self._epoch)
        self._join_was_sent = True
        self._expedite = False
        self._clock.sent(self._now, urgent=urgent)
        self._emit_heartbeat(intent)
        if self._state is MemberState.ACKNOWLEDGING:
            if self._ledger.is_met:
                self._move(st.Acknowledged, "acknowledged")
            else:
                self._move(st.AcknowledgedInPart, "acknowledged in part")
        return True

    def _emit_heartbeat(self, intent: HeartbeatIntent, timeout_ms: int | None = None) -> None:
        self._link.asked(self._now)
        timeout_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        self._emit(do.SendHeartbeat(self._attempts, intent, timeout_ms))

    def _on_heartbeat(
        self, event: ev.HeartbeatAnswered | ev.HeartbeatLost | ev.HeartbeatFailed
    ) -> None:
        if self._leave is not None and self._leave.owns(event.attempt):
            result = self._leave.answered(self._now, event)
            if not isinstance(result, LeaveAgain):
                self._finish_leave(result)
            elif result.rediscover:
                self._lose_coordinator("the leave was not answered by the coordinator")
            return
        heartbeat = self._open
        if heartbeat is None or heartbeat.number != event.attempt:
            self._stale_answers += 1
            return
        self._open = None
        match event:
            case ev.HeartbeatFailed():
                self._doom(event.error)
            case ev.HeartbeatLost():
                self._on_no_answer(event.reason)
            case ev.HeartbeatAnswered():
                match event.outcome:
                    case HeartbeatRefused() as refused:
                        self._on_refused(heartbeat, refused)
                    case HeartbeatAccepted() as accepted:
                        self._on_accepted(accepted)

    def _on_no_answer(self, reason: LossReason) -> None:
        self._fields.forget()
        self._clock.failed(self._now)
        if reason is not LossReason.NOT_SENT:
            self._may_hold_instance = True
            self._lose_coordinator(f"heartbeat {reason.value}")

    def _on_accepted(self, accepted: HeartbeatAccepted) -> None:
        stranger = accepted.member_id not in (None, "", self._member_id)
        if stranger or accepted.member_epoch <= 0:
            # An epoch that is stored is sent back: -1 would turn the next heartbeat into a leave.
            self._on_no_answer(LossReason.NOT_SENT)
            return
        self._heard()
        self._fences = 0
        self._unreleased_since_ms = None
        self._may_hold_instance = True
        self._clock.accepted(self._now, accepted.heartbeat_interval_ms)
        self._set_epoch(accepted.member_epoch)
        if self._state not in st.TAKES_ASSIGNMENT:
            return
        if accepted.assignment is None:
            if self._state is MemberState.JOINING:
                # Keep asking for the assignment, completely, but not in a loop.
                self._fields.forget()
                self._clock.postpone(self._now + self._settings.retry_backoff_max_ms)
            return
        if self._ledger.retarget(sanitise(accepted.assignment)):
            self._names.hurry()
            self._move(st.TargetChanged, f"new target at epoch {self._epoch}")

    def _on_refused(self, heartbeat: OpenHeartbeat, refused: HeartbeatRefused) -> None:
        self._fields.forget()
        verdict = judge(
            refused,
            member_epoch=heartbeat.member_epoch,
            may_hold_instance=self._may_hold_instance,
        )
        if verdict is Verdict.WAIT_FOR_INSTANCE:
            verdict = self._wait_for_instance()
        if verdict not in (Verdict.RETRY, Verdict.REDISCOVER):
            self._heard()
        match verdict:
            case Verdict.FATAL:
                self._doom(error_of(refused))
            case Verdict.FENCE:
                self._fence(f"fenced by {refused.name}")
            case Verdict.WAIT_FOR_INSTANCE:
                self._clock.failed(self._now, self._settings.rejoin_backoff_max_ms)
            case Verdict.SURFACE:
                self._report(refused.name, error_of(refused), Severity.RAISE)
                self._clock.failed(self._now)
            case Verdict.REDISCOVER:
                self._clock.failed(self._now)
                if self._clock.failures == 1:
                    self._clock.free(self._now)  # at once, as soon as the new one is found
                self._lose_coordinator(refused.name)
            case Verdict.RETRY:
                self._clock.failed(self._now)

    def _wait_for_instance(self) -> Verdict:
        """A bounded time for our own former session to expire, then the truth."""
        if self._unreleased_since_ms is None:
            self._unreleased_since_ms = self._now
        waited_ms = self._now - self._unreleased_since_ms
        over = waited_ms >= self._settings.unreleased_instance_limit_ms
        return Verdict.FATAL if over else Verdict.WAIT_FOR_INSTANCE

    # -- reconciliation ----------------------------------------------------------------------

    def _reconcile(self) -> bool:
        idle = self._bench.purpose is None and not self._retry_on_poll
        if self._state is not MemberState.RECONCILING or not idle:
            return False
        step = self._ledger.next_step()
        if step is None:
            return False
        if isinstance(step, Acknowledge):
            self._ledger.acknowledge(step.held)
            self._move(st.Reconciled, "nothing to change")
        else:
            self._bench.reconcile(self._now, step)
        return True

    def _give_flush_up(self) -> bool:
        by_ms = self._bench.flush_by_ms
        if by_ms is None or self._now < by_ms:
            return False
        self._bench.flush_overdue()
        return True

    def _resolve(self) -> bool:
        ids = self._names.ask(self._now) if self._state in st.TAKES_ASSIGNMENT else ()
        if not ids:
            return False
        self._emit(do.ResolveTopics(self._names.queries, ids))
        return True

    # -- the coordinator ---------------------------------------------------------------------

    def _look_up(self) -> bool:
        over = self._leave is not None and self._now >= self._leave.deadline_ms
        if self._state not in st.HEARTBEATING or over:
            return False
        lookup = self._link.begin_lookup(self._now)
        if lookup is None:
            return False
        self._emit(do.FindCoordinator(lookup))
        return True

    def _on_lookup(self, event: ev.CoordinatorFound | ev.CoordinatorLookupFailed) -> None:
        if not self._link.take_lookup(event.lookup):
            self._stale_answers += 1
        elif isinstance(event, ev.CoordinatorFound):
            self._link.found()
        else:
            self._link.lookup_failed(self._now)
            if event.error is not None and self._state in st.HEARTBEATING:
                self._report("lookup", event.error, Severity.RAISE)

    def _lose_coordinator(self, why: str = "") -> None:
        """``why`` is empty when the driver knows already."""
        if self._link.known and why:
            self._emit(do.ForgetCoordinator(why))
        self._link.lost()
        if self._leave is not None:
            self._leave.seek(self._now)

    def _heard(self) -> None:
        silent_ms = self._link.heard(self._now)
        if silent_ms is not None:
            self._emit(do.CoordinatorRecovered(silent_ms))

    def _report(self, key: str, error: Kip848Error, severity: Severity) -> None:
        last = self._reported_ms.get(key)
        pause = max(REPORT_EVERY_MS, self._clock.interval_ms)
        if last is None or self._now >= last + pause:
            self._reported_ms[key] = self._now
            self._emit(do.Report(error, severity))

    def _report_silence(self) -> None:
        due = self._link.report_due_ms()
        if due is None or self._now < due:
            return
        seconds = self._link.silent_ms(self._now) / 1_000
        self._link.reported(self._now)
        error = CoordinatorUnavailable(
            f"the group coordinator has not answered for {seconds:.0f} s; the member is "
            f"{self._state.value} and keeps trying"
        )
        self._emit(do.Report(error, Severity.NOTICE))
