"""All of a consumer's decisions about its group, as one pure core.

``GroupCore.step(now_ms, event)`` takes the events of the member (``kip848_client.core.member``), of
the committer (``kip848_client.core.offsets``) and its own, and returns commands. A driver, the
consumer's or the simulation's, performs them in order and does nothing else::

    def feed(event: Input) -> None:            # synchronous, and the only caller of step
        for command in core.step(clock.now_ms(), event):
            perform(command)                   # sends, calls, logs; answers come back as events
        fetcher.fetch_only(core.fetchable)     # before anything is awaited

``core.deadline_ms`` is the time at which to deliver ``TimerFired`` if nothing happens before.
"""

from __future__ import annotations

from kip848_client.core.group._commands import (
    AbandonComputation,
    AssignorCommand,
    AssignPartitions,
    AutomaticCommitFailed,
    AutomaticCommitsRecovered,
    AwaitApplication,
    CallAssignors,
    CallListener,
    CommittedFailed,
    CommittedFound,
    ComputeAssignment,
    FetchCommitted,
    FlushDone,
    ForgetPartitions,
    GroupCommand,
    InstallAssignment,
    ListenerMethod,
    Output,
    PollWanted,
    PrepareAssignment,
    StartFetching,
)
from kip848_client.core.group._core import GroupCore
from kip848_client.core.group._events import (
    ApplicationDone,
    AssignmentComputed,
    AssignmentImpossible,
    AssignmentInstalled,
    AssignmentLost,
    AssignmentPrepared,
    CommittedAnswered,
    CommittedAsked,
    CommittedImpossible,
    CommittedLost,
    CommittedRow,
    Detached,
    FlushAsked,
    GroupEvent,
    Input,
    ListenerReplaced,
    ListenerReturned,
)
from kip848_client.core.group._reasons import by_reason

__all__ = [
    "AbandonComputation",
    "ApplicationDone",
    "AssignPartitions",
    "AssignmentComputed",
    "AssignmentImpossible",
    "AssignmentInstalled",
    "AssignmentLost",
    "AssignmentPrepared",
    "AssignorCommand",
    "AutomaticCommitFailed",
    "AutomaticCommitsRecovered",
    "AwaitApplication",
    "CallAssignors",
    "CallListener",
    "CommittedAnswered",
    "CommittedAsked",
    "CommittedFailed",
    "CommittedFound",
    "CommittedImpossible",
    "CommittedLost",
    "CommittedRow",
    "ComputeAssignment",
    "Detached",
    "FetchCommitted",
    "FlushAsked",
    "FlushDone",
    "ForgetPartitions",
    "GroupCommand",
    "GroupCore",
    "GroupEvent",
    "Input",
    "InstallAssignment",
    "ListenerMethod",
    "ListenerReplaced",
    "ListenerReturned",
    "Output",
    "PollWanted",
    "PrepareAssignment",
    "StartFetching",
    "by_reason",
]
