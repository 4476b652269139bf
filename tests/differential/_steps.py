"""What a sequence consists of: requests to compare, and the few things that must happen around
them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "INTERVAL_MS",
    "Ask",
    "AwaitPatterns",
    "CreateTopic",
    "DeleteTopic",
    "GrowTopic",
    "Pause",
    "Step",
    "Topic",
]

INTERVAL_MS: Final = 1000
"""Default of ``group.consumer.assignment.interval.ms`` (Kafka 4.3 and later)."""


@dataclass(slots=True)
class Topic:
    """A topic that both sides have. ``topic_id`` is the real broker's choice."""

    name: str
    topic_id: bytes
    partitions: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Send one request to both sides and compare the answers. ``action`` names what it tries."""

    action: str
    message: Any
    version: int


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create a topic on both sides, under the id that the real broker gives it. Answered with a
    ``Topic``, once the group coordinators know it."""

    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """Give a topic more partitions, and wait until the group coordinators know it."""

    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class DeleteTopic:
    """Delete a topic, and wait until the group coordinators know it."""

    name: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Let real time pass on both sides."""

    ms: int


@dataclass(frozen=True, slots=True)
class AwaitPatterns:
    """Let both sides resolve the patterns of a group, which they do after the heartbeat's
    answer."""

    group_id: str


Step = Ask | CreateTopic | GrowTopic | DeleteTopic | Pause | AwaitPatterns
