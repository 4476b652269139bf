"""The definition of a metric: name, group, statistics. The tables are in the neighbouring
modules."""

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
    """The definition of a sensor or a gauge."""

    name: str
    """The prefix of the names of its metrics; a gauge's whole name."""
    group: str
    """Its group of Kafka's metrics."""
    statistics: tuple[Statistic, ...]
    meaning: str
    unit: str = ""
    """``ms``, ``ns``, ``seconds``, ``bytes``, or none."""
    labels: tuple[str, ...] = ()
    """Labels besides ``client-id`` and, for consumers and workers, ``group-id``, which all have."""
    of: str = ""
    """``topic``, ``partition`` or ``node`` if the whole client also has a metric of this name. (In
    Kafka they share one name; elsewhere one name has one set of labels.)"""
    ours: bool = False
    """Whether the metric does not exist in Kafka's client."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its metrics."""
        return tuple(f"{self.name}-{each.value}".rstrip("-") for each in self.statistics)

    @property
    def client(self) -> str:
        """The kind of client: ``consumer``, ``producer`` or ``connect`` (a worker)."""
        return self.group.partition("-")[0]

    @property
    def is_gauge(self) -> bool:
        """Whether it is read on demand and not recorded."""
        return self.statistics == GAUGE

    @property
    def is_timing(self) -> bool:
        """Whether it records durations or sizes, with statistics beyond the sum."""
        return Statistic.MAX in self.statistics
