"""Workers of Kafka Connect, without I/O: the bytes of their metadata and assignments, and the
assignors that distribute connectors and tasks among them."""

from __future__ import annotations

from kip848_client.core.client_assignors import AssignorFailed, AssignorMetadata
from kip848_client.core.connect._checked import DATA_MAX, checked_target, computed_target
from kip848_client.core.connect._eager import EagerAssignor, eager_round
from kip848_client.core.connect._encoding import CONFIG_MISMATCH, WorkerAssignment, WorkerMetadata
from kip848_client.core.connect._incremental import (
    IncrementalCooperativeAssignor,
    IncrementalMemory,
    ReturningWorker,
)
from kip848_client.core.connect._items import (
    ITSELF,
    NO_ITEMS,
    ConnectorTaskId,
    Items,
    item_name,
    items_of,
)
from kip848_client.core.connect._leading import Configuration, Leader, Led, lead
from kip848_client.core.connect._model import (
    AssignmentMetadata,
    Computed,
    ConnectAssignor,
    GroupWorker,
    NewWorkerAssignment,
    TargetAssignment,
    WorkerGroup,
    group_worker,
)
from kip848_client.core.connect._protocols import PROTOCOL_TYPE, ConnectProtocol, RebalanceReason
from kip848_client.core.connect._resources import (
    ItemsError,
    OwnedItems,
    connector_of,
    parts_of,
    read_items,
    resource_of,
    taken_once,
    write_items,
)
from kip848_client.core.connect._rounds import Round, RoundMemory, WorkerRound, incremental_round
from kip848_client.core.connect._spread import SpreadAssignor

__all__ = [
    "CONFIG_MISMATCH",
    "DATA_MAX",
    "ITSELF",
    "NO_ITEMS",
    "PROTOCOL_TYPE",
    "AssignmentMetadata",
    "AssignorFailed",
    "AssignorMetadata",
    "Computed",
    "Configuration",
    "ConnectAssignor",
    "ConnectProtocol",
    "ConnectorTaskId",
    "EagerAssignor",
    "GroupWorker",
    "IncrementalCooperativeAssignor",
    "IncrementalMemory",
    "Items",
    "ItemsError",
    "Leader",
    "Led",
    "NewWorkerAssignment",
    "OwnedItems",
    "RebalanceReason",
    "ReturningWorker",
    "Round",
    "RoundMemory",
    "SpreadAssignor",
    "TargetAssignment",
    "WorkerAssignment",
    "WorkerGroup",
    "WorkerMetadata",
    "WorkerRound",
    "checked_target",
    "computed_target",
    "connector_of",
    "eager_round",
    "group_worker",
    "incremental_round",
    "item_name",
    "items_of",
    "lead",
    "parts_of",
    "read_items",
    "resource_of",
    "taken_once",
    "write_items",
]
