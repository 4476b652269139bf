"""Connect-style workers: they share the names of connectors and tasks as members of one group.

``Worker`` is what a program starts. An assignor of one's own has the methods of
``ConnectAssignor``.
"""

from __future__ import annotations

from kip848_client.connect._listener import WorkerRebalanceListener
from kip848_client.connect._worker import Worker
from kip848_client.connect.core import AssignedItem
from kip848_client.core.connect import (
    AssignmentMetadata,
    AssignorFailed,
    AssignorMetadata,
    Computed,
    ConnectAssignor,
    ConnectorTaskId,
    EagerAssignor,
    GroupWorker,
    IncrementalCooperativeAssignor,
    Items,
    NewWorkerAssignment,
    SpreadAssignor,
    TargetAssignment,
    WorkerGroup,
    items_of,
)

__all__ = [
    "AssignedItem",
    "AssignmentMetadata",
    "AssignorFailed",
    "AssignorMetadata",
    "Computed",
    "ConnectAssignor",
    "ConnectorTaskId",
    "EagerAssignor",
    "GroupWorker",
    "IncrementalCooperativeAssignor",
    "Items",
    "NewWorkerAssignment",
    "SpreadAssignor",
    "TargetAssignment",
    "Worker",
    "WorkerGroup",
    "WorkerRebalanceListener",
    "items_of",
]
