"""The consumer: the user's class, and the engine that keeps it a member of its group."""

from __future__ import annotations

from kip848_client.consumer._consumer import Consumer
from kip848_client.consumer._factories import connections
from kip848_client.consumer._listener import RebalanceListener
from kip848_client.consumer._offset_types import OffsetAndMetadata, OffsetAndTimestamp
from kip848_client.consumer._poller import Caller, calling_task
from kip848_client.consumer._view import MemberView
from kip848_client.core.types import GroupMetadata
from kip848_client.records import Record, RecordBatchView
from kip848_client.runtime.client._event_streams import EventStream

__all__ = [
    "Caller",
    "Consumer",
    "EventStream",
    "GroupMetadata",
    "MemberView",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "RebalanceListener",
    "Record",
    "RecordBatchView",
    "calling_task",
    "connections",
]
