"""The states of a worker in a classic group, and all legal transitions.

As in ``kip848_client.core.member``: every change of state goes through ``advance`` in this file,
which knows nothing about the reasons for a trigger.

Theory of operation
-------------------
The classic protocol works in rounds. A worker sends JoinGroup, which is answered when all members
have sent theirs (JOINING), and then SyncGroup, which is answered when the leader, one of the
members, has computed the assignments (SYNCING). Its items keep running meanwhile: the incremental
protocol stops only the items that an assignment revokes. The worker stops those (RECONCILING),
starts new ones, becomes STABLE, and, if it had to stop any, begins the next round at once: only
then are they assigned to others.

Outside the group a worker sends nothing. FENCED: it was fenced, or may have been, and drops all its
items before it rejoins. PREPARE_LEAVING while it stops its items, LEAVING until the coordinator has
answered. STALE: it was to lead but lacked a configuration that other members know; it has left, so
that another worker leads, and waits.

Users see the states of ``MemberState`` (``seen_as``), so that a worker looks the same on every
group protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kip848_client.core.member import MemberState
from kip848_client.errors import LocalProtocolError

__all__ = [
    "HEARTBEATING",
    "IN_GROUP",
    "TALKING",
    "TRANSITIONS",
    "Assigned",
    "CallbacksDone",
    "ClassicState",
    "Failed",
    "GaveUpLeading",
    "JoinsAgain",
    "LeaveAsked",
    "LeaveDone",
    "MembersKnown",
    "PutOut",
    "Revokes",
    "Stopped",
    "Trigger",
    "advance",
]


class ClassicState(Enum):
    """The state of a worker; see the module's theory of operation."""

    UNSUBSCRIBED = "UNSUBSCRIBED"
    """Not in a group."""
    JOINING = "JOINING"
    """JoinGroup was sent, or is about to be sent."""
    SYNCING = "SYNCING"
    """The group has a new generation; the assignment is being computed."""
    RECONCILING = "RECONCILING"
    """Stops revoked items; starts new ones and rejoins afterwards."""
    STABLE = "STABLE"
    """In the group with nothing outstanding."""
    FENCED = "FENCED"
    """Fenced, or perhaps fenced; everything is being dropped as lost."""
    PREPARE_LEAVING = "PREPARE_LEAVING"
    """About to leave: everything is being stopped, heartbeats continue."""
    LEAVING = "LEAVING"
    """LeaveGroup was sent."""
    STALE = "STALE"
    """Left because it could not lead; waits for the configuration."""
    FATAL = "FATAL"
    """Cannot recover; the user must act."""

    @property
    def seen_as(self) -> MemberState:
        """The state that users see."""
        if self is ClassicState.SYNCING:
            return MemberState.JOINING
        return MemberState(self.value)


class Trigger:
    """Base of the internal causes of a transition. Used as classes, never instantiated."""


class JoinsAgain(Trigger):
    """A rebalance begins, or the worker wants to join."""


class MembersKnown(Trigger):
    """JoinGroup was answered: a new generation has begun."""


class Assigned(Trigger):
    """SyncGroup was answered."""


class Revokes(Trigger):
    """Items must be stopped before the worker rejoins."""


class Stopped(Trigger):
    """All items to be stopped have stopped."""


class PutOut(Trigger):
    """The coordinator does not know the worker any more, or the session may be over."""


class LeaveAsked(Trigger):
    """The user closes the worker, or the worker cannot lead."""


class CallbacksDone(Trigger):
    """Everything has stopped: LeaveGroup can be sent."""


class LeaveDone(Trigger):
    """LeaveGroup was answered, not needed, or given up."""


class GaveUpLeading(Trigger):
    """The same for a worker that left because it could not lead."""


class Failed(Trigger):
    """An error that a retry cannot fix."""


_S = ClassicState
_EXITS: Final[Mapping[type[Trigger], ClassicState]] = {
    PutOut: _S.FENCED,
    LeaveAsked: _S.PREPARE_LEAVING,
    Failed: _S.FATAL,
}

TRANSITIONS: Final[Mapping[ClassicState, Mapping[type[Trigger], ClassicState]]] = {
    _S.UNSUBSCRIBED: {JoinsAgain: _S.JOINING},
    _S.JOINING: {MembersKnown: _S.SYNCING, **_EXITS},
    _S.SYNCING: {
        Assigned: _S.RECONCILING,
        JoinsAgain: _S.JOINING,
        Revokes: _S.RECONCILING,
        **_EXITS,
    },
    _S.RECONCILING: {Stopped: _S.STABLE, **_EXITS},
    _S.STABLE: {JoinsAgain: _S.JOINING, Revokes: _S.RECONCILING, **_EXITS},
    _S.FENCED: {JoinsAgain: _S.JOINING, LeaveAsked: _S.UNSUBSCRIBED, Failed: _S.FATAL},
    _S.PREPARE_LEAVING: {
        CallbacksDone: _S.LEAVING,
        LeaveDone: _S.UNSUBSCRIBED,
        GaveUpLeading: _S.STALE,
        Failed: _S.FATAL,
    },
    _S.LEAVING: {LeaveDone: _S.UNSUBSCRIBED, GaveUpLeading: _S.STALE},
    _S.STALE: {JoinsAgain: _S.JOINING, LeaveAsked: _S.UNSUBSCRIBED},
    _S.FATAL: {},
}
"""All legal transitions. ``advance`` refuses any other."""

IN_GROUP: Final = frozenset({_S.JOINING, _S.SYNCING, _S.RECONCILING, _S.STABLE})
"""States of a worker that is in the group or is joining."""

HEARTBEATING: Final = IN_GROUP | {_S.PREPARE_LEAVING}
"""States in which it sends heartbeats, once it has a generation. This includes the time while
JoinGroup or SyncGroup wait at the coordinator, because nothing else shows that it is still
there."""

TALKING: Final = HEARTBEATING | {_S.LEAVING}
"""States that need the coordinator."""


def advance(state: ClassicState, trigger: type[Trigger]) -> ClassicState:
    """The state after ``trigger``. Raises ``LocalProtocolError`` if the table has no such
    transition."""
    try:
        return TRANSITIONS[state][trigger]
    except KeyError:
        raise LocalProtocolError(
            f"a worker cannot take {trigger.__name__} in state {state.value}"
        ) from None
