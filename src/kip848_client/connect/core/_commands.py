"""Commands of a worker's core to its driver, besides those of every member core
(``kip848_client.core.member``)."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.connect.core._model import AssignedItem, InstallableTarget
from kip848_client.core.connect import NewWorkerAssignment, WorkerGroup

__all__ = [
    "AbandonComputation",
    "ComputeTarget",
    "InstallTarget",
    "PrepareTarget",
    "ReadConfiguration",
    "StartItems",
    "StopItems",
    "TellAssignors",
    "WorkerCommand",
]


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """Base of all commands of a worker."""


@dataclass(frozen=True, slots=True)
class StopItems(WorkerCommand):
    """Stop items.

    Answer with ``ItemsStopped`` when none of them runs any more, or the stop was cancelled. Until
    then no other worker gets them.

    Attributes:
        plan: The number of the request; the answer has the same number.
        items: The items to stop.
        lost: The group has removed this worker, or may have: other workers may run the items
            already.
        last: These are all items, because the worker leaves or was removed.
    """

    plan: int
    items: tuple[AssignedItem, ...]
    lost: bool
    last: bool


@dataclass(frozen=True, slots=True)
class StartItems(WorkerCommand):
    """Start items.

    Answer with ``ItemsStarted`` when the start of each was attempted.

    Attributes:
        plan: The number of the request; the answer has the same number.
        items: The items to start.
        assignment: All items that run here afterwards.
    """

    plan: int
    items: tuple[AssignedItem, ...]
    assignment: tuple[AssignedItem, ...]


@dataclass(frozen=True, slots=True)
class ReadConfiguration(WorkerCommand):
    """Read the configuration that an assignment is based on.

    Answer with ``ConfigurationRead``. Until then nothing is started.

    Attributes:
        config_offset: Read at least to this offset.
    """

    config_offset: int


@dataclass(frozen=True, slots=True)
class PrepareTarget(WorkerCommand):
    """Request the current group from the coordinator.

    The coordinator is looked up if necessary. Answer with ``WorkersPrepared``, ``ComputingLost`` or
    ``ComputingImpossible``.

    Attributes:
        number: The number of the computation; the answer has the same number.
        member_epoch: For the request.
        timeout_ms: The time limit for the answer, in milliseconds.
    """

    number: int
    member_epoch: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class ComputeTarget(WorkerCommand):
    """Run an assignor; nothing else waits for it.

    Answer with ``TargetComputed``. Only one runs at a time.

    Attributes:
        number: The number of the computation; the answer has the same number.
        assignor: Its name.
        group: The first argument of ``assign``.
        memory: The second argument of ``assign``.
        timeout_ms: The time limit for the answer, in milliseconds.
    """

    number: int
    assignor: str
    group: WorkerGroup
    memory: object
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class AbandonComputation(WorkerCommand):
    """Cancel a computation if possible: its result is not needed any more. No answer.

    Attributes:
        number: The number of the ``ComputeTarget``.
    """

    number: int


@dataclass(frozen=True, slots=True)
class InstallTarget(WorkerCommand):
    """Send the target for a group epoch to the coordinator.

    The coordinator is looked up if necessary. Answer with ``TargetInstalled``, ``ComputingLost`` or
    ``ComputingImpossible``.

    Attributes:
        number: The number of the computation; the answer has the same number.
        member_epoch: For the request.
        group_epoch: The epoch that the target is for.
        target: The result of the assignor.
        timeout_ms: The time limit for the answer, in milliseconds.
    """

    number: int
    member_epoch: int
    group_epoch: int
    target: InstallableTarget
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class TellAssignors(WorkerCommand):
    """Call ``on_assignment`` of each assignor.

    These calls come before items are stopped and started for it. No answer.

    Attributes:
        assignment: The argument.
    """

    assignment: NewWorkerAssignment
