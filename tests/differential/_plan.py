"""What a sequence is played on, and what a kind of sequences is."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mock_coordinator.core.release_line import ReleaseLine
from tests.differential._steps import Step, Topic

__all__ = ["Answered", "Kind", "Plan", "Steps", "TooSlowError"]

Steps = Generator[Step, Any, None]
"""A sequence: yields steps, is sent each step's result."""


Answered = Generator[Step, Any, Any]
"""A part of a sequence that ends with an answer."""


_FIRST_LINE: Final = ReleaseLine(4, 0)


class TooSlowError(Exception):
    """The machine was too busy for a sequence whose answers depend on real time; play it again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sequence is played on. ``topics`` exist on both sides already; ``offered`` are the
    version ranges that the real broker and we share, by API name; ``attempt`` counts the times that
    it was begun, because each needs groups and topics that nobody has used."""

    seed: int
    topics: Sequence[Topic]
    offered: Mapping[str, tuple[int, int]]
    has_interval: bool = False
    attempt: int = 0
    now_ms: Callable[[], float] = field(default=lambda: time.monotonic() * 1000)

    @property
    def label(self) -> str:
        return f"{self.seed}x{self.attempt}" if self.attempt else str(self.seed)

    @property
    def prefix(self) -> str:
        """What the sequence's group ids begin with."""
        return f"diff-{self.label}"

    @property
    def topic_prefix(self) -> str:
        """What the sequence's own topics begin with."""
        return f"new-{self.label}"

    def again(self, attempt: int) -> Plan:
        """The same plan for another attempt."""
        return replace(self, attempt=attempt)


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of sequences.

    ``share`` of a hundred seeds are of this kind. ``configs`` are broker settings beyond the common
    ones: kinds with the same ones share a broker. ``since`` is the first release line that has what
    the kind is about.
    """

    name: str
    share: int
    sequence: Callable[[Plan], Steps]
    configs: Mapping[str, str] = field(default_factory=dict[str, str])
    since: ReleaseLine = _FIRST_LINE
    has_interval: bool = False
    secure: bool = False
    """Played on brokers with an authorizer, by users; see ``_users``."""
