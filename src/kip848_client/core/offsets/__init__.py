"""Offsets: the application's positions, and when and how they are committed. Pure; no clock, no
I/O.

``OffsetTracker`` records what was delivered; ``CommitterCore`` turns commit calls into requests,
one at a time, with the retry rules of KIP-848. Both are used synchronously by one driver, which
shares one tracker with its committer::

    tracker = OffsetTracker()
    committer = CommitterCore(settings, tracker, jitter)
    for command in committer.step(now_ms, CommitAsked(1, CommitKind.MANUAL, tracker.snapshot(), t)):
        ...                                   # SendCommit -> CommitAnswered, finally CommitDone

Call ``tracker.confirm()`` whenever the application asks for more records, and before the commit of
a close that the application itself requested. Automatic commits store confirmed positions only.
"""

from __future__ import annotations

from kip848_client.core.offsets._committer import (
    CommitAnswered,
    CommitAsked,
    CommitCommand,
    CommitDone,
    CommitEvent,
    CommitImpossible,
    CommitLost,
    CommitRefusal,
    CommitterCore,
    CommitterSettings,
    CommitTimer,
    CoordinatorSuspect,
    EpochNoted,
    RefreshEpoch,
    SendCommit,
)
from kip848_client.core.offsets._in_flight import HeldRecords, InFlight
from kip848_client.core.offsets._kinds import CommitKind
from kip848_client.core.offsets._tracker import CommittableOffset, OffsetTracker

__all__ = [
    "CommitAnswered",
    "CommitAsked",
    "CommitCommand",
    "CommitDone",
    "CommitEvent",
    "CommitImpossible",
    "CommitKind",
    "CommitLost",
    "CommitRefusal",
    "CommitTimer",
    "CommittableOffset",
    "CommitterCore",
    "CommitterSettings",
    "CoordinatorSuspect",
    "EpochNoted",
    "HeldRecords",
    "InFlight",
    "OffsetTracker",
    "RefreshEpoch",
    "SendCommit",
]
