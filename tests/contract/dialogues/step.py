"""One request of a dialogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["IdOf", "Step", "ask"]


@dataclass(frozen=True, slots=True)
class IdOf:
    """Stands for the id of a topic, which differs from broker to broker."""

    topic: str


@dataclass(frozen=True, slots=True)
class Step:
    """A request by Kafka's name and our field names (``tests.support.plain_message``).

    ``version`` of the request, ``None`` for the highest that both brokers offer. ``since`` is the
    first release line that is asked.
    """

    api: str
    values: dict[str, Any]
    version: int | None = None
    since: str = "4.0"


def ask(api: str, version: int | None = None, since: str = "4.0", **values: Any) -> Step:
    """A step."""
    return Step(api, values, version, since)
