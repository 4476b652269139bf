"""What of a client can be seen from outside: its events, its metrics, its health. Pure.

Nothing here decides anything: all of it reads along with what the cores take and
ask for.
"""

from __future__ import annotations

from kip848_client.watching._chronicle import Chronicle
from kip848_client.watching._connection_meter import ConnectionMeter
from kip848_client.watching._event_loop import is_blocked, what_happens_next
from kip848_client.watching._events import (
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
from kip848_client.watching._fetch_meter import FetchMeter, lag_of
from kip848_client.watching._group_meter import GroupMeter
from kip848_client.watching._health import ConsumerHealth
from kip848_client.watching._poll_meter import PollMeter
from kip848_client.watching._producer_meter import ProducerMeter

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
    "MemberEpochChanged",
    "MemberFailed",
    "MemberFenced",
    "MembershipEvent",
    "PartitionsAssigned",
    "PartitionsLost",
    "PartitionsRevoked",
    "PollMeter",
    "ProducerMeter",
    "StaleCommit",
    "StateChanged",
    "is_blocked",
    "lag_of",
    "what_happens_next",
]
