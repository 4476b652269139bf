"""Converts the events of a consumer to events of the history. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict

from kip848_client.history.core import HistoryEvent
from kip848_client.observe.core.watching import (
    ApplicationStalled,
    CommitFenced,
    CoordinatorBack,
    CoordinatorLost,
    CoordinatorUnreachable,
    EventLoopBlocked,
    EventsMissed,
    HeartbeatAnswered,
    HeartbeatLost,
    HeartbeatRefused,
    MemberEpochChanged,
    MemberFailed,
    MemberFenced,
    MembershipEvent,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    StaleCommit,
    StateChanged,
)

__all__ = ["Who", "event_of"]


class Who(TypedDict):
    """The fields that all events of a member share."""

    role: str
    group_id: str
    member_id: str | None
    instance_id: str | None
    client_id: str | None


def _of(*names: str, **said: object) -> Callable[[Any], dict[str, object]]:
    """Copy fields with the same name, and others from the attribute named for each."""

    def read(event: Any) -> dict[str, object]:
        found = {name: getattr(event, name) for name in names}
        return found | {name: getattr(event, str(attribute)) for name, attribute in said.items()}

    return read


def _partitions(event: Any) -> dict[str, object]:
    return {
        "partitions": tuple(sorted(set(event.partitions))),
        "cause": getattr(event, "cause", None),
    }


def _state(event: Any) -> dict[str, object]:
    return {"old_state": event.old.value, "state": event.new.value, "cause": event.cause}


def _stale(event: Any) -> dict[str, object]:
    return _partitions(event) | {"cause": "STALE_MEMBER_EPOCH"}


_KINDS: Final[Mapping[type[MembershipEvent], tuple[str, Callable[[Any], dict[str, object]]]]] = {
    ApplicationStalled: ("stalled", _of(duration_ms="poll_age_ms")),
    CommitFenced: ("commit_refused", _partitions),
    CoordinatorBack: ("coordinator_back", _of(duration_ms="silent_ms")),
    CoordinatorLost: ("coordinator_lost", _of("cause")),
    CoordinatorUnreachable: ("coordinator_silent", _of(duration_ms="silent_ms")),
    EventLoopBlocked: ("blocked", _of(duration_ms="late_ms")),
    EventsMissed: ("missed", _of("count")),
    HeartbeatAnswered: ("heartbeat", _of(duration_ms="latency_ms")),
    HeartbeatLost: ("heartbeat_lost", _of("cause", duration_ms="waited_ms")),
    HeartbeatRefused: ("heartbeat_refused", _of("cause", duration_ms="latency_ms")),
    MemberEpochChanged: ("epoch", _of()),
    MemberFailed: ("failed", lambda event: {"cause": str(event.error)}),
    MemberFenced: ("fenced", _of("cause")),
    PartitionsAssigned: ("assigned", _partitions),
    PartitionsLost: ("lost", _partitions),
    PartitionsRevoked: ("revoked", _partitions),
    StaleCommit: ("commit_refused", _stale),
    StateChanged: ("state", _state),
}


def event_of(told: MembershipEvent, who: Who) -> HistoryEvent:
    """Convert an event of ``Consumer.events``. Raises nothing.

    Args:
        told: The event.
        who: Whose it is.

    Returns:
        The event of the history, without ``writer``, ``seq`` and ``host``.
    """
    kind, read = _KINDS[type(told)]
    more: dict[str, Any] = read(told)
    return HistoryEvent(
        **who, kind=kind, time_ms=told.time_ms, member_epoch=told.member_epoch, **more
    )
