"""What can happen to a worker's membership beyond what happens to any member, in the past tense.

Of the member's own events a driver delivers those of the coordinator (found, lost, heartbeats
answered), ``LeaveRequested`` and ``TimerFired``.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ConfigurationRead",
    "ItemsStarted",
    "ItemsStopped",
    "JoinRequested",
    "RebalanceRequested",
    "WorkerEvent",
]


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """Base of all of them."""


@dataclass(frozen=True, slots=True)
class JoinRequested(WorkerEvent):
    """The worker is ready to run something; ``config_offset`` is how far it knows the
    configuration."""

    config_offset: int


@dataclass(frozen=True, slots=True)
class ConfigurationRead(WorkerEvent):
    """The worker knows the configuration as far as this now. What waits for it is started."""

    config_offset: int


@dataclass(frozen=True, slots=True)
class RebalanceRequested(WorkerEvent):
    """The group needs a new assignment: ``reason`` is a ``RebalanceReason``, or one of your own
    from 64 to 127."""

    reason: int


@dataclass(frozen=True, slots=True)
class ItemsStopped(WorkerEvent):
    """Answer to ``StopItems``: nothing of them runs any more, or was cut off."""

    plan: int


@dataclass(frozen=True, slots=True)
class ItemsStarted(WorkerEvent):
    """Answer to ``StartItems``: whatever has become of each. One that failed is this worker's all
    the same."""

    plan: int
