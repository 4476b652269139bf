"""The pure KIP-848 group member: events in, commands out, no clock and no I/O.

``MemberCore`` decides; a driver performs. The driver of every host (asyncio, simulation, test) has
the same shape::

    core = MemberCore(settings, member_id, jitter)

    def feed(event: Event) -> None:                    # synchronous, and the only caller of step
        for command in core.step(clock.now_ms(), event):
            match command:
                case EpochChanged():      committer.epoch = command.member_epoch
                case Announce():          log(command)
                case Note():              notify_observers(command)
                case Report():            errors.put(command)
                case ReleasePartitions():
                    fetcher.hold(command.partitions)   # before anything is awaited
                    callbacks.put(command)             # one task runs them one after another
                case _:                   tasks.start_soon(perform, command)

    async def run() -> None:
        while not core.closed:
            event = await inbox.get(until_ms=core.deadline_ms)   # or TimerFired()
            feed(event)

``perform`` sends the heartbeat of ``SendHeartbeat`` and puts ``HeartbeatAnswered(attempt,
outcome)`` (or ``HeartbeatLost``, ``HeartbeatFailed``) into the inbox, and so on for each command;
the docstring of each command in ``_commands`` names its answer and what must be done synchronously.
Callbacks run one at a time in the order of their commands, while heartbeats continue.

Rules for drivers:

- Answer every numbered command exactly once, in any order, as late as you like: an answer that is
  no longer wanted is ignored and counted.
- ``deadline_ms`` is the time at which to deliver ``TimerFired`` if nothing else happens before;
  ``None`` means that only an event can make progress. It is never in the past after a step.
- ``now_ms`` comes from one monotonic clock. A value that goes back is treated as the previous one.
- ``step`` raises ``LocalProtocolError`` for an event that the state does not allow, and then has
  changed nothing.
- When to join: the member joins at the first ``Polled`` after ``Subscribed`` (KAFKA-17154). A
  consumer that wants to join at start delivers ``Polled`` right after ``Subscribed``.
- Reconciliation does not wait for a poll. It starts when the target arrives. The application is
  protected because records of a partition are no longer delivered once ``FlushOffsets`` or
  ``ReleasePartitions`` named it, and only confirmed positions are committed
  (``kip848_client.core.offsets``).
"""

from __future__ import annotations

from kip848_client.core.member._commands import (
    Announce,
    AssignorsHeard,
    Command,
    CoordinatorRecovered,
    CoordinatorSilent,
    EpochChanged,
    Fenced,
    FindCoordinator,
    FlushOffsets,
    ForgetCoordinator,
    LeaveCompleted,
    Note,
    NotPolled,
    Phase,
    PhaseBegan,
    ReleasePartitions,
    Report,
    ResolveTopics,
    SendHeartbeat,
    StartPartitions,
)
from kip848_client.core.member._coordinator import CoordinatorLink
from kip848_client.core.member._core import MemberCore
from kip848_client.core.member._error_rules import is_chosen_by_error, lookup_error
from kip848_client.core.member._events import (
    AssignorsOffered,
    CoordinatorFound,
    CoordinatorLookupFailed,
    CoordinatorLost,
    Event,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    HeartbeatWanted,
    LeaveRequested,
    OffsetsFlushed,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    PollEnded,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.core.member._extra_heartbeats import EXTRA_HEARTBEATS_MAX, EXTRA_INTERVALS
from kip848_client.core.member._limits import UNREACHABLE_AFTER_MS
from kip848_client.core.member._model import (
    AssignedPartition,
    Assignment,
    AssignorNews,
    HeartbeatAccepted,
    HeartbeatIntent,
    HeartbeatOutcome,
    HeartbeatRefused,
    LeaveMode,
    LossReason,
    MemberSettings,
    MemberSnapshot,
    OfferedAssignor,
    Severity,
    group_by_topic,
)
from kip848_client.core.member._states import TRANSITIONS, MemberState
from kip848_client.core.member._texts import no_answer, not_polled

__all__ = [
    "EXTRA_HEARTBEATS_MAX",
    "EXTRA_INTERVALS",
    "TRANSITIONS",
    "UNREACHABLE_AFTER_MS",
    "Announce",
    "AssignedPartition",
    "Assignment",
    "AssignorNews",
    "AssignorsHeard",
    "AssignorsOffered",
    "Command",
    "CoordinatorFound",
    "CoordinatorLink",
    "CoordinatorLookupFailed",
    "CoordinatorLost",
    "CoordinatorRecovered",
    "CoordinatorSilent",
    "EpochChanged",
    "Event",
    "Fenced",
    "FindCoordinator",
    "FlushOffsets",
    "ForgetCoordinator",
    "HeartbeatAccepted",
    "HeartbeatAnswered",
    "HeartbeatFailed",
    "HeartbeatIntent",
    "HeartbeatLost",
    "HeartbeatOutcome",
    "HeartbeatRefused",
    "HeartbeatWanted",
    "LeaveCompleted",
    "LeaveMode",
    "LeaveRequested",
    "LossReason",
    "MemberCore",
    "MemberSettings",
    "MemberSnapshot",
    "MemberState",
    "NotPolled",
    "Note",
    "OfferedAssignor",
    "OffsetsFlushed",
    "PartitionsReleased",
    "PartitionsStarted",
    "Phase",
    "PhaseBegan",
    "PollEnded",
    "Polled",
    "ReleasePartitions",
    "Report",
    "ResolveTopics",
    "SendHeartbeat",
    "Severity",
    "StartPartitions",
    "Subscribed",
    "TimerFired",
    "TopicsResolved",
    "group_by_topic",
    "is_chosen_by_error",
    "lookup_error",
    "no_answer",
    "not_polled",
]
