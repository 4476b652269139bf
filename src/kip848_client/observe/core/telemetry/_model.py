"""What the core of telemetry is told, what it asks for, and what it knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = [
    "NO_INSTANCE",
    "Asked",
    "Begun",
    "CloseRequested",
    "Command",
    "Event",
    "Lost",
    "Push",
    "PushAnswered",
    "Subscribe",
    "Subscription",
    "SubscriptionAnswered",
    "Timer",
    "Unserved",
    "Warn",
]

NO_INSTANCE: Final = bytes(16)
"""The instance id of a client that has none yet: a broker gives it one."""

_EVERYTHING: Final = "*"
"""What a broker passes on that was set so; KIP-714 says an empty text."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """What the cluster wants to know of this client."""

    subscription_id: int
    requested: tuple[str, ...]
    """What the names begin with that are wanted; an empty text or ``*`` alone: all; nothing:
    nothing is wanted."""
    push_interval_ms: int
    max_bytes: int
    """Of metrics in one push, before they are compressed and after it."""
    delta: bool
    """Whether counters tell what came since the last push, or since the start."""
    compression_types: tuple[int, ...] = ()
    """What the broker can decompress, best first, by Kafka's numbers."""

    def wants(self, name: str) -> bool:
        """Whether a metric of this name is wanted."""
        return name.startswith(self.requested) or self.requested == (_EVERYTHING,)


# -- events --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begun:
    """The client is connected."""


@dataclass(frozen=True, slots=True)
class SubscriptionAnswered:
    """GetTelemetrySubscriptions was answered."""

    error_code: int
    instance_id: bytes
    subscription: Subscription


@dataclass(frozen=True, slots=True)
class PushAnswered:
    """PushTelemetry was answered; ``size_bytes`` is how much was sent."""

    error_code: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Lost:
    """A request was not answered. ``was_sent``: a broker may have got it."""

    was_sent: bool


@dataclass(frozen=True, slots=True)
class Unserved:
    """No broker takes such requests."""

    why: str


@dataclass(frozen=True, slots=True)
class CloseRequested:
    """The client ends: what is to be said must be said now."""


@dataclass(frozen=True, slots=True)
class Timer:
    """It is as late as the core asked for, or later."""


Event = Begun | SubscriptionAnswered | PushAnswered | Lost | Unserved | CloseRequested | Timer


# -- commands ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Ask any broker what it wants to know."""

    instance_id: bytes


@dataclass(frozen=True, slots=True)
class Push:
    """Send metrics to any broker."""

    instance_id: bytes
    subscription: Subscription
    compression_type: int
    max_bytes: int
    terminating: bool
    """Whether it is the last push of this client."""


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell whoever reads the log."""

    text: str


Command = Subscribe | Push | Warn
Asked = Subscribe | Push
"""What an answer follows."""
