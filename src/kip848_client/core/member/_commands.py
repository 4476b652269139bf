"""The commands of a member to its driver, in the imperative.

The driver performs the commands of one step in order. Most only start something whose end comes
back as an event. Each command names what must happen *before the driver awaits anything*: those
parts are synchronous, because a record delivered after its partition should have been released is
the bug that the whole protocol exists to prevent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kip848_client.core.member._model import (
    AssignedPartition,
    AssignorNews,
    HeartbeatIntent,
    Severity,
)
from kip848_client.core.member._states import MemberState
from kip848_client.core.member._texts import answers_again, too_few_polls
from kip848_client.core.types import TopicId
from kip848_client.errors import Kip848Error

__all__ = [
    "Announce",
    "AssignorsHeard",
    "Command",
    "CoordinatorRecovered",
    "CoordinatorSilent",
    "EpochChanged",
    "Fenced",
    "FindCoordinator",
    "FlushOffsets",
    "ForgetCoordinator",
    "LeaveCompleted",
    "NotPolled",
    "Note",
    "Phase",
    "PhaseBegan",
    "ReleasePartitions",
    "Report",
    "ResolveTopics",
    "SendHeartbeat",
    "StartPartitions",
]


@dataclass(frozen=True, slots=True)
class Command:
    """Base of all commands. Do not subclass outside of this module."""


@dataclass(frozen=True, slots=True)
class FindCoordinator(Command):
    """Look up the group coordinator (any broker). Answer: ``CoordinatorFound`` or
    ``CoordinatorLookupFailed`` with the same number. At most one is open; the member does the
    backoff between two."""

    lookup: int


@dataclass(frozen=True, slots=True)
class ForgetCoordinator(Command):
    """The known coordinator is no longer valid: the next ``FindCoordinator`` must ask a broker
    again, and other users of the address (commits) must wait for it. No answer."""

    why: str


@dataclass(frozen=True, slots=True)
class SendHeartbeat(Command):
    """Send this ConsumerGroupHeartbeat to the coordinator, on a connection that no fetch can block.
    Answer within ``timeout_ms`` by ``HeartbeatAnswered``, ``HeartbeatLost`` or ``HeartbeatFailed``
    with the same number. At most one is open, except for a leave."""

    attempt: int
    intent: HeartbeatIntent
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class ResolveTopics(Command):
    """Find the names of these topics (Metadata v12+ by id, these ids only). Answer within the
    request timeout by ``TopicsResolved`` with the same number and the names found."""

    query: int
    ids: tuple[TopicId, ...]


@dataclass(frozen=True, slots=True)
class FlushOffsets(Command):
    """Commit everything consumed, of all partitions, before ``revoked`` are released.

    Before awaiting: stop delivering records of ``revoked``, including buffered ones, and stop
    fetching them. They stay in the user's assignment. Then commit, re-reading positions and epoch
    at each attempt (KAFKA-16033), give up at ``deadline_ms``, never raise; answer
    ``OffsetsFlushed``.
    """

    plan: int
    revoked: tuple[AssignedPartition, ...]
    deadline_ms: int


@dataclass(frozen=True, slots=True)
class ReleasePartitions(Command):
    """Take these partitions from the application.

    Before awaiting: stop delivering records of ``partitions``, including buffered ones, and stop
    fetching them (they have left ``MemberCore.fetchable``). The rest happens when all earlier
    callback commands are done: call ``on_partitions_revoked`` (``lost=False``) or
    ``on_partitions_lost`` (``lost=True``), but no callback if ``partitions`` is empty; when the
    callback has returned, remove them from the user's assignment, drop their positions, and answer
    ``PartitionsReleased``.

    ``last=True`` (a leave, or fallen out of the group): afterwards the user's assignment is empty,
    whatever its contents and even if the callback raised. ``lost=True``: the partitions may already
    belong to another member, so commit nothing for them.

    ``last=False`` and the callback raised: the partitions stay in the assignment, not fetchable;
    raise the error to the user and answer ``failed=True``; the member will ask again after the
    next ``Polled``.
    """

    plan: int
    partitions: tuple[AssignedPartition, ...]
    lost: bool
    last: bool = False


@dataclass(frozen=True, slots=True)
class StartPartitions(Command):
    """Make ``assignment`` the user's assignment; ``partitions`` are the new ones in it.

    All of it happens when the earlier callback commands are done. Replace the user's assignment;
    the new partitions must not be fetched and their positions not looked up yet (KAFKA-16107). Call
    ``on_partitions_assigned`` with ``partitions``, **even if it is empty**. When it has returned,
    answer ``PartitionsStarted``: from that step on all of ``assignment`` is fetchable, not only the
    new part (KAFKA-16460), except where ``MemberCore.fetchable`` differs because the member was
    fenced meanwhile; look up the missing positions.

    If the callback raised: raise the error to the user and answer ``failed=True``; the new
    partitions stay unfetchable and the member will ask again after the next ``Polled``.
    """

    plan: int
    partitions: tuple[AssignedPartition, ...]
    assignment: tuple[AssignedPartition, ...]


@dataclass(frozen=True, slots=True)
class EpochChanged(Command):
    """The member epoch that commits and offset fetches must carry from now on; ``None`` when the
    member is not in the group. Perform it before any request of the same step is sent. (A group
    core passes it on to observers; its driver has nothing to do.)"""

    member_epoch: int | None


@dataclass(frozen=True, slots=True)
class AssignorsHeard(Command):
    """The assignor fields of a heartbeat's answer, for a member that offers assignors; ``attempt``
    is the heartbeat's. It precedes the other commands of the same answer. No answer."""

    attempt: int
    member_epoch: int
    news: AssignorNews


@dataclass(frozen=True, slots=True)
class Announce(Command):
    """The state changed: log it, call the hooks. No answer."""

    old: MemberState
    new: MemberState
    why: str


@dataclass(frozen=True, slots=True)
class Report(Command):
    """Report an error to the user, as its ``Severity`` says. It always precedes the member's
    reaction to the same error (KAFKA-18017). No answer."""

    error: Kip848Error
    severity: Severity


@dataclass(frozen=True, slots=True)
class CoordinatorRecovered(Command):
    """The coordinator answers again after it was reported as unreachable. No answer."""

    silent_ms: int

    @property
    def text(self) -> str:
        """What users read."""
        return answers_again(self.silent_ms)


@dataclass(frozen=True, slots=True)
class LeaveCompleted(Command):
    """The leave has ended: the group knows, or will notice when the session expires.

    ``error`` is the reason why the leave could not be sent; log it, do not raise it. After a final
    leave ``MemberCore.closed`` is true and the driver may stop, once the open callbacks have
    returned.
    """

    error: Kip848Error | None = None


@dataclass(frozen=True, slots=True)
class Note(Command):
    """Base of the commands for observers of the member. No answer; a driver without observers
    ignores all of them."""


class Phase(Enum):
    """The phase of a reconciliation, by what it waits for."""

    COMMITTING = "committing"
    """The commit before partitions change hands."""
    REVOKING = "revoking"
    """The application and its revoked callback."""
    ASSIGNING = "assigning"
    """The assigned callback."""


@dataclass(frozen=True, slots=True)
class PhaseBegan(Note):
    """A reconciliation is in this phase from now on, until the next such note or until the member
    is not RECONCILING any more."""

    phase: Phase


@dataclass(frozen=True, slots=True)
class Fenced(Note):
    """The coordinator fenced the member: ``cause`` is the name of its error, ``member_epoch`` the
    epoch that the member had (0 while joining)."""

    cause: str
    member_epoch: int


@dataclass(frozen=True, slots=True)
class NotPolled(Note):
    """The application has not polled for half of ``max.poll.interval.ms`` (``left_ms`` is the
    rest), or for all of it (0): then the member leaves after this note."""

    poll_age_ms: int
    left_ms: int

    @property
    def text(self) -> str:
        """What users read: what happened, what follows, and the way out."""
        return too_few_polls(self.poll_age_ms, self.left_ms)


@dataclass(frozen=True, slots=True)
class CoordinatorSilent(Note):
    """The coordinator has not answered for this long; accompanies each ``Report`` of it."""

    silent_ms: int
