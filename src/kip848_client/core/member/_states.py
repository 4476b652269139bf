"""The states of a group member and every legal move between them.

Two rules, as in h11: everything that changes the state of a member goes through ``advance`` in
this file, and this file knows nothing about why a trigger happened.

Theory of operation
-------------------
The ten states carry the names that Kafka's Java client gives them, because every reader of
KIP-848 will compare.

A member is *out of the group* in UNSUBSCRIBED, FENCED, STALE and FATAL and sends nothing there.
It enters by JOINING (epoch 0, complete requests) and from then on the coordinator drives: each
assignment that differs from what the member holds is a *target* and puts it into RECONCILING,
where partitions are given up and taken; ACKNOWLEDGING lasts only until the next heartbeat is
built, which reports the new set; STABLE is everything in order.

Three ways lead out. The coordinator throws the member out (FENCED): it drops its partitions through
the lost callback, then joins again. The application stops polling (STALE): it leaves, drops its
partitions in the same way, and joins again when the application comes back. The user asks for it:
PREPARE_LEAVING while callbacks run, LEAVING until the coordinator has answered the leave.

FATAL ends the member: the user must act. Nothing leads out of it.

Triggers are internal: ``_core`` computes them from events. They are classes and not an enum so
that a reader finds the prose beside the name. Three differences from Kafka's Java client:

- LEAVING lasts until the leave is answered or given up, not until it is sent, because we retry a
  leave (KIP-1092's budget). So UNSUBSCRIBED never has a request open, and a subscribe that comes
  while leaving waits for the old membership to be gone.
- STALE and FENCED go to UNSUBSCRIBED when the user unsubscribes. In Java a stale member stays
  stale, and the next poll rejoins without a subscription.
- Edges that Java allows and cannot reach do not exist: UNSUBSCRIBED to PREPARE_LEAVING,
  PREPARE_LEAVING and LEAVING to FENCED, JOINING and RECONCILING to STABLE (a target that is news
  always needs an acknowledgement), UNSUBSCRIBED and LEAVING to FATAL (what is wrong with a leave
  shows in its completion, and does not keep the member from joining again).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kip848_client.errors import LocalProtocolError

__all__ = [
    "HEARTBEATING",
    "IN_GROUP",
    "TAKES_ASSIGNMENT",
    "TRANSITIONS",
    "Acknowledged",
    "AcknowledgedInPart",
    "CallbacksDone",
    "Failed",
    "FencedOut",
    "Joined",
    "LeaveAsked",
    "LeaveDone",
    "MemberState",
    "PollOverdue",
    "Reconciled",
    "TargetChanged",
    "Trigger",
    "advance",
]


class MemberState(Enum):
    """Where a member is in its life; see the module's theory of operation."""

    UNSUBSCRIBED = "UNSUBSCRIBED"
    """Not in a group: never subscribed, or left. May commit as a non-member."""
    JOINING = "JOINING"
    """Wants in: sends complete requests until an answer carries an assignment."""
    RECONCILING = "RECONCILING"
    """The target differs from what is held: resolving, committing, calling back."""
    ACKNOWLEDGING = "ACKNOWLEDGING"
    """Reconciled; the next heartbeat says so and is due at once."""
    STABLE = "STABLE"
    """In the group with nothing outstanding."""
    FENCED = "FENCED"
    """The coordinator rejected the epoch or the id; partitions are being dropped as lost."""
    PREPARE_LEAVING = "PREPARE_LEAVING"
    """The user wants out: callbacks run, heartbeats go on."""
    LEAVING = "LEAVING"
    """Callbacks done; the leave is on its way."""
    STALE = "STALE"
    """Left because the application did not poll; waits for callback and poll, then rejoins."""
    FATAL = "FATAL"
    """Cannot recover; the user must close and fix the cause."""

    def __str__(self) -> str:
        return self.value


class Trigger:
    """Base of the internal causes of a move. Used as classes, never instantiated."""


class Joined(Trigger):
    """The member wants in: first poll after a subscribe, lost callback done, stale poll."""


class TargetChanged(Trigger):
    """An accepted heartbeat left a target that differs from what is held."""


class Reconciled(Trigger):
    """Callbacks are done (or none were needed): the held set must be acknowledged."""


class Acknowledged(Trigger):
    """The acknowledging heartbeat was built and the target is met."""


class AcknowledgedInPart(Trigger):
    """The acknowledging heartbeat was built, but a newer or unresolved target remains."""


class FencedOut(Trigger):
    """The coordinator does not know the member id or epoch any more."""


class PollOverdue(Trigger):
    """A member that left because of ``max.poll.interval.ms`` has sent its leave."""


class LeaveAsked(Trigger):
    """The user unsubscribed or closes, or the poll interval ran out."""


class CallbacksDone(Trigger):
    """The partitions are given up: the leave can be sent."""


class LeaveDone(Trigger):
    """The leave was answered, was not needed, or was given up."""


class Failed(Trigger):
    """An error that no retry can cure."""


_S = MemberState
_IN_GROUP_EXITS: Final[Mapping[type[Trigger], MemberState]] = {
    FencedOut: _S.FENCED,
    LeaveAsked: _S.PREPARE_LEAVING,
    Failed: _S.FATAL,
}

TRANSITIONS: Final[Mapping[MemberState, Mapping[type[Trigger], MemberState]]] = {
    _S.UNSUBSCRIBED: {
        Joined: _S.JOINING,
    },
    _S.JOINING: {
        TargetChanged: _S.RECONCILING,
        **_IN_GROUP_EXITS,
    },
    _S.RECONCILING: {
        TargetChanged: _S.RECONCILING,
        Reconciled: _S.ACKNOWLEDGING,
        **_IN_GROUP_EXITS,
    },
    _S.ACKNOWLEDGING: {
        TargetChanged: _S.RECONCILING,
        Acknowledged: _S.STABLE,
        AcknowledgedInPart: _S.RECONCILING,
        **_IN_GROUP_EXITS,
    },
    _S.STABLE: {
        TargetChanged: _S.RECONCILING,
        **_IN_GROUP_EXITS,
    },
    _S.FENCED: {
        Joined: _S.JOINING,
        LeaveAsked: _S.UNSUBSCRIBED,
    },
    _S.PREPARE_LEAVING: {
        CallbacksDone: _S.LEAVING,
        FencedOut: _S.UNSUBSCRIBED,
        Failed: _S.FATAL,
    },
    _S.LEAVING: {
        LeaveDone: _S.UNSUBSCRIBED,
        PollOverdue: _S.STALE,
    },
    _S.STALE: {
        Joined: _S.JOINING,
        LeaveAsked: _S.UNSUBSCRIBED,
    },
    _S.FATAL: {},
}
"""Every legal move. What is not here is refused by ``advance``."""

HEARTBEATING: Final = frozenset(
    {_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE, _S.PREPARE_LEAVING, _S.LEAVING}
)
"""States that talk to the coordinator."""

IN_GROUP: Final = frozenset(
    {_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE, _S.PREPARE_LEAVING}
)
"""States in which an answer of the coordinator counts for the membership."""

TAKES_ASSIGNMENT: Final = frozenset({_S.JOINING, _S.RECONCILING, _S.ACKNOWLEDGING, _S.STABLE})
"""States in which a new assignment becomes the target, and in which a leave makes sense."""


def advance(state: MemberState, trigger: type[Trigger]) -> MemberState:
    """The state after ``trigger``; ``LocalProtocolError`` when the table has no such move."""
    try:
        return TRANSITIONS[state][trigger]
    except KeyError:
        raise LocalProtocolError(
            f"a member cannot take {trigger.__name__} in state {state.value}"
        ) from None
