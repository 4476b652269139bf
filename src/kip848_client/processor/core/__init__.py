"""Exactly-once processing: read, process and write, with the offsets in the transaction.

``ProcessorCore`` is pure: ``ProcessorCore.step(now_ms, event) -> commands``. It decides when a
transaction begins and ends, how its errors are handled, which records are read again, and when
partitions may be given up. ``ExactlyOnceProcessor`` is in ``_processor``, and its driver in
``_processor_driver``; the simulation uses the core without them.
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
