"""Everything that a consumer decides about its group, as one pure core.

``GroupCore.step(now_ms, event)`` takes the events of the member (``kip848_client.member``), of the
committer (``kip848_client.offsets``) and its own, and returns commands. A driver, the consumer's or
the simulation's, performs them in order and does nothing else::

    def feed(event: Input) -> None:            # synchronous, and the only caller of step
        for command in core.step(clock.now_ms(), event):
            perform(command)                   # sends, calls, logs; answers come back as events
        fetcher.fetch_only(core.fetchable)     # before anything is awaited

``core.deadline_ms`` is the time at which to deliver ``TimerFired`` if nothing happens before.
"""

from __future__ import annotations

from kip848_client.group._commands import (
    AssignPartitions,
    AutomaticCommitFailed,
    AwaitApplication,
    CallListener,
    CommittedFailed,
    CommittedFound,
    FetchCommitted,
    FlushDone,
    ForgetPartitions,
    GroupCommand,
    ListenerMethod,
    Output,
    PollWanted,
    StartFetching,
)
from kip848_client.group._core import GroupCore
from kip848_client.group._events import (
    ApplicationDone,
    CommittedAnswered,
    CommittedAsked,
    CommittedImpossible,
    CommittedLost,
    CommittedRow,
    Detached,
    FlushAsked,
    GroupEvent,
    Input,
    ListenerReturned,
)
from kip848_client.group._reasons import by_reason

__all__ = [
    "ApplicationDone",
    "AssignPartitions",
    "AutomaticCommitFailed",
    "AwaitApplication",
    "CallListener",
    "CommittedAnswered",
    "CommittedAsked",
    "CommittedFailed",
    "CommittedFound",
    "CommittedImpossible",
    "CommittedLost",
    "CommittedRow",
    "Detached",
    "FetchCommitted",
    "FlushAsked",
    "FlushDone",
    "ForgetPartitions",
    "GroupCommand",
    "GroupCore",
    "GroupEvent",
    "Input",
    "ListenerMethod",
    "ListenerReturned",
    "Output",
    "PollWanted",
    "StartFetching",
    "by_reason",
]
