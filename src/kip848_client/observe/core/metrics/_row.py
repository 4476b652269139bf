"""What a metric is: its name, its group, what is made of it. The tables are beside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kip848_client.observe.core.metrics._sensors import Statistic

__all__ = ["AVERAGE", "GAUGE", "HOURLY", "METER", "SUMMED", "TIMING", "TOTAL", "Row"]

METER: Final = (Statistic.RATE, Statistic.TOTAL)
HOURLY: Final = (Statistic.HOURLY, Statistic.TOTAL)
TIMING: Final = (Statistic.AVG, Statistic.MAX)
SUMMED: Final = (Statistic.AVG, Statistic.MAX, Statistic.TOTAL)
AVERAGE: Final = (Statistic.AVG,)
TOTAL: Final = (Statistic.TOTAL,)
GAUGE: Final = (Statistic.VALUE,)


@dataclass(frozen=True, slots=True)
class Row:
    """A sensor, or a gauge."""

    name: str
    """The beginning of the names of its metrics; a gauge's whole name."""
    group: str
    """The group of Kafka's metrics that it is in."""
    statistics: tuple[Statistic, ...]
    meaning: str
    unit: str = ""
    """``ms``, ``ns``, ``seconds``, ``bytes``, or none."""
    labels: tuple[str, ...] = ()
    """Beside ``client-id`` and, of consumers and workers, ``group-id``, which all have."""
    of: str = ""
    """``topic``, ``partition`` or ``node`` where there is a metric of the whole client with this
    name, too. (To Kafka they are one name; elsewhere one name has one set of labels.)"""
    ours: bool = False
    """Kafka's client has no such metric."""

    @property
    def names(self) -> tuple[str, ...]:
        """The metrics that are made of it."""
        return tuple(f"{self.name}-{each.value}".rstrip("-") for each in self.statistics)

    @property
    def client(self) -> str:
        """Whose it is: ``consumer``, ``producer`` or ``connect`` (a worker)."""
        return self.group.partition("-")[0]

    @property
    def is_gauge(self) -> bool:
        """Whether it is looked at and not recorded."""
        return self.statistics == GAUGE

    @property
    def is_timing(self) -> bool:
        """Whether its records are durations or sizes, of which more than the sum matters."""
        return Statistic.MAX in self.statistics
