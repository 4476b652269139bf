"""The metrics of group coordinators, with the names of KIP-848 and of Kafka.

Events are counted as records are written and partitions loaded; gauges are computed when they are
read. All coordinators of a cluster are counted together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kip848_client.observe.core.metrics import Sensor, Statistic
from mock_coordinator.core.groups.records.state_records import (
    GroupEpochMetadata,
    OffsetCommit,
    StateRecord,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.groups_state import Group
from mock_coordinator.core.groups.state.reconciled_group import GroupState, GroupType

__all__ = ["CoordinatorMeter", "CoordinatorMetric"]

_NO_TAGS: Final[Mapping[str, str]] = {}
_STATES: Final = (
    GroupState.EMPTY,
    GroupState.ASSIGNING,
    GroupState.RECONCILING,
    GroupState.STABLE,
    GroupState.DEAD,
)


class CoordinatorMetric(NamedTuple):
    """One metric of the group ``group-coordinator-metrics`` as it is now."""

    name: str
    """As in Kafka, e.g. ``consumer-group-count``."""
    tags: Mapping[str, str]
    """As in Kafka, e.g. ``{"state": "stable"}``."""
    value: float
    """NaN for an average or a maximum where nothing happened for a minute."""


class CoordinatorMeter:
    """Counts; ``now_ms`` is when it begins."""

    def __init__(self, now_ms: int) -> None:
        self._rebalances = Sensor(now_ms, buckets=False)
        self._commits = Sensor(now_ms, buckets=False)
        self._loads = Sensor(now_ms, buckets=False)

    def wrote(self, now_ms: int, records: Iterable[StateRecord]) -> None:
        """A coordinator has written these."""
        for record in records:
            if isinstance(record, OffsetCommit):
                if record.value is not None:
                    self._commits.record(now_ms)
            elif isinstance(record, GroupEpochMetadata) and record.value is not None:
                self._rebalances.record(now_ms)

    def loaded(self, now_ms: int, took_ms: int) -> None:
        """A partition of ``__consumer_offsets`` was loaded."""
        self._loads.record(now_ms, took_ms)

    def read(
        self, now_ms: int, groups: Sequence[Group], partitions: Mapping[str, int]
    ) -> Iterator[CoordinatorMetric]:
        """All of them, in order of their names. ``partitions``: how many are in which state."""
        states = Counter(each.state for each in groups if isinstance(each, ConsumerGroup))
        for state in _STATES:
            tags = {"state": state.lower()}
            yield CoordinatorMetric("consumer-group-count", tags, states[state])
        yield from self._meter("consumer-group-rebalance", self._rebalances, now_ms)
        types = Counter(each.type for each in groups)
        for type_ in GroupType:
            yield CoordinatorMetric("group-count", {"protocol": type_.value}, types[type_])
        for state_name, count in partitions.items():
            yield CoordinatorMetric("num-partitions", {"state": state_name}, count)
        yield from self._meter("offset-commit", self._commits, now_ms)
        for statistic in (Statistic.AVG, Statistic.MAX):
            value = self._loads.read(statistic, now_ms)
            yield CoordinatorMetric(f"partition-load-time-{statistic.value}", _NO_TAGS, value)

    @staticmethod
    def _meter(name: str, sensor: Sensor, now_ms: int) -> Iterator[CoordinatorMetric]:
        yield CoordinatorMetric(f"{name}-count", _NO_TAGS, sensor.total)
        rate = sensor.read(Statistic.RATE, now_ms)
        yield CoordinatorMetric(f"{name}-rate", _NO_TAGS, rate)
