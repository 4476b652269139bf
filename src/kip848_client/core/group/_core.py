"""Membership, commits and listener of one consumer, as one pure core.

Theory of operation
-------------------
``MemberCore`` decides when to heartbeat and when partitions come and go, ``CommitterCore`` when to
commit offsets. Each has requests for the other, the application or the user's listener.
``GroupCore`` passes these on, keeps the order of listener calls, flushes before partitions are
released, and looks up committed offsets. What is left for the driver is to send requests, call the
listener, log, and change what is fetched.

Nothing here is reentrant: events between parts wait in a queue until the sending part has finished.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.core.assignor_rounds import ComputingSettings
from kip848_client.core.group._commands import FlushDone, Output, PollWanted
from kip848_client.core.group._commit_failures import CommitFailures
from kip848_client.core.group._committed import CommittedLookups
from kip848_client.core.group._computing import Computing
from kip848_client.core.group._events import (
    ApplicationDone,
    AssignmentComputed,
    AssignmentImpossible,
    AssignmentInstalled,
    AssignmentLost,
    AssignmentPrepared,
    CommittedAnswered,
    CommittedAsked,
    CommittedImpossible,
    CommittedLost,
    Detached,
    FlushAsked,
    GroupEvent,
    Input,
    ListenerReplaced,
    ListenerReturned,
)
from kip848_client.core.group._flushes import Flushes
from kip848_client.core.group._listener_calls import ListenerCalls, Numbers
from kip848_client.core.member import (
    AssignedPartition,
    AssignorsHeard,
    Command,
    CoordinatorFound,
    CoordinatorLost,
    EpochChanged,
    Event,
    FlushOffsets,
    ForgetCoordinator,
    HeartbeatAnswered,
    HeartbeatWanted,
    LeaveCompleted,
    LeaveRequested,
    MemberCore,
    OffsetsFlushed,
    Polled,
    ReleasePartitions,
    SendHeartbeat,
    StartPartitions,
    Subscribed,
    TimerFired,
)
from kip848_client.core.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitCommand,
    CommitDone,
    CommitEvent,
    CommitImpossible,
    CommitLost,
    CommitRefusal,
    CommitterCore,
    CommitTimer,
    CoordinatorSuspect,
    EpochNoted,
    RefreshEpoch,
    SendCommit,
)
from kip848_client.core.outside import from_outside
from kip848_client.core.types import TopicId, TopicPartition, Wait
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LocalProtocolError

__all__ = ["GroupCore"]

_RECREATED: Final = CommitRefusal(
    ErrorCode.UNKNOWN_TOPIC_ID, "UNKNOWN_TOPIC_ID", "the topic was created again"
)


class GroupCore:
    """One consumer of a group.

    ``newest_id`` returns the topic id of a name in the newest metadata, ``None`` if unknown; it
    must not wait. ``read_id`` returns the topic id under which a partition is read that the group
    has not assigned. ``backoff_ms`` maps a number of failures in a row to a pause.
    """

    def __init__(
        self,
        member: MemberCore,
        committer: CommitterCore,
        newest_id: Callable[[str], TopicId | None],
        read_id: Callable[[TopicPartition], TopicId | None],
        backoff_ms: Callable[[int], int],
        computing: ComputingSettings | None = None,
    ) -> None:
        self.member: Final = member
        """Read-only for others; only ``step`` may change it."""
        self._committer = committer
        self._newest_id = from_outside(newest_id)
        self._read_id = from_outside(read_id)
        backoff_ms = from_outside(backoff_ms)
        self._now = 0
        """The time of the step."""
        self._out: list[Output] = []
        """The commands of the step so far."""
        self._inner: deque[Event | CommitEvent] = deque()
        """Events between the parts in this step."""
        self._closing = False
        """A final leave was requested."""
        self._coordinator_heard = False
        """The coordinator answered, or was found, since it was last suspected."""
        self._set_aside: dict[int, Mapping[TopicPartition, CommitRefusal]] = {}
        """By commit attempt: the partitions left out of the request, with reasons."""
        self._meant: dict[int, Mapping[TopicPartition, TopicId | None]] = {}
        """By ticket of a commit: the topic ids of its offsets at the time of the call."""
        self._commit_failures = CommitFailures(self._out_append)
        numbers = Numbers()
        self._calls = ListenerCalls(numbers, self._out_append, self._later)
        """The listener's calls, and what the user sees as assigned."""
        heard = self._coordinator_was_heard
        self._flushes = Flushes(
            numbers, self._out_append, self._later, self._flush_ended, coordinator_was_heard=heard
        )
        """Commits before partitions are released."""
        self._lookups = CommittedLookups(
            backoff_ms,
            numbers,
            self._out_append,
            suspect_coordinator=self._suspect,
            refresh_epoch=self._refresh_epoch,
        )
        """Look-ups of committed offsets."""
        self._computing = Computing(
            computing or ComputingSettings(),
            numbers,
            backoff_ms,
            self._out_append,
            suspect_coordinator=self._suspect,
        )
        """Computing the assignment of the group, if this member is chosen to."""
        self._told_epoch: int | None = None
        """The member epoch whose target was passed to client-side assignors."""
        self._started = False
        """Whether the committer's interval runs."""

    # -- for the driver ----------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if nothing happens before; ``None`` for never."""
        times = (
            self.member.deadline_ms,
            self._committer.deadline_ms,
            self._flushes.due_ms,
            self._lookups.due_ms,
            self._computing.due_ms,
        )
        return min((time for time in times if time is not None), default=None)

    @property
    def fetchable(self) -> tuple[AssignedPartition, ...]:
        """The partitions whose records may be delivered; make the fetch set equal to it after every
        step. The same object as long as nothing changes."""
        return self.member.fetchable

    @property
    def assigned_ids(self) -> Mapping[TopicPartition, TopicId]:
        """What the user sees as assigned by the group, with topic ids. The same object as long as
        nothing changes."""
        return self._calls.ids

    @property
    def open_commits(self) -> int:
        """Number of commits that have not ended."""
        return self._committer.open_tickets

    @property
    def waits(self) -> Mapping[str, Wait]:
        """The current waits: for committed offsets, and for the coordinator."""
        return self._lookups.waits() | dict(self.member.snapshot().waits)

    @property
    def listener_is_idle(self) -> bool:
        """Whether no call of the listener is open or queued."""
        return self._calls.idle

    @property
    def wants_poll(self) -> bool:
        """Whether something waits for the next ``Polled``: a join, or a callback to repeat."""
        return self.member.wants_poll or self._calls.wants_poll

    # -- the step ----------------------------------------------------------------------------

    def step(self, now_ms: int, event: Input) -> tuple[Output, ...]:
        """Take one event; returns what to do, in order.

        Raises ``LocalProtocolError``, with nothing changed, for what the member or the committer
        does not allow.
        """
        self._now = max(self._now, now_ms)
        self._out.clear()
        poll_was_wanted = self.wants_poll
        self._take(event)
        self._settle()
        if self.wants_poll and not poll_was_wanted:
            self._out_append(PollWanted())
        return tuple(self._out)

    def _take(self, event: Input) -> None:
        match event:
            case GroupEvent():
                self._on_own(event)
            case CommitEvent():
                self._on_commit_event(event)
            case _:
                self._step_member(event)

    def _settle(self) -> None:
        """Process events between the parts until there are none and nothing is due."""
        if not self._started:
            self._started = True
            self._step_committer(CommitTimer())
        while True:
            if self._inner:
                told = self._inner.popleft()
                if isinstance(told, CommitEvent):
                    self._step_committer(told)
                else:
                    self._step_member(told)
            elif self._is_due(self.member.deadline_ms):
                self._step_member(TimerFired())
            elif self._is_due(self._committer.deadline_ms):
                self._step_committer(CommitTimer())
            elif self._is_due(self._flushes.due_ms):
                self._flushes.give_up_waiting(self._now)
            elif self._is_due(self._lookups.due_ms):
                self._lookups.send_due(self._now)
            elif self._is_due(self._computing.due_ms):
                self._computing.go_on(self._now)
            else:
                return

    def _is_due(self, time_ms: int | None) -> bool:
        return time_ms is not None and time_ms <= self._now

    def _out_append(self, command: Output) -> None:
        self._out.append(command)

    def _later(self, event: Event | CommitEvent) -> None:
        self._inner.append(event)

    def _note(self, event: Event) -> None:
        """Handle the effects of a member's event on the other parts."""
        match event:
            case Subscribed():
                self._calls.attach()
            case Polled():
                self._calls.polled()
            case LeaveRequested():
                self._closing = self._closing or event.final
            case CoordinatorFound() | HeartbeatAnswered():
                self._coordinator_heard = True
            case _:
                pass

    def _on_own(self, event: GroupEvent) -> None:
        match event:
            case ListenerReturned():
                self._calls.returned(event.number, failed=event.failed)
            case ListenerReplaced():
                self._calls.request(event)
            case ApplicationDone():
                self._calls.application_done(event.number)
                self._flushes.application_done(self._now, event.number)
            case CommittedAsked():
                self._lookups.ask(self._now, event)
            case CommittedAnswered() | CommittedLost() | CommittedImpossible():
                self._coordinator_heard |= isinstance(event, CommittedAnswered)
                self._lookups.answered(self._now, event)
            case AssignmentPrepared() | AssignmentComputed() | AssignmentInstalled():
                self._computing.answered(self._now, event)
            case AssignmentLost() | AssignmentImpossible():
                self._computing.answered(self._now, event)
            case FlushAsked():
                done = FlushDone(event.ticket)
                self._flushes.begin(self._now, (), event.deadline_ms, done, closing=True)
            case Detached():
                self._calls.detach()
            case _:
                raise LocalProtocolError(f"not an event of a group: {event!r}")

    # -- the member --------------------------------------------------------------------------

    def _step_member(self, event: Event) -> None:
        commands = self.member.step(self._now, event)
        self._note(event)
        for command in commands:
            self._route(command)

    def _route(self, command: Command) -> None:
        match command:
            case EpochChanged():
                self._inner.append(EpochNoted(command.member_epoch))
                self._lookups.note_epoch(self._now, command.member_epoch)
                self._computing.note_epoch(command.member_epoch)
                if command.member_epoch is None:
                    self._told_epoch = None
                self._out_append(command)
            case SendHeartbeat():
                self._computing.heartbeat_sent(command.attempt)
                self._out_append(command)
            case AssignorsHeard():
                self._on_assignors_heard(command)
            case FlushOffsets():
                flushed = OffsetsFlushed(command.plan)
                partitions = tuple(each.tp for each in command.revoked)
                by_ms, closing = command.deadline_ms, self._closing
                self._flushes.begin(self._now, partitions, by_ms, flushed, closing=closing)
            case ReleasePartitions() | StartPartitions():
                self._calls.request(command)
            case LeaveCompleted():
                self._calls.forget_everything()  # a call that was not waited for may have left some
                self._out_append(command)
            case _:
                self._out_append(command)

    def _on_assignors_heard(self, heard: AssignorsHeard) -> None:
        """Metadata and target are final for their epoch: call the assignors once for each."""
        if heard.news.target is not None and heard.member_epoch != self._told_epoch:
            self._told_epoch = heard.member_epoch
            self._calls.request(heard)
        compute = heard.news.should_compute
        self._computing.heard(self._now, heard.attempt, should_compute=compute)

    def _flush_ended(self, done: FlushDone | OffsetsFlushed) -> None:
        if isinstance(done, FlushDone):
            self._out_append(done)
        else:
            self._later(done)

    def _coordinator_was_heard(self) -> bool:
        return self._coordinator_heard

    def _refresh_epoch(self) -> None:
        self._inner.append(HeartbeatWanted())

    def _suspect(self, why: str) -> None:
        """Look up the coordinator again: a request showed that it moved, or cannot be reached."""
        self._coordinator_heard = False
        self._out_append(ForgetCoordinator(why))
        self._inner.append(CoordinatorLost(why))

    # -- the committer -----------------------------------------------------------------------

    def _on_commit_event(self, event: CommitEvent) -> None:
        match event:
            case CommitAnswered():
                refused = self._set_aside.pop(event.attempt, {})
                self._coordinator_heard = True
                event = CommitAnswered(event.attempt, {**event.results, **refused})
            case CommitLost() | CommitImpossible():
                self._set_aside.pop(event.attempt, None)
            case CommitAsked(ticket, _, offsets):
                meant = {tp: self._id_now(tp) for tp in offsets or ()}
                self._meant.setdefault(ticket, meant)  # a second use of an open ticket is refused
            case _:
                pass
        self._step_committer(event)
        if isinstance(event, CommitLost):
            self._suspect(event.why)

    def _step_committer(self, event: CommitEvent) -> None:
        for command in self._committer.step(self._now, event):
            self._route_commit(command)

    def _route_commit(self, command: CommitCommand) -> None:
        match command:
            case SendCommit():
                self._send_commit(command)
            case CommitDone():
                self._on_commit_done(command)
            case RefreshEpoch():
                self._refresh_epoch()
            case CoordinatorSuspect():
                self._suspect(command.why)
            case _:
                raise AssertionError(f"no such command: {command!r}")

    def _send_commit(self, command: SendCommit) -> None:
        """Leave out partitions whose topic was deleted and recreated meanwhile: by name, their
        offset would be stored for the new topic."""
        recreated = {tp: _RECREATED for tp in command.offsets if self._is_recreated(tp)}
        offsets = {tp: each for tp, each in command.offsets.items() if tp not in recreated}
        if not offsets:
            self._inner.append(CommitAnswered(command.attempt, recreated))
            return
        if recreated:
            self._set_aside[command.attempt] = recreated
        attempt, epoch, timeout_ms = command.attempt, command.member_epoch, command.timeout_ms
        self._out_append(SendCommit(attempt, epoch, offsets, timeout_ms))

    def _is_recreated(self, tp: TopicPartition) -> bool:
        meant, newest = self._id_now(tp), self._newest_id(tp.topic)
        for each in self._meant.values():
            meant = each.get(tp, meant)
        return meant is not None and newest is not None and meant != newest

    def _id_now(self, tp: TopicPartition) -> TopicId | None:
        return self._calls.ids.get(tp) or self._read_id(tp)

    def _on_commit_done(self, done: CommitDone) -> None:
        if done.ticket is not None:
            self._meant.pop(done.ticket, None)
        if done.ticket is None:
            self._commit_failures.ended(self._now, done)
        elif done.ticket < 0:
            self._flushes.committed(self._now, done)
        else:
            self._out_append(done)
