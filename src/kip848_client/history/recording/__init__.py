"""Record what happens to the members of groups, and read such records.

    from kip848_client.history.recording import recording

    async with recording(consumer, "events.jsonl"), consumer:
        ...

The events are those of ``kip848_client.history.core``: ``kip848 report`` shows them, and
``kip848_client.spark.history`` makes tables of them.
"""

from __future__ import annotations

from kip848_client.history.core._members import Who, event_of
from kip848_client.history.recording._reading import Complaint, Record, read_files
from kip848_client.history.recording._recording import Recording, recording
from kip848_client.history.recording._sinks import HistoryFile, HistoryTopic, Sink, Stamp

__all__ = [
    "Complaint",
    "HistoryFile",
    "HistoryTopic",
    "Record",
    "Recording",
    "Sink",
    "Stamp",
    "Who",
    "event_of",
    "read_files",
    "recording",
]
