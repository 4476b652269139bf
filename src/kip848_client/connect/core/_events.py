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
    """Base of all of them."""


@dataclass(frozen=True, slots=True)
class JoinRequested(WorkerEvent):
    """The worker is ready to run something."""

    configuration: Configuration


@dataclass(frozen=True, slots=True)
class ConfigurationRead(WorkerEvent):
    """The worker knows this now. What waits for it is started, or computed. One that is older than
    what it knew is ignored.

    A change of what there is to run does not ask for a new assignment by itself: one worker is
    enough for that (``RebalanceRequested``).
    """

    configuration: Configuration


@dataclass(frozen=True, slots=True)
class RebalanceRequested(WorkerEvent):
    """The group needs a new assignment: ``reason`` is a ``RebalanceReason``, or one of your own
    from 64 to 127. ``assignors``: what is offered from now on, if it has changed."""

    reason: int
    assignors: tuple[AssignorVersions, ...] | None = None


@dataclass(frozen=True, slots=True)
class ItemsStopped(WorkerEvent):
    """Answer to ``StopItems``: nothing of them runs any more, or was cut off."""

    plan: int


@dataclass(frozen=True, slots=True)
class ItemsStarted(WorkerEvent):
    """Answer to ``StartItems``: whatever has become of each. One that failed is this worker's all
    the same."""

    plan: int


@dataclass(frozen=True, slots=True)
class WorkersPrepared(WorkerEvent):
    """Answer to ``PrepareTarget``: the group, or why it was refused."""

    number: int
    group: PreparedWorkers | None = None
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class TargetComputed(WorkerEvent):
    """Answer to ``ComputeTarget``: what the assignor returned, whatever that is, or how it failed.
    What it raised is the ``__cause__`` of the failure."""

    number: int
    returned: object = None
    failure: AssignorFailed | None = None


@dataclass(frozen=True, slots=True)
class TargetInstalled(WorkerEvent):
    """Answer to ``InstallTarget``: it is the target of the group now, or why it was refused."""

    number: int
    refusal: BrokerError | None = None


@dataclass(frozen=True, slots=True)
class ComputingLost(WorkerEvent):
    """Answer to ``PrepareTarget`` and ``InstallTarget``: there is none, asking again may help."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class ComputingImpossible(WorkerEvent):
    """Answer to ``PrepareTarget`` and ``InstallTarget``: asking again cannot help."""

    number: int
    error: Kip848Error
