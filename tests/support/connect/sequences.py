"""Random histories of a group of workers: who is there, what is configured, what time it is."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Cluster"]

_NAMES: Final = ("A", "B", "jdbc-2", "mm2.heartbeat", "é-bron", "\U0001f600", "sink", "Aa", "BB")


@dataclass
class Cluster:
    """Workers and connectors that come and go; ``change`` takes one step."""

    rng: random.Random
    max_delay_ms: int = 300_000
    connectors: dict[str, int] = field(default_factory=dict[str, int])
    workers: list[str] = field(default_factory=list[str])
    away: list[str] = field(default_factory=list[str])
    now_ms: int = 1_000_000_000
    joined: int = 0

    def begin(self) -> Cluster:
        """Some workers and some connectors."""
        rng = self.rng
        self.max_delay_ms = rng.choice([300_000, 300_000, 300_000, 0, 1, 1_000, 60_000])
        for name in rng.sample(_NAMES, rng.randint(0, 5)):
            self.connectors[name] = rng.randint(0, 9)
        for _ in range(rng.randint(1, 6)):
            self._join()
        return self

    def _join(self) -> None:
        self.joined += 1
        number = self.rng.randrange(10_000)
        self.workers.append(f"connect-10.0.0.{self.joined}:8083-{number:x}")

    def change(self) -> int:
        """Up to three changes, and some time; how many milliseconds."""
        rng = self.rng
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            what = rng.random()
            if what < 0.3:
                self._join()
            elif what < 0.55 and len(self.workers) > 1:
                gone = rng.choice(self.workers)
                self.workers.remove(gone)
                self.away.append(gone)
            elif what < 0.75 and self.away:
                back = self.away.pop(rng.randrange(len(self.away)))
                self.workers.append(back)
            elif what < 0.9:
                self.connectors[rng.choice(_NAMES)] = rng.randint(0, 9)
            elif self.connectors:
                del self.connectors[rng.choice(sorted(self.connectors))]
        passed = rng.choice([0, 0, 1, 40, 1_600, self.max_delay_ms // 2, self.max_delay_ms])
        self.now_ms += passed
        return passed
