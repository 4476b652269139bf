"""Connect-style workers: members of one group that share the names of connectors and tasks.

``Worker`` is the class that a program starts. A custom assignor has the methods of
``ConnectAssignor``.
"""

from __future__ import annotations

from kip848_client.connect._listener import WorkerRebalanceListener
from kip848_client.connect._worker import Worker
from kip848_client.connect.core import (
    AssignedItem,
    ConnectorTasks,
    ItemsAssigned,
    ItemsLost,
    ItemsRevoked,
)
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
    RebalanceReason,
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
    "ConnectorTasks",
    "EagerAssignor",
    "GroupWorker",
    "IncrementalCooperativeAssignor",
    "Items",
    "ItemsAssigned",
    "ItemsLost",
    "ItemsRevoked",
    "NewWorkerAssignment",
    "RebalanceReason",
    "SpreadAssignor",
    "TargetAssignment",
    "Worker",
    "WorkerGroup",
    "WorkerRebalanceListener",
    "items_of",
]
