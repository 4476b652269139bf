"""Events of a worker's core besides those of every member core, in the past tense.

Of the member's own events a driver delivers those about the coordinator (found, lost, heartbeats
answered), ``LeaveRequested`` and ``TimerFired``.
"""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.connect.core._model import AssignorVersions, Configuration, PreparedWorkers
from kip848_client.core.connect import AssignorFailed
from kip848_client.errors import BrokerError, Kip848Error

__all__ = [
    "ComputingImpossible",
    "ComputingLost",
    "ConfigurationRead",
    "ItemsStarted",
    "ItemsStopped",
    "JoinRequested",
    "RebalanceRequested",
    "TargetComputed",
    "TargetInstalled",
    "WorkerEvent",
    "WorkersPrepared",
]


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """Base of all events of a worker."""


@dataclass(frozen=True, slots=True)
class JoinRequested(WorkerEvent):
    """The worker is ready to run items.

    Attributes:
        configuration: The connectors and tasks to run.
    """

    configuration: Configuration


@dataclass(frozen=True, slots=True)
class ConfigurationRead(WorkerEvent):
    """The worker has read the configuration.

    Starts and computations that wait for it continue. A configuration older than the known one is
    ignored. A change does not request a new assignment by itself: one worker is enough for that
    (``RebalanceRequested``).

    Attributes:
        configuration: The connectors and tasks to run.
    """

    configuration: Configuration


@dataclass(frozen=True, slots=True)
class RebalanceRequested(WorkerEvent):
    """The group needs a new assignment.

    Attributes:
        reason: A ``RebalanceReason``, or a custom number from 64 to 127.
        assignors: The assignors to offer from now on; ``None`` if unchanged.
    """

    reason: int
    assignors: tuple[AssignorVersions, ...] | None = None


@dataclass(frozen=True, slots=True)
class ItemsStopped(WorkerEvent):
    """Answer to ``StopItems``: none of the items runs any more, or the stop was cancelled.

    Attributes:
        plan: The number of the ``StopItems``.
    """

    plan: int


@dataclass(frozen=True, slots=True)
class ItemsStarted(WorkerEvent):
    """Answer to ``StartItems``.

    An item that failed to start still belongs to this worker.

    Attributes:
        plan: The number of the ``StartItems``.
    """

    plan: int


@dataclass(frozen=True, slots=True)
class WorkersPrepared(WorkerEvent):
    """Answer to ``PrepareTarget``.

    Attributes:
        number: The number of the command.
        group: The group; ``None`` if it was refused.
        refusal: The reason; ``None`` if it was not refused.
    """

    number: int
    group: PreparedWorkers | None = None
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class TargetComputed(WorkerEvent):
    """Answer to ``ComputeTarget``.

    Attributes:
        number: The number of the command.
        returned: The assignor's result, of any type.
        failure: Its error, with the original exception as ``__cause__``; ``None`` if it returned.
    """

    number: int
    returned: object = None
    failure: AssignorFailed | None = None


@dataclass(frozen=True, slots=True)
class TargetInstalled(WorkerEvent):
    """Answer to ``InstallTarget``.

    Attributes:
        number: The number of the command.
        refusal: Why the coordinator refused; ``None``: it is the target of the group now.
    """

    number: int
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class ComputingLost(WorkerEvent):
    """No answer to ``PrepareTarget`` or ``InstallTarget``: a retry may help.

    Attributes:
        number: The number of the command.
        why: The reason, as text.
    """

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class ComputingImpossible(WorkerEvent):
    """``PrepareTarget`` or ``InstallTarget`` failed: a retry cannot help.

    Attributes:
        number: The number of the command.
        error: The reason.
    """

    number: int
    error: Kip848Error
