"""Which events a member refuses. Checked before anything changes."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.member import _events as ev
from kip848_client.errors import Kip848Error, LocalProtocolError

__all__ = ["Issued", "refuse_if_illegal"]


@dataclass(frozen=True, slots=True)
class Issued:
    """How many requests of each kind the member has issued: the numbers that answers may carry."""

    lookups: int
    heartbeats: int
    topic_queries: int
    plans: int


def refuse_if_illegal(
    event: ev.Event, asked: Issued, *, fatal: Kip848Error | None, closing: bool, closed: bool
) -> None:
    """Raise ``LocalProtocolError`` for an event that the state does not allow, for the answer to a
    request that was never issued, and for objects other than events."""
    match event:
        case ev.Subscribed() if fatal is not None:
            raise LocalProtocolError(f"the member is FATAL ({fatal}); close it")
        case ev.Subscribed() if closing or closed:
            raise LocalProtocolError("the member is closing or closed")
        case ev.LeaveRequested() if closed:
            raise LocalProtocolError("the member is closed already")
        case ev.CoordinatorFound() | ev.CoordinatorLookupFailed():
            number, issued = event.lookup, asked.lookups
        case ev.HeartbeatAnswered() | ev.HeartbeatLost() | ev.HeartbeatFailed():
            number, issued = event.attempt, asked.heartbeats
        case ev.TopicsResolved():
            number, issued = event.query, asked.topic_queries
        case ev.OffsetsFlushed() | ev.PartitionsReleased() | ev.PartitionsStarted():
            number, issued = event.plan, asked.plans
        case _ if type(event) not in ev.EVENT_TYPES:
            raise LocalProtocolError(f"not an event of a member: {event!r}")
        case _:
            return
    if not 0 < number <= issued:
        name = type(event).__name__
        raise LocalProtocolError(f"{name} answers {number}, and only {issued} were asked")
