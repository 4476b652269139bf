"""Workers that share connectors and their tasks, as members of a group on the protocol of KIP-848.

``WorkerCore`` decides; a driver performs, as with ``kip848_client.member``: events in, commands
out, no clock and no I/O.
"""

from __future__ import annotations

from kip848_client.worker._commands import ReadConfiguration, StartItems, StopItems, WorkerCommand
from kip848_client.worker._core import Output, WorkerCore
from kip848_client.worker._events import (
    ConfigurationRead,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    RebalanceRequested,
    WorkerEvent,
)
from kip848_client.worker._model import AssignedItem, AssignorVersions, WorkerSettings
from kip848_client.worker._wire import heartbeat_outcome, heartbeat_request

__all__ = [
    "AssignedItem",
    "AssignorVersions",
    "ConfigurationRead",
    "ItemsStarted",
    "ItemsStopped",
    "JoinRequested",
    "Output",
    "ReadConfiguration",
    "RebalanceRequested",
    "StartItems",
    "StopItems",
    "WorkerCommand",
    "WorkerCore",
    "WorkerEvent",
    "WorkerSettings",
    "heartbeat_outcome",
    "heartbeat_request",
]
