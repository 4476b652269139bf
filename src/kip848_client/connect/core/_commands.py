"""What a worker's membership asks of its driver, beyond what any member asks
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
    """Base of all of them."""


@dataclass(frozen=True, slots=True)
class StopItems(WorkerCommand):
    """Stop these. Answer: ``ItemsStopped`` with the same number, when nothing of them runs any more
    or what runs was cut off; until then nobody else is given them.

    ``lost``: the group has put this worker out, or may have: others may run them already. ``last``:
    this is everything, for the worker leaves or was put out.
    """

    plan: int
    items: tuple[AssignedItem, ...]
    lost: bool
    last: bool


@dataclass(frozen=True, slots=True)
class StartItems(WorkerCommand):
    """Start ``items``; ``assignment`` is all that runs here then. Answer: ``ItemsStarted`` with the
    same number, when a start was tried of each."""

    plan: int
    items: tuple[AssignedItem, ...]
    assignment: tuple[AssignedItem, ...]


@dataclass(frozen=True, slots=True)
class ReadConfiguration(WorkerCommand):
    """Read the configuration at least as far as this: an assignment was made of it. Answer:
    ``ConfigurationRead``. Until then nothing is started."""

    config_offset: int


@dataclass(frozen=True, slots=True)
class PrepareTarget(WorkerCommand):
    """Ask the coordinator, which is looked up if need be, for the group as it is. Answer:
    ``WorkersPrepared``, ``ComputingLost`` or ``ComputingImpossible``."""

    number: int
    member_epoch: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class ComputeTarget(WorkerCommand):
    """Run the assignor of this name, so that nothing else waits for it. Answer: ``TargetComputed``
    after ``timeout_ms`` at the latest. One runs at a time."""

    number: int
    assignor: str
    group: WorkerGroup
    memory: object
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class AbandonComputation(WorkerCommand):
    """Nobody waits for the ``ComputeTarget`` of this number any more: end it if possible. No
    answer."""

    number: int


@dataclass(frozen=True, slots=True)
class InstallTarget(WorkerCommand):
    """Give the coordinator, which is looked up if need be, the target for a group epoch. Answer:
    ``TargetInstalled``, ``ComputingLost`` or ``ComputingImpossible``."""

    number: int
    member_epoch: int
    group_epoch: int
    target: InstallableTarget
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class TellAssignors(WorkerCommand):
    """Call ``on_assignment`` of each assignor, before what is stopped and started for it. No
    answer."""

    assignment: NewWorkerAssignment
