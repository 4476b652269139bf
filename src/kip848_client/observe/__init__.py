"""A client's observable state: metrics, events, health and KIP-714 telemetry.

The events of ``Consumer.events()``, the health of ``Consumer.health()`` and ``Metrics`` are
imported with their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kip848_client.core.lazy import lazy_names

if TYPE_CHECKING:
    from kip848_client.observe.core.metrics import Metrics
    from kip848_client.observe.core.watching import (
        ApplicationStalled,
        CommitFenced,
        ConsumerHealth,
        CoordinatorBack,
        CoordinatorLost,
        CoordinatorUnreachable,
        EventLoopBlocked,
        EventsMissed,
        HeartbeatAnswered,
        HeartbeatLost,
        HeartbeatRefused,
        Lifecycle,
        MemberEpochChanged,
        MemberFailed,
        MemberFenced,
        MembershipEvent,
        PartitionsAssigned,
        PartitionsLost,
        PartitionsRevoked,
        StaleCommit,
        StateChanged,
        WorkerHealth,
    )

__all__ = [
    "ApplicationStalled",
    "CommitFenced",
    "ConsumerHealth",
    "CoordinatorBack",
    "CoordinatorLost",
    "CoordinatorUnreachable",
    "EventLoopBlocked",
    "EventsMissed",
    "HeartbeatAnswered",
    "HeartbeatLost",
    "HeartbeatRefused",
    "Lifecycle",
    "MemberEpochChanged",
    "MemberFailed",
    "MemberFenced",
    "MembershipEvent",
    "Metrics",
    "PartitionsAssigned",
    "PartitionsLost",
    "PartitionsRevoked",
    "StaleCommit",
    "StateChanged",
    "WorkerHealth",
]

_LAZY: Final = dict.fromkeys(__all__, "kip848_client.observe.core.watching") | {
    "Metrics": "kip848_client.observe.core.metrics"
}

__getattr__ = lazy_names(__name__, _LAZY)
