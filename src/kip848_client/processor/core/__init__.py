"""Exactly once: read, process, write, with the offsets in the transaction.

The names below are those of the processor's core, pure: ``ProcessorCore.step(now_ms, event) ->
commands``. When a transaction begins and ends, what an error of it leads to, what is read again,
and when partitions may be given up. ``ExactlyOnceProcessor`` is in ``_processor``, and what
performs the commands in ``_processor_driver``: the simulation has the core without them.
"""

from __future__ import annotations

from kip848_client.processor.core._commands import (
    Abort,
    Begin,
    Command,
    Commit,
    Cut,
    Drop,
    Ended,
    Notice,
    Poll,
    Process,
    Release,
    Rewind,
    SendDeadLetters,
    SendOffsets,
)
from kip848_client.processor.core._core import ProcessorCore
from kip848_client.processor.core._events import (
    Done,
    Event,
    Failed,
    FunctionFailed,
    Lost,
    OutputRefused,
    Polled,
    PollFailed,
    Processed,
    Revoked,
    RunRequested,
    StopRequested,
    TimerFired,
    WaitEnded,
)
from kip848_client.processor.core._model import Portion, ProcessorSettings, State

__all__ = [
    "Abort",
    "Begin",
    "Command",
    "Commit",
    "Cut",
    "Done",
    "Drop",
    "Ended",
    "Event",
    "Failed",
    "FunctionFailed",
    "Lost",
    "Notice",
    "OutputRefused",
    "Poll",
    "PollFailed",
    "Polled",
    "Portion",
    "Process",
    "Processed",
    "ProcessorCore",
    "ProcessorSettings",
    "Release",
    "Revoked",
    "Rewind",
    "RunRequested",
    "SendDeadLetters",
    "SendOffsets",
    "State",
    "StopRequested",
    "TimerFired",
    "WaitEnded",
]
