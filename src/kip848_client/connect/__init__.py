"""Workers that share the names of connectors and tasks, as members of one group.

``Worker`` is what users import. Inside, ``WorkerCore`` decides and ``_driving`` performs, as with
``kip848_client.core.member``: events in, commands out, no clock and no I/O in the core.
"""

from __future__ import annotations

from kip848_client.connect._listener import WorkerRebalanceListener
from kip848_client.connect._worker import Worker
from kip848_client.connect.core._classic_core import ClassicWorkerCore
from kip848_client.connect.core._classic_messages import (
    ClassicAnswer,
    ClassicRequest,
    HeartbeatTaken,
    Joined,
    Left,
    RequestFailed,
    RequestLost,
    RequestRefused,
    SendClassicHeartbeat,
    SendJoin,
    SendLeave,
    SendSync,
    Synced,
    WaitingRequest,
)
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._classic_wire import VERSIONS, classic_answer, classic_request
from kip848_client.connect.core._commands import (
    AbandonComputation,
    ComputeTarget,
    InstallTarget,
    PrepareTarget,
    ReadConfiguration,
    StartItems,
    StopItems,
    TellAssignors,
    WorkerCommand,
)
from kip848_client.connect.core._core import Output, WorkerCore
from kip848_client.connect.core._events import (
    ComputingImpossible,
    ComputingLost,
    ConfigurationRead,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    RebalanceRequested,
    TargetComputed,
    TargetInstalled,
    WorkerEvent,
    WorkersPrepared,
)
from kip848_client.connect.core._model import (
    AssignedItem,
    AssignorVersions,
    Configuration,
    ConnectorTasks,
    InstallableTarget,
    PreparedWorkers,
    WorkerRow,
    WorkerSettings,
)
from kip848_client.connect.core._wire import (
    heartbeat_outcome,
    heartbeat_request,
    install_outcome,
    install_request,
    prepare_outcome,
    prepare_request,
)

__all__ = [
    "VERSIONS",
    "AbandonComputation",
    "AssignedItem",
    "AssignorVersions",
    "ClassicAnswer",
    "ClassicRequest",
    "ClassicWorkerCore",
    "ClassicWorkerSettings",
    "ComputeTarget",
    "ComputingImpossible",
    "ComputingLost",
    "Configuration",
    "ConfigurationRead",
    "ConnectorTasks",
    "HeartbeatTaken",
    "InstallTarget",
    "InstallableTarget",
    "ItemsStarted",
    "ItemsStopped",
    "JoinRequested",
    "Joined",
    "Left",
    "Output",
    "PrepareTarget",
    "PreparedWorkers",
    "ReadConfiguration",
    "RebalanceRequested",
    "RequestFailed",
    "RequestLost",
    "RequestRefused",
    "SendClassicHeartbeat",
    "SendJoin",
    "SendLeave",
    "SendSync",
    "StartItems",
    "StopItems",
    "Synced",
    "TargetComputed",
    "TargetInstalled",
    "TellAssignors",
    "WaitingRequest",
    "Worker",
    "WorkerCommand",
    "WorkerCore",
    "WorkerEvent",
    "WorkerRebalanceListener",
    "WorkerRow",
    "WorkerSettings",
    "WorkersPrepared",
    "classic_answer",
    "classic_request",
    "heartbeat_outcome",
    "heartbeat_request",
    "install_outcome",
    "install_request",
    "prepare_outcome",
    "prepare_request",
]
