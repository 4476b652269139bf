"""What can happen to a worker's membership beyond what happens to any member, in the past tense.

Of the member's own events a driver delivers those of the coordinator (found, lost, heartbeats
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
    """The worker is ready to run something.

    Attributes:
        configuration: What there is to run.
    """

    configuration: Configuration


@dataclass(frozen=True, slots=True)
class ConfigurationRead(WorkerEvent):
    """The worker has read the configuration.

    What waits for it is started, or computed. A configuration older than the known one is ignored.
    A change does not ask for a new assignment by itself: one worker is enough for that
    (``RebalanceRequested``).

    Attributes:
        configuration: What there is to run.
    """

    configuration: Configuration


@dataclass(frozen=True, slots=True)
class RebalanceRequested(WorkerEvent):
    """The group needs a new assignment.

    Attributes:
        reason: A ``RebalanceReason``, or your own number from 64 to 127.
        assignors: What is offered from now on; ``None`` if it has not changed.
    """

    reason: int
    assignors: tuple[AssignorVersions, ...] | None = None


@dataclass(frozen=True, slots=True)
class ItemsStopped(WorkerEvent):
    """Answer to ``StopItems``: nothing of the items runs any more, or it was cut off.

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
        refusal: Why; ``None`` if it was not refused.
    """

    number: int
    group: PreparedWorkers | None = None
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class TargetComputed(WorkerEvent):
    """Answer to ``ComputeTarget``.

    Attributes:
        number: The number of the command.
        returned: What the assignor returned, of whatever type.
        failure: How it failed, with what it raised as ``__cause__``; ``None`` if it returned.
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
    """No answer to ``PrepareTarget`` or ``InstallTarget``: asking again may help.

    Attributes:
        number: The number of the command.
        why: In words.
    """

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class ComputingImpossible(WorkerEvent):
    """``PrepareTarget`` or ``InstallTarget`` failed: asking again cannot help.

    Attributes:
        number: The number of the command.
        error: Why.
    """

    number: int
    error: Kip848Error
