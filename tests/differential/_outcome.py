"""What playing a sequence showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.differential._compare import Difference, texts
from tests.differential._steps import Ask, Step

__all__ = ["Exchange", "Outcome"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and both answers."""

    ask: Ask
    real: Any
    other: Any
    differences: tuple[Difference, ...]


@dataclass(slots=True)
class Outcome:
    """What a sequence showed. ``steps`` has everything in order, exchanges included; a request that
    was sent and answered later is there twice, as the ``Send`` and as the exchange."""

    seed: int
    kind: str = ""
    steps: list[Step | Exchange] = field(default_factory=list)
    trace: str = ""
    """The sequence cut down to what shows its divergence, to be played again; see ``_trace``."""
    too_slow: str = ""
    """Why it could not be played on a machine as busy as this."""

    @property
    def exchanges(self) -> list[Exchange]:
        return [each for each in self.steps if isinstance(each, Exchange)]

    @property
    def divergences(self) -> list[Exchange]:
        """Exchanges in which anything but an error text differs."""
        return [
            each
            for each in self.exchanges
            if any(not difference.is_text for difference in each.differences)
        ]

    @property
    def differing_texts(self) -> list[Difference]:
        return [
            difference
            for each in self.exchanges
            for difference in each.differences
            if difference.is_text
        ]

    @property
    def texts(self) -> int:
        """Error texts that the real broker gave."""
        return sum(texts(each.real) for each in self.exchanges)
