"""The metrics of all clients of a process, read on demand.

One ``Metrics`` may be given to many clients. Each has a ``ClientMetrics`` in it from its start to
its end. Readers (the thread of a web server or an exporter) may be in other threads: they read
copies, in which the values of one sensor may be a record older than those of the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from kip848_client.observe.core.metrics._row import Row
from kip848_client.observe.core.metrics._sensors import Sensor, Statistic

__all__ = ["ClientMetrics", "Labels", "Metrics", "Reading", "Sample"]

_CLIENT_ID: Final = "client-id"

Labels = tuple[str, ...]
"""Values of the labels of a row, in its order."""
Reading = Mapping[Labels, float]
"""A gauge's values, by labels; ``()`` if it has none."""


class Sample(NamedTuple):
    """The current value of one metric."""

    name: str
    """Kafka's name, e.g. ``rebalance-latency-avg``."""
    group: str
    """Kafka's group of metrics, e.g. ``consumer-coordinator-metrics``."""
    tags: Mapping[str, str]
    """``client-id``, ``group-id`` and the other tags that distinguish it from metrics of the same
    name."""
    value: float
    """NaN for an average or a maximum where nothing happened for a minute."""
    row: Row
    statistic: Statistic


class ClientMetrics:
    """The metrics of one client. ``now_ms`` is the clock used for recording."""

    def __init__(
        self, tags: Mapping[str, str], now_ms: Callable[[], int], *, per_partition: bool
    ) -> None:
        self.tags = dict(tags)
        self.now_ms = now_ms
        self.per_partition = per_partition
        """Whether gauges of single partitions are wanted."""
        self._sensors: dict[tuple[Row, Labels], Sensor] = {}
        self._gauges: dict[Row, Callable[[], Reading]] = {}

    def sensor(self, row: Row, *labels: str) -> Sensor:
        """Return the sensor to record with. Keep it if it is used often."""
        found = self._sensors.get((row, labels))
        if found is None:
            found = Sensor(self.now_ms(), buckets=row.is_timing and row.unit == "ms")
            self._sensors[row, labels] = found
        return found

    def record(self, row: Row, now_ms: int, value: float, *labels: str) -> None:
        """Record with a sensor that is not used often."""
        self.sensor(row, *labels).record(now_ms, value)

    def gauge(self, row: Row, read: Callable[[], Reading]) -> None:
        """Add a gauge. ``read`` is called at each reading; it may be called in any thread."""
        self._gauges[row] = read

    def sensors(self) -> list[tuple[Row, Labels, Sensor]]:
        """All sensors, even without records."""
        return [(row, labels, each) for (row, labels), each in list(self._sensors.items())]

    def gauges(
        self, wanted: Callable[[Row], bool] | None = None
    ) -> Iterator[tuple[Row, Labels, float]]:
        """Return the current values of gauges. Unwanted gauges are not read."""
        for row, read in list(self._gauges.items()):
            if wanted is not None and not wanted(row):
                continue
            if self.per_partition or "partition" not in row.labels:
                for labels, value in read().items():
                    yield row, labels, value

    def samples(self) -> Iterator[Sample]:
        """Return the current value of every metric."""
        now_ms = self.now_ms()
        for row, labels, sensor in self.sensors():
            tags = self.tags_of(row, labels)
            for name, statistic in zip(row.names, row.statistics, strict=True):
                value = sensor.read(statistic, now_ms)
                yield Sample(name, row.group, tags, value, row, statistic)
        for row, labels, value in self.gauges():
            tags = self.tags_of(row, labels)
            yield Sample(row.name, row.group, tags, value, row, Statistic.VALUE)

    def tags_of(self, row: Row, labels: Labels) -> dict[str, str]:
        """Return the client's tags and those of a row."""
        return {**self.tags, **dict(zip(row.labels, labels, strict=True))}


class Metrics:
    """The metrics of any number of clients. Without one a client counts nothing.

    Give it to clients as their setting: ``Consumer(..., metrics=metrics)``, ``Producer`` too.
    ``samples`` returns them by Kafka's names; ``kip848_client.prometheus`` and
    ``kip848_client.otel`` pass them to monitoring systems. The metrics of a client end with its
    ``stop``.

    If two clients have the same tags (``client_id``, and ``group_id``), the second gets a number
    after its ``client-id``, so that they can be distinguished.

    Args:
        per_partition: Keep the metrics of single partitions (``records-lag``, ``records-lead``).
            With thousands of partitions they are the largest part.
    """

    def __init__(self, *, per_partition: bool = True) -> None:
        self._per_partition = per_partition
        self._clients: list[ClientMetrics] = []

    def __repr__(self) -> str:
        return f"<Metrics of {len(self._clients)} clients>"

    def open(self, tags: Mapping[str, str], now_ms: Callable[[], int]) -> ClientMetrics:
        """Add a client. Clients call this; ``close`` removes it. Raises nothing.

        Args:
            tags: The client's tags, such as ``client-id``.
            now_ms: The client's clock, in milliseconds.

        Returns:
            The client's metrics.
        """
        client = ClientMetrics(self._own(tags), now_ms, per_partition=self._per_partition)
        self._clients.append(client)
        return client

    def _own(self, tags: Mapping[str, str]) -> Mapping[str, str]:
        """Return these tags, made unique among the clients."""
        taken = [client.tags for client in self._clients]
        if tags not in taken or _CLIENT_ID not in tags:
            return tags
        numbered = ({**tags, _CLIENT_ID: f"{tags[_CLIENT_ID]}-{n}"} for n in itertools.count(2))
        return next(each for each in numbered if each not in taken)

    def close(self, client: ClientMetrics) -> None:
        """Remove a client. You may call it more than once. Raises nothing.

        Args:
            client: What ``open`` returned.
        """
        if client in self._clients:
            self._clients.remove(client)

    @property
    def clients(self) -> tuple[ClientMetrics, ...]:
        """The open clients, for exporters."""
        return tuple(self._clients)

    def samples(self) -> list[Sample]:
        """Read every metric of every client. Raises nothing.

        Returns:
            One sample per metric and tags, with its value now.
        """
        return [sample for client in self.clients for sample in client.samples()]

    def value(self, name: str, **tags: str) -> float:
        """Add up the metrics of one name and some tags.

        For example ``metrics.value("fenced-total", cause="UNKNOWN_MEMBER_ID")``. Some metrics exist
        for the whole client and for each topic, partition or broker: the client's count unless a
        tag names one of these, as in ``metrics.value("record-send-total", topic="orders")``. Raises
        nothing.

        Args:
            name: Kafka's name of the metric.
            **tags: Tags that a metric must have, with ``_`` for ``-``.

        Returns:
            The sum; 0.0 if there is no such metric.
        """
        wanted = {tag.replace("_", "-"): value for tag, value in tags.items()}
        return sum(
            each.value
            for each in self.samples()
            if each.name == name
            and wanted.items() <= each.tags.items()
            and (not each.row.of or wanted.keys() & set(each.row.labels))
        )
