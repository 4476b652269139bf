"""What a sequence consists of: requests to compare, and the few things that must happen around
them.

A step is data, so that a sequence can be written down, cut down and played again. ``channel`` says
which connection a request goes through: requests that wait for others (JoinGroup, SyncGroup) hold
theirs until they are answered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "INTERVAL_MS",
    "Ask",
    "AwaitGone",
    "AwaitPatterns",
    "AwaitValue",
    "CreateTopic",
    "DeleteTopic",
    "Gather",
    "GrowTopic",
    "Pause",
    "Send",
    "SettleMetadata",
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
    """Send one request to both sides and compare the answers. ``action`` names what it tries.

    The result is the real broker's answer. ``lost`` says that the client of this sequence never
    sees it: the answers are compared all the same, and whoever plays a client must go on as if
    none had come.
    """

    action: str
    message: Any
    version: int
    channel: int = 0
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Send one request whose answer may come much later, and see whose answers came by it.

    The result maps channels to the real broker's answers: that of this request if it came at once,
    and those of requests sent before that did not wait any longer.
    """

    action: str
    message: Any
    version: int
    channel: int


@dataclass(frozen=True, slots=True)
class Gather:
    """Compare the answers that have come for requests sent before; the result is that of ``Send``.
    With ``any_within_ms`` wait until one is answered (a timer ends the wait)."""

    any_within_ms: int = 0


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create a topic on both sides, under the id that the real broker gives it. Answered with a
    ``Topic``, once the group coordinators know it."""

    name: str
    partitions: int
    configs: tuple[tuple[str, str], ...] = ()


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


@dataclass(frozen=True, slots=True)
class AwaitGone:
    """Wait until a group's description has none of these members: their timers ended. Until
    ``not_before_ms`` after the step began, both sides must still have all of them."""

    group_id: str
    member_ids: tuple[str, ...]
    not_before_ms: int = 0
    is_classic: bool = False


@dataclass(frozen=True, slots=True)
class AwaitValue:
    """Repeat a request until a field of the real broker's answer has one of these values, then
    until the other side's answer is equal. ``path`` is ``"groups.0.group_state"``, say."""

    action: str
    message: Any
    version: int
    path: str
    wanted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettleMetadata:
    """Wait until the real broker acts upon every change of topics and settings made so far."""


Step = (
    Ask
    | Send
    | Gather
    | CreateTopic
    | GrowTopic
    | DeleteTopic
    | Pause
    | AwaitPatterns
    | AwaitGone
    | AwaitValue
    | SettleMetadata
)
