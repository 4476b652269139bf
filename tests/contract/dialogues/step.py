"""One request of a dialogue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mock_coordinator.core.release_line import ReleaseLine

__all__ = ["FIRST_LINE", "IdOf", "Step", "ask"]

FIRST_LINE = ReleaseLine(4, 0)


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
    since: ReleaseLine = FIRST_LINE


def ask(
    api: str, version: int | None = None, since: ReleaseLine = FIRST_LINE, **values: Any
) -> Step:
    """A step."""
    return Step(api, values, version, since)
