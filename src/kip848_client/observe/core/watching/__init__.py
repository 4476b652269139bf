"""The observable state of a client: its events, metrics and health. Pure.

Nothing here decides anything: all of it observes the events and commands of the cores.

Each part is imported on first use: a consumer does not need the producer's core, which the
producer's meter imports, and a producer needs nothing of the membership.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kip848_client.core.lazy import lazy_names

if TYPE_CHECKING:
    from kip848_client.observe.core.watching._chronicle import Chronicle
    from kip848_client.observe.core.watching._connection_meter import ConnectionMeter
    from kip848_client.observe.core.watching._event_loop import is_blocked, what_happens_next
    from kip848_client.observe.core.watching._events import (
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
    from kip848_client.observe.core.watching._fetch_meter import FetchMeter, lag_of
    from kip848_client.observe.core.watching._group_meter import GroupMeter
    from kip848_client.observe.core.watching._health import (
        ConsumerHealth,
        Lifecycle,
        MemberHealth,
        WorkerHealth,
    )
    from kip848_client.observe.core.watching._membership_meter import MembershipMeter
    from kip848_client.observe.core.watching._poll_meter import PollMeter
    from kip848_client.observe.core.watching._producer_meter import ProducerMeter

__all__ = [
    "ApplicationStalled",
    "Chronicle",
    "CommitFenced",
    "ConnectionMeter",
    "ConsumerHealth",
    "CoordinatorBack",
    "CoordinatorLost",
    "CoordinatorUnreachable",
    "EventLoopBlocked",
    "EventsMissed",
    "FetchMeter",
    "GroupMeter",
    "HeartbeatAnswered",
    "HeartbeatLost",
    "HeartbeatRefused",
    "Lifecycle",
    "MemberEpochChanged",
    "MemberFailed",
    "MemberFenced",
    "MemberHealth",
    "MembershipEvent",
    "MembershipMeter",
    "PartitionsAssigned",
    "PartitionsLost",
    "PartitionsRevoked",
    "PollMeter",
    "ProducerMeter",
    "StaleCommit",
    "StateChanged",
    "WorkerHealth",
    "is_blocked",
    "lag_of",
    "what_happens_next",
]

_LAZY: Final = {
    "ApplicationStalled": "kip848_client.observe.core.watching._events",
    "Chronicle": "kip848_client.observe.core.watching._chronicle",
    "CommitFenced": "kip848_client.observe.core.watching._events",
    "ConnectionMeter": "kip848_client.observe.core.watching._connection_meter",
    "ConsumerHealth": "kip848_client.observe.core.watching._health",
    "CoordinatorBack": "kip848_client.observe.core.watching._events",
    "CoordinatorLost": "kip848_client.observe.core.watching._events",
    "CoordinatorUnreachable": "kip848_client.observe.core.watching._events",
    "EventLoopBlocked": "kip848_client.observe.core.watching._events",
    "EventsMissed": "kip848_client.observe.core.watching._events",
    "FetchMeter": "kip848_client.observe.core.watching._fetch_meter",
    "GroupMeter": "kip848_client.observe.core.watching._group_meter",
    "HeartbeatAnswered": "kip848_client.observe.core.watching._events",
    "HeartbeatLost": "kip848_client.observe.core.watching._events",
    "HeartbeatRefused": "kip848_client.observe.core.watching._events",
    "Lifecycle": "kip848_client.observe.core.watching._health",
    "MemberEpochChanged": "kip848_client.observe.core.watching._events",
    "MemberFailed": "kip848_client.observe.core.watching._events",
    "MemberFenced": "kip848_client.observe.core.watching._events",
    "MemberHealth": "kip848_client.observe.core.watching._health",
    "MembershipEvent": "kip848_client.observe.core.watching._events",
    "MembershipMeter": "kip848_client.observe.core.watching._membership_meter",
    "PartitionsAssigned": "kip848_client.observe.core.watching._events",
    "PartitionsLost": "kip848_client.observe.core.watching._events",
    "PartitionsRevoked": "kip848_client.observe.core.watching._events",
    "PollMeter": "kip848_client.observe.core.watching._poll_meter",
    "ProducerMeter": "kip848_client.observe.core.watching._producer_meter",
    "StaleCommit": "kip848_client.observe.core.watching._events",
    "StateChanged": "kip848_client.observe.core.watching._events",
    "WorkerHealth": "kip848_client.observe.core.watching._health",
    "is_blocked": "kip848_client.observe.core.watching._event_loop",
    "lag_of": "kip848_client.observe.core.watching._fetch_meter",
    "what_happens_next": "kip848_client.observe.core.watching._event_loop",
}

__getattr__ = lazy_names(__name__, _LAZY)
