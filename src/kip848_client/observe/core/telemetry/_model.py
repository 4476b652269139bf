"""Events, commands and state of the telemetry core."""

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
"""The instance id of a client that has none yet: a broker assigns one."""

_EVERYTHING: Final = "*"
"""Some brokers pass on ``*`` if configured so; KIP-714 specifies an empty text."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The cluster's subscription to this client's metrics."""

    subscription_id: int
    requested: tuple[str, ...]
    """Prefixes of the wanted names; an empty text, or ``*`` alone, means all; none means no
    metrics."""
    push_interval_ms: int
    max_bytes: int
    """Maximum size of the metrics in one push, both before and after compression."""
    delta: bool
    """Whether counters are pushed as differences since the last push, or totals since the start."""
    compression_types: tuple[int, ...] = ()
    """Compressions supported by the broker, best first, by Kafka's numbers."""

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
    """A request was not answered. ``was_sent``: a broker may have received it."""

    was_sent: bool


@dataclass(frozen=True, slots=True)
class Unserved:
    """No broker supports such requests."""

    why: str


@dataclass(frozen=True, slots=True)
class CloseRequested:
    """The client is closing: push for the last time now."""


@dataclass(frozen=True, slots=True)
class Timer:
    """``due_ms`` was reached."""


Event = Begun | SubscriptionAnswered | PushAnswered | Lost | Unserved | CloseRequested | Timer


# -- commands ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Request the subscription from any broker."""

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
    """Log a warning."""

    text: str


Command = Subscribe | Push | Warn
Asked = Subscribe | Push
"""Commands with an answer."""
